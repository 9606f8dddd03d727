package famcp_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp"
)

const (
	headModern = "MCP-Protocol-Version: 2026-07-28"
	headLegacy = "MCP-Protocol-Version: 2025-11-25"
	headList   = "Mcp-Method: tools/list"
	// theSession stands for the header of a live session in a row.
	theSession = "session"
)

// TestContractEras: which era a request belongs to, by the reports of users
// (P, A and B in their list) and the contract's table. The front's own tests
// have every other odd pair.
func TestContractEras(t *testing.T) {
	url := newContract(t, nil)
	live := open(t, url, "2025-11-25")
	meta := func(version string) string {
		return `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version + `","io.modelcontextprotocol/clientCapabilities":{}}`
	}
	list := legacyBody("tools/list", meta("2026-07-28"))
	for _, tt := range []struct {
		row     string
		method  string // "" is POST
		body    string
		headers []string
		status  int
		code    int64
		says    string // of the answer's body
	}{
		{row: "P1: a session's version header with modern _meta, as ChatGPT sends it", body: list, headers: []string{headLegacy, theSession}, status: 200, says: `"tools"`},
		{row: "the same with damaged _meta", body: legacyBody("tools/list", `"_meta":{"io.modelcontextprotocol/protocolVersion":5,"io.modelcontextprotocol/clientCapabilities":"x"}`), headers: []string{headLegacy, theSession}, status: 200, says: `"tools"`},
		{row: "P2: initialize with modern _meta", body: initializeBody("2025-11-25", ","+meta("2026-07-28")), status: 200, says: `"protocolVersion":"2025-11-25"`},
		{row: "P3: no session id and no version", body: legacyBody("tools/list", ""), status: 400, code: -32600, says: "Mcp-Session-Id"},
		{row: "P4: an unknown session", body: legacyBody("tools/list", ""), headers: []string{"Mcp-Session-Id: nobody"}, status: 404, code: -32001, says: "initialize"},
		{row: "P8: an id beyond 2^53", body: strings.Replace(list, `"id":7`, `"id":9007199254740993`, 1), headers: []string{headModern, headList}, status: 200, says: `"id":9007199254740993`},
		{row: "P8: the same on a session", body: strings.Replace(list, `"id":7`, `"id":9007199254740993`, 1), headers: []string{theSession}, status: 200, says: `"id":9007199254740993`},
		{row: "P8: an id of 1.5", body: strings.Replace(list, `"id":7`, `"id":1.5`, 1), headers: []string{headModern, headList}, status: 400, code: -32600, says: "the id must be"},
		{row: "P18, B15: Accept of JSON only", body: list, headers: []string{headModern, headList, "Accept: application/json"}, status: 200, says: `"tools"`},
		{row: "P18: Accept of streams only", body: list, headers: []string{headModern, headList, "Accept: text/event-stream"}, status: 200, says: "data: "},
		{row: "P18: no Accept", body: list, headers: []string{headModern, headList, "Accept:"}, status: 200, says: `"tools"`},
		{row: "B15: Accept of anything", body: list, headers: []string{headModern, headList, "Accept: */*"}, status: 200, says: `"tools"`},
		{row: "Accept of something else", body: list, headers: []string{headModern, headList, "Accept: text/html"}, status: 406, code: -32600},
		{row: "P23: OPTIONS", method: "OPTIONS", status: 204},
		{row: "P23: HEAD", method: "HEAD", status: 405},
		{row: "P24: an unknown method on a session", body: legacyBody("foo/bar", ""), headers: []string{theSession}, status: 200, code: -32601},
		{row: "P24: an unknown modern method", body: legacyBody("foo/bar", meta("2026-07-28")), headers: []string{headModern, "Mcp-Method: foo/bar"}, status: 404, code: -32601},
		{row: "B3: initialize in the modern era", body: legacyBody("initialize", meta("2026-07-28")), headers: []string{headModern, "Mcp-Method: initialize"}, status: 404, code: -32601},
		{row: "B3: GET with a modern version", method: "GET", headers: []string{headModern, "Accept: text/event-stream", theSession}, status: 405, code: -32600},
		{row: "B3: DELETE with a modern version", method: "DELETE", headers: []string{headModern, theSession}, status: 405, code: -32600},
		{row: "B14: a junk session id on a modern request", body: list, headers: []string{headModern, headList, "Mcp-Session-Id: junk"}, status: 200, says: `"tools"`},
		{row: "B16: a version of the past", body: legacyBody("tools/list", meta("1900-01-01")), headers: []string{"MCP-Protocol-Version: 1900-01-01", headList}, status: 400, code: -32022, says: `"supported":["2026-07-28"`},
		{row: "B16: no version at all", body: legacyBody("tools/list", meta("not-a-version")), headers: []string{"MCP-Protocol-Version: not-a-version", headList}, status: 400, code: -32022, says: `"requested":"not-a-version"`},
		{row: "B23: a notification", body: `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, headers: []string{theSession}, status: 202},
		{row: "B23: initialized a second time", body: `{"jsonrpc":"2.0","method":"notifications/initialized"}`, headers: []string{theSession}, status: 202},
		{row: "B23: GET without a stream", method: "GET", headers: []string{"Accept: text/event-stream"}, status: 405, code: -32600},
		{row: "A7: a forged Last-Event-ID", method: "GET", headers: []string{"Accept: text/event-stream", "Last-Event-ID: a_999999", theSession}, status: 400, code: -32600},
		{row: "trailing bytes", body: list + "{}", headers: []string{headModern, headList}, status: 400, code: -32700},
		{row: "a batch outside of 2025-03-26", body: "[" + legacyBody("ping", "") + "]", headers: []string{theSession}, status: 400, code: -32600},
		{row: "a header that does not repeat the body", body: list, headers: []string{headModern, "Mcp-Method: tools/call"}, status: 400, code: -32020, says: "Mcp-Method"},
		{row: "DELETE of nobody's session", method: "DELETE", headers: []string{"Mcp-Session-Id: nobody"}, status: 404, code: -32001},
	} {
		t.Run(tt.row, func(t *testing.T) {
			headers := append([]string(nil), tt.headers...)
			for i, h := range headers {
				if h == theSession {
					headers[i] = live.header
				}
			}
			method := tt.method
			if method == "" {
				method = http.MethodPost
			}
			a := do(t, method, url, tt.body, headers...)
			if a.Status != tt.status || a.Error.Code != tt.code || !strings.Contains(a.Body, tt.says) {
				t.Errorf("got %d %s, want %d, code %d and %q", a.Status, a.Body, tt.status, tt.code, tt.says)
			}
			if a.Status >= 400 && a.Body != "" && a.Header.Get("Content-Type") != "application/json" {
				t.Errorf("A11: an error as %s", a.Header.Get("Content-Type"))
			}
			if id := a.Header.Get("Mcp-Session-Id"); id != "" && !strings.Contains(tt.body, `"initialize"`) {
				t.Errorf("B3: the answer carries the session id %s", id)
			}
			if a.Status == http.StatusMethodNotAllowed && a.Header.Get("Allow") == "" {
				t.Error("405 without Allow")
			}
		})
	}
	live.alive(t)
}

// TestContractNegotiation: the newest revision both sides know, and what was
// negotiated decides (A1).
func TestContractNegotiation(t *testing.T) {
	url := newContract(t, nil)
	for asked, want := range map[string]string{
		"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25",
		"2026-07-28": "2025-11-25", "2099-01-01": "2025-11-25", "nonsense": "2025-11-25", "": "2025-11-25",
	} {
		s := open(t, url, asked)
		if s.version != want {
			t.Errorf("asked for %q, got %q, want %q", asked, s.version, want)
		}
		a := s.call(t, "debug_content", `{"kind":"text"}`)
		if strings.Contains(a.Body, "resultType") || strings.Contains(a.Body, "serverInfo") {
			t.Errorf("%q: a modern result in a session: %s", asked, a.Body)
		}
		batch := do(t, http.MethodPost, url, "["+legacyBody("ping", "")+"]", s.header)
		if (batch.Status == 200) != (want == "2025-03-26") {
			t.Errorf("%q: batch: %d %s", asked, batch.Status, batch.Body)
		}
		// A26: what ends is this session, not another.
		if a := do(t, http.MethodDelete, url, "", s.header); a.Status != http.StatusNoContent {
			t.Errorf("DELETE: %d %s", a.Status, a.Body)
		}
		if a := s.request(t, "ping", ""); a.Status != http.StatusNotFound || a.Error.Code != -32001 || a.ID != nil {
			t.Errorf("after DELETE: %d %s", a.Status, a.Body)
		}
	}
}

// TestContractOneEra: mcp.eras leaves one out (A24).
func TestContractOneEra(t *testing.T) {
	legacy := []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
	for eras, want := range map[string][]string{"both": append([]string{"2026-07-28"}, legacy...), "modern": {"2026-07-28"}, "legacy": legacy} {
		t.Run(eras, func(t *testing.T) {
			url := newContract(t, func(c *famcp.Config) { c.MCP.Eras = eras })
			discover := modern(t, url, "server/discover", "", "")
			initialized := do(t, http.MethodPost, url, initializeBody("2025-11-25", ""))
			for name, a := range map[string]*reply{"discover": discover, "initialize": initialized} {
				served := eras == "both" || (name == "discover") == (eras == "modern")
				if served != (a.Status == 200) || !served && a.Error.Code != -32022 {
					t.Errorf("%s: %d %s", name, a.Status, a.Body)
				}
				if !served {
					var supported []string
					for _, v := range a.Error.Data["supported"].([]any) {
						supported = append(supported, v.(string))
					}
					if diff := cmp.Diff(want, supported); diff != "" {
						t.Errorf("%s: supported (-want +got):\n%s", name, diff)
					}
				}
			}
			if discover.Status == 200 {
				if diff := cmp.Diff(want, discover.Result.SupportedVersions); diff != "" {
					t.Errorf("discover (-want +got):\n%s", diff)
				}
			}
		})
	}
}
