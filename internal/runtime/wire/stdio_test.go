package wire_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/protocol"
	"github.com/famcp/famcp/internal/runtime/wire"
)

// Pieces of messages.
const (
	modernMeta  = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`
	initialize  = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}`
	initialize3 = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	initDone    = `{"id":"init","result":{"protocolVersion":"2025-11-25"}}`
	initDone3   = `{"id":"init","result":{"protocolVersion":"2025-03-26"}}`
)

// callTool returns a tools/call. id is written as it is; meta is the inside of
// _meta.
func callTool(id, tool, args, meta string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{%s}}}`, id, tool, args, meta)
}

func modern(id, method, more string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{"_meta":{%s}%s}}`, id, method, modernMeta, more)
}

func listen(id string) string {
	return modern(id, "subscriptions/listen", `,"notifications":{"toolsListChanged":true}`)
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

// fixture is a server with the behaviours that the tests need.
type fixture struct {
	server  *mcp.Server
	started chan string   // a slow call has begun
	ended   chan string   // a slow call has seen its cancel
	release chan struct{} // lets slow calls return
}

func newFixture() *fixture {
	f := &fixture{
		server:  mcp.NewServer(&mcp.Implementation{Name: "fixture", Version: "1"}, &mcp.ServerOptions{Logger: slog.New(slog.DiscardHandler)}),
		started: make(chan string, 100), ended: make(chan string, 100), release: make(chan struct{}),
	}
	add := func(name string, h mcp.ToolHandler) {
		f.server.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, h)
	}
	add("echo", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(string(r.Params.Arguments)), nil
	})
	add("slow", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		name := string(r.Params.Arguments)
		f.started <- name
		select {
		case <-f.release:
			return text("slept"), nil
		case <-ctx.Done():
			f.ended <- name
			// What a cancelled call still says must not go out.
			_ = r.Session.NotifyProgress(context.WithoutCancel(ctx), &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1})
			return nil, ctx.Err()
		}
	})
	add("timed", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		time.Sleep(30 * time.Second) // in a synctest bubble
		return text("at last"), nil
	})
	add("progress", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range 2 {
			err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1)})
			if err != nil {
				return nil, err
			}
		}
		return text("done"), nil
	})
	add("log", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for _, level := range []mcp.LoggingLevel{"debug", "error"} {
			err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Data: string(r.Params.Arguments)})
			if err != nil {
				return nil, err
			}
		}
		return text("logged"), nil
	})
	add("ask", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if a, ok := r.Params.InputResponses["q"].(*mcp.ElicitResult); ok {
			return text("answer: " + a.Action), nil
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Message: "sure?"}}}, nil
	})
	add("elicit", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		f.started <- "elicit"
		if res, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "sure?"}); err == nil {
			return text("answer: " + res.Action), nil
		}
		return text("no answer"), nil
	})
	add("pinger", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if r.Session.Ping(ctx, nil) == nil {
			return text("pong"), nil
		}
		return text("refused"), nil
	})
	add("fails", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, errors.New("dial tcp 10.0.0.5: password=hunter2")
	})
	add("conflict", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, &jsonrpc.Error{Code: -32007, Message: "taken <&>", Data: json.RawMessage(`{"field":"x"}`)}
	})
	return f
}

func (f *fixture) stdio(in io.Reader, out io.Writer) *wire.Stdio {
	return &wire.Stdio{Server: f.server, Calls: &call.Table{}, In: in, Out: out, AllScopes: true}
}

// oneShot serves input to its end and returns the lines of output.
func oneShot(t *testing.T, s *wire.Stdio, input string) []string {
	t.Helper()
	var out bytes.Buffer
	s.In, s.Out = strings.NewReader(input), &out
	if err := s.Run(t.Context()); err != nil {
		t.Fatalf("Run: %v", err)
	}
	if out.Len() == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// contains reports whether got has every member of want, recursively. In want
// the string "<absent>" stands for no member. Numbers are compared as written.
func contains(got, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok {
			return false
		}
		for k, w := range want {
			g, has := got[k]
			if w == "<absent>" {
				if has {
					return false
				}
				continue
			}
			if !has || !contains(g, w) {
				return false
			}
		}
		return true
	case []any:
		got, ok := got.([]any)
		return ok && len(got) == len(want) && !slices.ContainsFunc(want, func(w any) bool {
			return !slices.ContainsFunc(got, func(g any) bool { return contains(g, w) })
		})
	default:
		return reflect.DeepEqual(got, want)
	}
}

func parse(t *testing.T, line string) any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(line))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, line)
	}
	return v
}

// wantLines checks that got and want match one to one, in any order.
func wantLines(t *testing.T, got, want []string) {
	t.Helper()
	rest := slices.Clone(got)
	for _, w := range want {
		i := slices.IndexFunc(rest, func(g string) bool { return contains(parse(t, g), parse(t, w)) })
		if i < 0 {
			t.Errorf("no line like\n\t%s\nin\n\t%s", w, strings.Join(rest, "\n\t"))
			continue
		}
		rest = slices.Delete(rest, i, i+1)
	}
	if len(rest) > 0 && !t.Failed() {
		t.Errorf("lines too many:\n\t%s", strings.Join(rest, "\n\t"))
	}
}

func TestStdioLines(t *testing.T) {
	tests := []struct {
		name  string
		setup func(*wire.Stdio)
		in    []string
		want  []string
	}{
		{
			name: "modern call",
			in:   []string{callTool("1", "echo", `{"a":"<&>"}`, modernMeta)},
			want: []string{`{"id":1,"result":{"resultType":"complete","content":[{"text":"{\"a\":\"<&>\"}"}]}}`},
		},
		{
			name: "legacy call",
			in:   []string{initialize, initialized, callTool("1", "echo", `{"a":1}`, "")},
			want: []string{initDone, `{"id":1,"result":{"resultType":"<absent>","content":[{"text":"{\"a\":1}"}]}}`},
		},
		{
			name: "discover, then initialize, then both",
			in: []string{
				modern("1", "server/discover", ""), initialize, initialized,
				callTool("2", "ask", `{}`, modernMeta), callTool("3", "echo", `{}`, ""),
			},
			want: []string{
				`{"id":1,"result":{"resultType":"complete"}}`, initDone,
				`{"id":2,"result":{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create"}}}}`,
				`{"id":3,"result":{"resultType":"<absent>"}}`,
			},
		},
		{
			name: "initialize, then modern",
			in:   []string{initialize, initialized, modern("1", "server/discover", ""), callTool("2", "ask", `{}`, modernMeta), `{"jsonrpc":"2.0","id":3,"method":"ping"}`},
			want: []string{initDone, `{"id":1,"result":{}}`, `{"id":2,"result":{"resultType":"input_required"}}`, `{"id":3,"result":{}}`},
		},
		{
			name: "initialize with a modern _meta is legacy",
			in:   []string{strings.Replace(initialize, `"capabilities"`, `"_meta":{`+modernMeta+`},"capabilities"`, 1)},
			want: []string{initDone},
		},
		{
			name: "a legacy revision in _meta is legacy and opaque",
			in: []string{initialize, initialized, callTool("1", "echo", `{}`,
				`"io.modelcontextprotocol/protocolVersion":"2025-11-25","io.modelcontextprotocol/clientCapabilities":7`)},
			want: []string{initDone, `{"id":1,"result":{"resultType":"<absent>"}}`},
		},
		{
			name: "before initialize",
			in: []string{
				`{"jsonrpc":"2.0","id":1,"method":"ping"}`,
				`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
				initialized,
				`{"jsonrpc":"2.0","id":1,"result":{}}`,
				initialize, initialize,
			},
			want: []string{`{"id":1,"result":{}}`, `{"id":2,"error":{"code":-32600}}`, initDone, `{"id":"init","error":{"code":-32600}}`},
		},
		{
			name: "a refused initialize can be repeated",
			in: []string{
				`{"jsonrpc":"2.0","id":1,"method":"initialize"}`,
				`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":5}}`,
				initialize,
			},
			want: []string{`{"id":1,"error":{"code":-32600}}`, `{"id":2,"error":{"code":-32602}}`, initDone},
		},
		{
			name: "order of modern checks",
			in: []string{
				`{"jsonrpc":"2.0","id":1.5,"method":"initialize","params":{"_meta":{}}}`,
				`{"jsonrpc":"2.0","id":2,"method":"server/discover"}`,
				`{"jsonrpc":"2.0","id":3,"method":"nope","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01"}}}`,
				`{"jsonrpc":"2.0","id":4,"method":"nope","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":5,"io.modelcontextprotocol/clientCapabilities":{}}}}`,
				`{"jsonrpc":"2.0","id":5,"method":"nope","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}`,
				modern("6", "nope", ""), modern("7", "ping", ""), modern("8", "logging/setLevel", `,"level":"x"`),
				modern("9", "tasks/list", ""), modern("10", "resources/subscribe", `,"uri":"x:y"`),
				`{"jsonrpc":"2.0","id":11,"method":"tools/call","params":{"_meta":{` + modernMeta + `},"name":5}}`,
			},
			want: []string{
				`{"id":"<absent>","error":{"code":-32600}}`,
				`{"id":2,"error":{"code":-32602,"data":{"field":"_meta/io.modelcontextprotocol/protocolVersion"}}}`,
				`{"id":3,"error":{"code":-32602,"data":{"field":"_meta/io.modelcontextprotocol/clientCapabilities"}}}`,
				`{"id":4,"error":{"code":-32602}}`,
				`{"id":5,"error":{"code":-32022,"data":{"requested":"2099-01-01","supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]}}}`,
				`{"id":6,"error":{"code":-32601}}`, `{"id":7,"error":{"code":-32601}}`, `{"id":8,"error":{"code":-32601}}`,
				`{"id":9,"error":{"code":-32601}}`, `{"id":10,"error":{"code":-32601}}`,
				`{"id":11,"error":{"code":-32602,"message":"params.name is not of the type that the method takes","data":{"field":"name"}}}`,
			},
		},
		{
			name: "malformed lines",
			in: []string{
				`nonsense`, `{"jsonrpc":"2.0","id":1,"method":"ping"} x`, `{"jsonrpc":"2.0","id":1,"method":"ping"}{}`,
				`"text"`, `7`, `null`, "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}",
				`{"jsonrpc":"1.0","id":2,"method":"ping"}`, `{"id":3,"method":"ping"}`,
				`{"jsonrpc":"2.0","id":null,"method":"ping"}`, `{"jsonrpc":"2.0","id":true,"method":"ping"}`,
				`{"jsonrpc":"2.0","id":4}`, `{"jsonrpc":"2.0","id":5,"METHOD":"ping"}`, `{"jsonrpc":"2.0","id":6,"method":"ping","params":[]}`,
				`{"jsonrpc":"2.0","id":7,"method":"ping"}`,
			},
			want: []string{
				`{"id":"<absent>","error":{"code":-32700}}`, `{"id":"<absent>","error":{"code":-32700}}`, `{"id":"<absent>","error":{"code":-32700}}`,
				`{"id":"<absent>","error":{"code":-32600}}`, `{"id":"<absent>","error":{"code":-32600}}`, `{"id":"<absent>","error":{"code":-32600}}`,
				`{"id":"<absent>","error":{"code":-32700}}`,
				`{"id":2,"error":{"code":-32600}}`, `{"id":3,"error":{"code":-32600}}`,
				`{"id":"<absent>","error":{"code":-32600}}`, `{"id":"<absent>","error":{"code":-32600}}`,
				`{"id":4,"error":{"code":-32600}}`, `{"id":5,"error":{"code":-32600}}`, `{"id":6,"error":{"code":-32600}}`,
				`{"id":7,"result":{}}`,
			},
		},
		{
			name: "damaged answers are not answered",
			in: []string{
				`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`, `{"jsonrpc":"1.0","id":1,"result":{}}`,
				initialize, `{"jsonrpc":"2.0","id":99,"result":{}}`, `{"jsonrpc":"2.0","id":"x","error":7}`,
			},
			want: []string{initDone},
		},
		{
			name: "byte order mark, CRLF, blank lines, spaces, no end of line",
			in:   []string{"\xef\xbb\xbf" + `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\r", "", " \t\r", `  {"jsonrpc":"2.0","id":2,"method":"ping"}  `, `{"jsonrpc":"2.0","id":3,"method":"ping"}`},
			want: []string{`{"id":1,"result":{}}`, `{"id":2,"result":{}}`, `{"id":3,"result":{}}`},
		},
		{
			name: "ids of any size and spelling",
			in: []string{
				callTool("9007199254740993", "echo", `{}`, modernMeta), callTool("-123456789012345678901234567890", "echo", `{}`, modernMeta),
				callTool(`"1"`, "echo", `{}`, modernMeta), callTool(`1`, "echo", `{}`, modernMeta), callTool(`""`, "echo", `{}`, modernMeta),
				callTool(`"\u00e9<é>"`, "fails", `{}`, modernMeta), callTool(`"<a>"`, "nope", `{}`, modernMeta), modern(`"<b>"`, "nope", ""), modern(`"<c>"`, "ping", ""),
			},
			want: []string{
				`{"id":9007199254740993}`, `{"id":-123456789012345678901234567890}`, `{"id":"1"}`, `{"id":1}`, `{"id":""}`,
				`{"id":"\u00e9<é>"}`, `{"id":"<a>"}`, `{"id":"<b>"}`, `{"id":"<c>"}`,
			},
		},
		{
			name: "errors of handlers",
			in:   []string{callTool("1", "fails", `{}`, modernMeta), callTool("2", "conflict", `{}`, modernMeta)},
			want: []string{
				`{"id":1,"error":{"code":-32603,"message":"internal error"}}`,
				`{"id":2,"error":{"code":-32007,"message":"taken <&>","data":{"field":"x"}}}`,
			},
		},
		{
			name: "progress tokens come back as sent",
			in: []string{
				initialize, initialized,
				callTool("1", "progress", `{}`, modernMeta+`,"progressToken":9007199254740993`),
				callTool("2", "progress", `{}`, `"progressToken":"<tok>"`),
				callTool("3", "progress", `{}`, ""),
			},
			want: []string{
				initDone,
				`{"method":"notifications/progress","params":{"progressToken":9007199254740993,"progress":1}}`,
				`{"method":"notifications/progress","params":{"progressToken":9007199254740993,"progress":2}}`,
				`{"method":"notifications/progress","params":{"progressToken":"<tok>","progress":1}}`,
				`{"method":"notifications/progress","params":{"progressToken":"<tok>","progress":2}}`,
				`{"id":1,"result":{}}`, `{"id":2,"result":{}}`, `{"id":3,"result":{}}`,
			},
		},
		{
			name: "log level is each request's own",
			in: []string{
				callTool("1", "log", `{"n":1}`, modernMeta+`,"io.modelcontextprotocol/logLevel":"debug"`),
				callTool("2", "log", `{"n":2}`, modernMeta+`,"io.modelcontextprotocol/logLevel":"error"`),
				callTool("3", "log", `{"n":3}`, modernMeta),
			},
			want: []string{
				`{"method":"notifications/message","params":{"level":"debug","data":"{\"n\":1}"}}`,
				`{"method":"notifications/message","params":{"level":"error","data":"{\"n\":1}"}}`,
				`{"method":"notifications/message","params":{"level":"error","data":"{\"n\":2}"}}`,
				`{"id":1}`, `{"id":2}`, `{"id":3}`,
			},
		},
		{
			name: "a listen ends with the input",
			in:   []string{listen(`"L1"`), listen("9007199254740993"), modern("3", "subscriptions/listen", `,"notifications":{}`)},
			want: []string{
				`{"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L1"}}}`,
				`{"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":9007199254740993}}}`,
				`{"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":3}}}`,
				`{"id":"L1","result":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L1"}}}`,
				`{"id":9007199254740993,"result":{"_meta":{"io.modelcontextprotocol/subscriptionId":9007199254740993}}}`,
				`{"id":3,"result":{"_meta":{"io.modelcontextprotocol/subscriptionId":3}}}`,
			},
		},
		{
			name: "what only one era has",
			in: []string{
				initialize, initialized,
				`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}`,
				`{"jsonrpc":"2.0","id":2,"method":"notifications/cancelled","params":{"requestId":1}}`,
				callTool("3", "pinger", `{}`, modernMeta), callTool("4", "elicit", `{}`, modernMeta),
			},
			want: []string{
				initDone, `{"id":1,"error":{"code":-32601}}`, `{"id":2,"error":{"code":-32600}}`,
				`{"id":3,"result":{"content":[{"text":"refused"}]}}`, `{"id":4,"result":{"content":[{"text":"no answer"}]}}`,
			},
		},
		{
			name:  "modern only",
			setup: func(s *wire.Stdio) { s.Eras = protocol.ErasModern },
			in:    []string{initialize, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, callTool("2", "echo", `{}`, modernMeta), `[]`},
			want: []string{
				`{"id":"init","error":{"code":-32022,"data":{"requested":"2025-11-25","supported":["2026-07-28"]}}}`,
				`{"id":1,"error":{"code":-32022}}`, `{"id":2,"result":{}}`, `{"id":"<absent>","error":{"code":-32600}}`,
			},
		},
		{
			name:  "legacy only",
			setup: func(s *wire.Stdio) { s.Eras = protocol.ErasLegacy },
			in:    []string{callTool("2", "echo", `{}`, modernMeta), `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, initialize},
			want: []string{
				`{"id":2,"error":{"code":-32022,"data":{"requested":"2026-07-28","supported":["2025-11-25","2025-06-18","2025-03-26","2024-11-05"]}}}`,
				`{"id":1,"error":{"code":-32022}}`, initDone,
			},
		},
		{
			name: "batches where there are none",
			in:   []string{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, initialize, `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`},
			want: []string{`{"id":"<absent>","error":{"code":-32600}}`, initDone, `{"id":"<absent>","error":{"code":-32600}}`},
		},
		{
			name: "batches of 2025-03-26",
			in: []string{
				initialize3,
				`[` + initialized + `,` + callTool("1", "echo", `{}`, "") + `,{"jsonrpc":"2.0","id":2,"method":"ping"},7,[],` + callTool("1", "slow", `{}`, "") + `]`,
				`[` + initialized + `]`, `[]`,
				`[` + strings.Replace(initialize3, `"init"`, `8`, 1) + `,` + callTool("9", "echo", `{}`, modernMeta) + `]`,
				`[`,
			},
			want: []string{
				initDone3,
				`[{"id":1,"result":{}},{"id":2,"result":{}},{"error":{"code":-32600}},{"error":{"code":-32600}},{"id":"<absent>","error":{"code":-32600,"message":"the id belongs to a request that is still running"}}]`,
				`{"id":"<absent>","error":{"code":-32600}}`,
				`[{"id":8,"error":{"code":-32600}},{"id":9,"error":{"code":-32600}}]`,
				`{"id":"<absent>","error":{"code":-32700}}`,
			},
		},
		{
			name:  "lines that are too long",
			setup: func(s *wire.Stdio) { s.MaxLine = 300 },
			in: []string{
				`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`,
				`{"method":"ping","params":{"id":9,"x":"` + strings.Repeat("x", 1<<20) + `"},"jsonrpc":"2.0","id":"<2>"}`,
				`{"method":"ping","params":{"x":"` + strings.Repeat("x", 400) + `","id":9}}`,
				`{"jsonrpc":"2.0","result":{"x":"` + strings.Repeat("x", 400) + `"},"id":3}`,
				`[{"jsonrpc":"2.0","id":4,"method":"` + strings.Repeat("x", 400) + `"}]`,
				`{"jsonrpc":"2.0","id":5,"method":"ping"}`,
			},
			want: []string{
				`{"id":1,"error":{"code":-32005}}`, `{"id":"<2>","error":{"code":-32005}}`, `{"id":"<absent>","error":{"code":-32005}}`,
				`{"id":"<absent>","error":{"code":-32005}}`, `{"id":5,"result":{}}`,
			},
		},
		{
			name: "authorization",
			setup: func(s *wire.Stdio) {
				s.Authorize = func(f *call.Facts, m *protocol.Message) error {
					switch m.ParamString("name") {
					case "fails":
						return &jsonrpc.Error{Code: -32000, Message: "no scope"}
					case "slow":
						return errors.New("secret")
					}
					return nil
				}
			},
			in:   []string{callTool("1", "fails", `{}`, modernMeta), callTool("2", "slow", `{}`, modernMeta), callTool("3", "echo", `{}`, modernMeta)},
			want: []string{`{"id":1,"error":{"code":-32000,"message":"no scope"}}`, `{"id":2,"error":{"code":-32603,"message":"internal error"}}`, `{"id":3,"result":{}}`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture()
			close(f.release)
			s := f.stdio(nil, nil)
			if tt.setup != nil {
				tt.setup(s)
			}
			wantLines(t, oneShot(t, s, strings.Join(tt.in, "\n")), tt.want)
		})
	}
}

// Ids are compared as bytes, not as JSON.
func TestStdioIDBytes(t *testing.T) {
	for _, id := range []string{`"\u00e9\/<&>"`, `"é"`, "-0", "18446744073709551616", `"\ud800"`} {
		got := oneShot(t, newFixture().stdio(nil, nil), callTool(id, "echo", `{}`, modernMeta)+"\n"+listen(id[:1]+"1"+id[1:])+"\n")
		if !slices.ContainsFunc(got, func(l string) bool { return strings.HasPrefix(l, `{"jsonrpc":"2.0","id":`+id+`,`) }) {
			t.Errorf("id %s not in %q", id, got)
		}
	}
}

// A talk is a conversation with a running server.
type talk struct {
	t    *testing.T
	in   *io.PipeWriter
	out  chan string
	done chan error
}

func startTalk(t *testing.T, ctx context.Context, s *wire.Stdio) *talk {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	s.In, s.Out = inR, outW
	c := &talk{t: t, in: inW, out: make(chan string, 1000), done: make(chan error, 1)}
	go func() {
		err := s.Run(ctx)
		outW.Close()
		inR.Close()
		c.done <- err
	}()
	go func() {
		defer close(c.out)
		for dec := json.NewDecoder(outR); ; {
			var line json.RawMessage
			if dec.Decode(&line) != nil {
				return
			}
			c.out <- string(line)
		}
	}()
	return c
}

func (c *talk) say(lines ...string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, strings.Join(lines, "\n")+"\n"); err != nil {
		c.t.Fatalf("writing: %v", err)
	}
}

func (c *talk) hear(want string) {
	c.t.Helper()
	got, ok := <-c.out
	if !ok {
		c.t.Fatalf("output ended, want %s", want)
	}
	wantLines(c.t, []string{got}, []string{want})
}

// end closes the input and checks that nothing more was said.
func (c *talk) end(want error) {
	c.t.Helper()
	c.in.Close()
	for line := range c.out {
		c.t.Errorf("line too many: %s", line)
	}
	if err := <-c.done; !errors.Is(err, want) {
		c.t.Errorf("Run returned %v, want %v", err, want)
	}
}

func TestStdioCancel(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			f := newFixture()
			c := startTalk(t, t.Context(), f.stdio(nil, nil))
			meta := modernMeta
			if era == "legacy" {
				meta = `"progressToken":5`
				c.say(initialize)
				c.hear(initDone)
			}
			c.say(callTool(`"\u0061"`, "slow", `{"n":1}`, meta), callTool("7", "slow", `{"n":2}`, meta))
			<-f.started
			<-f.started
			c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a","reason":"no"}}`)
			if got := <-f.ended; got != `{"n":1}` {
				t.Errorf("cancelled %s", got)
			}
			// An id that is not open, and a number for a string.
			c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"7"}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
			// The id is free again, the other call lives.
			c.say(callTool(`"a"`, "echo", `{}`, meta))
			c.hear(`{"id":"a","result":{"content":[{"text":"{}"}]}}`)
			close(f.release)
			c.hear(`{"id":7,"result":{"content":[{"text":"slept"}]}}`)
			c.end(nil)
		})
	}
}

func TestStdioDuplicateID(t *testing.T) {
	f := newFixture()
	c := startTalk(t, t.Context(), f.stdio(nil, nil))
	c.say(initialize)
	c.hear(initDone)
	c.say(callTool("7", "slow", `{}`, ""))
	<-f.started
	// Neither era may take it, nor a damaged message its name.
	for _, line := range []string{callTool("7", "echo", `{}`, ""), callTool("7", "echo", `{}`, modernMeta), `{"jsonrpc":"1.0","id":7,"method":"ping"}`} {
		c.say(line)
		c.hear(`{"id":"<absent>","error":{"code":-32600}}`)
	}
	close(f.release)
	c.hear(`{"id":7,"result":{}}`)
	c.say(callTool("7", "echo", `{}`, ""))
	c.hear(`{"id":7,"result":{}}`)
	c.end(nil)
}

func TestStdioListens(t *testing.T) {
	f := newFixture()
	c := startTalk(t, t.Context(), f.stdio(nil, nil))
	changed := func(id string) string {
		return fmt.Sprintf(`{"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, id)
	}
	for _, id := range []string{`"a"`, "2"} {
		c.say(listen(id))
		c.hear(fmt.Sprintf(`{"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, id))
	}
	f.server.RemoveTools("log")
	wantLines(t, []string{<-c.out, <-c.out}, []string{changed(`"a"`), changed("2")})

	c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, callTool("3", "echo", `{}`, modernMeta))
	c.hear(`{"id":3}`)
	f.server.RemoveTools("ask")
	c.hear(changed(`"a"`))

	c.in.Close()
	c.hear(`{"id":"a","result":{"_meta":{"io.modelcontextprotocol/subscriptionId":"a"}}}`)
	c.end(nil)
}

// A session of one era hears nothing of the other's.
func TestStdioLegacyListChanged(t *testing.T) {
	f := newFixture()
	c := startTalk(t, t.Context(), f.stdio(nil, nil))
	c.say(modern("1", "server/discover", ""))
	c.hear(`{"id":1}`)
	c.say(initialize)
	c.hear(initDone)
	f.server.RemoveTools("log")
	c.hear(`{"method":"notifications/tools/list_changed"}`)
	c.end(nil)
}

func TestStdioAsk(t *testing.T) {
	answers := []struct{ name, answer, want string }{
		{"accepted", `{"jsonrpc":"2.0","id":%s,"result":{"action":"accept"}}`, "answer: accept"},
		{"declined", `{"result":{"action":"decline"},"id":%s,"jsonrpc":"2.0"}`, "answer: decline"},
		{"error", `{"jsonrpc":"2.0","id":%s,"error":{"code":-1,"message":"no"}}`, "no answer"},
		{"unreadable", `{"jsonrpc":"2.0","id":%s,"error":7}`, "no answer"},
		{"too long", `{"jsonrpc":"2.0","id":%s,"result":{"x":"` + strings.Repeat("x", 5000) + `"}}`, "no answer"},
		{"too long, id last", `{"result":{"x":"` + strings.Repeat("x", 5000) + `"},"jsonrpc":"2.0","id":%s}`, "no answer"},
	}
	for _, tt := range answers {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture()
			s := f.stdio(nil, nil)
			s.MaxLine = 4000
			c := startTalk(t, t.Context(), s)
			c.say(initialize, initialized)
			c.hear(initDone)
			// The client's id is the one that the server will use, too.
			c.say(callTool("1", "elicit", `{}`, ""))
			var ask struct{ ID json.RawMessage }
			if err := json.Unmarshal([]byte(<-c.out), &ask); err != nil {
				t.Fatal(err)
			}
			c.say(fmt.Sprintf(tt.answer, `"`+string(ask.ID)+`"`)) // another id
			c.say(fmt.Sprintf(tt.answer, ask.ID))
			c.hear(fmt.Sprintf(`{"id":1,"result":{"content":[{"text":%q}]}}`, tt.want))
			c.say(fmt.Sprintf(tt.answer, ask.ID)) // too late
			c.end(nil)
		})
	}
}

// The SDK's own asking for handlers that return questions.
func TestStdioAskBySDK(t *testing.T) {
	c := startTalk(t, t.Context(), newFixture().stdio(nil, nil))
	c.say(modern("0", "server/discover", ""))
	c.hear(`{"id":0}`)
	c.say(initialize, initialized)
	c.hear(initDone)
	c.say(callTool(`"t"`, "ask", `{}`, ""))
	c.hear(`{"id":1,"method":"elicitation/create","params":{"message":"sure?"}}`)
	c.say(`{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`)
	c.hear(`{"id":"t","result":{"content":[{"text":"answer: accept"}]}}`)
	c.end(nil)
}

// Cancelling a call withdraws its question.
func TestStdioCancelAsk(t *testing.T) {
	f := newFixture()
	c := startTalk(t, t.Context(), f.stdio(nil, nil))
	c.say(initialize)
	c.hear(initDone)
	c.say(callTool("1", "elicit", `{}`, ""))
	c.hear(`{"method":"elicitation/create"}`)
	c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	c.hear(`{"method":"notifications/cancelled","params":{"requestId":1}}`)
	c.end(nil)
}

// No answer can come after the end of input, neither to a question that is
// open nor to a later one.
func TestStdioAskAtTheEnd(t *testing.T) {
	f := newFixture()
	c := startTalk(t, t.Context(), f.stdio(nil, nil))
	c.say(initialize)
	c.hear(initDone)
	f.server.AddTool(&mcp.Tool{Name: "late", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for range 2 {
				if _, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "sure?"}); err == nil {
					return text("answered"), nil
				}
			}
			return text("no answer"), nil
		})
	c.hear(`{"method":"notifications/tools/list_changed"}`)
	c.say(callTool(`"x"`, "late", `{}`, ""))
	c.hear(`{"method":"elicitation/create"}`)
	c.in.Close()
	c.hear(`{"id":"x","result":{"content":[{"text":"no answer"}]}}`)
	c.end(nil)
}

// A server that asks before its session has begun gets no answer, and does not
// wait for one.
func TestStdioAskDuringInitialize(t *testing.T) {
	f := newFixture()
	failed := make(chan error, 1)
	f.server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "initialize" {
				failed <- req.GetSession().(*mcp.ServerSession).Ping(ctx, nil)
			}
			return next(ctx, method, req)
		}
	})
	wantLines(t, oneShot(t, f.stdio(nil, nil), initialize), []string{initDone})
	if err := <-failed; err == nil {
		t.Error("the question had an answer")
	}
}

func TestStdioBatchCancelled(t *testing.T) {
	f := newFixture()
	c := startTalk(t, t.Context(), f.stdio(nil, nil))
	c.say(initialize3)
	c.hear(initDone3)
	c.say(`[` + callTool("1", "slow", `{}`, "") + `,` + callTool("2", "echo", `{}`, "") + `]`)
	<-f.started
	c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	c.hear(`[{"id":2,"result":{}}]`)
	c.say(`[` + callTool("3", "slow", `{}`, "") + `]`)
	<-f.started
	c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	c.end(nil)
}

func TestStdioFacts(t *testing.T) {
	f := newFixture()
	calls := &call.Table{}
	seen := make(chan *call.Facts, 1)
	f.server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "tools/call" {
				seen <- calls.Take(req.GetExtra().Header.Get(call.Header))
			}
			return next(ctx, method, req)
		}
	})
	s := f.stdio(nil, nil)
	s.Calls, s.AllScopes, s.Scopes, s.Subject = calls, false, []string{"read"}, "me"
	c := startTalk(t, t.Context(), s)
	c.say(callTool(`"x"`, "echo", `{}`, modernMeta))
	got := <-seen
	if got == nil || got.RequestID == "" {
		t.Fatalf("facts: %+v", got)
	}
	want := &call.Facts{
		RequestID: got.RequestID, ID: json.RawMessage(`"x"`), Method: "tools/call", Era: protocol.EraModern,
		Transport: call.Stdio, Subject: "me", Scopes: []string{"read"}, CanAsk: true,
	}
	addresses := cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
	if diff := cmp.Diff(want, got, addresses); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	c.hear(`{"id":"x"}`)
	c.end(nil)
}

// One request without clientInfo must not get that of another.
func TestStdioClientInfoDoesNotLeak(t *testing.T) {
	f := newFixture()
	f.server.AddTool(&mcp.Tool{Name: "who", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if info := r.ClientInfo(); info != nil {
				return text(info.Name), nil
			}
			return text("nobody"), nil
		})
	c := startTalk(t, t.Context(), f.stdio(nil, nil))
	c.say(callTool("1", "who", `{}`, modernMeta+`,"io.modelcontextprotocol/clientInfo":{"name":"first","version":"1"}`))
	c.hear(`{"id":1,"result":{"content":[{"text":"first"}]}}`)
	c.say(callTool("2", "who", `{}`, modernMeta))
	c.hear(`{"id":2,"result":{"content":[{"text":"nobody"}]}}`)
	c.end(nil)
}

func TestStdioWaitsForSlowCallsAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := oneShot(t, newFixture().stdio(nil, nil), callTool("1", "timed", `{}`, modernMeta))
		wantLines(t, got, []string{`{"id":1,"result":{"content":[{"text":"at last"}]}}`})
	})
}

func TestStdioContextCancelled(t *testing.T) {
	t.Run("calls finish within the grace", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture()
			ctx, cancel := context.WithCancel(t.Context())
			c := startTalk(t, ctx, f.stdio(nil, nil))
			c.say(listen("1"))
			c.hear(`{"method":"notifications/subscriptions/acknowledged"}`)
			c.say(callTool("2", "slow", `{}`, modernMeta))
			<-f.started
			cancel()
			c.hear(`{"id":1,"result":{}}`)
			close(f.release)
			c.hear(`{"id":2,"result":{}}`)
			c.end(context.Canceled)
		})
	})
	t.Run("calls are cancelled after the grace", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture()
			ctx, cancel := context.WithCancel(t.Context())
			s := f.stdio(nil, nil)
			s.Grace = time.Minute
			c := startTalk(t, ctx, s)
			c.say(callTool("1", "slow", `{}`, modernMeta))
			<-f.started
			began := time.Now()
			cancel()
			<-f.ended
			if d := time.Since(began); d != time.Minute {
				t.Errorf("cancelled after %s", d)
			}
			c.end(context.Canceled)
		})
	})
	t.Run("a handler that ignores it does not hold Run", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture()
			ctx, cancel := context.WithCancel(t.Context())
			c := startTalk(t, ctx, f.stdio(nil, nil))
			c.say(callTool("1", "timed", `{}`, modernMeta))
			synctest.Wait()
			began := time.Now()
			cancel()
			c.end(context.Canceled)
			if d := time.Since(began); d > 7*time.Second {
				t.Errorf("Run returned after %s", d)
			}
			time.Sleep(time.Minute) // the handler's own end
		})
	})
}

// A client that does not read stops only itself: its calls go on being read up
// to a bound, and are all answered when it reads again.
func TestStdioSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		s := f.stdio(inR, outW)
		done := make(chan error, 1)
		go func() { done <- s.Run(t.Context()) }()
		written := make(chan struct{}, 5000)
		go func() {
			defer inW.Close()
			for i := range 3000 {
				if _, err := fmt.Fprintln(inW, callTool(strconv.Itoa(i), "echo", `{}`, modernMeta)); err != nil {
					return
				}
				written <- struct{}{}
			}
		}()
		synctest.Wait()
		if accepted := len(written); accepted < 1024 || accepted > 2000 { // the bound and what fits the buffer
			t.Errorf("%d lines were taken from a client that does not read", accepted)
		}
		answered := 0
		dec := json.NewDecoder(outR)
		go func() { // outR ends when Run does
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
			outW.Close()
		}()
		for {
			var line json.RawMessage
			if dec.Decode(&line) != nil {
				break
			}
			answered++
		}
		if answered != 3000 {
			t.Errorf("%d answers, want 3000", answered)
		}
	})
}

func TestStdioWriteFails(t *testing.T) {
	f := newFixture()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	outR.Close()
	done := make(chan error, 1)
	go func() { done <- f.stdio(inR, outW).Run(t.Context()) }()
	fmt.Fprintln(inW, callTool("1", "echo", `{}`, modernMeta))
	if err := <-done; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Run returned %v", err)
	}
	inW.Close()
}

func TestStdioReadFails(t *testing.T) {
	broken := errors.New("broken")
	in := io.MultiReader(strings.NewReader(callTool("1", "echo", `{}`, modernMeta)+"\n"), iotestReader{broken})
	var out bytes.Buffer
	if err := newFixture().stdio(in, &out).Run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Run returned %v", err)
	}
	wantLines(t, strings.Split(strings.TrimSpace(out.String()), "\n"), []string{`{"id":1,"result":{}}`})
}

type iotestReader struct{ err error }

func (r iotestReader) Read([]byte) (int, error) { return 0, r.err }

// A closed standard output kills a Go program by SIGPIPE unless it is handled.
func TestStdioClosedStdout(t *testing.T) {
	if os.Getenv("WIRE_TEST_CHILD") == "1" {
		err := newFixture().stdio(os.Stdin, os.Stdout).Run(context.Background())
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(3)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR.Close()
	cmd := exec.Command(os.Args[0], "-test.run=^TestStdioClosedStdout$")
	cmd.Env = append(os.Environ(), "WIRE_TEST_CHILD=1")
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = outW, &stderr
	cmd.Stdin = strings.NewReader(callTool("1", "echo", `{}`, modernMeta) + "\n")
	err = cmd.Run()
	outW.Close()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || !strings.Contains(stderr.String(), "broken pipe") {
		t.Errorf("child ended with %v, stderr %q", err, stderr.String())
	}
}

// clientTransport connects the SDK's own client.
func clientTransport(t *testing.T, f *fixture) (mcp.Transport, chan error) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := f.stdio(inR, outW).Run(t.Context())
		outW.Close()
		done <- err
	}()
	return &mcp.IOTransport{Reader: outR, Writer: inW}, done
}

func TestStdioWithSDKClient(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			f := newFixture()
			transport, done := clientTransport(t, f)
			changed := make(chan struct{}, 1)
			client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept"}, nil
				},
				ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
			})
			session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			if got := session.InitializeResult().ProtocolVersion; got != version {
				t.Errorf("negotiated %s", got)
			}
			for _, tt := range []struct{ tool, want string }{{"echo", `{"a":1}`}, {"ask", "answer: accept"}} {
				res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tt.tool, Arguments: map[string]any{"a": 1}})
				if err != nil {
					t.Fatalf("%s: %v", tt.tool, err)
				}
				if got := res.Content[0].(*mcp.TextContent).Text; got != tt.want {
					t.Errorf("%s answered %q, want %q", tt.tool, got, tt.want)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-f.started
				cancel()
			}()
			if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "slow", Arguments: map[string]any{}}); !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled call: %v", err)
			}
			<-f.ended
			if err := session.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
}

// No goroutine outlives Run.
func TestStdioLeavesNoGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // fails when the bubble's goroutines do not end
		for range 20 {
			f := newFixture()
			c := startTalk(t, t.Context(), f.stdio(nil, nil))
			c.say(initialize, listen("1"), listen("2"), callTool("3", "slow", `{}`, ""), callTool("4", "elicit", `{}`, ""))
			<-f.started
			<-f.started
			synctest.Wait()
			c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
			close(f.release)
			c.in.Close()
			for range c.out {
			}
			if err := <-c.done; err != nil {
				t.Errorf("Run: %v", err)
			}
			if n := len(slices.Collect(f.server.Sessions())); n != 0 {
				t.Errorf("%d sessions are left", n)
			}
		}
	})
}

// Whatever comes in, what goes out are JSON-RPC messages, one a line.
func FuzzStdio(f *testing.F) {
	for _, seed := range []string{
		initialize, initialize3 + "\n[" + initialized + "," + callTool("1", "echo", `{}`, "") + "]",
		callTool("1", "progress", `{}`, modernMeta+`,"progressToken":1`), listen("1"), "[]", "{", "\xef\xbb\xbf{}", "null\n\r\n ",
		initialize + "\n" + callTool("1", "elicit", `{}`, "") + "\n" + `{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`,
		modern("1", "server/discover", "") + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("x", 3000) + `"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		began := time.Now()
		fx := newFixture()
		fx.server.RemoveTools("timed")
		close(fx.release)
		var out bytes.Buffer
		s := fx.stdio(bytes.NewReader(input), &out)
		s.MaxLine = 2000
		if err := s.Run(t.Context()); err != nil {
			t.Fatalf("Run: %v", err)
		}
		if d := time.Since(began); d > 5*time.Second {
			t.Fatalf("took %s", d)
		}
		for line := range strings.Lines(out.String()) {
			messages := []json.RawMessage{json.RawMessage(line)}
			if line[0] == '[' && json.Unmarshal([]byte(line), &messages) != nil {
				t.Fatalf("not JSON: %q", line)
			}
			for _, m := range messages {
				if _, err := protocol.Parse(m); err != nil && !bytes.Contains(m, []byte(`"error":`)) {
					t.Fatalf("not a JSON-RPC message (%v): %q", err, m)
				}
			}
		}
	})
}

// The SDK's own transport is the yardstick.
func BenchmarkStdio(b *testing.B) {
	ours := func(in io.Reader, out io.Writer) error { return newFixture().stdio(in, out).Run(b.Context()) }
	sdk := func(in io.Reader, out io.Writer) error {
		return newFixture().server.Run(b.Context(), &mcp.IOTransport{Reader: io.NopCloser(in), Writer: nopCloser{out}})
	}
	for _, bm := range []struct {
		name        string
		serve       func(io.Reader, io.Writer) error
		first, call string
	}{
		{"modern", ours, modern(`"first"`, "server/discover", ""), callTool("%d", "echo", `{"a":"b"}`, modernMeta)},
		{"modern sdk", sdk, modern(`"first"`, "server/discover", ""), callTool("%d", "echo", `{"a":"b"}`, modernMeta)},
		{"legacy", ours, initialize, callTool("%d", "echo", `{"a":"b"}`, "")},
		{"legacy sdk", sdk, initialize, callTool("%d", "echo", `{"a":"b"}`, "")},
	} {
		b.Run(bm.name, func(b *testing.B) {
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			done := make(chan error, 1)
			go func() {
				done <- bm.serve(inR, outW)
				outW.Close()
			}()
			dec := json.NewDecoder(outR)
			hear := func() {
				var line json.RawMessage
				if err := dec.Decode(&line); err != nil {
					b.Fatal(err)
				}
			}
			fmt.Fprintln(inW, bm.first)
			hear()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				fmt.Fprintf(inW, bm.call+"\n", i)
				hear()
			}
			inW.Close()
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		})
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
