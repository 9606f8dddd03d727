package protocol

import (
	"strings"
	"testing"
)

func TestReword(t *testing.T) {
	tests := []struct {
		name    string
		code    int64
		message string

		wantCode  int64
		want      string // in the message
		wantField string
	}{
		{"field", -32602, `handling 'tools/list': invalid params: unmarshaling "{\"cursor\":5}" into a *mcp.ListToolsParams: json: cannot unmarshal "5}" into Go struct field mcp.ListToolsParams.cursor of type string`, -32602, "params.cursor is not", "cursor"},
		{"inner field", -32602, `handling 'x': unmarshaling: Go struct field mcp.P.ref.name of type string`, -32602, "params.ref.name", "ref.name"},
		{"no field", -32602, `handling 'tools/list': invalid params: missing`, -32602, "params are not", ""},
		{"ours", -32602, "unknown tool", -32602, "unknown tool", ""},
		{"method", -32601, `method not found: "tools/call"`, -32601, "not served", ""},
		{"no code", 0, `duplicate "initialize" received`, -32600, "not valid", ""},
		{"other", -32603, "internal error", -32603, "internal error", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, message, field := Reword(tt.code, tt.message)
			if code != tt.wantCode || !strings.Contains(message, tt.want) || field != tt.wantField {
				t.Errorf("got %d %q %q", code, message, field)
			}
			if strings.Contains(message, "mcp.") {
				t.Errorf("%q names a Go type", message)
			}
		})
	}
}
