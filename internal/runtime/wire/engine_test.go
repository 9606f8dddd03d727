package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/protocol"
)

// engineFixture is an engine over a server with a few raw tools, and what its
// middleware has seen.
type engineFixture struct {
	*Engine
	server *mcp.Server

	mu   sync.Mutex
	seen []string // methods that the project's middleware saw
}

func newEngineFixture(t testing.TB) *engineFixture {
	t.Helper()
	info := &mcp.Implementation{Name: "fixture", Version: "1"}
	fx := &engineFixture{server: mcp.NewServer(info, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})}
	add := func(name string, h mcp.ToolHandler) {
		fx.server.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, h)
	}
	text := func(format string, args ...any) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}, nil
	}
	add("client", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		name := "none"
		if info := r.ClientInfo(); info != nil {
			name = info.Name
		}
		return text("%s %v %s", name, r.ClientCapabilities().Sampling != nil, r.ProtocolVersion())
	})
	add("notify", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for _, level := range []mcp.LoggingLevel{"debug", "warning", "emergency"} {
			_ = r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Data: level})
		}
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1})
		return text("notified")
	})
	add("ask", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		_, roots := r.Session.ListRoots(ctx, nil)
		return text("%v %v", roots != nil, r.Session.Ping(ctx, nil) != nil)
	})
	add("meta", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Meta: mcp.Meta{"own": 1}, Content: []mcp.Content{}}, nil
	})
	add("fail", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, &jsonrpc.Error{Code: protocol.CodeMethodNotFound, Message: "own words", Data: json.RawMessage(`{"a":1}`)}
	})
	add("broken", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, errors.New("secret")
	})
	fx.server.AddPrompt(&mcp.Prompt{Name: "p", Arguments: []*mcp.PromptArgument{{Name: "a"}}},
		func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Description: r.Params.Arguments["a"], Messages: []*mcp.PromptMessage{}}, nil
		})
	fx.server.AddResource(&mcp.Resource{Name: "r", URI: "test://r"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "test://r", Text: "x"}}}, nil
	})
	if err := mcp.AddReceivingCustomMethod(fx.server, "own/method",
		func(context.Context, *mcp.ServerSession, *ownParams) (*ownResult, error) {
			return &ownResult{Value: 7}, nil
		}); err != nil {
		t.Fatal(err)
	}
	fx.server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			fx.mu.Lock()
			fx.seen = append(fx.seen, method)
			fx.mu.Unlock()
			return next(ctx, method, req)
		}
	})
	var err error
	fx.Engine, err = NewEngine(EngineConfig{Server: fx.server, Calls: &call.Table{}, Info: info, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fx.Close)
	return fx
}

type ownParams struct{ mcp.ParamsBase }

type ownResult struct {
	mcp.ResultBase
	Value int `json:"value"`
}

// request is one modern request; meta and params are members of objects.
type request struct{ method, meta, params string }

func (r request) parse(t testing.TB) *protocol.Message {
	t.Helper()
	caps := `"io.modelcontextprotocol/clientCapabilities":{}`
	if strings.Contains(r.meta, "clientCapabilities") {
		caps = `"x":1`
	}
	m, err := protocol.Parse(fmt.Appendf(nil,
		`{"jsonrpc":"2.0","id":"id","method":%q,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",%s%s}%s}}`,
		r.method, caps, r.meta, r.params))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (fx *engineFixture) do(ctx context.Context, t testing.TB, r request) (result string, sent []string, fault *jsonrpc.Error) {
	t.Helper()
	m := r.parse(t)
	var mu sync.Mutex
	raw, fault := fx.Serve(ctx, &call.Facts{
		RequestID: "req", ID: m.ID, Method: m.Method, Era: protocol.EraModern, LogLevel: m.MetaString(protocol.MetaLogLevel),
		Notify: func(method string, params json.RawMessage) {
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, method+" "+string(params))
		},
	}, m)
	mu.Lock()
	defer mu.Unlock()
	return string(raw), sent, fault
}

const ownInfo = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fixture","version":"1"}}`

func TestEngine(t *testing.T) {
	fx := newEngineFixture(t)
	tests := []struct {
		name string
		request
		want  string // the result, or a part of it
		sent  []string
		code  int64
		fault string // part of the error's message
	}{
		{
			name: "a client that says nothing", request: request{"tools/call", "", `,"name":"client"`},
			want: `{` + ownInfo + `,"content":[{"type":"text","text":"none false 2026-07-28"}],"resultType":"complete"}`,
		},
		{name: "a client", request: request{"tools/call", `,"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},` +
			`"io.modelcontextprotocol/clientCapabilities":{"sampling":{}}`, `,"name":"client"`}, want: "c true 2026-07-28"},
		{name: "discover", request: request{"server/discover", `,"io.modelcontextprotocol/clientInfo":{"name":"other","version":"1"}`, ""}, want: `"supportedVersions"`},
		{name: "discover leaves no client behind", request: request{"tools/call", "", `,"name":"client"`}, want: "none false"},
		{
			name: "no level, no log messages", request: request{"tools/call", "", `,"name":"notify"`},
			want: "notified", sent: []string{`notifications/progress {"progressToken":null,"progress":1}`},
		},
		{
			name: "level and token", request: request{"tools/call", `,"io.modelcontextprotocol/logLevel":"warning","progressToken":123456789012345678901`, `,"name":"notify"`},
			want: "notified", sent: []string{
				`notifications/message {"data":"warning","level":"warning"}`,
				`notifications/message {"data":"emergency","level":"emergency"}`,
				`notifications/progress {"progressToken":123456789012345678901,"progress":1}`,
			},
		},
		{name: "no questions", request: request{"tools/call", "", `,"name":"ask"`}, want: "true true"},
		{
			name: "a result's own meta", request: request{"tools/call", "", `,"name":"meta"`},
			want: `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fixture","version":"1"},"own":1}`,
		},
		{name: "prompt", request: request{"prompts/get", "", `,"name":"p","arguments":{"a":"b"}`}, want: `"description":"b"`},
		{name: "resource", request: request{"resources/read", "", `,"uri":"test://r"`}, want: `"resultType":"complete"`},
		{name: "tools", request: request{"tools/list", "", ""}, want: `"resultType":"complete"`},
		{name: "prompts", request: request{"prompts/list", "", ""}, want: `"resultType":"complete"`},
		{name: "resources", request: request{"resources/list", "", ""}, want: `"resultType":"complete"`},
		{name: "templates", request: request{"resources/templates/list", "", ""}, want: `"resultType":"complete"`},
		{name: "a method of the project", request: request{"own/method", "", ""}, want: `"value":7`},
		{name: "a method of nobody", request: request{"no/method", "", ""}, code: -32601},
		{name: "an error as it was made", request: request{"tools/call", "", `,"name":"fail"`}, code: -32601, fault: "own words"},
		{name: "an error without a code", request: request{"tools/call", "", `,"name":"broken"`}, code: -32603, fault: "internal error"},
		{name: "unknown tool", request: request{"tools/call", "", `,"name":"nope"`}, code: -32602},
		{name: "client info of another type", request: request{"tools/call", `,"io.modelcontextprotocol/clientInfo":7`, `,"name":"client"`}, code: -32602, fault: "clientInfo"},
		{name: "capabilities of another type", request: request{"tools/call", `,"io.modelcontextprotocol/clientCapabilities":{"sampling":7}`, `,"name":"client"`}, code: -32602, fault: "clientCapabilities"},
		{name: "prompt arguments of another type", request: request{"prompts/get", "", `,"name":"p","arguments":{"a":1}`}, code: -32602, fault: "params.arguments"},
		{name: "cursor of another type", request: request{"tools/list", "", `,"cursor":1`}, code: -32602, fault: "params.cursor"},
		{name: "subscriptions of another type", request: request{"subscriptions/listen", "", `,"notifications":{"toolsListChanged":7}`}, code: -32602, fault: "toolsListChanged"},
		{name: "no subscriptions", request: request{"subscriptions/listen", "", ""}, code: -32602, fault: "notifications"},
		{name: "state of another type", request: request{"tools/call", "", `,"name":"client","requestState":{}`}, code: -32602, fault: "params.requestState"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := len(fx.seen)
			got, sent, fault := fx.do(t.Context(), t, tt.request)
			if fault == nil {
				fault = &jsonrpc.Error{}
			}
			if fault.Code != tt.code || !strings.Contains(fault.Message, tt.fault) || strings.Contains(fault.Message, "secret") {
				t.Fatalf("error %d %q, want %d %q", fault.Code, fault.Message, tt.code, tt.fault)
			}
			if !strings.Contains(got, tt.want) || (tt.code == 0 && (!strings.Contains(got, `"io.modelcontextprotocol/serverInfo":{`) || !json.Valid([]byte(got)))) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if diff := cmp.Diff(tt.sent, sent); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
			if tt.code == 0 && (len(fx.seen) != before+1 || fx.seen[before] != tt.method) {
				t.Errorf("the project's middleware saw %q", fx.seen[before:])
			}
		})
	}
}

// TestEncodeCall: the result of a tool reads as the SDK writes it.
func TestEncodeCall(t *testing.T) {
	fx := newEngineFixture(t)
	tests := []struct {
		name string
		res  *mcp.CallToolResult
	}{
		{"nothing", &mcp.CallToolResult{Content: []mcp.Content{}}},
		{"text", &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "<a> \"ü\" \u2028 \n"}, &mcp.TextContent{}}}},
		{"other contents", &mcp.CallToolResult{Content: []mcp.Content{
			&mcp.TextContent{Text: "x", Annotations: &mcp.Annotations{Priority: 1}},
			&mcp.TextContent{Text: "x", Meta: mcp.Meta{"a": 1}},
			&mcp.ImageContent{Data: []byte{1}, MIMEType: "image/png"},
			&mcp.ResourceLink{URI: "test://r", Name: "r"},
		}}},
		{"structured", &mcp.CallToolResult{StructuredContent: json.RawMessage("{\n \"a\": 1}"), Content: []mcp.Content{}}},
		{"structured zero", &mcp.CallToolResult{StructuredContent: 0, Content: []mcp.Content{}}},
		{"error", &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "no"}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			raw, err := fx.encodeResult(tt.res)
			if err != nil {
				t.Fatal(err)
			}
			if strings.ContainsAny(string(raw), "\n\r") {
				t.Errorf("%s is more than a line", raw)
			}
			tt.res.Meta = mcp.Meta{protocol.MetaServerInfo: fx.cfg.Info}
			want, err := json.Marshal(tt.res)
			if err != nil {
				t.Fatal(err)
			}
			var gotValue, wantValue map[string]any
			if err := errors.Join(json.Unmarshal(raw, &gotValue), json.Unmarshal(want, &wantValue)); err != nil {
				t.Fatal(err)
			}
			wantValue["resultType"] = "complete" // set by the SDK on the way
			if diff := cmp.Diff(wantValue, gotValue); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestEngineCancel: whoever goes away cancels its own call and no other, by
// either way in, and nothing of it stays.
func TestEngineCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := newEngineFixture(t)
		entered, left := make(chan struct{}), make(chan string)
		block := func(ctx context.Context) {
			entered <- struct{}{}
			<-ctx.Done()
			left <- ctx.Err().Error()
		}
		fx.server.AddTool(&mcp.Tool{Name: "block", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				block(ctx)
				return nil, ctx.Err()
			})
		err := mcp.AddReceivingCustomMethod(fx.server, "own/block",
			func(ctx context.Context, _ *mcp.ServerSession, _ *ownParams) (*ownResult, error) {
				block(ctx)
				return nil, ctx.Err()
			})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []request{{"tools/call", "", `,"name":"block"`}, {"own/block", "", ""}} {
			ctx, cancel := context.WithCancel(t.Context())
			other, stop := context.WithCancel(t.Context())
			done := make(chan bool) // whether it failed
			for _, ctx := range []context.Context{ctx, other} {
				go func() {
					_, _, fault := fx.do(ctx, t, r)
					done <- fault != nil
				}()
				<-entered
			}
			cancel()
			<-left
			if !<-done {
				t.Errorf("%s: answered", r.method)
			}
			synctest.Wait()
			select {
			case <-done:
				t.Errorf("%s: another call ended too", r.method)
			default:
			}
			stop()
			<-left
			<-done
		}
		synctest.Wait()
		if n := len(slices.Collect(fx.server.Sessions())); n != 1 {
			t.Errorf("%d sessions, want the engine's own", n)
		}
	})
}

// TestEngineListens: any number of subscriptions, each with what it asked for
// under its own id, and each ending with its result.
func TestEngineListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := newEngineFixture(t)
		const count = 50
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var (
			mu   sync.Mutex
			wg   sync.WaitGroup
			sent = map[string][]string{}
		)
		for i := range count {
			m := request{"subscriptions/listen", "", `,"notifications":{"toolsListChanged":true,"resourceSubscriptions":["test://r"]}`}.parse(t)
			m.ID = json.RawMessage(fmt.Sprintf(`"listen-%d"`, i))
			if i%2 == 1 {
				m.Params["notifications"] = json.RawMessage(`{"promptsListChanged":true}`)
			}
			wg.Go(func() {
				result, fault := fx.Serve(ctx, &call.Facts{RequestID: "req", ID: m.ID, Method: m.Method, Era: protocol.EraModern, Notify: func(method string, params json.RawMessage) {
					mu.Lock()
					defer mu.Unlock()
					sent[string(m.ID)] = append(sent[string(m.ID)], method)
					if got := string(member(params, "_meta", protocol.MetaSubscription)); got != string(m.ID) {
						t.Errorf("%s: subscription id %s", m.ID, got)
					}
				}}, m)
				if fault != nil || string(member(result, "_meta", protocol.MetaSubscription)) != string(m.ID) || string(member(result, "resultType")) != `"complete"` {
					t.Errorf("%s ended with %s, %v", m.ID, result, fault)
				}
			})
		}
		synctest.Wait()
		fx.server.RemoveTools("fail")
		_ = fx.server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "test://r"})
		time.Sleep(time.Second) // the SDK gathers changes for a moment
		synctest.Wait()
		mu.Lock()
		for i := range count {
			want := []string{"notifications/subscriptions/acknowledged"}
			if i%2 == 0 {
				want = append(want, "notifications/resources/updated", "notifications/tools/list_changed")
			}
			got := sent[fmt.Sprintf(`"listen-%d"`, i)]
			slices.Sort(got[1:])
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("listen-%d (-want +got):\n%s", i, diff)
			}
		}
		mu.Unlock()
		cancel()
		wg.Wait()
		synctest.Wait()
		if n := len(slices.Collect(fx.server.Sessions())); n != 1 {
			t.Errorf("%d sessions, want the engine's own", n)
		}
	})
}

// BenchmarkEngine serves a tool call without a transport.
func BenchmarkEngine(b *testing.B) {
	fx := newEngineFixture(b)
	m := request{"tools/call", "", `,"name":"meta"`}.parse(b)
	f := &call.Facts{RequestID: "req", ID: m.ID, Method: m.Method, Era: protocol.EraModern}
	b.ReportAllocs()
	for b.Loop() {
		if _, fault := fx.Serve(b.Context(), f, m); fault != nil {
			b.Fatal(fault)
		}
	}
}
