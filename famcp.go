// Package famcp is the runtime of MCP (Model Context Protocol) servers made
// with the famcp command: it wraps the official Go SDK and adds what a
// production server owes its users.
//
// A program registers its features on a [Server] and hands it to [Main]:
//
//	func main() { famcp.Main(build) }
//
//	func build(ctx context.Context, cfg *famcp.Config) (*famcp.Server, error) {
//		s, err := famcp.New(cfg, famcp.Info{Name: "clock", Version: "1.0.0"})
//		if err != nil {
//			return nil, err
//		}
//		famcp.AddTool(s, famcp.Tool{
//			Name: "now", Description: "Tells the time.", Effect: famcp.ReadOnly(),
//		}, func(context.Context, *famcp.Call, struct{}) (string, error) {
//			return time.Now().Format(time.RFC3339), nil
//		})
//		return s, nil
//	}
//
// The one server answers both protocol eras, on HTTP at /mcp and on stdio:
// the modern one, revision 2026-07-28, without sessions, and the legacy one,
// revisions 2024-11-05 to 2025-11-25, with them. A handler need not know
// which it serves.
//
// # Asking the user
//
// [Call.Confirm], [Elicit] and the like never block. The first time they
// return [ErrAsked], which the handler returns; when the answer is there, the
// handler runs again from the top and the same line returns it. So do what
// changes the world after the last question, and wrap what is costly before it
// in [Keep].
//
// # Errors
//
// What a handler returns as an error is hidden from clients ("internal
// error", with a request id for the log) unless it comes from [Failf],
// [Invalidf] or another constructor of [Error], whose message goes out.
package famcp
