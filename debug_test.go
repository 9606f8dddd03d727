package famcp_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/famcptest"
)

func newDebug(t testing.TB) *famcp.Server {
	return newServer(t, func(c *famcp.Config) {
		c.MCP.Debug.BuiltinTools = true
		c.MCP.Progress.Throttle = 0
		c.MCP.Limits.MaxToolResultBytes = 1 << 20
		c.Logger.Level = "error"
	})
}

// TestDebugTools yield every shape of answer, in both eras.
func TestDebugTools(t *testing.T) {
	famcptest.Eras(t, newDebug, func(t *testing.T, c *famcptest.Client) {
		modern := c.Era() == "modern"
		kinds := func(res *famcptest.Result) []string {
			var out []string
			for _, content := range res.Content {
				switch content := content.(type) {
				case *mcp.TextContent:
					out = append(out, "text")
				case *mcp.ImageContent:
					out = append(out, content.MIMEType)
				case *mcp.AudioContent:
					out = append(out, content.MIMEType)
				case *mcp.ResourceLink:
					out = append(out, content.URI)
				case *mcp.EmbeddedResource:
					out = append(out, content.Resource.URI)
				}
			}
			return out
		}
		for kind, want := range map[string][]string{
			"text": {"text"}, "image": {"image/png"}, "audio": {"audio/wav"}, "resource_link": {"project://version"},
			"embedded_text": {"debug://text"}, "embedded_blob": {"debug://blob"}, "annotated": {"text"}, "empty": nil,
			"mixed": {"text", "image/png", "audio/wav", "project://version", "debug://text", "debug://blob", "text"},
		} {
			res := c.CallTool("debug_content", map[string]any{"kind": kind})
			if diff := cmp.Diff(want, kinds(res)); diff != "" || res.Err != nil {
				t.Errorf("content %s: %v (-want +got):\n%s", kind, res.Err, diff)
			}
		}
		for kind, want := range map[string][]string{"plain": {"text"}, "with_content": {"text", "image/png"}, "nested": {"text"}} {
			res := c.CallTool("debug_structured", map[string]any{"kind": kind})
			if diff := cmp.Diff(want, kinds(res)); diff != "" || !strings.Contains(string(res.Structured), `"big":9007199254740993`) {
				t.Errorf("structured %s: %v %s (-want +got):\n%s", kind, res.Err, res.Structured, diff)
			}
		}
		for _, tt := range []struct {
			kind   string
			modern int64 // code; 0 is a result with isError
			legacy int64
		}{
			{"failed", 0, 0},
			{"not_found", 0, 0},
			{"invalid", 0, 0},
			{"rate_limited", -32003, 0},
			{"conflict", -32007, -32007},
			{"unavailable", -32006, -32006},
			{"internal", -32603, -32603},
			{"panic", -32603, -32603},
			{"bad_output", -32603, -32603},
		} {
			want := tt.legacy
			if modern {
				want = tt.modern
			}
			res := c.CallTool("debug_error", map[string]any{"kind": tt.kind})
			if want == 0 && !res.IsError || want != 0 && (res.Err == nil || res.Err.Code != want) {
				t.Errorf("error %s: got %v %s, want %d", tt.kind, res.Err, res.Raw, want)
			}
		}
		if res := c.CallTool("debug_error", map[string]any{"kind": "nonsense"}); !res.IsError || !strings.Contains(res.Text(), "kind") {
			t.Errorf("an unknown kind: %v %s", res.Err, res.Raw)
		}
		c.CallTool("debug_progress", map[string]any{"steps": 3, "delayMs": 0})
		if got := c.Notifications().Progress(); len(got) != 3 || got[2].Progress != 3 || got[2].Total != 3 {
			t.Errorf("progress: %+v", got)
		}
		if res := c.CallTool("debug_log", nil); res.Err != nil || !modern && len(c.Notifications().Logs()) != 8 {
			t.Errorf("log: %v, %d messages", res.Err, len(c.Notifications().Logs()))
		}
		c.Answer(func(q famcptest.Question) famcptest.Answer {
			switch {
			case q.Method == "sampling/createMessage":
				return famcptest.Completion("hello")
			case q.Method == "roots/list":
				return famcptest.Roots("file:///a", "file:///b")
			case q.URL != "":
				return famcptest.Accept(nil)
			case strings.Contains(string(q.Schema), "confirm"):
				return famcptest.Confirm(true)
			}
			return famcptest.Accept(map[string]any{"name": "n", "count": 2, "yes": true})
		})
		want := "confirm: confirmed true\nform: name \"n\", count 2, yes true\nvisit: visited\nsample: the model is famcptest\nroots: 2 roots"
		if res := c.CallTool("debug_ask", map[string]any{"kind": "all"}); res.Text() != want || res.Asked != 5 {
			t.Errorf("asked %d: %v %q", res.Asked, res.Err, res.Text())
		}
		if res := c.CallTool("debug_large", map[string]any{"bytes": 2 << 20}); !strings.Contains(res.Text(), "[truncated: the result had") || len(res.Raw) > 1<<20+1024 {
			t.Errorf("large: %v, %d bytes", res.Err, len(res.Raw))
		}
		if res := c.CallTool("debug_slow", map[string]any{"delayMs": 1}); res.Err != nil || res.IsError {
			t.Errorf("slow: %v %s", res.Err, res.Raw)
		}
	})
}

// TestDebugToolsTimeOut, those that mind and those that do not.
func TestDebugToolsTimeOut(t *testing.T) {
	build := func(t testing.TB) *famcp.Server {
		return newServer(t, func(c *famcp.Config) {
			c.MCP.Debug.BuiltinTools = true
			c.MCP.Limits.ToolTimeout = 1
		})
	}
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		for tool, args := range map[string]any{
			"debug_error": map[string]any{"kind": "timeout"},
			"debug_slow":  map[string]any{"delayMs": 300, "stubborn": true},
		} {
			res := c.CallTool(tool, args)
			if c.Era() == "modern" && (res.Err == nil || res.Err.Code != -32004 || res.Err.Status != 504) || c.Era() == "legacy" && !res.IsError {
				t.Errorf("%s: got %v %s", tool, res.Err, res.Raw)
			}
		}
	})
}

// TestDebugToolsAreAskedFor: by default there are none, a project's own of the
// same name wins, and production refuses them.
func TestDebugToolsAreAskedFor(t *testing.T) {
	has := func(s *famcp.Server) (names []string) {
		for _, tool := range famcptest.Connect(t, s, famcptest.Modern).Tools() {
			names = append(names, tool.Name)
		}
		return names
	}
	if names := has(newServer(t, nil)); len(names) != 0 {
		t.Errorf("tools by default: %v", names)
	}
	s := newDebug(t)
	famcp.AddTool(s, reader("debug_log"), func(context.Context, *famcp.Call, nothing) (string, error) { return "own", nil })
	c := famcptest.Connect(t, s, famcptest.Modern)
	if got := famcptest.Call[string](t, c, "debug_log", nil); got != "own" {
		t.Errorf("the project's tool: got %q", got)
	}
	want := []string{"debug_ask", "debug_content", "debug_error", "debug_large", "debug_log", "debug_progress", "debug_slow", "debug_structured"}
	if diff := cmp.Diff(want, has(newDebug(t))); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	cfg := famcp.DefaultConfig()
	cfg.Env, cfg.MCP.Debug.BuiltinTools = "production", true
	if _, err := famcp.New(cfg, famcp.Info{Name: "x", Version: "1"}); err == nil || !strings.Contains(err.Error(), "mcp.debug.builtinTools") {
		t.Errorf("production: got %v", err)
	}
}

type point struct {
	X int `json:"x"`
	Y int `json:"y"`
}

// TestAnswerAs: structured output in the two forms of mcp.tools.answerAs.
func TestAnswerAs(t *testing.T) {
	for _, as := range []string{"structuredContent", "text"} {
		build := func(t testing.TB) *famcp.Server {
			s := newServer(t, func(c *famcp.Config) { c.MCP.Tools.AnswerAs = as })
			famcp.AddTool(s, reader("point"), func(context.Context, *famcp.Call, nothing) (point, error) { return point{1, 2}, nil })
			famcp.AddTool(s, reader("both"), func(context.Context, *famcp.Call, nothing) (famcp.Result[point], error) {
				return famcp.Result[point]{Value: point{3, 4}, Content: []famcp.Content{famcp.Text("at three, four")}}, nil
			})
			famcp.AddTool(s, reader("text"), func(context.Context, *famcp.Call, nothing) (string, error) { return "plain", nil })
			return s
		}
		t.Run(as, func(t *testing.T) {
			famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
				structured := as == "structuredContent"
				for _, tool := range c.Tools() {
					if has := tool.OutputSchema != nil; has != (structured && tool.Name != "text") {
						t.Errorf("%s: output schema %v", tool.Name, tool.OutputSchema)
					}
				}
				for tool, want := range map[string][2]string{
					"point": {`{"x":1,"y":2}`, `{"x":1,"y":2}`},
					"both":  {"at three, four", "{\"x\":3,\"y\":4}\nat three, four"},
					"text":  {"plain", "plain"},
				} {
					res := c.CallTool(tool, nil)
					text := want[0]
					if !structured {
						text = want[1]
					}
					if res.Text() != text || (res.Structured != nil) != (structured && tool != "text") {
						t.Errorf("%s: got %q and structured %s, want %q", tool, res.Text(), res.Structured, text)
					}
				}
			})
		})
	}
}

// TestAppsGetNoMirror: who shows structured content has no use for it as text.
func TestAppsGetNoMirror(t *testing.T) {
	s := newServer(t, nil)
	famcp.AddTool(s, reader("point"), func(context.Context, *famcp.Call, nothing) (point, error) { return point{1, 2}, nil })
	c := famcptest.Connect(t, s, famcptest.Modern)
	body := func(extensions string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"point","arguments":{},"_meta":{` +
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":` + extensions + `}}}}`
	}
	for extensions, mirrored := range map[string]bool{`{}`: true, `{"other/x":{}}`: true, `{"io.modelcontextprotocol/ui":{}}`: false} {
		_, _, answer := c.Raw(body(extensions))
		var m struct {
			Result struct {
				Content           []json.RawMessage
				StructuredContent point
			}
		}
		if err := json.Unmarshal(answer, &m); err != nil || m.Result.StructuredContent != (point{1, 2}) || (len(m.Result.Content) > 0) != mirrored {
			t.Errorf("extensions %s: %v %s", extensions, err, answer)
		}
	}
}

// TestHideAnnotations leaves the hints out of every list.
func TestHideAnnotations(t *testing.T) {
	for _, hide := range []bool{false, true} {
		build := func(t testing.TB) *famcp.Server {
			s := newServer(t, func(c *famcp.Config) { c.MCP.Tools.HideAnnotations = hide })
			famcp.AddTool(s, reader("some"), func(context.Context, *famcp.Call, nothing) (string, error) { return "", nil })
			return s
		}
		famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
			a := c.Tools()[0].Annotations
			if (a == nil) != hide || a != nil && (a.DestructiveHint == nil || a.OpenWorldHint == nil) {
				t.Errorf("hidden %t: annotations %+v", hide, a)
			}
		})
	}
}

// TestValidateInput: without it a handler gets what fits its type, and
// nothing that does not.
func TestValidateInput(t *testing.T) {
	for _, validate := range []bool{true, false} {
		build := func(t testing.TB) *famcp.Server {
			s := newServer(t, func(c *famcp.Config) { c.MCP.Tools.ValidateInput = validate })
			bounded := reader("bounded")
			bounded.InputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","maximum":5},"by":{"type":"integer","default":2}},"required":["n"],"additionalProperties":false}`)
			famcp.AddTool(s, bounded, func(_ context.Context, _ *famcp.Call, in struct {
				N  int `json:"n"`
				By int `json:"by"`
			},
			) (int, error) {
				return in.N * in.By, nil
			})
			return s
		}
		famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
			for args, want := range map[string][2]string{ // checked, unchecked; "" is refused
				`{"n":3}`: {"6", "6"}, `{"n":9}`: {"", "18"}, `{}`: {"", "0"}, `{"n":3,"x":1}`: {"", "6"},
				`{"n":"three"}`: {"", ""}, `[]`: {"", ""}, `{"n":3,"by":null}`: {"", "0"},
			} {
				res := c.CallTool("bounded", json.RawMessage(args))
				text := want[0]
				if !validate {
					text = want[1]
				}
				refused := res.IsError || res.Err != nil && slices.Contains([]int64{-32602, -32600}, res.Err.Code)
				if (text == "") != refused || !refused && res.Text() != text {
					t.Errorf("checked %t, %s: got %v %s, want %q", validate, args, res.Err, res.Raw, text)
				}
			}
		})
	}
}
