package scaffold

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp/internal/testkit"
)

func TestCheckName(t *testing.T) {
	good := []string{"a", "my-server", "a1", "x--y", strings.Repeat("a", 63), "goat", "config2", "v1x", "vx"}
	for _, name := range good {
		if rule := checkName(name); rule != "" {
			t.Errorf("name %q %s, want it accepted", name, rule)
		}
	}
	bad := []string{
		"", " ", "A", "My-Server", "1a", "-a", "--help", "a-", "a_b", "a.b", "a/b", `a\b`, "a b", "a\nb", "a\x00b", "ä", "服务", "a\u200bb",
		"..", ".", "~", "$HOME", "a;b", "a'b", `a"b`, "{{a}}", strings.Repeat("a", 64), strings.Repeat("a", 100),
		"main", "test", "vendor", "internal", "go", "func", "string", "len", "famcp", "con", "nul", "com1", "lpt9",
		"config", "docs", "deploy", "tests", "cmd", "std", "all", "license", "dockerfile", "v0", "v1", "v2", "v10",
	}
	for _, name := range bad {
		if checkName(name) == "" {
			t.Errorf("name %q was accepted", name)
		}
	}
}

func TestCheckModule(t *testing.T) {
	tests := []struct {
		path string
		want string // part of the rule; empty when the path is good
	}{
		{"example.com/my-server", ""},
		{"github.com/Team/Repo/v2", ""},
		{"gitlab.example.com/a/b/c", ""},
		{"", "must be a Go module path"},
		{"my-server", "missing dot in first path element"},
		{"net/http", "missing dot in first path element"},
		{"example.com/my server", "invalid char"},
		{"example.com/../x", "invalid path element"},
		{"/example.com/x", "must be a Go module path"},
		{"example.com/x/", "must be a Go module path"},
		{"example.com/con", "con"},
		{"example.com/x/v1", "must be a Go module path"},
		{"example.com/vendors/-a/x_~", ""},
		{"example.com/vendor/x", "must not contain the element vendor"},
		{"example.com/vendor", "must not contain the element vendor"},
		{"example.com/-x", "must not end in an element that begins with '-'"},
		{"example.com/~x", "must not end in an element that begins with '~'"},
		{"https://example.com/x", "must be a Go module path"},
		{"example.com/\"x", "invalid char"},
		{"github.com/famcp/famcp", "must not be inside github.com/famcp/famcp"},
		{"github.com/modelcontextprotocol/go-sdk", "the module of a dependency"},
		{"github.com/modelcontextprotocol/go-sdk/x", ""},
		{"github.com/famcp/famcp/x", "must not be inside github.com/famcp/famcp"},
		{"example.com/" + strings.Repeat("a", 200), "at most 200 bytes"},
	}
	for _, tt := range tests {
		got := checkModule(tt.path)
		if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
			t.Errorf("module %q: %q, want %q", tt.path, got, tt.want)
		}
	}
}

func TestCheckReportsEveryViolation(t *testing.T) {
	a := Answers{
		Name: "A", Module: "x", Title: " ", Description: "a\nb", Port: 70000, Auth: "jwt", CI: "x", Transport: "x",
		License: "gpl", Author: "a\u202eb", Runtime: "x",
	}
	err := a.Check()
	var got Violations
	if !errors.As(err, &got) {
		t.Fatalf("Check() = %v, want Violations", err)
	}
	var keys []string
	for _, v := range got {
		keys = append(keys, v.Key)
	}
	want := []string{"name", "module", "title", "description", "port", "transport", "auth", "ci", "license", "author", "runtime"}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("violated (-want +got):\n%s", diff)
	}
	if lines := strings.Split(err.Error(), "\n"); len(lines) != len(want) || lines[4] != "port (--port) must be a port from 1 to 65535, not 70000" {
		t.Errorf("Error() = %q", lines)
	}
}

func TestDefaultsAreValid(t *testing.T) {
	for _, r := range []Release{{}, testRelease} {
		a := Defaults("my-server", r)
		if err := a.Check(); err != nil {
			t.Errorf("Defaults(%v): %v", r, err)
		}
	}
	want := Answers{
		Name: "my-server", Module: "example.com/my-server", Title: "My Server", Description: "My Server, an MCP server.",
		Port: 3000, Auth: "none", CI: "github", Transport: "both", Examples: true, License: "mit", Runtime: "module",
	}
	if diff := cmp.Diff(want, Defaults("my-server", testRelease)); diff != "" {
		t.Errorf("Defaults (-want +got):\n%s", diff)
	}
}

func TestResolve(t *testing.T) {
	tests := []struct {
		name  string
		given map[string]string
		want  func(*Answers) // changes the defaults
		err   string
	}{
		{name: "name alone", given: map[string]string{"name": "demo"}},
		{
			name:  "every kind",
			given: map[string]string{"name": "demo", "port": "8080", "examples": "no", "ci": "none", "title": "T"},
			want:  func(a *Answers) { a.Port, a.Examples, a.CI, a.Title = 8080, false, "none", "T" },
		},
		{
			name:  "space around answers",
			given: map[string]string{"name": " demo\n", "title": " T ", "port": " 8080 ", "ci": "none ", "author": "  "},
			want:  func(a *Answers) { a.Title, a.Port, a.CI = "T", 8080, "none" },
		},
		{name: "y is yes", given: map[string]string{"name": "demo", "examples": "Y"}},
		{name: "n is no", given: map[string]string{"name": "demo", "examples": "n"}, want: func(a *Answers) { a.Examples = false }},
		{
			name:  "nothing to see",
			given: map[string]string{"name": "demo", "title": "\u200b", "description": "\u2060 \u00ad", "author": "\ufeff"},
			err:   "title (--title) must not be blank\ndescription (--description) must not be blank\nauthor (--author) must not be blank",
		},
		{
			name:  "identity provider",
			given: map[string]string{"name": "demo", "auth": "remoteJwks", "issuer": "https://login.example.com/", "jwksUri": "http://[::1]:8080/keys?tenant=a"},
			want: func(a *Answers) {
				a.Auth, a.Issuer, a.JWKSURI = "remoteJwks", "https://login.example.com/", "http://[::1]:8080/keys?tenant=a"
			},
		},
		{
			name:  "identity provider unknown",
			given: map[string]string{"name": "demo", "auth": "remoteJwks"},
			err: "issuer (--issuer) is missing; --auth remoteJwks needs a URL such as https://login.example.com/\n" +
				"jwksUri (--jwks-uri) is missing; --auth remoteJwks needs a URL such as https://login.example.com/.well-known/jwks.json",
		},
		{
			name:  "no addresses of a provider",
			given: map[string]string{"name": "demo", "auth": "remoteJwks", "issuer": "login.example.com", "jwksUri": "https://me:secret@example.com/"},
			err: "issuer (--issuer) must be a URL such as https://login.example.com/\n" +
				"jwksUri (--jwks-uri) must hold neither user nor password",
		},
		{
			name:  "an issuer has no query, a key set no fragment",
			given: map[string]string{"name": "demo", "auth": "remoteJwks", "issuer": "https://example.com?a=b", "jwksUri": "https://example.com/#x"},
			err: "issuer (--issuer) must have neither query nor fragment\n" +
				"jwksUri (--jwks-uri) must have neither query nor fragment",
		},
		{
			name:  "a provider that is not asked",
			given: map[string]string{"name": "demo", "auth": "hs256", "issuer": "https://login.example.com/"},
			err:   "issuer (--issuer) belongs to --auth remoteJwks only; leave it out",
		},
		{name: "no name", given: map[string]string{}, err: "name (--name) is missing; " + nameRule},
		{name: "a bad name is one violation", given: map[string]string{"name": "ÄX"}, err: `name (--name) ` + nameRule + `, not "ÄX"`},
		{
			name:  "wrong types",
			given: map[string]string{"name": "demo", "port": "80x", "examples": "maybe"},
			err:   "port (--port) must be a whole number, not \"80x\"\nexamples (--examples) must be yes or no, not \"maybe\"",
		},
		{
			name:  "unknown key",
			given: map[string]string{"name": "demo", "prot": "1"},
			err:   "prot is not a question; the keys are name, module, title, description, port, transport, auth, issuer, jwksUri, ci, examples, license, author, runtime",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Resolve(tt.given, Release{})
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Fatalf("error %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := Defaults("demo", Release{})
			if tt.want != nil {
				tt.want(&want)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseAnswers(t *testing.T) {
	tests := []struct {
		name, text string
		want       map[string]string
		err        string
	}{
		{name: "empty", text: "", want: map[string]string{}},
		{name: "comment", text: "# nothing\n", want: map[string]string{}},
		{name: "YAML", text: "name: demo\nport: 08080\nexamples: false\ntitle:\n", want: map[string]string{"name": "demo", "port": "08080", "examples": "false"}},
		{name: "JSON", text: `{"name": "demo", "port": 8080, "examples": true, "title": null}`, want: map[string]string{"name": "demo", "port": "8080", "examples": "true"}},
		{name: "unknown key", text: "name: demo\nprot: 1\n", err: `line 2: unknown answer "prot"`},
		{name: "twice", text: "name: a\nname: b\n", err: `line 2: answer "name" is given twice`},
		{name: "list", text: "- name\n", err: "line 1: want a mapping"},
		{name: "nested", text: "name: [a]\n", err: `line 1: answer "name" must be a single value`},
		{name: "two documents", text: "name: a\n---\nname: b\n", err: "more than one document"},
		{name: "not YAML", text: "{", err: "line 1: "},
		{name: "not YAML on another line", text: "name: a\nport: 1: 2\n", err: "line 2: "},
		{name: "control character", text: "name: a\ntitle: b\x1bc\n", err: "line 2: must be UTF-8 text without control characters"},
		{name: "not UTF-8", text: "name: a\n\n\ntitle: \xff\n", err: "line 4: must be UTF-8"},
		{name: "text that YAML takes for a date", text: "title: 2026-01-02\n", want: map[string]string{"title": "2026-01-02"}},
		{name: "tag of a text", text: "title: !!str 12\n", want: map[string]string{"title": "12"}},
		{name: "binary", text: "name: a\ntitle: !!binary aGk=\n", err: `line 2: answer "title" has the tag !!binary; remove it`},
		{name: "tag of one's own", text: "title: !secret x\n", err: `line 1: answer "title" has the tag !secret; remove it`},
		{name: "list as a key", text: "name: a\n? [a]\n: b\n", err: "line 2: the key of an answer must be a single word"},
		{name: "alias", text: "name: &a demo\ntitle: *a\n", err: `line 2: answer "title" must be a single value`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseAnswers([]byte(tt.text))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	}
}

// Every question must carry its answer there and back: flags, answers file and manifest go through these.
func TestQuestionsRoundTrip(t *testing.T) {
	want := Answers{
		Name: "demo", Module: "example.com/x", Title: "T", Description: "D", Port: 1, Auth: "none", CI: "both", Transport: "stdio",
		Examples: true, License: "none", Author: "A", Runtime: "module",
	}
	var got Answers
	for _, q := range Questions() {
		if err := q.Set(&got, q.Text(want)); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

func TestNameFromDir(t *testing.T) {
	if got, err := NameFromDir("/x/my-server/"); got != "my-server" || err != nil {
		t.Errorf("NameFromDir = %q, %v", got, err)
	}
	_, err := NameFromDir("/x/My Server")
	want := `the directory name "My Server" cannot name the project: it ` + nameRule + `, not "My Server"; pass --name`
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// The binary lies beside the files of the project, on some file systems whatever the case.
func TestNoNameIsAnEntryOfTheProject(t *testing.T) {
	o := testOptions(filepath.Join(t.TempDir(), "demo"))
	o.Templates = os.DirFS(filepath.Join(testkit.Checkout(t), "templates"))
	files, err := project(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		entry, _, _ := strings.Cut(f.Path, "/")
		if checkName(strings.ToLower(entry)) == "" {
			t.Errorf("a project may have the name of its entry %s", entry)
		}
	}
}
