package front

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/protocol"
)

// fixture is a front over a real server with a few tools.
type fixture struct {
	*Front
	server *mcp.Server
	calls  *call.Table
	facts  chan *call.Facts // of each call of the tool "facts"
	enter  chan struct{}    // received from when the tool "block" starts
	leave  chan struct{}    // lets one "block" end
	left   chan error       // why a "block" ended
	header chan http.Header // what the tool "facts" was given by the SDK
	asked  chan error       // outcome of the tool "ask"
}

func newFixture(t testing.TB, change func(*Config)) *fixture {
	t.Helper()
	fx := &fixture{
		calls: &call.Table{}, facts: make(chan *call.Facts, 64), header: make(chan http.Header, 64),
		enter: make(chan struct{}, 64), leave: make(chan struct{}), left: make(chan error, 64), asked: make(chan error, 64),
	}
	info := &mcp.Implementation{Name: "test", Version: "1.2.3"}
	s := mcp.NewServer(info, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if extra := req.GetExtra(); extra != nil {
				if f := fx.calls.Take(extra.Header.Get(call.Header)); f != nil {
					ctx = call.NewContext(ctx, f)
					if f.Done != nil {
						defer f.Done()
					}
				}
			}
			return next(ctx, method, req)
		}
	})
	text := func(s string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
	}
	add := func(name string, h func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error)) {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, h)
	}
	add("echo", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text("echo " + string(r.Params.Arguments)), nil
	})
	add("facts", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		fx.facts <- call.FromContext(ctx)
		fx.header <- r.Extra.Header
		return text("ok"), nil
	})
	add("progress", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: "p", Progress: 1})
		return text("progressed"), err
	})
	add("steps", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: "p", Progress: 1})
		fx.enter <- struct{}{}
		<-fx.leave
		return text("stepped"), err
	})
	add("block", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		fx.enter <- struct{}{}
		select {
		case <-fx.leave:
			fx.left <- nil
			return text("unblocked"), nil
		case <-ctx.Done():
			fx.left <- context.Cause(ctx)
			return nil, ctx.Err()
		}
	})
	add("ask", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		_, err := r.Session.ListRoots(ctx, nil)
		fx.asked <- err
		return text("asked"), nil
	})
	add("late", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: "p", Progress: 1})
		return nil, &jsonrpc.Error{Code: -32602, Message: "too late"}
	})
	add("fail", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, errors.New("broken")
	})
	s.AddTool(&mcp.Tool{Name: "routed", InputSchema: json.RawMessage(
		`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return text("routed"), nil })
	s.AddPrompt(&mcp.Prompt{Name: "hello"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{}}, nil
	})
	s.AddResource(&mcp.Resource{Name: "r", URI: "test:///ü"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "test:///ü", Text: "x"}}}, nil
	})
	routed := protocol.ParamHeaders{{Header: "Mcp-Param-Region", Path: []string{"region"}}}
	cfg := Config{
		Server: s, Calls: fx.calls, Info: info, CheckHost: true,
		ParamHeaders: func(tool string) protocol.ParamHeaders {
			if tool == "routed" {
				return routed
			}
			return nil
		},
	}
	if change != nil {
		change(&cfg)
	}
	f, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	fx.Front, fx.server = f, s
	t.Cleanup(func() { _ = f.Close(t.Context()) }) // whose end cancels what runs
	return fx
}

// serve starts an HTTP server for the fixture and returns its URL.
func (fx *fixture) serve(t testing.TB) string {
	t.Helper()
	srv := httptest.NewUnstartedServer(fx.Front)
	ServerDefaults(srv.Config)
	srv.Start()
	t.Cleanup(func() {
		_ = fx.Close(t.Context())
		srv.Close()
	})
	return srv.URL
}

// answer is an HTTP response, read whole.
type answer struct {
	status int
	header http.Header
	body   string
}

// send sends a request with the headers given as "Name: value"; a POST gets
// what every client sends unless they say otherwise ("Name:" removes).
func send(t testing.TB, method, url, body string, headers ...string) answer {
	t.Helper()
	res := open(t, method, url, body, headers...)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(b)}
}

func open(t testing.TB, method, url, body string, headers ...string) *http.Response {
	t.Helper()
	res, err := http.DefaultClient.Do(newRequest(t, method, url, body, headers...))
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func newRequest(t testing.TB, method, url, body string, headers ...string) *http.Request {
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
		value = strings.TrimSpace(value)
		switch {
		case value == "":
			r.Header.Del(name)
		case name == "Host":
			r.Host = value
		case r.Header.Get(name) != "" && name != "Accept" && name != "Content-Type":
			r.Header.Add(name, value)
		default:
			r.Header.Set(name, value)
		}
	}
	return r
}

// rpc is a JSON-RPC answer.
type rpc struct {
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int64          `json:"code"`
		Message string         `json:"message"`
		Data    map[string]any `json:"data"`
	} `json:"error"`
}

// message reads the answer as one message, from JSON or the last event.
func (a answer) message(t testing.TB) rpc {
	t.Helper()
	data := []byte(a.body)
	if strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream") {
		events := strings.Split(strings.TrimSpace(a.body), "\n\n")
		data = eventData([]byte(events[len(events)-1]))
	}
	var m rpc
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&m); err != nil {
		t.Fatalf("answer %d %q is not a message: %v", a.status, a.body, err)
	}
	return m
}

// code is the error code of the answer; 0 for a result or no message.
func (a answer) code() int64 {
	var m rpc
	if json.Unmarshal([]byte(a.body), &m) != nil || m.Error == nil {
		return 0
	}
	return m.Error.Code
}

const (
	meta       = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	modernHead = "Mcp-Protocol-Version: 2026-07-28"
	legacyHead = "Mcp-Protocol-Version: 2025-11-25"
)

func modernCall(id, method, params string) string {
	if params != "" {
		params = "," + params
	}
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + meta + params + `}}`
}

func legacyRequest(id, method, params string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + params + `}}`
}

func initializeBody(version string) string {
	return legacyRequest("1", "initialize", `"protocolVersion":"`+version+`","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}`)
}

// newSession opens a legacy session and returns its header.
func newSession(t testing.TB, url, version string) string {
	t.Helper()
	a := send(t, "POST", url+Path, initializeBody(version))
	id := a.header.Get("Mcp-Session-Id")
	if a.status != 200 || id == "" {
		t.Fatalf("initialize: %d %s", a.status, a.body)
	}
	head := "Mcp-Session-Id: " + id
	if a := send(t, "POST", url+Path, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, head); a.status != 202 || a.body != "" {
		t.Fatalf("initialized: %d %s", a.status, a.body)
	}
	return head
}
