package front

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/famcp/famcp/internal/runtime/protocol"
)

// FuzzFront sends anything to the endpoint. It must answer, in JSON when it
// refuses, without a session id on errors, and never in the SDK's words.
func FuzzFront(f *testing.F) {
	const session = "\x00" // stands for a live session
	for _, body := range []string{
		``, `{`, `[]`, `[1]`, `null`, `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tasks/get"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1,"error":{}}`,
		modernCall("7", "tools/call", callEcho), modernCall("1e400", "tools/list", ""), modernCall(`"\ud800"`, "tools/list", ""),
		modernCall("7", "tools/call", `"name":"routed","arguments":{"region":"eu"}`), modernCall("7", "subscriptions/listen", bodyListen),
		modernCall("7", "server/discover", ""), modernCall("7", "own/method", ""), modernCall("7", "resources/read", `"uri":"test:///ü"`),
		"[" + legacyRequest("1", "tools/call", callEcho) + "]", initializeBody("2025-03-26"),
		legacyRequest("12345678901234567890", "tools/list", `"_meta":{"progressToken":{}},"cursor":5`),
	} {
		f.Add(body, "2026-07-28", "", "tools/call", "echo", "", "application/json, text/event-stream", "POST")
		f.Add(body, "2026-07-28", "", "", "", "eu", "text/event-stream", "POST")
		f.Add(body, "2025-03-26", session, "", "", "", "application/json", "POST")
		f.Add(body, "", session, "", "", "", "text/event-stream", "GET")
		f.Add(body, "", "", "\xff", "=?base64?", "=?base64?", "*/*;q=0", "DELETE")
	}
	fx := newFixture(f, func(c *Config) { c.MaxSessions = 100; c.MaxBody = 16 << 10 })
	var live string
	f.Fuzz(func(t *testing.T, body, version, sessionID, mcpMethod, name, region, accept, method string) {
		if strings.Contains(body, "block") || strings.Contains(body, "steps") || strings.Contains(body, `"ask`) || strings.Contains(body, `\u`) {
			t.Skip("may wait for the test")
		}
		// Most inputs would end at a header that does not repeat the body.
		if m, err := protocol.Parse([]byte(body)); err == nil && mcpMethod == "" && version == protocol.Modern {
			mcpMethod = m.Method
			if param, ok := protocol.NameParam(m.Method); ok {
				name = m.ParamString(param)
			}
		}
		r := httptest.NewRequest(http.MethodPost, "http://localhost"+Path, strings.NewReader(body))
		r.Method = method
		if sessionID == session {
			if _, _, ok := fx.sessions.use(live); !ok {
				live = openSession(t, fx)
			}
			sessionID = live
		}
		for key, value := range map[string]string{
			"Content-Type": "application/json", "Mcp-Protocol-Version": version, "Mcp-Session-Id": sessionID,
			"Mcp-Method": mcpMethod, "Mcp-Name": name, "Mcp-Param-Region": region, "Accept": accept,
		} {
			if value != "" {
				r.Header.Set(key, value)
			}
		}
		// A subscription or a session's stream ends with its client.
		ctx, cancel := context.WithTimeout(r.Context(), 20*time.Millisecond)
		defer cancel()
		w := httptest.NewRecorder()
		fx.ServeHTTP(w, r.WithContext(ctx))
		text := w.Body.String()
		if w.Code >= 400 {
			var m rpc
			if w.Header().Get("Content-Type") != "application/json" || json.Unmarshal(w.Body.Bytes(), &m) != nil || m.Error == nil || m.Error.Code == 0 {
				t.Errorf("%d %v %q is not a JSON-RPC error", w.Code, w.Header(), text)
			}
			if w.Header().Get("Mcp-Session-Id") != "" {
				t.Error("an error carries a session id")
			}
		}
		for _, word := range []string{"jsonrpc2", "JSON RPC", "unmarshal", "mcp.", "StreamableHTTP", "goroutine"} {
			if strings.Contains(text, word) && !strings.Contains(body, word) {
				t.Errorf("the answer says %s: %s", word, text)
			}
		}
	})
}

func openSession(t *testing.T, fx *fixture) string {
	t.Helper()
	r := newRequest(t, "POST", "http://localhost"+Path, initializeBody("2025-03-26"))
	w := httptest.NewRecorder()
	fx.ServeHTTP(w, r)
	id := w.Header().Get("Mcp-Session-Id")
	if id == "" {
		t.Fatalf("initialize: %d %s", w.Code, w.Body)
	}
	return id
}

// BenchmarkModernCall serves tools/call without a network.
func BenchmarkModernCall(b *testing.B) {
	fx := newFixture(b, nil)
	body := modernCall("7", "tools/call", callEcho)
	r := newRequest(b, "POST", "http://localhost"+Path, "", modernHead, methodCall, nameEcho)
	b.ReportAllocs()
	for b.Loop() {
		r.Body = readCloser{strings.NewReader(body)}
		r.ContentLength = int64(len(body))
		w := httptest.NewRecorder()
		fx.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			b.Fatalf("%d %s", w.Code, w.Body)
		}
	}
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }
