package famcp_test

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/famcptest"
)

func toNobody(context.Context, *famcp.Call) bool { return false }

var requestID = regexp.MustCompile(`"requestId":"[^"]*"`)

// TestHiddenLooksMissing: the answer about an entry that the caller may not
// know of differs from that about none in the names alone.
func TestHiddenLooksMissing(t *testing.T) {
	build := func(t testing.TB) *famcp.Server {
		s := newServer(t, func(c *famcp.Config) { c.MCP.Resources.SubscribeEnabled = true })
		hidden := famcp.Access{Visible: toNobody}
		tool := reader("hidden")
		tool.Access = hidden
		famcp.AddTool(s, tool, func(context.Context, *famcp.Call, nothing) (string, error) { return "x", nil })
		famcp.AddPrompt(s, famcp.Prompt{Name: "hidden", Description: "Is hidden.", Access: hidden},
			func(context.Context, *famcp.Call, nothing) ([]famcp.Message, error) { return nil, nil })
		s.AddResource(famcp.Resource{URI: "test://hidden", Name: "hidden", Access: hidden},
			func(context.Context, *famcp.Call) (famcp.Contents, error) { return famcp.Contents{}, nil })
		return s
	}
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		tests := []struct {
			method string
			params func(name string) map[string]any
			legacy bool // only there
		}{
			{"tools/call", func(name string) map[string]any { return map[string]any{"name": name} }, false},
			{"prompts/get", func(name string) map[string]any { return map[string]any{"name": name} }, false},
			{"resources/read", func(name string) map[string]any { return map[string]any{"uri": "test://" + name} }, false},
			{"resources/subscribe", func(name string) map[string]any { return map[string]any{"uri": "test://" + name} }, true},
			{"completion/complete", func(name string) map[string]any {
				return map[string]any{"ref": map[string]any{"type": "ref/prompt", "name": name}, "argument": map[string]any{"name": "a", "value": ""}}
			}, false},
		}
		for _, tt := range tests {
			if tt.legacy && c.Era() != "legacy" {
				continue
			}
			answer := func(name string) string {
				res := c.Request(tt.method, tt.params(name))
				if res.Err == nil {
					t.Fatalf("%s %s: got %s, want an error", tt.method, name, res.Raw)
				}
				return strings.ReplaceAll(requestID.ReplaceAllString(res.Err.Error(), `"requestId":"x"`), name, "NAME")
			}
			if diff := cmp.Diff(answer("absent"), answer("hidden")); diff != "" {
				t.Errorf("%s (-absent +hidden):\n%s", tt.method, diff)
			}
		}
	})
}

// TestHeadersOfHiddenTools are checked for those who may know of the tool, and
// give it away to nobody else.
func TestHeadersOfHiddenTools(t *testing.T) {
	s := newServer(t, nil)
	routed := reader("routed")
	routed.Access.Visible = func(_ context.Context, c *famcp.Call) bool { return c.Subject() == "friend" }
	famcp.AddTool(s, routed, func(_ context.Context, _ *famcp.Call, in struct {
		Region string `json:"region" mcpheader:"Region"`
	},
	) (string, error) {
		return in.Region, nil
	})
	anybody := famcptest.Connect(t, s, famcptest.Modern)
	friend := anybody.AsSubject("friend")
	if got := famcptest.Call[string](t, friend, "routed", map[string]any{"region": "eu"}); got != "eu" {
		t.Errorf("got %q, want eu", got)
	}
	for c, want := range map[*famcptest.Client]int64{anybody: -32602, friend: -32020} {
		status, _, body := c.Raw(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"routed","arguments":{"region":"eu"},` +
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
		var got struct{ Error struct{ Code int64 } }
		if err := json.Unmarshal(body, &got); err != nil || got.Error.Code != want || status != 400 {
			t.Errorf("got %d %s, want %d", status, body, want)
		}
	}
}

// TestUnknownURIIsQuotedAsJSON: the SDK quotes it as Go does.
func TestUnknownURIIsQuotedAsJSON(t *testing.T) {
	famcptest.Eras(t, func(t testing.TB) *famcp.Server { return newServer(t, nil) }, func(t *testing.T, c *famcptest.Client) {
		const uri = "test://\x01"
		var data struct{ URI, RequestID string }
		res := c.Read(uri)
		if res.Err == nil || json.Unmarshal(res.Err.Data, &data) != nil || data.URI != uri || data.RequestID == "" {
			t.Errorf("got %v", res.Err)
		}
	})
}

func TestVisibleKnowsTheCaller(t *testing.T) {
	build := func(t testing.TB) *famcp.Server {
		s := newServer(t, nil)
		known := reader("known")
		known.Access.Visible = func(_ context.Context, c *famcp.Call) bool {
			return c.Version() != "" && c.Client().Name != "" && c.Can(famcp.CanElicit)
		}
		famcp.AddTool(s, known, func(context.Context, *famcp.Call, nothing) (string, error) { return "x", nil })
		return s
	}
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		if n := len(c.Tools()); n != 1 {
			t.Errorf("%d tools are listed, want 1", n)
		}
	})
}

// TestRestrictedAnswersArePrivate even for a caller who may see everything.
func TestRestrictedAnswersArePrivate(t *testing.T) {
	build := func(access famcp.Access) *famcp.Server {
		s := newServer(t, func(c *famcp.Config) { c.MCP.CacheHints.Scope = "public" })
		tool := reader("some")
		tool.Access = access
		famcp.AddTool(s, tool, func(context.Context, *famcp.Call, nothing) (string, error) { return "x", nil })
		s.AddResource(famcp.Resource{URI: "test://some", Name: "some", Access: access, Cache: famcp.CacheHint{Scope: "public"}},
			func(context.Context, *famcp.Call) (famcp.Contents, error) { return famcp.Contents{Text: "x"}, nil })
		return s
	}
	tests := []struct {
		name, want string
		access     famcp.Access
	}{
		{"open", "public", famcp.Access{}},
		{"scopes", "private", famcp.Access{Scopes: []string{"admin"}}},
		{"visible", "private", famcp.Access{Visible: func(context.Context, *famcp.Call) bool { return true }}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := famcptest.Connect(t, build(tt.access), famcptest.Modern).AsSubject("boss", "admin")
			for method, params := range map[string]map[string]any{
				"tools/list": {}, "resources/list": {}, "resources/read": {"uri": "test://some"},
			} {
				var got struct{ CacheScope string }
				res := c.Request(method, params)
				if err := json.Unmarshal(res.Raw, &got); err != nil || got.CacheScope != tt.want {
					t.Errorf("%s: got %q (%v), want %q", method, got.CacheScope, res.Err, tt.want)
				}
			}
		})
	}
}

// TestHiddenEntryRemovedWhileListed: what hides an entry is known as long as
// the entry can be listed, however often it comes and goes.
func TestHiddenEntryRemovedWhileListed(t *testing.T) {
	for _, churn := range []bool{false, true} {
		s := newServer(t, nil)
		famcp.AddTool(s, reader("open"), func(context.Context, *famcp.Call, nothing) (string, error) { return "x", nil })
		hidden := reader("hidden")
		hidden.Access.Visible = toNobody
		add := func() {
			famcp.AddTool(s, hidden, func(context.Context, *famcp.Call, nothing) (string, error) { return "x", nil })
		}
		add()
		s.MCP().AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if method == "tools/list" && churn {
					s.Remove(famcp.Tools, "hidden")
					add()
				}
				res, err := next(ctx, method, req)
				if method == "tools/list" {
					s.Remove(famcp.Tools, "hidden")
				}
				return res, err
			}
		})
		c := famcptest.Connect(t, s, famcptest.Modern)
		if tools := c.Tools(); len(tools) != 1 || tools[0].Name != "open" {
			t.Errorf("churn %t: got %d tools, want the open one", churn, len(tools))
		}
	}
}

// TestEntriesComeAndGoAtOnce: whoever wins, the list and the server's own
// books agree.
func TestEntriesComeAndGoAtOnce(t *testing.T) {
	s := newServer(t, nil)
	c := famcptest.Connect(t, s, famcptest.Modern)
	for range 300 {
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				famcp.AddTool(s, reader("some"), func(context.Context, *famcp.Call, nothing) (string, error) { return "x", nil })
			})
			wg.Go(func() { s.Remove(famcp.Tools, "some") })
		}
		wg.Wait()
		listed := len(c.Tools()) == 1
		if removed := s.Remove(famcp.Tools, "some"); removed != listed {
			t.Fatalf("listed is %t, but Remove says %t", listed, removed)
		}
	}
}
