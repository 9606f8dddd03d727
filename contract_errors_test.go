package famcp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp"
)

// TestContractErrors: each code with its HTTP status in the modern era, what a
// session answers instead, always with 200 there, and never anything from inside
// (P5, P6).
func TestContractErrors(t *testing.T) {
	const secret = "dial tcp 10.0.0.5:5432: password=hunter2"
	url := newContract(t, func(c *famcp.Config) { c.MCP.Limits.ToolTimeout = 50e6 }, func(s *famcp.Server) {
		famcp.AddTool(s, reader("leaky"), func(context.Context, *famcp.Call, nothing) (string, error) {
			return "", fmt.Errorf("querying: %w", errors.New(secret))
		})
		famcp.AddTool(s, reader("kind"), func(context.Context, *famcp.Call, nothing) (string, error) {
			return "", famcp.Failf("the note is locked").With(errors.New(secret))
		})
	})
	s := open(t, url, "2025-11-25")
	debug := func(kind string) string { return `"name":"debug_error","arguments":{"kind":"` + kind + `"}` }
	const result = 0 // with isError
	for _, tt := range []struct {
		row, method, params string
		status              int // modern
		code, legacy        int64
		says                string
	}{
		{"an unknown method", "foo/bar", `"x":1`, 404, -32601, -32601, ""},
		{"an unknown tool", "tools/call", `"name":"nope","arguments":{}`, 400, -32602, -32602, "nope"},
		{"an unknown prompt", "prompts/get", `"name":"nope"`, 400, -32602, -32602, "nope"},
		{"a resource that is not there", "resources/read", `"uri":"nope://a"`, 400, -32602, -32002, `"uri":"nope://a"`},
		{"a note that is not there", "resources/read", `"uri":"note://none"`, 400, -32602, -32002, "no note of that name"},
		{"P6: an unexpected error", "tools/call", `"name":"leaky","arguments":{}`, 500, -32603, -32603, "internal error"},
		{"P5: a panic", "tools/call", debug("panic"), 500, -32603, -32603, "internal error"},
		{"an output that breaks its schema", "tools/call", debug("bad_output"), 500, -32603, -32603, "internal error"},
		{"a tool's own failure", "tools/call", `"name":"kind","arguments":{}`, 200, result, result, "the note is locked"},
		{"nothing found by a tool", "tools/call", debug("not_found"), 200, result, result, "nothing to be found"},
		{"an argument refused by a tool", "tools/call", debug("invalid"), 200, result, result, "kind: is refused"},
		{"too many requests upstream", "tools/call", debug("rate_limited"), 429, -32003, result, "too many requests"},
		{"a timeout", "tools/call", debug("timeout"), 504, -32004, result, "no result within 50ms"},
		{"a timeout of a handler that ignores it", "tools/call", `"name":"debug_slow","arguments":{"delayMs":2000,"stubborn":true}`, 504, -32004, result, "no result within 50ms"},
		{"an upstream that is down", "tools/call", debug("unavailable"), 503, -32006, -32006, "upstream is down"},
		{"a conflict", "tools/call", debug("conflict"), 409, -32007, -32007, "in the way"},
		{"a question to a client that cannot answer", "tools/call", `"name":"debug_ask","arguments":{"kind":"confirm"}`, 400, -32021, result, "elicitation"},
	} {
		m, l := modern(t, url, tt.method, ","+tt.params, ""), s.request(t, tt.method, tt.params)
		if m.Status != tt.status || m.Error.Code != tt.code || m.Result.IsError != (tt.code == result) {
			t.Errorf("%s, modern: %d %s", tt.row, m.Status, m.Body)
		}
		if l.Status != http.StatusOK || l.Error.Code != tt.legacy || l.Result.IsError != (tt.legacy == result) {
			t.Errorf("%s, legacy: %d %s", tt.row, l.Status, l.Body)
		}
		for era, a := range map[string]*reply{"modern": m, "legacy": l} {
			if !strings.Contains(a.Body, tt.says) || strings.Contains(a.Body, "hunter2") || strings.Contains(a.Body, ".go") {
				t.Errorf("%s, %s: %s", tt.row, era, a.Body)
			}
			if a.Error.Code != 0 && (a.Error.Data["requestId"] == nil || a.Error.Data["requestId"] != a.Header.Get("X-Request-Id")) {
				t.Errorf("%s, %s: the data does not name the request %s: %s", tt.row, era, a.Header.Get("X-Request-Id"), a.Body)
			}
		}
		if tt.code == -32021 && fmt.Sprint(m.Error.Data["requiredCapabilities"]) != "map[elicitation:map[]]" {
			t.Errorf("%s: data %v", tt.row, m.Error.Data)
		}
		if tt.code == -32003 && (m.Header.Get("Retry-After") != "7" || m.Error.Data["retryAfter"] != 7.0) {
			t.Errorf("%s: Retry-After %q, data %v", tt.row, m.Header.Get("Retry-After"), m.Error.Data)
		}
		s.alive(t)
	}
}

// TestContractErrorsToClients: what go-sdk's client makes of errors on a session.
// None of them may cost it the session, and a lost one must be noticed.
func TestContractErrorsToClients(t *testing.T) {
	url := newContract(t, func(c *famcp.Config) { c.MCP.Limits.ToolTimeout = 20e6 })
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			var id string
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
				Endpoint: url, DisableStandaloneSSE: true, HTTPClient: &http.Client{Transport: watchSession{&id}},
			}, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = session.Close() }()
			alive := func(after string) {
				t.Helper()
				res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "debug_content", Arguments: map[string]any{"kind": "text"}})
				if err != nil || res.IsError {
					t.Fatalf("after %s: %v", after, err)
				}
			}
			if _, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "nope://a"}); err == nil {
				t.Error("a resource that is not there was read")
			}
			alive("a resource that is not there")
			if _, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "nope"}); err == nil {
				t.Error("a prompt that is not there was got")
			}
			alive("an unknown prompt")
			for _, kind := range []string{"failed", "invalid", "not_found", "conflict", "rate_limited", "unavailable", "internal", "panic", "timeout", "bad_output"} {
				res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "debug_error", Arguments: map[string]any{"kind": kind}})
				if err == nil && !res.IsError {
					t.Errorf("%s: no error", kind)
				}
				if version == "2025-11-25" {
					alive(kind)
				}
			}
			if version == "2026-07-28" {
				return
			}
			if a := do(t, http.MethodDelete, url, "", "Mcp-Session-Id: "+id); a.Status != http.StatusNoContent {
				t.Fatalf("DELETE %q: %d %s", id, a.Status, a.Body)
			}
			_, err = session.ListTools(t.Context(), nil)
			if !errors.Is(err, mcp.ErrSessionMissing) {
				t.Errorf("a lost session: got %v", err)
			}
		})
	}
}

// watchSession learns the session id of what passes.
type watchSession struct{ id *string }

func (w watchSession) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && res.Header.Get("Mcp-Session-Id") != "" {
		*w.id = res.Header.Get("Mcp-Session-Id")
	}
	return res, err
}

// TestContractEndpoints: those beside /mcp (§2), for everyone (B13), and what
// Host and Origin have to be.
func TestContractEndpoints(t *testing.T) {
	url := strings.TrimSuffix(newContract(t, func(c *famcp.Config) {
		c.WebServer.OriginHosts, c.WebServer.AllowedHosts = []string{"https://app.example.com"}, []string{"mcp.example.com"}
	}, func(s *famcp.Server) {
		s.Handle("/own", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }), famcp.Access{})
		s.Check("db", famcp.Readiness, func(context.Context) error { return errors.New("password=hunter2") })
	}), "/mcp")
	for _, tt := range []struct {
		method, path, host, origin string
		status                     int
		says                       string
	}{
		{"GET", "/health", "", "", 200, `"status"`},
		{"HEAD", "/health", "", "", 200, ""},
		{"GET", "/healthz", "", "", 200, `"version":"1.0.0"`},
		{"GET", "/ready", "", "", 503, `"db"`},
		{"HEAD", "/readyz", "", "", 503, ""},
		{"GET", "/", "", "", 200, "sample"},
		{"GET", "/own", "", "", 418, ""},
		{"GET", "/nowhere", "", "", 404, ""},
		{"GET", "/own", "evil.example.com", "", 403, ""},
		{"GET", "/own", "mcp.example.com", "", 418, ""},
		{"POST", "/mcp", "evil.example.com", "", 403, "webServer.allowedHosts"},
		{"POST", "/mcp", "", "https://evil.example.com", 403, "webServer.originHosts"},
		{"OPTIONS", "/mcp", "", "https://app.example.com", 204, ""},
		{"OPTIONS", "/mcp", "", "https://evil.example.com", 403, ""},
		{"OPTIONS", "/mcp", "", "http://localhost:6274", 204, ""},
	} {
		r := httptest.NewRequest(tt.method, url+tt.path, nil)
		r.RequestURI = ""
		if tt.host != "" {
			r.Host = tt.host
		}
		if tt.origin != "" {
			r.Header.Set("Origin", tt.origin)
			r.Header.Set("Access-Control-Request-Method", "POST")
		}
		a := send(t, r)
		if a.Status != tt.status || !strings.Contains(a.Body, tt.says) || strings.Contains(a.Body, "hunter2") || tt.method == "HEAD" && a.Body != "" {
			t.Errorf("%s %s of %s from %s: %d %s", tt.method, tt.path, tt.host, tt.origin, a.Status, a.Body)
		}
		if allowed := a.Header.Get("Access-Control-Allow-Origin"); (allowed != "") != (tt.origin != "" && tt.status == 204) {
			t.Errorf("%s from %s: allowed origin %q", tt.path, tt.origin, allowed)
		}
	}
}
