// Package tests checks what clients of this server rely on, in both protocol eras. When a test here fails after a
// change that was meant, clients see that change: adapt the test and write it into CHANGELOG.md.
package tests

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/famcptest"
	"github.com/famcp/famcp/templates/bare/internal/app"
	"github.com/famcp/famcp/templates/bare/internal/config"
)

// build makes the server as main does, but with documents that do not change.
func build(t testing.TB) *famcp.Server {
	t.Helper()
	cfg, err := famcp.Load[config.Config]("")
	if err != nil {
		t.Fatal(err)
	}
	s, err := famcp.New(&cfg.Config, famcp.Info{Name: "contract", Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	if err := app.Register(s, cfg, fstest.MapFS{"README.md": {Data: []byte("# Read me\n")}}); err != nil {
		t.Fatal(err)
	}
	return s
}

// What clients find on this server. Whatever is added gets a line here, and famcp add writes it.
var (
	tools     = map[string]string{}
	prompts   = []string{"agent_brief", "agent_prompt", "tool_prompt"}
	resources = []string{
		"contract://agent/brief", "contract://agent/prompt",
		"project://id", "project://name", "project://version", "use://auth", "use://http-headers",
	}
	templates = []string{}
)

func TestEntries(t *testing.T) {
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		found := map[string]string{}
		for _, tool := range c.Tools() {
			found[tool.Name] = hints(tool.Annotations)
		}
		if diff := cmp.Diff(tools, found); diff != "" {
			t.Errorf("tools (-want +got):\n%s", diff)
		}
		for _, list := range []struct {
			kind      string
			want, got []string
		}{
			{"prompts", prompts, names(c.Prompts(), func(x *mcp.Prompt) string { return x.Name })},
			{"resources", resources, names(c.Resources(), func(x *mcp.Resource) string { return x.URI })},
			{"templates", templates, names(c.Templates(), func(x *mcp.ResourceTemplate) string { return x.URITemplate })},
		} {
			if diff := cmp.Diff(slices.Sorted(slices.Values(list.want)), list.got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", list.kind, diff)
			}
		}
	})
}

// hints are the annotations by which clients decide what they ask their user, in words.
func hints(a *mcp.ToolAnnotations) string {
	if a == nil || a.DestructiveHint == nil || a.OpenWorldHint == nil {
		return "not stated"
	}
	var words []string
	for _, hint := range []struct {
		word string
		set  bool
	}{
		{"read-only", a.ReadOnlyHint},
		{"destructive", *a.DestructiveHint},
		{"idempotent", a.IdempotentHint},
		{"open-world", *a.OpenWorldHint},
	} {
		if hint.set {
			words = append(words, hint.word)
		}
	}
	return strings.Join(words, " ")
}

func names[T any](entries []T, name func(T) string) []string {
	var all []string
	for _, e := range entries {
		all = append(all, name(e))
	}
	slices.Sort(all)
	return all
}

// Models decide by the descriptions what to call, and with what.
func TestToolsAreDescribed(t *testing.T) {
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		for _, tool := range c.Tools() {
			if tool.Description == "" {
				t.Errorf("%s has no description", tool.Name)
			}
			checkSchema(t, tool.Name+": input", tool.InputSchema)
			if tool.OutputSchema != nil { // a tool that answers with a text has none
				checkSchema(t, tool.Name+": output", tool.OutputSchema)
			}
		}
	})
}

func checkSchema(t *testing.T, what string, sent any) {
	t.Helper()
	var schema struct {
		Properties           map[string]struct{ Description string }
		AdditionalProperties any
	}
	raw, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	if schema.AdditionalProperties != false {
		t.Errorf("%s: %s, want no properties but those it describes", what, raw)
	}
	for name, property := range schema.Properties {
		if property.Description == "" {
			t.Errorf("%s: %s has no description", what, name)
		}
	}
}

func TestBuiltInEntries(t *testing.T) {
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		if got := c.Read("project://version").Text(); got != "1.0.0" {
			t.Errorf("project://version = %q, want 1.0.0", got)
		}
		if res := c.Prompt("agent_brief", nil); res.Err != nil {
			t.Errorf("agent_brief: %v", res.Err)
		}
	})
}

func TestRefusals(t *testing.T) {
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		if res := c.CallTool("no_such_tool", nil); res.Err == nil || res.Err.Code != -32602 {
			t.Errorf("unknown tool: %v, want code -32602", res.Err)
		}
		if res := c.Read("note://absent"); res.Err == nil {
			t.Errorf("absent resource: %s, want an error", res.Raw)
		}
	})
}
