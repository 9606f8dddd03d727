package front

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp/internal/runtime/protocol"
)

const (
	callEcho    = `"name":"echo","arguments":{"a":1}`
	unknownID   = "Mcp-Session-Id: nobody"
	methodCall  = "Mcp-Method: tools/call"
	nameEcho    = "Mcp-Name: echo"
	methodList  = "Mcp-Method: tools/list"
	sessionSlot = "SESSION" // replaced by the header of a live session
)

// TestRoute walks the table of contract §1 and the order of its checks.
func TestRoute(t *testing.T) {
	list := modernCall("7", "tools/list", "")
	tests := []struct {
		name    string
		method  string // "" is POST
		body    string
		headers []string
		status  int
		code    int64  // of the error; 0 wants none
		id      string // of the answer; "" wants none
	}{
		// Row 1: the header names a revision that is not legacy.
		{name: "modern", body: list, headers: []string{modernHead, methodList}, status: 200, id: "7"},
		{name: "modern with junk session id", body: list, headers: []string{modernHead, methodList, unknownID}, status: 200, id: "7"},
		{name: "modern with live session id", body: list, headers: []string{modernHead, methodList, sessionSlot}, status: 200, id: "7"},
		{name: "modern call", body: modernCall(`"x"`, "tools/call", callEcho), headers: []string{modernHead, methodCall, nameEcho}, status: 200, id: `"x"`},
		{name: "unknown version", body: strings.ReplaceAll(list, "2026-07-28", "1900-01-01"), headers: []string{"Mcp-Protocol-Version: 1900-01-01", methodList}, status: 400, code: -32022, id: "7"},
		{name: "no version at all", body: strings.ReplaceAll(list, "2026-07-28", "not-a-version"), headers: []string{"Mcp-Protocol-Version: not-a-version", methodList}, status: 400, code: -32022, id: "7"},
		{name: "later version", body: strings.ReplaceAll(list, "2026-07-28", "2099-01-01"), headers: []string{"Mcp-Protocol-Version: 2099-01-01", methodList}, status: 400, code: -32022, id: "7"},
		{name: "header modern, body legacy", body: strings.ReplaceAll(list, "2026-07-28", "2025-11-25"), headers: []string{modernHead, methodList}, status: 400, code: -32020, id: "7"},
		{name: "two version headers", body: list, headers: []string{legacyHead, modernHead, methodList}, status: 400, code: -32020, id: "7"},
		{name: "modern initialize", body: modernCall("7", "initialize", ""), headers: []string{modernHead, "Mcp-Method: initialize"}, status: 404, code: -32601, id: "7"},
		{name: "modern ping", body: modernCall("7", "ping", ""), headers: []string{modernHead, "Mcp-Method: ping"}, status: 404, code: -32601, id: "7"},
		{name: "modern setLevel", body: modernCall("7", "logging/setLevel", `"level":"info"`), headers: []string{modernHead, "Mcp-Method: logging/setLevel"}, status: 404, code: -32601, id: "7"},
		{name: "modern subscribe", body: modernCall("7", "resources/subscribe", `"uri":"x"`), headers: []string{modernHead, "Mcp-Method: resources/subscribe"}, status: 404, code: -32601, id: "7"},
		{name: "modern unknown method", body: modernCall("7", "foo/bar", ""), headers: []string{modernHead, "Mcp-Method: foo/bar"}, status: 404, code: -32601, id: "7"},
		{name: "modern notification with an id", body: modernCall("7", "notifications/initialized", ""), headers: []string{modernHead, "Mcp-Method: notifications/initialized"}, status: 404, code: -32601, id: "7"},
		{name: "modern tasks/get without Mcp-Name", body: modernCall("7", "tasks/get", `"taskId":"t"`), headers: []string{modernHead, "Mcp-Method: tasks/get"}, status: 400, code: -32020, id: "7"},
		{name: "modern tasks/get", body: modernCall("7", "tasks/get", `"taskId":"t"`), headers: []string{modernHead, "Mcp-Method: tasks/get", "Mcp-Name: t"}, status: 404, code: -32601, id: "7"},
		{name: "modern tasks/list", body: modernCall("7", "tasks/list", ""), headers: []string{modernHead, "Mcp-Method: tasks/list"}, status: 404, code: -32601, id: "7"},
		{name: "modern notification", body: `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, headers: []string{modernHead}, status: 202},
		{name: "notification of an unknown version", body: `{"jsonrpc":"2.0","method":"notifications/cancelled"}`, headers: []string{"Mcp-Protocol-Version: 1900-01-01"}, status: 400, code: -32022},
		{name: "modern response", body: `{"jsonrpc":"2.0","id":1,"result":{}}`, headers: []string{modernHead}, status: 400, code: -32600, id: "1"},
		{name: "modern unknown tool", body: modernCall("7", "tools/call", `"name":"nope"`), headers: []string{modernHead, methodCall, "Mcp-Name: nope"}, status: 400, code: -32602, id: "7"},

		// The order of the checks on the modern path.
		{name: "not JSON", body: `{"jsonrpc"`, headers: []string{modernHead}, status: 400, code: -32700},
		{name: "empty body", body: ``, headers: []string{modernHead}, status: 400, code: -32700},
		{name: "trailing bytes", body: list + "x", headers: []string{modernHead, methodList}, status: 400, code: -32700},
		{name: "two messages", body: list + list, headers: []string{modernHead, methodList}, status: 400, code: -32700},
		{name: "trailing white space", body: list + " \r\n", headers: []string{modernHead, methodList}, status: 200, id: "7"},
		{name: "modern batch", body: "[" + list + "]", headers: []string{modernHead}, status: 400, code: -32600},
		{name: "null id", body: modernCall("null", "tools/list", ""), headers: []string{modernHead, methodList}, status: 400, code: -32600},
		{name: "fractional id", body: modernCall("1.5", "tools/list", ""), headers: []string{modernHead, methodList}, status: 400, code: -32600},
		{name: "wrong jsonrpc", body: strings.Replace(list, "2.0", "1.0", 1), headers: []string{modernHead, methodList}, status: 400, code: -32600, id: "7"},
		{name: "no meta", body: legacyRequest("7", "tools/list", ""), headers: []string{modernHead, methodList}, status: 400, code: -32602, id: "7"},
		{name: "meta is no object", body: legacyRequest("7", "tools/list", `"_meta":5`), headers: []string{modernHead, methodList}, status: 400, code: -32602, id: "7"},
		{name: "no capabilities", body: legacyRequest("7", "tools/list", `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`), headers: []string{modernHead, methodList}, status: 400, code: -32602, id: "7"},
		{name: "meta before headers", body: legacyRequest("7", "tools/list", ""), headers: []string{modernHead}, status: 400, code: -32602, id: "7"},
		{name: "headers before version", body: strings.ReplaceAll(list, "2026-07-28", "1900-01-01"), headers: []string{"Mcp-Protocol-Version: 1900-01-01"}, status: 400, code: -32020, id: "7"},
		{name: "version before method", body: strings.ReplaceAll(modernCall("7", "ping", ""), "2026-07-28", "1900-01-01"), headers: []string{"Mcp-Protocol-Version: 1900-01-01", "Mcp-Method: ping"}, status: 400, code: -32022, id: "7"},
		{name: "no Mcp-Method", body: list, headers: []string{modernHead}, status: 400, code: -32020, id: "7"},
		{name: "wrong Mcp-Method", body: list, headers: []string{modernHead, methodCall}, status: 400, code: -32020, id: "7"},
		{name: "Mcp-Method in another case", body: list, headers: []string{modernHead, "Mcp-Method: Tools/List"}, status: 400, code: -32020, id: "7"},
		{name: "no Mcp-Name", body: modernCall("7", "tools/call", callEcho), headers: []string{modernHead, methodCall}, status: 400, code: -32020, id: "7"},
		{name: "wrong Mcp-Name", body: modernCall("7", "tools/call", callEcho), headers: []string{modernHead, methodCall, "Mcp-Name: other"}, status: 400, code: -32020, id: "7"},
		{name: "encoded Mcp-Name", body: modernCall("7", "tools/call", callEcho), headers: []string{modernHead, methodCall, "Mcp-Name: =?base64?ZWNobw==?="}, status: 200, id: "7"},
		{name: "encoded Mcp-Name of a resource", body: modernCall("7", "resources/read", `"uri":"test:///ü"`), headers: []string{modernHead, "Mcp-Method: resources/read", "Mcp-Name: =?base64?dGVzdDovLy/DvA==?="}, status: 200, id: "7"},
		{name: "badly encoded Mcp-Name", body: modernCall("7", "tools/call", callEcho), headers: []string{modernHead, methodCall, "Mcp-Name: =?base64?!!?="}, status: 400, code: -32020, id: "7"},
		{name: "Mcp-Param", body: modernCall("7", "tools/call", `"name":"routed","arguments":{"region":"eu"}`), headers: []string{modernHead, methodCall, "Mcp-Name: routed", "Mcp-Param-Region: eu"}, status: 200, id: "7"},
		{name: "wrong Mcp-Param", body: modernCall("7", "tools/call", `"name":"routed","arguments":{"region":"eu"}`), headers: []string{modernHead, methodCall, "Mcp-Name: routed", "Mcp-Param-Region: us"}, status: 400, code: -32020, id: "7"},

		// Row 2: a live session; what _meta says does not matter.
		{name: "session", body: legacyRequest("7", "tools/list", ""), headers: []string{legacyHead, sessionSlot}, status: 200, id: "7"},
		{name: "session without version header", body: legacyRequest("7", "tools/list", ""), headers: []string{sessionSlot}, status: 200, id: "7"},
		{name: "session with empty version header", body: legacyRequest("7", "tools/list", ""), headers: []string{"Mcp-Protocol-Version: ", sessionSlot}, status: 200, id: "7"},
		{name: "session with another legacy version", body: legacyRequest("7", "tools/list", ""), headers: []string{"Mcp-Protocol-Version: 2025-03-26", sessionSlot}, status: 200, id: "7"},
		{name: "session with modern meta", body: modernCall("7", "tools/call", callEcho), headers: []string{legacyHead, sessionSlot}, status: 200, id: "7"},
		{name: "session with modern meta, no version header", body: modernCall("7", "tools/list", ""), headers: []string{sessionSlot}, status: 200, id: "7"},
		{name: "session with malformed meta", body: legacyRequest("7", "tools/list", `"_meta":[1]`), headers: []string{sessionSlot}, status: 200, id: "7"},
		{name: "session, unknown method", body: legacyRequest("7", "foo/bar", ""), headers: []string{sessionSlot}, status: 200, code: -32601, id: "7"},
		{name: "session, no params", body: `{"jsonrpc":"2.0","id":7,"method":"tools/call"}`, headers: []string{sessionSlot}, status: 200, code: -32602, id: "7"},
		{name: "session, discover", body: legacyRequest("7", "server/discover", ""), headers: []string{sessionSlot}, status: 200, code: -32601, id: "7"},
		{name: "session, listen", body: legacyRequest("7", "subscriptions/listen", `"notifications":{}`), headers: []string{sessionSlot}, status: 200, code: -32601, id: "7"},
		{name: "session, ping", body: legacyRequest("7", "ping", ""), headers: []string{sessionSlot}, status: 200, id: "7"},
		{name: "session, unknown notification", body: `{"jsonrpc":"2.0","method":"notifications/foo"}`, headers: []string{sessionSlot}, status: 202},
		{name: "session, unknown response", body: `{"jsonrpc":"2.0","id":99,"result":{}}`, headers: []string{sessionSlot}, status: 202},
		{name: "session, unknown tool", body: legacyRequest("7", "tools/call", `"name":"nope"`), headers: []string{sessionSlot}, status: 200, code: -32602, id: "7"},
		{name: "session, batch", body: "[" + legacyRequest("7", "ping", "") + "]", headers: []string{sessionSlot}, status: 400, code: -32600},
		{name: "session, not JSON", body: "{", headers: []string{sessionSlot}, status: 400, code: -32700},
		{name: "session, second initialize", body: initializeBody("2025-11-25"), headers: []string{sessionSlot}, status: 200, code: -32600, id: "1"},

		// Row 3.
		{name: "unknown session", body: legacyRequest("7", "tools/list", ""), headers: []string{legacyHead, unknownID}, status: 404, code: -32001},
		{name: "unknown session with modern meta", body: list, headers: []string{unknownID}, status: 404, code: -32001},
		{name: "unknown session, notification", body: `{"jsonrpc":"2.0","method":"notifications/foo"}`, headers: []string{unknownID}, status: 404, code: -32001},

		// Row 4.
		{name: "initialize", body: initializeBody("2025-11-25"), status: 200, id: "1"},
		{name: "initialize with stale id", body: initializeBody("2025-11-25"), headers: []string{unknownID}, status: 200, id: "1"},
		{name: "initialize with a legacy version header", body: initializeBody("2025-06-18"), headers: []string{"Mcp-Protocol-Version: 2025-06-18"}, status: 200, id: "1"},
		{name: "initialize with modern meta", body: strings.Replace(initializeBody("2025-11-25"), `"params":{`, `"params":{`+meta+`,`, 1), status: 200, id: "1"},

		// Rows 5 and 6.
		{name: "modern meta, no header", body: list, headers: []string{methodList}, status: 400, code: -32020, id: "7"},
		{name: "modern meta, legacy header", body: list, headers: []string{legacyHead, methodList}, status: 400, code: -32020, id: "7"},
		{name: "nothing", body: legacyRequest("7", "tools/list", ""), status: 400, code: -32600, id: "7"},
		{name: "legacy header only", body: legacyRequest("7", "tools/list", ""), headers: []string{legacyHead}, status: 400, code: -32600, id: "7"},
		{name: "legacy meta only", body: strings.ReplaceAll(list, "2026-07-28", "2025-11-25"), status: 400, code: -32600, id: "7"},
		{name: "batch without session", body: "[" + list + "]", status: 400, code: -32600},
		{name: "notification without anything", body: `{"jsonrpc":"2.0","method":"notifications/initialized"}`, status: 202},
		{name: "METHOD is no method", body: `{"jsonrpc":"2.0","id":7,"METHOD":"initialize"}`, status: 400, code: -32600, id: "7"},

		// Other methods.
		{name: "GET", method: "GET", status: 405, code: -32600},
		{name: "GET modern", method: "GET", headers: []string{modernHead, sessionSlot}, status: 405, code: -32600},
		{name: "GET unknown", method: "GET", headers: []string{"Accept: text/event-stream", unknownID}, status: 404, code: -32001},
		{name: "GET without stream", method: "GET", headers: []string{"Accept: application/json", sessionSlot}, status: 406, code: -32600},
		{name: "GET with forged event id", method: "GET", headers: []string{"Accept: text/event-stream", "Last-Event-ID: x_999999", sessionSlot}, status: 400, code: -32600},
		{name: "DELETE without id", method: "DELETE", status: 405, code: -32600},
		{name: "DELETE modern", method: "DELETE", headers: []string{modernHead, sessionSlot}, status: 405, code: -32600},
		{name: "DELETE unknown", method: "DELETE", headers: []string{unknownID}, status: 404, code: -32001},
		{name: "DELETE", method: "DELETE", headers: []string{legacyHead, sessionSlot}, status: 204},
		{name: "HEAD", method: "HEAD", status: 405},
		{name: "PUT", method: "PUT", status: 405, code: -32600},
		{name: "OPTIONS", method: "OPTIONS", status: 204},

		// Media types.
		{name: "text body", body: list, headers: []string{modernHead, methodList, "Content-Type: text/plain"}, status: 415, code: -32600},
		{name: "no content type", body: list, headers: []string{modernHead, methodList, "Content-Type:"}, status: 415, code: -32600},
		{name: "charset", body: list, headers: []string{modernHead, methodList, "Content-Type: application/json; charset=utf-8"}, status: 200, id: "7"},
		{name: "accepts nothing", body: list, headers: []string{modernHead, methodList, "Accept: image/png"}, status: 406, code: -32600},
		{name: "accepts all", body: list, headers: []string{modernHead, methodList, "Accept: */*"}, status: 200, id: "7"},
		{name: "accepts JSON", body: list, headers: []string{modernHead, methodList, "Accept: application/json"}, status: 200, id: "7"},
		{name: "accepts streams", body: list, headers: []string{modernHead, methodList, "Accept: text/event-stream"}, status: 200, id: "7"},
		{name: "no Accept", body: list, headers: []string{modernHead, methodList, "Accept:"}, status: 200, id: "7"},
		{name: "listen as JSON", body: modernCall("7", "subscriptions/listen", `"notifications":{"toolsListChanged":true}`), headers: []string{modernHead, "Mcp-Method: subscriptions/listen", "Accept: application/json"}, status: 406, code: -32600, id: "7"},
		{name: "session, JSON", body: legacyRequest("7", "tools/list", ""), headers: []string{sessionSlot, "Accept: application/json"}, status: 200, id: "7"},
		{name: "session, stream", body: legacyRequest("7", "tools/list", ""), headers: []string{sessionSlot, "Accept: text/event-stream"}, status: 200, id: "7"},
	}
	url := newFixture(t, nil).serve(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for i, h := range tt.headers {
				if h == sessionSlot {
					tt.headers[i] = newSession(t, url, "2025-11-25")
				}
			}
			method := tt.method
			if method == "" {
				method = "POST"
			}
			a := send(t, method, url+Path, tt.body, tt.headers...)
			if a.status != tt.status {
				t.Fatalf("got %d %s, want %d", a.status, a.body, tt.status)
			}
			if a.header.Get("X-Request-Id") == "" {
				t.Error("no X-Request-Id")
			}
			isInit := strings.Contains(tt.body, `"initialize"`) && a.status == 200 && tt.code == 0
			if got := a.header.Get("Mcp-Session-Id"); (got != "") != isInit {
				t.Errorf("Mcp-Session-Id %q", got)
			}
			if a.status == 202 || a.status == 204 || method == "HEAD" {
				if a.body != "" {
					t.Errorf("body %q, want none", a.body)
				}
				return
			}
			if a.status >= 400 && a.header.Get("Content-Type") != "application/json" {
				t.Errorf("Content-Type %q of an error", a.header.Get("Content-Type"))
			}
			if a.status == 405 && a.header.Get("Allow") == "" {
				t.Error("405 without Allow")
			}
			m := a.message(t)
			if string(m.ID) != tt.id {
				t.Errorf("id %s, want %q", m.ID, tt.id)
			}
			switch {
			case tt.code == 0 && m.Error != nil:
				t.Errorf("error %+v, want a result", m.Error)
			case tt.code != 0 && (m.Error == nil || m.Error.Code != tt.code):
				t.Errorf("error %+v, want code %d", m.Error, tt.code)
			case tt.code != 0 && m.Error.Data["requestId"] != a.header.Get("X-Request-Id"):
				t.Errorf("data %v does not name the request %s", m.Error.Data, a.header.Get("X-Request-Id"))
			}
		})
	}
}

func TestRouteEras(t *testing.T) {
	list := modernCall("7", "tools/list", "")
	tests := []struct {
		name    string
		eras    protocol.Eras
		body    string
		headers []string
		code    int64
		want    []any // supported
	}{
		{"modern only, modern", protocol.ErasModern, list, []string{modernHead, methodList}, 0, nil},
		{"modern only, initialize", protocol.ErasModern, initializeBody("2025-11-25"), nil, -32022, []any{"2026-07-28"}},
		{"modern only, session", protocol.ErasModern, legacyRequest("7", "tools/list", ""), []string{unknownID}, -32022, []any{"2026-07-28"}},
		{"modern only, legacy header", protocol.ErasModern, legacyRequest("7", "tools/list", ""), []string{legacyHead}, -32022, []any{"2026-07-28"}},
		{"modern only, nothing", protocol.ErasModern, legacyRequest("7", "tools/list", ""), nil, -32600, nil},
		{"legacy only, initialize", protocol.ErasLegacy, initializeBody("2025-11-25"), nil, 0, nil},
		{"legacy only, modern", protocol.ErasLegacy, list, []string{modernHead, methodList}, -32022, []any{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			url := newFixture(t, func(c *Config) { c.Eras = tt.eras }).serve(t)
			a := send(t, "POST", url+Path, tt.body, tt.headers...)
			if a.code() != tt.code {
				t.Fatalf("got %d %s, want code %d", a.status, a.body, tt.code)
			}
			if tt.want != nil {
				if diff := cmp.Diff(tt.want, a.message(t).Error.Data["supported"]); diff != "" {
					t.Errorf("supported (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestIDs wants every id back byte for byte; the SDK reads numbers as float64.
func TestIDs(t *testing.T) {
	url := newFixture(t, nil).serve(t)
	session := newSession(t, url, "2025-11-25")
	for _, id := range []string{
		"0", "-1", "-0", "7", "9007199254740993", "123456789012345678901234567890",
		`""`, `"a"`, `"7"`, `"\u0061<&>"`, `"ü\n"`, `"` + strings.Repeat("x", 300) + `"`,
	} {
		t.Run(id, func(t *testing.T) {
			modern := send(t, "POST", url+Path, modernCall(id, "tools/call", callEcho), modernHead, methodCall, nameEcho)
			legacy := send(t, "POST", url+Path, legacyRequest(id, "tools/call", callEcho), session)
			unknown := send(t, "POST", url+Path, legacyRequest(id, "foo/bar", callEcho), session)
			for name, a := range map[string]answer{"modern": modern, "legacy": legacy, "error": unknown} {
				if got := string(a.message(t).ID); got != id {
					t.Errorf("%s: got id %s, want %s", name, got, id)
				}
			}
		})
	}
}

func TestFacts(t *testing.T) {
	fx := newFixture(t, nil)
	url := fx.serve(t)
	session := newSession(t, url, "2025-06-18")
	secrets := []string{"Authorization: Bearer secret", "Cookie: a=secret", "Proxy-Authorization: secret", "Famcp-Internal-Call: forged", "X-Request-Id: req-1", "X-Mine: 1"}
	tests := []struct {
		name    string
		body    string
		headers []string
		era     protocol.Era
		canAsk  bool
	}{
		{"modern", modernCall("7", "tools/call", `"name":"facts"`), []string{modernHead, methodCall, "Mcp-Name: facts"}, protocol.EraModern, true},
		{"modern JSON", modernCall("7", "tools/call", `"name":"facts"`), []string{modernHead, methodCall, "Mcp-Name: facts", "Accept: application/json"}, protocol.EraModern, true},
		{"legacy", legacyRequest("7", "tools/call", `"name":"facts"`), []string{session}, protocol.EraLegacy, true},
		{"legacy JSON", legacyRequest("7", "tools/call", `"name":"facts"`), []string{session, "Accept: application/json"}, protocol.EraLegacy, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := send(t, "POST", url+Path, tt.body, append(secrets, tt.headers...)...)
			if a.status != 200 || a.header.Get("X-Request-Id") != "req-1" {
				t.Fatalf("%d %s %v", a.status, a.body, a.header)
			}
			got, header := <-fx.facts, <-fx.header
			if got == nil {
				t.Fatal("no facts reached the handler")
			}
			if got.RequestID != "req-1" || got.Method != "tools/call" || string(got.ID) != "7" || got.Subject != "127.0.0.1" ||
				got.Era != tt.era || got.CanAsk != tt.canAsk || !got.AllScopes {
				t.Errorf("facts %+v", got)
			}
			if got.Header.Get("X-Mine") != "1" {
				t.Errorf("header %v lost X-Mine", got.Header)
			}
			for name, h := range map[string]http.Header{"facts": got.Header, "SDK": header} {
				raw, _ := json.Marshal(h)
				if strings.Contains(string(raw), "secret") || strings.Contains(string(raw), "forged") {
					t.Errorf("credentials in the header of %s: %s", name, raw)
				}
			}
		})
	}
}
