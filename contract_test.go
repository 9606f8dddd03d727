package famcp_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/famcp/famcp"
)

// The files contract_*_test.go hold the contract's rows, end to end: a server
// made with the public API behind a real socket, and plain requests. docs/contract.md
// says which test keeps which row.

// newContract serves a little of everything and returns the URL of its
// endpoint.
func newContract(t testing.TB, change func(*famcp.Config), more ...func(*famcp.Server)) (url string) {
	t.Helper()
	s := newServer(t, func(c *famcp.Config) {
		c.MCP.Debug.BuiltinTools = true
		c.MCP.Resources.SubscribeEnabled = true
		if change != nil {
			change(c)
		}
	})
	s.AddResource(famcp.Resource{URI: "doc://a", Name: "a", Contents: &famcp.Contents{Text: "a"}}, nil)
	famcp.AddResourceTemplate(s, famcp.ResourceTemplate{URITemplate: "note://{id}", Name: "notes"},
		func(_ context.Context, _ *famcp.Call, p noteParams) (famcp.Contents, error) {
			if p.ID == "none" {
				return famcp.Contents{}, famcp.NotFoundf("there is no note of that name")
			}
			return famcp.Contents{Text: p.ID}, nil
		})
	famcp.AddPrompt(s, famcp.Prompt{Name: "greet", Description: "Greets."}, func(_ context.Context, _ *famcp.Call, in struct {
		Name string `json:"name"`
	},
	) ([]famcp.Message, error) {
		return []famcp.Message{famcp.UserMessage("Hello, " + in.Name)}, nil
	})
	s.Complete("greet", "name", func(_ context.Context, _ *famcp.Call, prefix string) ([]string, error) {
		values := make([]string, 150)
		for i := range values {
			values[i] = prefix + strings.Repeat("x", i)
		}
		return values, nil
	})
	for _, add := range more {
		add(s)
	}
	handler, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(handler)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
		web.Close()
	})
	return web.URL + "/mcp"
}

// reply is an HTTP answer with the JSON-RPC message in it.
type reply struct {
	Status int         `json:"-"`
	Header http.Header `json:"-"`
	Body   string      `json:"-"`

	ID     json.RawMessage `json:"id"`
	Result struct {
		IsError bool
		Content []struct{ Type, Text string }

		ResultType, ProtocolVersion, NextCursor, RequestState string

		SupportedVersions []string
		Capabilities      map[string]json.RawMessage
		Tools             []struct {
			Name                      string
			InputSchema, OutputSchema json.RawMessage
			Description               string
		}
		StructuredContent json.RawMessage
		Completion        struct {
			Values  []string
			Total   int
			HasMore bool
		}
		InputRequests map[string]json.RawMessage
		TTLMs         *int
		CacheScope    string
		Meta          map[string]json.RawMessage `json:"_meta"`
	} `json:"result"`
	Error struct {
		Code    int64
		Message string
		Data    map[string]any
	} `json:"error"`
}

func (r *reply) text() string {
	var all []string
	for _, c := range r.Result.Content {
		all = append(all, c.Text)
	}
	return strings.Join(all, "\n")
}

// do sends a request; headers are "Name: value", and "Name:" takes away what a
// POST has by itself.
func do(t testing.TB, method, url, body string, headers ...string) *reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ":")
		if value = strings.TrimSpace(value); value == "" {
			r.Header.Del(name)
			continue
		}
		r.Header.Set(name, value)
	}
	return send(t, r)
}

func send(t testing.TB, r *http.Request) *reply {
	t.Helper()
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := &reply{}
	message := string(raw)
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		for line := range strings.Lines(message) {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				message = data // the last is the answer
			}
		}
	}
	if strings.HasPrefix(message, `{"jsonrpc"`) {
		if err := json.Unmarshal([]byte(message), out); err != nil {
			t.Fatalf("%d %q: %v", res.StatusCode, message, err)
		}
	}
	out.Status, out.Header, out.Body = res.StatusCode, res.Header, string(raw)
	return out
}

// modern sends a modern request with the headers that belong to it. meta is
// more of _meta, params more of params, each with a comma before it.
func modern(t testing.TB, url, method, params, meta string, headers ...string) *reply {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"` +
		meta + `}` + params + `}}`
	if !strings.Contains(meta, "clientCapabilities") {
		body = strings.Replace(body, `"2026-07-28"`, `"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`, 1)
	}
	var names struct{ Params struct{ Name, URI string } }
	if err := json.Unmarshal([]byte(body), &names); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	all := []string{"MCP-Protocol-Version: 2026-07-28", "Mcp-Method: " + method}
	if name := names.Params.Name + names.Params.URI; name != "" {
		all = append(all, "Mcp-Name: "+name)
	}
	return do(t, http.MethodPost, url, body, append(all, headers...)...)
}

// callModern calls a tool.
func callModern(t testing.TB, url, tool, args string, headers ...string) *reply {
	t.Helper()
	return modern(t, url, "tools/call", `,"name":"`+tool+`","arguments":`+args, "", headers...)
}

// session is a legacy session.
type session struct {
	url, header string
	version     string // negotiated
	opened      *reply
}

// open opens a session, asking for a revision.
func open(t testing.TB, url, version string, headers ...string) session {
	t.Helper()
	a := do(t, http.MethodPost, url, initializeBody(version, ""), headers...)
	s := session{url, "Mcp-Session-Id: " + a.Header.Get("Mcp-Session-Id"), a.Result.ProtocolVersion, a}
	if a.Status != http.StatusOK || a.Header.Get("Mcp-Session-Id") == "" {
		t.Fatalf("initialize: %d %s", a.Status, a.Body)
	}
	if a := do(t, http.MethodPost, url, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, s.header); a.Status != http.StatusAccepted || a.Body != "" {
		t.Fatalf("initialized: %d %s", a.Status, a.Body)
	}
	return s
}

func initializeBody(version, meta string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"` + version +
		`","capabilities":{},"clientInfo":{"name":"c","version":"1"}` + meta + `}}`
}

func (s session) request(t testing.TB, method, params string) *reply {
	t.Helper()
	return do(t, http.MethodPost, s.url, legacyBody(method, params), s.header)
}

func (s session) call(t testing.TB, tool, args string) *reply {
	t.Helper()
	return s.request(t, "tools/call", `"name":"`+tool+`","arguments":`+args)
}

func legacyBody(method, params string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{` + params + `}}`
}

// alive fails the test when the session does not serve any more.
func (s session) alive(t testing.TB) {
	t.Helper()
	if a := s.call(t, "debug_content", `{"kind":"text"}`); a.Status != http.StatusOK || a.Error.Code != 0 || a.Result.IsError {
		t.Fatalf("the session is lost: %d %s", a.Status, a.Body)
	}
}

// serve sends a modern request to a handler without a socket, for tests in a
// bubble of fake time.
func serve(t testing.TB, h http.Handler, method, name, params string) *reply {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{"name":"` + name + `"` + params + `,"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`
	r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
	for header, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name,
	} {
		r.Header.Set(header, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	out := &reply{Status: w.Code, Header: w.Header(), Body: w.Body.String()}
	if err := json.Unmarshal(w.Body.Bytes(), out); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return out
}
