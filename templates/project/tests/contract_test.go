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
	"github.com/famcp/famcp/templates/project/internal/app"
	"github.com/famcp/famcp/templates/project/internal/config"
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
	documents := fstest.MapFS{
		"README.md":     {Data: []byte("# Read me\n\nRun the server.\n")},
		"docs/tools.md": {Data: []byte("# Tools\n\nEvery tool has a test.\n")},
	}
	if err := app.Register(s, cfg, documents); err != nil {
		t.Fatal(err)
	}
	return s
}

// What clients find on this server. Whatever is added gets a line here, and famcp add writes it.
var (
	tools = map[string]string{
		"delete_note":  "destructive idempotent",
		"import_notes": "idempotent",
		"search_docs":  "read-only idempotent",
	}
	prompts   = []string{"agent_brief", "agent_prompt", "answer_from_docs", "tool_prompt"}
	resources = []string{
		"contract://agent/brief", "contract://agent/prompt", "notes://all",
		"project://id", "project://name", "project://version", "use://auth", "use://http-headers",
	}
	templates = []string{"docs://{name}"}
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

func TestSearchDocs(t *testing.T) {
	type hit struct{ URI, Title, Section, Snippet string }
	type output struct {
		Total int
		Hits  []hit
	}
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		got := famcptest.Call[output](t, c, "search_docs", map[string]any{"query": "every tool"})
		want := output{Total: 1, Hits: []hit{{URI: "docs://tools", Title: "Tools", Section: "Tools", Snippet: "Every tool has a test."}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if text := c.Read(got.Hits[0].URI).Text(); text != "# Tools\n\nEvery tool has a test.\n" {
			t.Errorf("the resource of the hit is %q", text)
		}
	})
}

func TestDeleteNoteAsksFirst(t *testing.T) {
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		var asked []string
		for _, tt := range []struct {
			answer famcptest.Answer
			want   string
			left   bool
		}{
			{answer: famcptest.Confirm(false), want: "declined", left: true},
			{answer: famcptest.Confirm(true), want: "deleted"},
			{answer: famcptest.Confirm(true), want: "absent"},
		} {
			c.Answer(func(q famcptest.Question) famcptest.Answer {
				asked = append(asked, q.Message)
				return tt.answer
			})
			got := famcptest.Call[struct{ Outcome string }](t, c, "delete_note", map[string]any{"id": "welcome"})
			if got.Outcome != tt.want {
				t.Errorf("outcome = %q, want %q", got.Outcome, tt.want)
			}
			if text := c.Read("notes://all").Text(); strings.Contains(text, "welcome") != tt.left {
				t.Errorf("after %q the notes are %s", got.Outcome, text)
			}
		}
		if len(asked) != 2 || !strings.Contains(asked[0], "welcome") {
			t.Errorf("the user was asked %q, want two questions that name the note", asked)
		}
	})
}

func TestDeleteNoteNeedsAClientThatCanAsk(t *testing.T) {
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		res := c.Declaring().CallTool("delete_note", map[string]any{"id": "welcome"})
		if refused := res.Err != nil || res.IsError; !refused {
			t.Errorf("the answer is %s, want a refusal", res.Raw)
		}
		if text := c.Read("notes://all").Text(); !strings.Contains(text, "welcome") {
			t.Error("the note is gone although nobody was asked")
		}
	})
}

func TestImportNotesReportsProgress(t *testing.T) {
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		got := famcptest.Call[struct{ Added, Skipped int }](t, c, "import_notes", map[string]any{"notes": []map[string]string{
			{"id": "milk", "text": "Buy milk"}, {"id": "welcome", "text": "taken"},
		}})
		if got.Added != 1 || got.Skipped != 1 {
			t.Errorf("output = %+v, want one added, one skipped", got)
		}
		progress := c.Notifications().Progress()
		if len(progress) == 0 || progress[len(progress)-1].Progress != 2 {
			t.Errorf("progress = %+v, want it to end with 2", progress)
		}
	})
}

func TestRefusals(t *testing.T) {
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		for want, args := range map[string]map[string]any{
			"query: is required":          {},
			"qeury: is not an argument":   {"query": "x", "qeury": "x"},
			"limit: must be an integer":   {"query": "x", "limit": "many"},
			"limit: must not be negative": {"query": "x", "limit": -1},
		} {
			if res := c.CallTool("search_docs", args); !res.IsError || !strings.Contains(res.Text(), want) {
				t.Errorf("search_docs with %v: %q, %v, want a result that says %q", args, res.Text(), res.Err, want)
			}
		}
		if res := c.CallTool("no_such_tool", nil); res.Err == nil || res.Err.Code != -32602 {
			t.Errorf("unknown tool: %v, want code -32602", res.Err)
		}
		if res := c.Read("docs://absent"); res.Err == nil {
			t.Errorf("absent document: %s, want an error", res.Raw)
		}
	})
}

func TestPromptsAndCompletion(t *testing.T) {
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		if text := c.Prompt("answer_from_docs", map[string]string{"question": "Why?"}).Text(); !strings.Contains(text, "Why?") {
			t.Errorf("answer_from_docs = %q, want it to hold the question", text)
		}
		if got, want := c.Complete("docs://{name}", "name", "to"), []string{"tools"}; !slices.Equal(got, want) {
			t.Errorf("completion = %q, want %q", got, want)
		}
	})
}
