package protocol

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompileParamHeaders(t *testing.T) {
	tests := []struct {
		name, schema string
		want         ParamHeaders
		fault        string
	}{
		{"none", `{"type":"object","properties":{"a":{"type":"string"}}}`, nil, ""},
		{"no schema", `7`, nil, ""},
		{
			"nested and sorted", `{"properties":{"b":{"properties":{"c":{"type":"integer","x-mcp-header":"zone"}}},"a":{"type":"string","x-mcp-header":"Region"}}}`,
			ParamHeaders{{"Mcp-Param-Region", []string{"a"}}, {"Mcp-Param-Zone", []string{"b", "c"}}},
			"",
		},
		{"number", `{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`, nil, "argument a: x-mcp-header needs"},
		{"two types", `{"properties":{"a":{"type":["string","null"],"x-mcp-header":"A"}}}`, nil, "argument a: x-mcp-header needs"},
		{"empty name", `{"properties":{"a":{"type":"string","x-mcp-header":""}}}`, nil, "must be a name"},
		{"a name that is no token", `{"properties":{"a":{"type":"string","x-mcp-header":"A B"}}}`, nil, "must be a name"},
		{"no text", `{"properties":{"a":{"type":"string","x-mcp-header":7}}}`, nil, "must be a name"},
		{"the same name twice", `{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`, nil, "two arguments use the name A"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := CompileParamHeaders(json.RawMessage(tt.schema))
			if (err != nil) != (tt.fault != "") || (err != nil && !strings.Contains(err.Error(), tt.fault)) {
				t.Fatalf("got error %v, want %q", err, tt.fault)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParamHeadersMismatch(t *testing.T) {
	params := ParamHeaders{{"Mcp-Param-A", []string{"a"}}, {"Mcp-Param-C", []string{"b", "c"}}}
	tests := []struct {
		name, args   string
		header       http.Header
		want, reason string
	}{
		{"nothing", `{}`, nil, "", ""},
		{"no arguments", ``, nil, "", ""},
		{"null is absent", `{"a":null}`, nil, "", ""},
		{"text", `{"a":"x"}`, http.Header{"Mcp-Param-A": {" x "}}, "", ""},
		{"empty text", `{"a":""}`, http.Header{"Mcp-Param-A": {""}}, "", ""},
		{"nested integer", `{"b":{"c":42}}`, http.Header{"Mcp-Param-C": {"42"}}, "", ""},
		{"an integer's other form", `{"b":{"c":42}}`, http.Header{"Mcp-Param-C": {"42.0"}}, "", ""},
		{"boolean", `{"a":false}`, http.Header{"Mcp-Param-A": {"false"}}, "", ""},
		{"base64", `{"a":"Hello"}`, http.Header{"Mcp-Param-A": {"=?base64?SGVsbG8=?="}}, "", ""},
		{"half a base64 form is text", `{"a":"=?base64?SGVsbG8="}`, http.Header{"Mcp-Param-A": {"=?base64?SGVsbG8="}}, "", ""},
		{"bad base64", `{"a":"Hello"}`, http.Header{"Mcp-Param-A": {"=?base64?SGVsbG8?="}}, "Mcp-Param-A", "is not valid base64"},
		{"missing", `{"a":"x"}`, nil, "Mcp-Param-A", "is required"},
		{"missing for empty text", `{"a":""}`, nil, "Mcp-Param-A", "is required"},
		{"too many", `{}`, http.Header{"Mcp-Param-A": {"x"}}, "Mcp-Param-A", "is there for an argument that is not"},
		{"other text", `{"a":"x"}`, http.Header{"Mcp-Param-A": {"X"}}, "Mcp-Param-A", "does not match the body"},
		{"repeated", `{"a":"x"}`, http.Header{"Mcp-Param-A": {"x", "x"}}, "Mcp-Param-A", "does not match the body"},
		{"text for a number", `{"a":"1"}`, http.Header{"Mcp-Param-A": {"1.0"}}, "Mcp-Param-A", "does not match the body"},
		{"boolean in capitals", `{"a":true}`, http.Header{"Mcp-Param-A": {"True"}}, "Mcp-Param-A", "does not match the body"},
		{"fraction", `{"a":1.5}`, http.Header{"Mcp-Param-A": {"1.5"}}, "Mcp-Param-A", "does not match the body"},
		{"not exact", `{"a":9007199254740993}`, http.Header{"Mcp-Param-A": {"9007199254740993"}}, "Mcp-Param-A", "does not match the body"},
		{"object", `{"a":{}}`, http.Header{"Mcp-Param-A": {"{}"}}, "Mcp-Param-A", "does not match the body"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			header, reason := params.Mismatch(tt.header, json.RawMessage(tt.args))
			if header != tt.want || reason != tt.reason {
				t.Errorf("got %q %q, want %q %q", header, reason, tt.want, tt.reason)
			}
		})
	}
}
