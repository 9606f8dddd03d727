package protocol

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNegotiate(t *testing.T) {
	tests := []struct{ requested, want string }{
		{"2024-11-05", "2024-11-05"},
		{"2025-03-26", "2025-03-26"},
		{"2025-06-18", "2025-06-18"},
		{"2025-11-25", "2025-11-25"},
		{"2026-07-28", "2025-11-25"},
		{"2099-01-01", "2025-11-25"},
		{"1900-01-01", "2025-11-25"},
		{"not-a-version", "2025-11-25"},
		{"", "2025-11-25"},
	}
	for _, tt := range tests {
		if got := Negotiate(tt.requested); got != tt.want {
			t.Errorf("Negotiate(%q) = %q, want %q", tt.requested, got, tt.want)
		}
	}
}

func TestErasServe(t *testing.T) {
	tests := []struct {
		eras           Eras
		legacy, modern bool
		newest         string
	}{
		{"", true, true, Modern},
		{ErasBoth, true, true, Modern},
		{ErasModern, false, true, Modern},
		{ErasLegacy, true, false, NewestLegacy},
	}
	for _, tt := range tests {
		if l, m := tt.eras.Serves(EraLegacy), tt.eras.Serves(EraModern); l != tt.legacy || m != tt.modern {
			t.Errorf("%q serves legacy %v, modern %v; want %v, %v", tt.eras, l, m, tt.legacy, tt.modern)
		}
		if got := tt.eras.Versions()[0]; got != tt.newest {
			t.Errorf("%q lists %q first, want %q", tt.eras, got, tt.newest)
		}
	}
}

func TestParse(t *testing.T) {
	tests := []struct {
		name string
		in   string
		err  error
		kind Kind
		id   string // "" for none
		want string // method
	}{
		{"request", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, nil, Request, "1", "ping"},
		{"text id", `{"jsonrpc":"2.0","id":"a\u0000","method":"ping"}`, nil, Request, `"a\u0000"`, "ping"},
		{"huge id", `{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"ping"}`, nil, Request, "123456789012345678901234567890", "ping"},
		{"negative id", `{"jsonrpc":"2.0","id":-7,"method":"ping"}`, nil, Request, "-7", "ping"},
		{"notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil, Notification, "", "notifications/initialized"},
		{"response", `{"jsonrpc":"2.0","id":1,"result":{}}`, nil, Response, "1", ""},
		{"error response", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`, nil, Response, "1", ""},
		{"white space around", " \r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n ", nil, Request, "1", "ping"},
		{"null params", `{"jsonrpc":"2.0","id":1,"method":"ping","params":null}`, nil, Request, "1", "ping"},
		{"not JSON", `{"jsonrpc":`, ErrSyntax, Request, "", ""},
		{"empty", ``, ErrSyntax, Request, "", ""},
		{"trailing bytes", `{"jsonrpc":"2.0","id":1,"method":"ping"}x`, ErrSyntax, Request, "", ""},
		{"two messages", `{"jsonrpc":"2.0","id":1,"method":"ping"}{}`, ErrSyntax, Request, "", ""},
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, ErrBatch, Request, "", ""},
		{"text", `"ping"`, ErrInvalid, Request, "", ""},
		{"null", `null`, ErrInvalid, Request, "", ""},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, ErrID, Request, "", ""},
		{"fraction", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, ErrID, Request, "", ""},
		{"exponent", `{"jsonrpc":"2.0","id":1e3,"method":"ping"}`, ErrID, Request, "", ""},
		{"object id", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, ErrID, Request, "", ""},
		{"other version keeps the id", `{"jsonrpc":"1.0","id":5,"method":"ping"}`, ErrInvalid, Request, "5", ""},
		{"no version keeps the id", `{"id":5,"method":"ping"}`, ErrInvalid, Request, "5", ""},
		{"member names are exact", `{"jsonrpc":"2.0","id":5,"METHOD":"ping"}`, ErrInvalid, Request, "5", ""},
		{"method of another type", `{"jsonrpc":"2.0","id":5,"method":7}`, ErrInvalid, Request, "5", ""},
		{"params of another type", `{"jsonrpc":"2.0","id":5,"method":"ping","params":[1]}`, ErrInvalid, Request, "5", "ping"},
		{"method and result", `{"jsonrpc":"2.0","id":5,"method":"ping","result":{}}`, ErrInvalid, Request, "5", "ping"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Parse([]byte(tt.in))
			if !errors.Is(err, tt.err) {
				t.Fatalf("got error %v, want %v", err, tt.err)
			}
			if string(m.ID) != tt.id || m.Method != tt.want || m.Kind != tt.kind {
				t.Errorf("got kind %d, id %s, method %q; want %d, %s, %q", m.Kind, m.ID, m.Method, tt.kind, tt.id, tt.want)
			}
		})
	}
}

func TestParseMeta(t *testing.T) {
	tests := []struct{ name, params, version string }{
		{"there", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`, Modern},
		{"of another type", `{"_meta":{"io.modelcontextprotocol/protocolVersion":7}}`, ""},
		{"damaged", `{"_meta":[1]}`, ""},
		{"absent", `{}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"x","params":` + tt.params + `}`))
			if err != nil {
				t.Fatal(err)
			}
			if got := m.MetaString(MetaVersion); got != tt.version {
				t.Errorf("got version %q, want %q", got, tt.version)
			}
		})
	}
}

func TestErrorResponse(t *testing.T) {
	tests := []struct {
		name string
		got  []byte
		want string
	}{
		{"no id, no data", ErrorResponse(nil, CodeParse, "x", ErrorData{}), `{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}`},
		{"id as sent", ErrorResponse(json.RawMessage("12345678901234567890"), CodeInternal, "x", ErrorData{RequestID: "r"}), `{"jsonrpc":"2.0","id":12345678901234567890,"error":{"code":-32603,"message":"x","data":{"requestId":"r"}}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, string(tt.got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{},"name":"x"}}`))
	f.Add([]byte(`[1,2]`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"x","result":null}`))
	f.Add([]byte(" {\"a\\\"\\u00e9\" : [ {\"}\":1} , \"]\" ],\t\"a\":-1e5 ,\"\xff\":true}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Parse(data)
		if m == nil {
			t.Fatal("no message")
		}
		if err == nil && !json.Valid(data) {
			t.Error("accepted what is not JSON")
		}
		var all map[string]json.RawMessage
		if json.Unmarshal(data, &all) == nil && all != nil {
			if diff := cmp.Diff(all, split(data[skipSpace(data, 0):])); diff != "" {
				t.Errorf("split differs from those of encoding/json:\n%s", diff)
			}
		}
		if m.ID != nil && !json.Valid(m.ID) {
			t.Errorf("id %q is not JSON", m.ID)
		}
		if !json.Valid(ErrorResponse(m.ID, CodeParse, "x", ErrorData{})) {
			t.Error("the error answer is not JSON")
		}
	})
}
