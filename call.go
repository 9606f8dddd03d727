package famcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/invoke"
	"github.com/famcp/famcp/internal/runtime/token"
)

// Call is one request to a handler. It may be used from several goroutines of
// the handler; once the answer is out its methods do nothing.
type Call struct{ c *invoke.Call }

// ID returns the request id, which is in every log line and error of this
// request and in the response header X-Request-Id.
func (c *Call) ID() string { return c.c.Facts.RequestID }

// Era returns "modern" or "legacy".
func (c *Call) Era() string { return c.c.Facts.Era.String() }

// Version returns the protocol revision spoken, such as "2026-07-28".
func (c *Call) Version() string { return c.c.Version() }

// Subject returns who calls: "stdio", or the client's address while
// authentication is off.
func (c *Call) Subject() string { return c.c.Facts.Subject }

// Scopes returns the scopes granted to the caller. While authentication is
// off nothing is granted by name and every scope is satisfied: see HasScope.
func (c *Call) Scopes() []string { return slices.Clone(c.c.Facts.Scopes) }

// HasScope reports whether the caller may do what scope stands for.
func (c *Call) HasScope(scope string) bool {
	return c.c.Facts.AllScopes || slices.Contains(c.c.Facts.Scopes, scope)
}

// Claim returns a claim of the caller's token, or nil. Numbers are json.Number.
func (c *Call) Claim(name string) any { return token.Clone(c.c.Facts.Claims[name]) }

// Client returns what the client says of itself; the zero value when it says
// nothing.
func (c *Call) Client() mcp.Implementation { return c.c.Client() }

// Header returns an HTTP header of the request, or "". Credentials are never
// there, and on stdio nothing is.
func (c *Call) Header(name string) string { return c.c.Facts.Header.Get(name) }

// Log returns the server's logger with the request id and the feature's name.
func (c *Call) Log() *slog.Logger { return c.c.Log() }

// Level is the severity of a message for the client, by RFC 5424.
type Level string

const (
	LevelDebug     Level = "debug"
	LevelInfo      Level = "info"
	LevelNotice    Level = "notice"
	LevelWarning   Level = "warning"
	LevelError     Level = "error"
	LevelCritical  Level = "critical"
	LevelAlert     Level = "alert"
	LevelEmergency Level = "emergency"
)

// Notify sends a log message to the client, if it asked for that level. Data
// may be nil.
func (c *Call) Notify(level Level, message string, data any) {
	c.c.Notify(string(level), message, data)
}

// Progress tells a client that asked for it how far the call is. Total is 0
// when it is not known. Only values above the last are sent, and messages in
// quick succession are thinned out. Once the call is a task the message is that
// of the task's status.
func (c *Call) Progress(done, total float64, message string) { c.c.Progress(done, total, message) }

// Task returns the id of the task that the call has become; ok is false while
// it has not.
func (c *Call) Task() (id string, ok bool) { return c.c.Task() }

// Round returns how often the handler has already run for this request, each
// time ending in a question: 0 the first time.
func (c *Call) Round() int { return c.c.Round() }

// Argument returns what was already given for another argument of the prompt
// or template that is being completed, or "".
func (c *Call) Argument(name string) string { return c.c.Completed[name] }

// Capability is something a client can be asked for.
type Capability string

const (
	CanElicit Capability = "elicitation"     // a form or a confirmation
	CanVisit  Capability = "elicitation.url" // a page to visit
	CanSample Capability = "sampling"        // a completion by its model
	CanRoots  Capability = "roots"           // its workspace folders
)

// Can reports whether the client declared the capability and this request's
// channel can carry the question.
func (c *Call) Can(what Capability) bool { return c.c.Can(invoke.Capability(what)) }

type callKey struct{}

// CallFrom returns the call that a handler's context belongs to, for code deep
// below the handler, or nil.
func CallFrom(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

// wrap pairs the pipeline's call with the public one.
func wrap(ctx context.Context, c *invoke.Call) (context.Context, *Call) {
	public := &Call{c: c}
	return context.WithValue(ctx, callKey{}, public), public
}

func decode[T any](raw json.RawMessage) (T, error) {
	var v T
	err := json.Unmarshal(raw, &v)
	return v, err
}
