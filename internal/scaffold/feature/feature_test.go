package feature_test

import (
	"go/format"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/famcp/famcp/internal/scaffold/feature"
	"github.com/famcp/famcp/internal/scaffold/patch"
	"github.com/famcp/famcp/internal/testkit"
)

func field(t *testing.T, text string) feature.Field {
	t.Helper()
	f, err := feature.ParseField(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Each archive is a project before a feature is added, and golden files show it after.
func TestAdd(t *testing.T) {
	everything := func(t *testing.T) []feature.Field {
		return []feature.Field{
			field(t, "order_id:string:Id of the order."), field(t, "maxLines:int?:Most lines."), field(t, "ratio:number:Share."),
			field(t, "dry:bool?:Changes nothing."), field(t, "tags:[]string?:Tags: one or more."), field(t, "state:open|closed:Which ones"),
			field(t, "sort:up|down?:Order"),
		}
	}
	tests := []struct {
		name, project string
		spec          feature.Spec
		fields        func(*testing.T) []feature.Field
	}{
		{name: "tool", project: "template", spec: feature.Spec{Kind: feature.Tool, Name: "lookup_order", Description: "Looks up an order.", Risk: "read-only"}, fields: everything},
		{name: "tool_high_risk", project: "template", spec: feature.Spec{
			Kind: feature.Tool, Name: "erase_url", Description: "Erases.", Risk: "high", SideEffects: "It is gone.", Scopes: []string{"a:b", "c"}, Idempotent: true, ClosedWorld: true,
		}, fields: func(t *testing.T) []feature.Field { return []feature.Field{field(t, "url:string:Where.")} }},
		{name: "tool_low_risk", project: "bare", spec: feature.Spec{
			Kind: feature.Tool, Name: "build_linux", Description: "Builds.", Risk: "low", SideEffects: "A file appears", Additive: true,
		}},
		{name: "tool_named_like_a_variable", project: "template", spec: feature.Spec{Kind: feature.Tool, Name: "build", Description: "Builds.", Risk: "read-only"}},
		{name: "prompt", project: "template", spec: feature.Spec{Kind: feature.Prompt, Name: "review", Description: "Review it.", Scopes: []string{"x"}}, fields: func(t *testing.T) []feature.Field {
			return []feature.Field{field(t, "text:string:The text."), field(t, "focus:style|facts?:What to look at"), field(t, "tone:string?:How.")}
		}},
		{name: "prompt_bare", project: "bare", spec: feature.Spec{Kind: feature.Prompt, Name: "hello", Description: "Say \"hello\"\\`{{ .x }}` [[ .y ]] %s to $USER."}},
		{name: "resource", project: "template", spec: feature.Spec{Kind: feature.Resource, Name: "opening_hours", Description: "When it is open."}},
		{name: "resource_template", project: "bare", spec: feature.Spec{
			Kind: feature.Resource, Name: "order", Description: "One order.", URI: "orders://{customer}/{order_id}", MIME: "application/json", Scopes: []string{"x"},
		}, fields: func(t *testing.T) []feature.Field {
			return []feature.Field{field(t, "order_id:string:Id of the `order`.")}
		}},
		{name: "hostile", project: "template", spec: feature.Spec{
			Kind: feature.Tool, Name: "say", Title: "It's `\"quoted\"` {{ .Title }} [[ .x ]] %d */ //", Risk: "medium",
			Description: "Line`s \"and\" \\n {{ template \"x\" }} [[ end ]] %s %!d(MISSING) ${HOME} */ //go:embed x\u00a0ünï 🙂", SideEffects: "`rm -rf \"/\"` {{.}} %v?",
		}, fields: func(t *testing.T) []feature.Field {
			return []feature.Field{field(t, "what:string:A `text` with \"quotes\": and \\ json:\"x\" {{ .y }} [[ z ]]")}
		}},
		{name: "reorganised", project: "reorganised", spec: feature.Spec{Kind: feature.Tool, Name: "third", Description: "Is third.", Risk: "read-only"}},
		{name: "method", project: "method", spec: feature.Spec{Kind: feature.Tool, Name: "second", Description: "Is second.", Risk: "read-only"}},
		{name: "dot_import", project: "dot_import", spec: feature.Spec{Kind: feature.Prompt, Name: "second", Description: "Is second."}},
		{name: "unnamed_parameters", project: "unnamed_parameters", spec: feature.Spec{Kind: feature.Resource, Name: "first", Description: "Is first."}},
		{name: "crlf", project: "crlf", spec: feature.Spec{Kind: feature.Tool, Name: "second", Description: "Is second.", Risk: "read-only"}},
		{name: "no_registration", project: "no_registration", spec: feature.Spec{Kind: feature.Tool, Name: "first", Description: "Is first.", Risk: "read-only"}},
		{name: "two_registrations", project: "two_registrations", spec: feature.Spec{Kind: feature.Tool, Name: "third", Description: "Is third.", Risk: "read-only"}},
		{name: "shadowed", project: "shadowed", spec: feature.Spec{Kind: feature.Tool, Name: "deps", Description: "Is called like a parameter.", Risk: "read-only"}},
	}
	runtime := testkit.Runtime(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := project(t, tt.project)
			spec := tt.spec
			if tt.fields != nil {
				spec.Fields = tt.fields(t)
			}
			spec.Complete()
			if faults := spec.Check(); faults != nil {
				t.Fatal(faults)
			}
			p := feature.Project{Module: "example.com/p", Files: files, Runtime: runtime}
			r, faults, err := feature.Add(t.Context(), p, spec)
			if err != nil || faults != nil {
				t.Fatal(faults, err)
			}
			var out txtar.Archive
			out.Comment = []byte("registration: " + r.Registration + "\nregistered: " + r.Registered + "\nwhy: " + r.Why + "\nnotes: " + strings.Join(r.Notes, "; ") + "\n")
			for _, name := range slices.Sorted(maps.Keys(r.Files)) {
				data := string(r.Files[name])
				if files[name] != nil {
					data = patch.Unified([]patch.File{{Path: name, Old: files[name], New: r.Files[name]}})
				} else if formatted, err := format.Source(r.Files[name]); err != nil || string(formatted) != data {
					t.Errorf("%s is not formatted: %v", name, err)
				}
				out.Files = append(out.Files, txtar.File{Name: name, Data: []byte(strings.ReplaceAll(data, "\r\n", "⏎\n"))})
			}
			testkit.Golden(t, filepath.Join("testdata", "golden", tt.name+".txtar"), txtar.Format(&out))

			// The same again is refused, and changes nothing else.
			maps.Copy(files, r.Files)
			if _, faults, err := feature.Add(t.Context(), feature.Project{Module: p.Module, Files: files, Runtime: p.Runtime}, spec); len(faults) == 0 {
				t.Errorf("a second time: %v, want a fault", err)
			}
		})
	}
}

// project is the files of a project: one of the template's trees, or an archive in testdata.
func project(t *testing.T, name string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	if tree := map[string]string{"template": "project", "bare": "bare"}[name]; tree != "" {
		checkout := testkit.Checkout(t)
		for _, file := range []string{
			"internal/tools/tools.go", "internal/prompts/prompts.go", "internal/resources/resources.go", "tests/contract_test.go", "CHANGELOG.md",
			"internal/tools/search_docs.go", "internal/tools/delete_note.go", "internal/tools/import_notes.go", "internal/prompts/answer_from_docs.go",
			"internal/resources/document.go", "internal/resources/notes.go", "internal/docs/docs.go", "internal/notes/notes.go",
		} {
			in := tree
			if file == "CHANGELOG.md" {
				in = "project"
			}
			data := testkit.ReadFile(t, filepath.Join(checkout, "templates", in, filepath.FromSlash(file)))
			if data == nil {
				continue
			}
			text := []byte(strings.ReplaceAll(string(data), "github.com/famcp/famcp/templates/"+tree, "example.com/p"))
			if path.Ext(file) == ".go" {
				var err error
				if text, err = format.Source(text); err != nil {
					t.Fatal(err)
				}
			}
			files[file] = text
		}
		return files
	}
	archive, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		files[path.Clean(f.Name)] = []byte(strings.ReplaceAll(string(f.Data), "⏎\n", "\r\n"))
	}
	return files
}

func TestDuplicates(t *testing.T) {
	tests := []struct {
		name string
		spec feature.Spec
		want []feature.Fault
	}{
		{"tool", feature.Spec{Kind: feature.Tool, Name: "search_docs"}, []feature.Fault{{Key: "name", Rule: `must not be "search_docs", the name of the tool at internal/tools/search_docs.go:`}}},
		{"file", feature.Spec{Kind: feature.Tool, Name: "tools"}, []feature.Fault{{Key: "name", Rule: `must not be "tools", because there is a file internal/tools/tools.go`}}},
		{"Go name", feature.Spec{Kind: feature.Tool, Name: "docs_hit"}, []feature.Fault{{Key: "name", Rule: `must not be "docs_hit", because the Go name docsHit is taken at internal/tools/search_docs.go:`}}},
		{"package name", feature.Spec{Kind: feature.Tool, Name: "notes"}, []feature.Fault{{Key: "name", Rule: `must not be "notes", because the Go name notes is taken at internal/tools/`}}},
		{"another spelling", feature.Spec{Kind: feature.Tool, Name: "search__docs"}, []feature.Fault{{Key: "name", Rule: `must not be "search__docs", because the Go name searchDocs`}}},
		{"prompt", feature.Spec{Kind: feature.Prompt, Name: "answer_from_docs"}, []feature.Fault{{Key: "name", Rule: `must not be "answer_from_docs", the name of the prompt at`}}},
		{"URI", feature.Spec{Kind: feature.Resource, Name: "other", URI: "notes://all"}, []feature.Fault{{Key: "uri", Rule: `must not be "notes://all", which is at internal/resources/notes.go:`}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.spec.Description, tt.spec.Risk = "x", "read-only"
			tt.spec.Complete()
			_, got, err := feature.Add(t.Context(), feature.Project{Module: "example.com/p", Files: project(t, "template"), Runtime: testkit.Runtime(t)}, tt.spec)
			if err != nil {
				t.Fatal(err)
			}
			for i := range min(len(got), len(tt.want)) {
				if strings.HasPrefix(got[i].Rule, tt.want[i].Rule) {
					got[i].Rule = tt.want[i].Rule
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	tool := func(change func(*feature.Spec)) feature.Spec {
		s := feature.Spec{Kind: feature.Tool, Name: "look", Description: "Looks.", Risk: "read-only"}
		change(&s)
		return s
	}
	fields := func(f ...feature.Field) func(*feature.Spec) { return func(s *feature.Spec) { s.Fields = f } }
	text := func(name string) feature.Field {
		return feature.Field{Name: name, Type: feature.String, Description: "x"}
	}
	tests := []struct {
		name string
		spec feature.Spec
		want []string // key and the beginning of the rule
	}{
		{"nothing wrong", tool(func(*feature.Spec) {}), nil},
		{"nothing at all", feature.Spec{Kind: feature.Tool}, []string{"name is missing", "description is missing", "risk is missing"}},
		{"upper case", tool(func(s *feature.Spec) { s.Name = "Look" }), []string{"name must match"}},
		{"dash", tool(func(s *feature.Spec) { s.Name = "look-up" }), []string{"name must match"}},
		{"path", tool(func(s *feature.Spec) { s.Name = "../look" }), []string{"name must match"}},
		{"too long", tool(func(s *feature.Spec) { s.Name = strings.Repeat("a", 64) }), []string{"name must match"}},
		{"keyword", tool(func(s *feature.Spec) { s.Name = "select" }), []string{`name must not be "select", a word of the Go language`}},
		{"predeclared", tool(func(s *feature.Spec) { s.Name = "len" }), []string{`name must not be "len", a word of the Go language`}},
		{"init", tool(func(s *feature.Spec) { s.Name = "init" }), []string{`name must not be "init"`}},
		{"built in", feature.Spec{Kind: feature.Prompt, Name: "agent_brief", Description: "x"}, []string{`name must not be "agent_brief", which the runtime`}},
		{"two lines", tool(func(s *feature.Spec) { s.Description = "a\nb" }), []string{"description must be one line without control characters; it contains U+000A"}},
		{"two lines of title", tool(func(s *feature.Spec) { s.Title = "a\x00" }), []string{"title must be one line"}},
		{"blank", tool(func(s *feature.Spec) { s.Description = " " }), []string{"description is missing"}},
		{"not UTF-8", tool(func(s *feature.Spec) { s.Description = "\xff" }), []string{"description must be valid UTF-8"}},
		{"right to left override", tool(func(s *feature.Spec) { s.Description = "a\u202eb" }), []string{"description must be one line without control characters"}},
		{"unknown risk", tool(func(s *feature.Spec) { s.Risk = "none" }), []string{"risk must be one of read-only, low, medium, high"}},
		{"risk without side effects", tool(func(s *feature.Spec) { s.Risk = "low" }), []string{"side-effects are missing"}},
		{"side effects without risk", tool(func(s *feature.Spec) { s.SideEffects = "x" }), []string{"side-effects are those of a tool that changes something"}},
		{"read-only and additive", tool(func(s *feature.Spec) { s.Additive = true }), []string{"risk is read-only, which says already"}},
		{"scope", tool(func(s *feature.Spec) { s.Scopes = []string{"a b", `"`} }), []string{"scope must be visible", "scope must be visible"}},
		{"field name", tool(fields(text("a-b"))), []string{`field "a-b" must begin with a letter`}},
		{"field twice", tool(fields(text("a"), text("a"))), []string{`field "a" is given twice`}},
		{"same Go name", tool(fields(text("order_id"), text("orderId"))), []string{`field "orderId" has the same name in Go as "order_id": OrderID`}},
		{"no description", tool(fields(feature.Field{Name: "a", Type: feature.Int})), []string{`field "a" has no description`}},
		{"word and =", tool(fields(feature.Field{Name: "a", Type: feature.Int, Description: "x=y z"})), []string{`field "a" has a description that begins with a word and =`}},
		{"choices", tool(fields(feature.Field{Name: "a", Type: feature.String, Description: "x", Choices: []string{"a", `"`, "a"}})), []string{`field "a" has the choice "\""`, `field "a" has the choice "a" twice`}},
		{"prompt with a number", feature.Spec{Kind: feature.Prompt, Name: "p", Description: "x", Fields: []feature.Field{{Name: "n", Type: feature.Int, Description: "x"}}}, []string{`field "n" must be a string`}},
		{"URI", feature.Spec{Kind: feature.Resource, Name: "r", Description: "x", URI: "no uri"}, []string{"uri must be a URI"}},
		{"URI with quotes", feature.Spec{Kind: feature.Resource, Name: "r", Description: "x", URI: "a://`"}, []string{"uri must be visible ASCII"}},
		{"URI template", feature.Spec{Kind: feature.Resource, Name: "r", Description: "x", URI: "a://{"}, []string{"uri is no URI template"}},
		{"no such variable", feature.Spec{Kind: feature.Resource, Name: "r", Description: "x", URI: "a://b", Fields: []feature.Field{text("id")}}, []string{`uri has no variable "id"; write it as {id}`}},
		{"media type", feature.Spec{Kind: feature.Resource, Name: "r", Description: "x", MIME: "text"}, []string{"mime must be a media type"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.spec.Complete()
			var got []string
			for i, f := range tt.spec.Check() {
				text := f.Key + " " + f.Rule
				if i < len(tt.want) && strings.HasPrefix(text, tt.want[i]) {
					text = tt.want[i]
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseField(t *testing.T) {
	tests := []struct {
		text string
		want feature.Field
		bad  bool
	}{
		{text: "id:string:Id: of the order", want: feature.Field{Name: "id", Type: feature.String, Description: "Id: of the order"}},
		{text: " n : int? : Most. ", want: feature.Field{Name: "n", Type: feature.Int, Optional: true, Description: "Most."}},
		{text: "s:a|b?:Which.", want: feature.Field{Name: "s", Type: feature.String, Optional: true, Choices: []string{"a", "b"}, Description: "Which."}},
		{text: "l:[]string:All.", want: feature.Field{Name: "l", Type: feature.Strings, Description: "All."}},
		{text: "id", bad: true},
		{text: "id:string", bad: true},
		{text: "id:float:x", bad: true},
		{text: "", bad: true},
	}
	for _, tt := range tests {
		got, err := feature.ParseField(tt.text)
		if (err != nil) != tt.bad {
			t.Errorf("ParseField(%q): %v", tt.text, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" && !tt.bad {
			t.Errorf("ParseField(%q) (-want +got):\n%s", tt.text, diff)
		}
	}
}

func TestChangelog(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"group", "## [Unreleased]\n\n### Added\n\n- One.\n\n### Fixed\n\n- Two.\n", "## [Unreleased]\n\n### Added\n\n- One.\n- Tool `look`.\n\n### Fixed\n\n- Two.\n"},
		{"empty group", "## [Unreleased]\n\n### Added\n\n### Fixed\n", "## [Unreleased]\n\n### Added\n\n- Tool `look`.\n\n### Fixed\n"},
		{"other group", "## Unreleased\n\n### Fixed\n\n- Two.\n", "## Unreleased\n\n### Added\n\n- Tool `look`.\n\n### Fixed\n\n- Two.\n"},
		{"list", "## unreleased\n\n- One,\n  of two lines.\n\n## 1.0.0\n\n- Old.\n", "## unreleased\n\n- One,\n  of two lines.\n- Tool `look`.\n\n## 1.0.0\n\n- Old.\n"},
		{"nothing yet", "# Changes\n\n## [Unreleased]\n\n## 1.0.0\n\n### Added\n", "# Changes\n\n## [Unreleased]\n\n### Added\n\n- Tool `look`.\n\n## 1.0.0\n\n### Added\n"},
		{"end of the file", "## [Unreleased]", ""},
		{"no such part", "# Changes\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string][]byte{"CHANGELOG.md": []byte(tt.text)}
			spec := feature.Spec{Kind: feature.Tool, Name: "look", Description: "Looks.", Risk: "read-only"}
			spec.Complete()
			r, _, err := feature.Add(t.Context(), feature.Project{Module: "example.com/p", Files: files}, spec)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(r.Files["CHANGELOG.md"])); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
