package render

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"
)

func TestProject(t *testing.T) {
	templates := fstest.MapFS{
		"project/main.go":                          text("package main\n\nimport _ \"github.com/famcp/famcp/templates/project/internal/tools\"\n"),
		"project/internal/tools/tools.go":          text("package tools\n"),
		"project/internal/tools/search.go":         text("package tools\n"),
		"project/internal/docs/docs.go":            text("package docs\n"),
		"project/internal/project/project.go":      text("package project\n"),
		"project/internal/project/project.go.tmpl": text("package project\n\nconst Name = [[ goquote .Name ]]\n"),
		"project/README.md.tmpl":                   text("[[ .Title ]] ${{ x }} {{ y }}\r\n"),
		"project/docs/a.md":                        text("[[ .Title ]]\r\n"),
		"project/docs/a.png":                       text("\x00\r\n"),
		"project/dot_gitignore":                    text("x\n"),
		"project/dot_github/workflows/ci.yml":      text("on: push\n"),
		"project/dot_gitlab-ci.yml":                text("stages: []\n"),
		"project/deploy/compose.yaml":              text("{}\n"),
		"project/LICENSE.mit.tmpl":                 text("MIT [[ .Author ]]\n"),
		"project/LICENSE.apache-2.0":               text("Apache\n"),
		"project/docs/run.sh":                      text("#!/bin/sh\n"),
		"bare/internal/tools/tools.go":             text("package tools\n\nvar none int\n"),
		"bare/docs/b.md":                           text("bare\n"),
	}
	all := map[string]string{
		"main.go":                     "package main\n\nimport _ \"example.com/x/internal/tools\"\n",
		"internal/tools/tools.go":     "package tools\n",
		"internal/tools/search.go":    "package tools\n",
		"internal/docs/docs.go":       "package docs\n",
		"internal/project/project.go": "package project\n\nconst Name = \"demo\"\n",
		"README.md":                   "T ${{ x }} {{ y }}\n",
		"docs/a.md":                   "[[ .Title ]]\n",
		"docs/a.png":                  "\x00\r\n",
		".gitignore":                  "x\n",
		".github/workflows/ci.yml":    "on: push\n",
		".gitlab-ci.yml":              "stages: []\n",
		"deploy/compose.yaml":         "{}\n",
		"LICENSE":                     "MIT A\n",
		"docs/run.sh":                 "#!/bin/sh\n",
	}
	tests := []struct {
		name   string
		change func(*Data)
		want   map[string]string // changes to all; "-" for a file that is not there
	}{
		{"everything", func(*Data) {}, nil},
		{"no GitHub", func(d *Data) { d.GitHub = false }, map[string]string{".github/workflows/ci.yml": "-"}},
		{"no GitLab", func(d *Data) { d.GitLab = false }, map[string]string{".gitlab-ci.yml": "-"}},
		{"no HTTP", func(d *Data) { d.HTTP = false }, map[string]string{"deploy/compose.yaml": "-"}},
		{"another license", func(d *Data) { d.License = "apache-2.0" }, map[string]string{"LICENSE": "Apache\n"}},
		{"no license", func(d *Data) { d.License = "none" }, map[string]string{"LICENSE": "-"}},
		{
			"no examples", func(d *Data) { d.Examples = false },
			map[string]string{
				"internal/tools/tools.go": "package tools\n\nvar none int\n", "internal/tools/search.go": "-",
				"internal/docs/docs.go": "-", "docs/b.md": "bare\n",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := Data{Name: "demo", Module: "example.com/x", Title: "T", Author: "A", License: "mit", Examples: true, HTTP: true, GitHub: true, GitLab: true}
			tt.change(&d)
			files, err := Project(templates, d)
			if err != nil {
				t.Fatal(err)
			}
			want, got := map[string]string{}, map[string]string{}
			for name, text := range all {
				want[name] = text
			}
			for name, text := range tt.want {
				if want[name] = text; text == "-" {
					delete(want, name)
				}
			}
			last := ""
			for _, f := range files {
				got[f.Path] = string(f.Data)
				if f.Path <= last {
					t.Errorf("%s comes after %s", f.Path, last)
				}
				last = f.Path
				if executable := f.Mode == 0o755; executable != (f.Path == "docs/run.sh") {
					t.Errorf("%s has mode %v", f.Path, f.Mode)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func text(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

func TestProjectErrors(t *testing.T) {
	tests := []struct {
		name, file, text, want string
	}{
		{"unknown field", "project/README.md.tmpl", "[[ .Unknown ]]", "project/README.md.tmpl:1"},
		{"bad template", "project/README.md.tmpl", "[[ if ]]", "project/README.md.tmpl:1"},
		{"the clock", "project/README.md.tmpl", "[[ now ]]", `function "now" not defined`},
		{"the environment", "project/README.md.tmpl", `[[ env "HOME" ]]`, `function "env" not defined`},
		{"bad Go", "project/main.go", "package", "template project/main.go: main.go:1"},
		{"bad Go after the imports", "project/main.go.tmpl", "package main\nfunc (", "template project/main.go.tmpl: "},
		{"no owner", "project/nobody.txt", "", "template project/nobody.txt: file nobody.txt has no row in the table of owners"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Project(fstest.MapFS{tt.file: text(tt.text)}, Data{Module: "example.com/x", Examples: true})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestRewriteImports(t *testing.T) {
	tests := []struct{ name, src, want string }{
		{
			"only imports", `package main

import (
	"fmt"

	"github.com/famcp/famcp"
	alias "github.com/famcp/famcp/templates/project/internal/tools" // github.com/famcp/famcp/templates/project
	_ "github.com/famcp/famcp/templates/bare"
	"github.com/famcp/famcp/templates/projects"
)

// See github.com/famcp/famcp/templates/project/docs.
const s = "github.com/famcp/famcp/templates/project"
`, `package main

import (
	"fmt"

	_ "example.com/x"
	alias "example.com/x/internal/tools" // github.com/famcp/famcp/templates/project
	"github.com/famcp/famcp"
	"github.com/famcp/famcp/templates/projects"
)

// See github.com/famcp/famcp/templates/project/docs.
const s = "github.com/famcp/famcp/templates/project"
`,
		},
		{
			"raw string, one line, directives", "//go:build linux\n\npackage main\n\nimport . `github.com/famcp/famcp/templates/project/a`\n\n//go:embed x\nvar x string\n",
			"//go:build linux\n\npackage main\n\nimport . \"example.com/x/a\"\n\n//go:embed x\nvar x string\n",
		},
		{"none", "package main\n\nfunc main() {}\n", "package main\n\nfunc main() {}\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := rewriteImports("main.go", []byte(tt.src), "example.com/x")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// hostile are answers that mean something in some format.
var hostile = []string{
	`"`, `'`, "`", `\`, `\n`, `$HOME ${HOME} $(id) $$`, `{{ .Name }}`, `[[ .Name ]]`, `${{ secrets.X }}`, `%s %d`, "a: b # c", "- a", "&a *b !c",
	`"""`, `'''`, `*/`, `<script>`, `[x](y)`, "a\tb", "a\nb", "a\r\nb", "\x00\x1b", "\u00a0\u2028\u202e\ufeff", "日本 😀", "\U000e0001", "null", "~", "1_000", "yes", "",
	strings.Repeat("long ", 200),
}

func TestHostileAnswersArriveLiterally(t *testing.T) {
	templates := fstest.MapFS{
		"project/config/default.yaml.tmpl": text("v: [[ yaml .Title ]]\nl: [ [[- yaml .Title -]] ]\n"),
		"project/docs/x.json.tmpl":         text(`{"v": [[ json .Title ]]}`),
		"project/docs/x.toml.tmpl":         text("v = [[ toml .Title ]]\n"),
		"project/main.go.tmpl":             text("package main\n\nconst v = [[ goquote .Title ]]\n"),
		"project/docs/x.txt.tmpl":          text("[[ .Title ]]"),
	}
	for _, answer := range hostile {
		t.Run(strconv.QuoteToASCII(answer), func(t *testing.T) {
			files, err := Project(templates, Data{Title: answer, Module: "example.com/x", Examples: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				var got string
				switch {
				case strings.HasSuffix(f.Path, ".yaml"):
					var v struct {
						V string
						L []string
					}
					err = yaml.Unmarshal(f.Data, &v)
					if got = v.V; err == nil && (len(v.L) != 1 || v.L[0] != answer) {
						t.Errorf("%s: list %q", f.Path, v.L)
					}
				case strings.HasSuffix(f.Path, ".json"):
					var v struct{ V string }
					err = json.Unmarshal(f.Data, &v)
					got = v.V
				case strings.HasSuffix(f.Path, ".toml"):
					var v struct{ V string }
					err = toml.Unmarshal(f.Data, &v)
					got = v.V
				case strings.HasSuffix(f.Path, ".go"):
					got, err = constant(f.Data)
				default:
					got = string(f.Data)
				}
				if err != nil || got != answer {
					t.Errorf("%s: %q, %v\n%s", f.Path, got, err, f.Data)
				}
			}
		})
	}
}

// constant is the value of the only constant of a Go file.
func constant(src []byte) (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "main.go", src, parser.AllErrors)
	if err != nil {
		return "", err
	}
	spec := file.Decls[0].(*ast.GenDecl).Specs[0].(*ast.ValueSpec)
	return strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
}

func TestEscapeMarkdown(t *testing.T) {
	tests := []struct{ in, want string }{
		{"plain text, with (some) marks: ok!", "plain text, with (some) marks: ok!"},
		{"a `b` *c* _d_ [e](f) <g> | h & i ~ $j$ # k", "a \\`b\\` \\*c\\* \\_d\\_ \\[e\\](f) \\<g\\> \\| h \\& i \\~ \\$j\\$ \\# k"},
		{"- item", `\- item`},
		{"+ item", `\+ item`},
		{"=====", `\=====`},
		{"12. item", `12\. item`},
		{"1) item", `1\) item`},
		{"2026 was good", "2026 was good"},
		{"a\n\n# b", `a \# b`},
		{`a\b`, `a\\b`},
		{"", ""},
	}
	for _, tt := range tests {
		if got := escapeMarkdown(tt.in); got != tt.want {
			t.Errorf("escapeMarkdown(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestLFKeepsBinaries(t *testing.T) {
	if got := LF([]byte("\x00\r\n")); !bytes.Equal(got, []byte("\x00\r\n")) {
		t.Errorf("LF = %q", got)
	}
	if got := LF([]byte("a\r\nb\r\n")); !bytes.Equal(got, []byte("a\nb\n")) {
		t.Errorf("LF = %q", got)
	}
}
