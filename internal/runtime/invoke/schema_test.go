package invoke

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp/internal/runtime/protocol"
)

func TestSchemaFor(t *testing.T) {
	type nested struct {
		X any `json:"x"`
	}
	type node struct {
		Next *struct{ N any } `json:"next,omitempty"`
	}
	type loop struct {
		Self []*loop `json:"self"`
	}
	_ = loop{}
	tests := []struct {
		name string
		typ  reflect.Type
		want string // "" expects an error
	}{
		{"no arguments have properties", reflect.TypeFor[struct{}](), `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","additionalProperties":false,"properties":{}}`},
		{"any is an empty schema, not true", reflect.TypeFor[nested](), `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"x":{}},"required":["x"],"additionalProperties":false}`},
		{"bytes are base64 text", reflect.TypeFor[struct {
			B []byte `json:"b"`
		}](), `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"b":{"type":["null","string"],"contentEncoding":"base64"}},"required":["b"],"additionalProperties":false}`},
		{"times are text", reflect.TypeFor[struct {
			T time.Time `json:"t"`
		}](), `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"t":{"type":"string"}},"required":["t"],"additionalProperties":false}`},
		{"header arguments are marked", reflect.TypeFor[struct {
			Region string `json:"region,omitempty" mcpheader:"Region"`
		}](), `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}},"additionalProperties":false}`},
		{"nested structs", reflect.TypeFor[node](), `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"next":{"type":["null","object"],"properties":{"N":{}},"required":["N"],"additionalProperties":false}},"additionalProperties":false}`},
		{"recursion is refused", reflect.TypeFor[loop](), ""},
		{"integer keys are names", reflect.TypeFor[map[int]string](), `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","additionalProperties":{"type":"string"},"properties":{}}`},
		{"in maps in maps too", reflect.TypeFor[struct {
			M map[uint8]map[int]time.Time `json:"m"`
		}](), `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"m":{"type":["null","object"],"additionalProperties":{"type":["null","object"],"additionalProperties":{"type":"string"}}}},"required":["m"],"additionalProperties":false}`},
		{"structures as keys are refused", reflect.TypeFor[map[struct{ A int }]string](), ""},
		{"channels are refused", reflect.TypeFor[struct{ C chan int }](), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := SchemaFor(tt.typ)
			if tt.want == "" {
				if err == nil {
					t.Fatalf("got schema %s, want an error", s.JSON)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(asAny(t, tt.want), asAny(t, string(s.JSON))); diff != "" {
				t.Errorf("schema (-want +got):\n%s", diff)
			}
		})
	}
}

func asAny(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestParseSchemaKeepsTheText(t *testing.T) {
	given := `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"a":{"$anchor":"addr","type":"object","properties":{"street":{"type":"string"}}}},"properties":{"z":{"$ref":"#/$defs/a"},"b":true},"allOf":[{"anyOf":[{"required":["z"]},{"required":["b"]}]}],"if":{"required":["z"]},"then":{"minProperties":1},"else":{"maxProperties":9},"additionalProperties":false}`
	s, err := ParseSchema(json.RawMessage(given))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(given, `"b":true`, `"b":{}`, 1)
	if string(s.JSON) != want {
		t.Errorf("got  %s\nwant %s", s.JSON, want)
	}
}

func TestParseSchemaRefusesRemoteReferences(t *testing.T) {
	if s, err := ParseSchema(map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"$ref": "https://example.com/x.json"}}}); err == nil {
		t.Fatalf("got %s, want an error", s.JSON)
	}
}

func TestCheck(t *testing.T) {
	type args struct {
		Query string   `json:"query"`
		Limit int64    `json:"limit,omitempty"`
		Tags  []string `json:"tags,omitempty"`
		Deep  *struct {
			On bool `json:"on"`
		} `json:"deep,omitempty"`
	}
	schema, err := SchemaFor(reflect.TypeFor[args]())
	if err != nil {
		t.Fatal(err)
	}
	schema.schema.Properties["limit"].Minimum = new(1.0)
	tests := []struct {
		name string
		raw  string
		want []protocol.Violation
	}{
		{"good", `{"query":"q","limit":3,"tags":["a"],"deep":{"on":true}}`, nil},
		{"large integers", `{"query":"q","limit":9007199254740993}`, nil},
		{"missing", `{}`, []protocol.Violation{{Field: "query", Reason: "is required"}}},
		{"absent arguments", ``, []protocol.Violation{{Field: "query", Reason: "is required"}}},
		{"null where text is wanted", `{"query":null}`, []protocol.Violation{{Field: "query", Reason: "must be a string"}}},
		{"wrong types, all listed", `{"query":1,"limit":"SECRET","tags":["a",2]}`, []protocol.Violation{
			{Field: "limit", Reason: "must be an integer"},
			{Field: "query", Reason: "must be a string"},
			{Field: "tags[1]", Reason: "must be a string"},
		}},
		{"misspelt names list the valid ones", `{"query":"q","limt":1}`, []protocol.Violation{
			{Field: "limt", Reason: "is not an argument; the valid names are deep, limit, query, tags"},
		}},
		{"below the minimum", `{"query":"q","limit":0}`, []protocol.Violation{{Field: "limit", Reason: "must be at least 1"}}},
		{"fractions are no integers", `{"query":"q","limit":1.5}`, []protocol.Violation{{Field: "limit", Reason: "must be an integer"}}},
		{"nested", `{"query":"q","deep":{"on":1}}`, []protocol.Violation{{Field: "deep.on", Reason: "must be a boolean"}}},
		{"beyond every bound", `{"query":"q","limit":1e400}`, []protocol.Violation{{Field: "limit", Reason: "is out of range"}}},
		{"below every bound", `{"query":"q","limit":-1e400}`, []protocol.Violation{{Field: "limit", Reason: "is out of range"}}},
		{"not JSON", `{`, []protocol.Violation{{Reason: "must be valid JSON"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, got := schema.Check(json.RawMessage(tt.raw))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
			if strings.Contains(describe(got), "SECRET") {
				t.Error("a violation repeats the value that was sent")
			}
		})
	}
}

func TestCheckExplains(t *testing.T) {
	schema, err := ParseSchema(json.RawMessage(`{"type":"object","properties":{
		"half":{"type":"number","multipleOf":0.5},
		"set":{"type":"array","uniqueItems":true},
		"some":{"type":"object","minProperties":1,"maxProperties":2},
		"any":{"anyOf":[{"type":"string"},{"type":"null"}]},
		"one":{"oneOf":[{"type":"string","maxLength":1},{"type":"integer"}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ raw, field, reason string }{
		{`{"half":0.7}`, "half", "must be a multiple of 0.5"},
		{`{"set":[1,{"a":1,"b":2},{"b":2,"a":1}]}`, "set[2]", "must not repeat an item"},
		{`{"some":{}}`, "some", "must have at least 1 members"},
		{`{"some":{"a":1,"b":2,"c":3}}`, "some", "must have at most 2 members"},
		{`{"any":7}`, "any", "must have one of the forms in the schema"},
		{`{"one":"SECRET"}`, "one", "must have one of the forms in the schema"},
	}
	for _, tt := range tests {
		_, got := schema.Check(json.RawMessage(tt.raw))
		if diff := cmp.Diff([]protocol.Violation{{Field: tt.field, Reason: tt.reason}}, got); diff != "" {
			t.Errorf("%s: violations (-want +got):\n%s", tt.raw, diff)
		}
	}
	good := `{"half":1.5,"set":[1,2],"some":{"a":1},"any":null,"one":3}`
	if _, got := schema.Check(json.RawMessage(good)); got != nil {
		t.Errorf("got %v for %s", got, good)
	}
}

func TestCheckListsAtMostEight(t *testing.T) {
	schema, err := SchemaFor(reflect.TypeFor[struct{}]())
	if err != nil {
		t.Fatal(err)
	}
	_, got := schema.Check(json.RawMessage(`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1}`))
	if len(got) != maxViolations {
		t.Errorf("got %d violations, want %d", len(got), maxViolations)
	}
}

func TestCheckFillsDefaultsExactly(t *testing.T) {
	schema, err := ParseSchema(json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"m":{"type":"string","default":"x"}},"additionalProperties":false}`))
	if err != nil {
		t.Fatal(err)
	}
	got, violations := schema.Check(json.RawMessage(`{"n":9007199254740993}`))
	if len(violations) > 0 {
		t.Fatal(violations)
	}
	if want := `{"m":"x","n":9007199254740993}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
