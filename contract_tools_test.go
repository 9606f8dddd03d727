package famcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/famcp/famcp"
)

// Embedded is a type to be embedded; its pointer may be nil.
type Embedded struct {
	Inner string `json:"inner,omitempty"`
}

// kinds has every kind of field that went wrong in somebody's server (P7 to
// P13, A18, A19).
type kinds struct {
	*Embedded

	Big   int64           `json:"big"`
	Bytes []byte          `json:"bytes"`
	Raw   json.RawMessage `json:"raw"`
	When  time.Time       `json:"when"`
	Any   any             `json:"any"`
	List  []string        `json:"list"`
	Map   map[int]string  `json:"map"`
	Ptr   *int            `json:"ptr"`
	Opt   string          `json:"opt,omitempty"`
}

type tree struct {
	Children []tree `json:"children"`
}

type bad struct {
	C chan int `json:"c"`
}

// TestContractTypes: what works works exactly, in and out and in both eras;
// what does not is refused when it is registered, naming tool and field or type.
func TestContractTypes(t *testing.T) {
	url := newContract(t, nil, func(s *famcp.Server) {
		famcp.AddTool(s, reader("kinds"), func(_ context.Context, _ *famcp.Call, in kinds) (kinds, error) { return in, nil })
		famcp.AddTool(s, reader("zero"), func(context.Context, *famcp.Call, nothing) (kinds, error) {
			return kinds{Raw: json.RawMessage("null")}, nil
		})
		famcp.AddTool(s, reader("list"), func(context.Context, *famcp.Call, nothing) ([]string, error) { return nil, nil })
	})
	legacy := open(t, url, "2025-11-25")
	const full = `{"inner":"i","big":9007199254740993,"bytes":"AQID","raw":{"x":[1]},"when":"2026-07-28T01:02:03Z","any":[1,"two",null],"list":["a"],"map":{"1":"one"},"ptr":4,"opt":"o"}`
	for row, tt := range map[string]struct{ tool, args, want string }{
		"P7, P9, A19: every kind of field":            {"kinds", full, full},
		"P9: all of them zero, the embedded one nil":  {"zero", `{}`, `{"big":0,"bytes":null,"raw":null,"when":"0001-01-01T00:00:00Z","any":null,"list":null,"map":null,"ptr":null}`},
		"P11: a nil slice at the root":                {"list", `{}`, `[]`},
		"P21: null for an optional string is refused": {"kinds", strings.Replace(full, `"opt":"o"`, `"opt":null`, 1), ""},
	} {
		for era, a := range map[string]*reply{"modern": callModern(t, url, tt.tool, tt.args), "legacy": legacy.call(t, tt.tool, tt.args)} {
			if tt.want == "" {
				if !a.Result.IsError || strings.Contains(a.text(), "reflect") || !strings.Contains(a.text(), "opt: must be") {
					t.Errorf("%s, %s: %s", row, era, a.Body)
				}
				continue
			}
			if a.text() != tt.want {
				t.Errorf("%s, %s: got %s, want %s", row, era, a.Body, tt.want)
			}
			structured := tt.want
			if era == "legacy" && tt.want[0] != '{' {
				structured = "" // P11: objects only below 2026-07-28
			}
			if string(a.Result.StructuredContent) != structured {
				t.Errorf("%s, %s: structured %s, want %s", row, era, a.Result.StructuredContent, structured)
			}
		}
	}

	cfg := famcp.DefaultConfig()
	cfg.Logger.Level = "error"
	s, err := famcp.New(cfg, famcp.Info{Name: "faulty", Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	famcp.AddTool(s, reader("recursive"), func(context.Context, *famcp.Call, nothing) (tree, error) { return tree{}, nil })
	famcp.AddTool(s, reader("channel"), func(context.Context, *famcp.Call, bad) (string, error) { return "", nil })
	famcp.AddTool(s, reader("scalar"), func(context.Context, *famcp.Call, int) (string, error) { return "", nil })
	famcp.AddTool(s, reader("loose"), func(context.Context, *famcp.Call, map[string]any) (string, error) { return "", nil })
	famcp.AddTool(s, reader("vague"), func(context.Context, *famcp.Call, nothing) (any, error) { return nil, nil })
	remote := reader("remote")
	remote.InputSchema = json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"}}}`)
	famcp.AddTool(s, remote, func(context.Context, *famcp.Call, json.RawMessage) (string, error) { return "", nil })
	famcp.AddTool(s, reader("Bad-Name"), func(context.Context, *famcp.Call, nothing) (string, error) { return "", nil })
	famcp.AddTool(s, famcp.Tool{Name: "silent"}, func(context.Context, *famcp.Call, nothing) (string, error) { return "", nil })
	famcp.AddTool(s, famcp.Tool{Name: "careless", Description: "x", Effect: famcp.Mutates("huge", "")}, func(context.Context, *famcp.Call, nothing) (string, error) { return "", nil })
	for range 2 {
		famcp.AddTool(s, reader("twice"), func(context.Context, *famcp.Call, nothing) (string, error) { return "", nil })
	}
	// P10, P22, A14: all at once, so that one start shows them all.
	for _, want := range []string{
		`"recursive": output: type famcp_test.tree contains itself`, `"channel": input: type famcp_test.bad: field C (chan int) has no JSON form`, `"scalar": input: int is not a struct`,
		`"loose": input: a handler of map[string]interface {} needs Tool.InputSchema`, `"vague": output: interface {}`, `"remote": input:`,
		`"Bad-Name": the name must match`, `"silent": no Description`, "no Effect", `"careless": risk "huge"`, `tool "twice" is registered twice`,
	} {
		if err := s.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the faults do not have %q:\n%v", want, err)
		}
	}
	if _, err := s.Handler(); err == nil {
		t.Error("the server starts all the same")
	}
}

// TestContractSchemas of every listed tool: $schema, properties, closed, no
// boolean sub-schema (P12, P13, A18), object outputs only on sessions (P11).
func TestContractSchemas(t *testing.T) {
	url := newContract(t, nil, func(s *famcp.Server) {
		famcp.AddTool(s, reader("kinds"), func(_ context.Context, _ *famcp.Call, in kinds) (kinds, error) { return in, nil })
		famcp.AddTool(s, reader("zero_arguments"), func(context.Context, *famcp.Call, nothing) (string, error) { return "", nil })
		famcp.AddTool(s, reader("list"), func(context.Context, *famcp.Call, nothing) ([]string, error) { return nil, nil })
		byHand := reader("by_hand")
		byHand.InputSchema = json.RawMessage(`{"type":"object","properties":{"a":true,"b":{"items":true}},"additionalProperties":false}`)
		famcp.AddTool(s, byHand, func(context.Context, *famcp.Call, json.RawMessage) (string, error) { return "", nil })
	})
	boolean := regexp.MustCompile(`"(a|b|any|raw|items|not)":(true|false)`)
	lists := map[string]*reply{"modern": modern(t, url, "tools/list", "", "")}
	for _, version := range []string{"2024-11-05", "2025-06-18", "2025-11-25"} {
		lists[version] = open(t, url, version).request(t, "tools/list", "")
	}
	for era, list := range lists {
		if len(list.Result.Tools) != 12 {
			t.Errorf("%s: %d tools", era, len(list.Result.Tools))
		}
		for _, tool := range list.Result.Tools {
			var in struct {
				Schema     string                     `json:"$schema"`
				Type       string                     `json:"type"`
				Properties map[string]json.RawMessage `json:"properties"`
				Additional *bool                      `json:"additionalProperties"`
			}
			if err := json.Unmarshal(tool.InputSchema, &in); err != nil || in.Schema != "https://json-schema.org/draft/2020-12/schema" ||
				in.Type != "object" || in.Properties == nil || in.Additional == nil || *in.Additional {
				t.Errorf("%s: %s: %v %s", era, tool.Name, err, tool.InputSchema)
			}
			if m := boolean.FindString(string(tool.InputSchema) + string(tool.OutputSchema)); m != "" {
				t.Errorf("%s: %s has a boolean schema: %s", era, tool.Name, m)
			}
			var out struct{ Type any }
			if len(tool.OutputSchema) > 0 && json.Unmarshal(tool.OutputSchema, &out) != nil || len(tool.OutputSchema) > 0 && era != "modern" && out.Type != "object" {
				t.Errorf("%s: %s: output schema %s", era, tool.Name, tool.OutputSchema)
			}
		}
		if modern := strings.Contains(list.Body, "ttlMs") && strings.Contains(list.Body, "cacheScope"); modern != (era == "modern") {
			t.Errorf("%s: cache hints: %s", era, list.Body)
		}
	}
}

// TestContractViolations: up to 2025-06-18 an error with data, later a result
// that a model can act on, unless mcp.tools.inputErrors says otherwise; at most
// eight, with the valid names for a misspelt one, never a value (B22).
func TestContractViolations(t *testing.T) {
	type input struct {
		City string   `json:"city"`
		Days int      `json:"days"`
		Tags []string `json:"tags,omitempty"`
	}
	add := func(s *famcp.Server) {
		famcp.AddTool(s, reader("weather"), func(context.Context, *famcp.Call, input) (string, error) { return "", nil })
	}
	const secret = "hunter2"
	rows := map[string]struct{ args, field string }{
		"misspelt":    {`{"town":"` + secret + `","city":"x","days":1}`, "town"},
		"missing":     {`{"city":"x"}`, "days"},
		"wrong type":  {`{"city":"x","days":"` + secret + `"}`, "days"},
		"deep inside": {`{"city":"x","days":1,"tags":["a",5]}`, "tags"},
	}
	for setting, versions := range map[string]map[string]bool{ // revision → a result
		"era":      {"2024-11-05": false, "2025-03-26": false, "2025-06-18": false, "2025-11-25": true, "2026-07-28": true},
		"protocol": {"2025-11-25": false, "2026-07-28": false},
		"result":   {"2024-11-05": true, "2026-07-28": true},
	} {
		url := newContract(t, func(c *famcp.Config) { c.MCP.Tools.InputErrors = setting }, add)
		for version, asResult := range versions {
			for row, tt := range rows {
				var a *reply
				if version == "2026-07-28" {
					a = callModern(t, url, "weather", tt.args)
				} else {
					a = open(t, url, version).call(t, "weather", tt.args)
				}
				text := a.text()
				if !asResult {
					text = a.Error.Message
					if a.Error.Code != -32602 || !strings.HasPrefix(fmt.Sprint(a.Error.Data["field"]), tt.field) || a.Error.Data["reason"] == nil || a.Error.Data["errors"] == nil {
						t.Errorf("%s, %s, %s: %s", setting, version, row, a.Body)
					}
				}
				if a.Result.IsError != asResult || !strings.Contains(text, tt.field) || strings.Contains(a.Body, secret) {
					t.Errorf("%s, %s, %s: %s", setting, version, row, a.Body)
				}
				if row == "misspelt" && !strings.Contains(text, "city") {
					t.Errorf("%s, %s: the valid names are not told: %s", setting, version, text)
				}
			}
		}
		many := map[string]int{}
		for i := range 20 {
			many[fmt.Sprintf("wrong%d", i)] = i
		}
		args, err := json.Marshal(many)
		if err != nil {
			t.Fatal(err)
		}
		a := callModern(t, url, "weather", string(args))
		n := strings.Count(a.text(), "is not an argument") + strings.Count(a.text(), "is required")
		if setting == "protocol" {
			n = len(a.Error.Data["errors"].([]any))
		}
		if n > 8 || n < 2 {
			t.Errorf("%s: %d violations: %s", setting, n, a.Body)
		}
	}
}
