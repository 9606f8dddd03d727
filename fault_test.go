package famcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/famcptest"
)

type nothing struct{}

// newServer returns a server without features, for tests.
func newServer(t testing.TB, change func(*famcp.Config)) *famcp.Server {
	t.Helper()
	cfg := famcp.DefaultConfig()
	cfg.Logger.Level, cfg.MCP.RateLimit.MaxRequests = "error", 1_000_000_000
	if change != nil {
		change(cfg)
	}
	s, err := famcp.New(cfg, famcp.Info{Name: "sample", Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// reader is a tool that changes nothing.
func reader(name string) famcp.Tool {
	return famcp.Tool{Name: name, Description: "Does " + name + ".", Effect: famcp.ReadOnly()}
}

// TestErrorsOfOthersStayInside: an error of an upstream MCP server is a
// JSON-RPC error too, but nothing of it goes out.
func TestErrorsOfOthersStayInside(t *testing.T) {
	for _, code := range []int64{-32602, -32603, 7} {
		build := func(t testing.TB) *famcp.Server {
			s := newServer(t, nil)
			upstream := &jsonrpc.Error{Code: code, Message: "dsn postgres://u:p@h", Data: json.RawMessage(`{"dsn":"secret"}`)}
			broken := fmt.Errorf("reading /etc/secret: %w", upstream)
			famcp.AddTool(s, reader("broken"), func(context.Context, *famcp.Call, nothing) (string, error) { return "", broken })
			s.AddResource(famcp.Resource{URI: "broken://a", Name: "a"}, func(context.Context, *famcp.Call) (famcp.Contents, error) {
				return famcp.Contents{}, broken
			})
			famcp.AddPrompt(s, famcp.Prompt{Name: "broken", Description: "Breaks."}, func(context.Context, *famcp.Call, struct {
				A string `json:"a,omitempty"`
			},
			) ([]famcp.Message, error) {
				return nil, broken
			})
			s.Complete("broken", "a", func(context.Context, *famcp.Call, string) ([]string, error) { return nil, broken })
			return s
		}
		famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
			for what, res := range map[string]*famcptest.Result{
				"tool": c.CallTool("broken", nil), "resource": c.Read("broken://a"), "prompt": c.Prompt("broken", nil),
				"completion": c.Request("completion/complete", map[string]any{
					"ref": map[string]any{"type": "ref/prompt", "name": "broken"}, "argument": map[string]any{"name": "a", "value": ""},
				}),
			} {
				if res.Err == nil || res.Err.Code != -32603 || res.Err.Message != "internal error" || strings.Contains(string(res.Err.Data), "secret") {
					t.Errorf("code %d, %s: got %v, want an internal error", code, what, res.Err)
				}
			}
		})
	}
}

func TestNumbersThatNoTypeHolds(t *testing.T) {
	build := func(t testing.TB) *famcp.Server {
		s := newServer(t, nil)
		bounded := reader("bounded")
		bounded.InputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"number","minimum":0,"maximum":10}}}`)
		famcp.AddTool(s, bounded, func(_ context.Context, _ *famcp.Call, in json.RawMessage) (string, error) { return string(in), nil })
		small := reader("small")
		small.InputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"number"}}}`)
		famcp.AddTool(s, small, func(_ context.Context, _ *famcp.Call, in struct {
			N int8 `json:"n"`
		},
		) (int8, error) {
			return in.N, nil
		})
		return s
	}
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		for _, tt := range []struct{ tool, args, want string }{
			{"bounded", `{"n":1e400}`, "invalid arguments: n: is out of range"},
			{"bounded", `{"n":-1e400}`, "invalid arguments: n: is out of range"},
			{"small", `{"n":300}`, "n: is out of range or not of the right type"},
			{"small", `{"n":1.5}`, "n: is out of range or not of the right type"},
		} {
			if res := c.CallTool(tt.tool, json.RawMessage(tt.args)); !res.IsError || res.Text() != tt.want {
				t.Errorf("%s %s: got %v %q, want %q", tt.tool, tt.args, res.Err, res.Text(), tt.want)
			}
		}
	})
}
