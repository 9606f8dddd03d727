package templates_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/internal/runtime/config"
	"github.com/famcp/famcp/internal/scaffold/render"
	"github.com/famcp/famcp/templates"
)

// sample answers are those behind the plain files that lie beside their templates.
var sample = render.Data{
	Name: "my-server", Module: "example.com/my-server", Title: "My Server", Description: "My Server, an MCP server.",
	Port: 3000, Auth: "none", CI: "both", Transport: "both", License: "mit", Runtime: "vendored", Examples: true,
	Issuer: "http://localhost:3000", TokenVariable: "MY_SERVER_TOKEN",
	GoVersion: "1.26", HTTP: true, Stdio: true, GitHub: true, GitLab: true, DefaultCommand: "http", Command: "my-server",
}

// variants are data in which every condition of a template is met once and missed once.
func variants() map[string]render.Data {
	hostile := sample
	hostile.Title, hostile.Description = "# It's \"quoted\" | `x`", `A $HOME {{ .x }} [[ .y ]] \n <b> * _e_`
	hostile.Author, hostile.Port = `Jane "J" O'Doe`, 65535
	hostile.Name, hostile.Command = strings.Repeat("a-", 31)+"z", strings.Repeat("a-", 31)+"z"
	stdio := sample
	stdio.Transport, stdio.HTTP, stdio.DefaultCommand, stdio.License, stdio.Author = "stdio", false, "stdio", "apache-2.0", "Jane"
	http := sample
	http.Transport, http.Stdio, http.License, http.Runtime = "http", false, "none", "module"
	bare := sample
	bare.Examples, bare.CI, bare.GitHub = false, "gitlab", false
	hs256, embedded, localKey, remote := sample, stdio, http, bare
	hs256.Auth, hs256.Protected, hs256.HS256, hs256.Issues = "hs256", true, true, true
	embedded.Auth, embedded.Protected, embedded.Embedded, embedded.Issues = "embedded", true, true, true
	localKey.Auth, localKey.Protected, localKey.LocalKey, localKey.Issues = "localKey", true, true, true
	remote.Auth, remote.Protected, remote.RemoteJWKS = "remoteJwks", true, true
	remote.Issuer, remote.JWKSURI = `https://login.example.com/"#'`, "https://login.example.com/$HOME?[[.x]]: - #"
	return map[string]render.Data{
		"sample": sample, "hostile": hostile, "stdio": stdio, "http": http, "bare": bare,
		"hs256": hs256, "embedded": embedded, "localKey": localKey, "remoteJwks": remote,
	}
}

func rendered(t *testing.T, d render.Data) map[string]string {
	t.Helper()
	files, err := render.Project(templates.FS(), d)
	if err != nil {
		t.Fatal(err)
	}
	texts := make(map[string]string, len(files))
	for _, f := range files {
		texts[f.Path] = string(f.Data)
	}
	return texts
}

func TestFilesAndSnippetsParse(t *testing.T) {
	for name, d := range variants() {
		t.Run(name, func(t *testing.T) {
			for file, text := range rendered(t, d) {
				if err := parse(strings.TrimPrefix(path.Ext(file), "."), text); err != nil {
					t.Errorf("%s: %v", file, err)
				}
				if path.Ext(file) != ".md" {
					continue
				}
				for _, f := range fences(text) {
					if err := parse(f.language, f.text); err != nil {
						t.Errorf("%s: snippet\n%s\n%v", file, f.text, err)
					}
				}
			}
		})
	}
}

func parse(language, text string) error {
	var v any
	switch language {
	case "json":
		return json.Unmarshal([]byte(text), &v)
	case "toml":
		return toml.Unmarshal([]byte(text), &v)
	case "yaml", "yml":
		return yaml.Unmarshal([]byte(text), &v)
	}
	return nil
}

type fence struct{ language, text string }

var fencePattern = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")

func fences(markdown string) []fence {
	var all []fence
	for _, m := range fencePattern.FindAllStringSubmatch(markdown, -1) {
		all = append(all, fence{language: m[1], text: m[2]})
	}
	return all
}

// Conditions in templates easily leave blank lines and trailing space behind.
func TestFilesAreTidy(t *testing.T) {
	for name, d := range variants() {
		t.Run(name, func(t *testing.T) {
			for file, text := range rendered(t, d) {
				for what, untidy := range map[string]bool{
					"does not begin with text":        strings.TrimLeft(text, "\n") != text,
					"does not end in one newline":     !strings.HasSuffix(text, "\n") || strings.HasSuffix(text, "\n\n"),
					"has a line with trailing space":  regexp.MustCompile(`(?m)[ \t]+$`).MatchString(text),
					"has two blank lines in a row":    strings.Contains(text, "\n\n\n"),
					"has carriage returns":            strings.Contains(text, "\r"),
					"has delimiters of its templates": strings.Contains(text, "[["+" ") && name != "hostile",
				} {
					if untidy {
						t.Errorf("%s %s", file, what)
					}
				}
			}
		})
	}
}

// A client's configuration is looked at where that client looks.
func TestReadmeConnectsEveryClient(t *testing.T) {
	const url, binary = "http://127.0.0.1:3000/mcp", "/absolute/path/to/my-server"
	type server struct {
		Type    string   `json:"type" toml:"type"`
		URL     string   `json:"url" toml:"url"`
		Command string   `json:"command" toml:"command"`
		Args    []string `json:"args" toml:"args"`
	}
	var (
		overHTTP  = server{URL: url}
		typedHTTP = server{Type: "http", URL: url}
		overStdio = server{Command: binary, Args: []string{"stdio"}}
		typed     = server{Type: "stdio", Command: binary, Args: []string{"stdio"}}
	)
	httpOnly := map[string][]server{
		"json mcpServers": {typedHTTP, overHTTP, overStdio}, "json servers": {typedHTTP}, "toml mcp_servers": {overHTTP},
	}
	stdioOnly := map[string][]server{
		"json mcpServers": {typed, overStdio, overStdio}, "json servers": {typed}, "toml mcp_servers": {overStdio},
	}
	both := map[string][]server{
		"json mcpServers": {typedHTTP, overHTTP, typed, overStdio, overStdio},
		"json servers":    {typedHTTP, typed}, "toml mcp_servers": {overHTTP, overStdio},
	}
	for name, want := range map[string]map[string][]server{"sample": both, "http": httpOnly, "stdio": stdioOnly} {
		t.Run(name, func(t *testing.T) {
			got := map[string][]server{}
			for _, f := range fences(rendered(t, variants()[name])["README.md"]) {
				var file map[string]map[string]server
				switch f.language {
				case "json":
					if err := json.Unmarshal([]byte(f.text), &file); err != nil {
						t.Fatal(err)
					}
				case "toml":
					if err := toml.Unmarshal([]byte(f.text), &file); err != nil {
						t.Fatal(err)
					}
				}
				for root, servers := range file {
					got[f.language+" "+root] = append(got[f.language+" "+root], servers["my-server"])
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Relative links of a Markdown file lead to files that the same project has.
func TestLinksResolve(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^):]+)\)`)
	for name, d := range variants() {
		t.Run(name, func(t *testing.T) {
			texts := rendered(t, d)
			for file, text := range texts {
				if path.Ext(file) != ".md" {
					continue
				}
				for _, m := range link.FindAllStringSubmatch(text, -1) {
					if target := path.Join(path.Dir(file), m[1]); texts[target] == "" {
						t.Errorf("%s links to %s, which is not there", file, target)
					}
				}
			}
		})
	}
}

// Whole Go files in the documentation compile, together with the lines that register what is in them.
func TestGoSnippets(t *testing.T) {
	type snippet struct{ pkg, code, register string }
	var snippets []snippet
	texts := rendered(t, sample)
	for _, page := range []string{"docs/tools.md", "docs/prompts-and-resources.md"} {
		for _, f := range fences(texts[page]) {
			switch {
			case f.language != "go":
			case strings.HasPrefix(f.text, "package "):
				pkg, _, _ := strings.Cut(strings.TrimPrefix(f.text, "package "), "\n")
				snippets = append(snippets, snippet{pkg: pkg, code: f.text})
			case strings.HasPrefix(f.text, "famcp.Add"), strings.HasPrefix(f.text, "s.Add"):
				snippets[len(snippets)-1].register = f.text
			}
		}
	}
	if len(snippets) != 4 {
		t.Fatalf("found %d whole files, want those of a tool, a prompt, a resource and a template", len(snippets))
	}
	dir := t.TempDir()
	replace := map[string]string{}
	for i, s := range snippets {
		file := filepath.Join(dir, fmt.Sprintf("%d.go", i))
		code := fmt.Sprintf("%s\nfunc register%d(s *famcp.Server) {\n%s}\n", s.code, i, s.register)
		if err := os.WriteFile(file, []byte(code), 0o644); err != nil {
			t.Fatal(err)
		}
		abs, err := filepath.Abs(filepath.Join("project", "internal", "snippets", s.pkg, filepath.Base(file)))
		if err != nil {
			t.Fatal(err)
		}
		replace[abs] = file
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", file,
		"./project/internal/snippets/tools", "./project/internal/snippets/prompts", "./project/internal/snippets/resources")
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("go build: %v\n%s", err, out)
	}
}

// The plain files beside their templates, which our own tree compiles and embeds, are renderings.
func TestSamplesAreFresh(t *testing.T) {
	texts := rendered(t, sample)
	for _, file := range []string{"README.md", "config/default.yaml", "internal/project/project.go"} {
		fresh(t, filepath.Join("project", filepath.FromSlash(file)), texts[file])
	}
}

// The documentation of the runtime's keys is that of its tags.
func TestKeyDocumentationIsFresh(t *testing.T) {
	keys, err := config.Keys(famcp.Config{})
	if err != nil {
		t.Fatal(err)
	}

	var table, variables bytes.Buffer
	if err := config.WriteMarkdown(&table, keys); err != nil {
		t.Fatal(err)
	}
	if err := config.WriteEnvExample(&variables, keys); err != nil {
		t.Fatal(err)
	}
	between(t, "project/docs/configuration.md", "<!-- keys:begin -->\n", "<!-- keys:end -->\n", table.String())
	between(t, "project/dot_env.example.tmpl", "# keys:begin\n", "# keys:end\n", variables.String())
}

func between(t *testing.T, file, begin, end, want string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(data), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lacks its markers %q and %q", file, begin, end)
	}
	fresh(t, file, head+begin+"\n"+want+"\n"+end+tail)
}

func fresh(t *testing.T, file, want string) {
	t.Helper()
	if os.Getenv("FAMCP_UPDATE") == "1" {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is stale; run FAMCP_UPDATE=1 go test ./templates (-want +got):\n%s", file, diff)
	}
}
