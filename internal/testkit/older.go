package testkit

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"testing"
	"testing/fstest"

	"golang.org/x/mod/modfile"
)

// Older is a famcp from before the checkout: what tests upgrade from. testdata/older/README.md says how it differs.
type Older struct {
	Version   string // semantic version with its v
	Templates fs.FS  // the trees project and bare
	Runtime   fs.FS  // source of the runtime; it compiles
	// Config is a config/default.yaml with keys that have since moved: logging.level and limits.maxRequests. No
	// template has it.
	Config []byte
}

// olderEdits turn files of the current template into their older form: the text to find, and what was there.
var olderEdits = map[string][][2]string{
	"project/main.go":                          {{"\t\tAgentPrompt: prompts.AgentPrompt,\n", ""}},
	"project/Dockerfile.tmpl":                  {{"USER 65532:65532\n", "USER nobody\n"}, {"-trimpath -ldflags=\"-s -w\" ", ""}},
	"project/AGENTS.md.tmpl":                   {{"golangci-lint run   # the linters of CI, configured in .golangci.yml\n", ""}},
	"project/dot_golangci.yml":                 {{"    - misspell\n", ""}, {"    - unparam\n", "    - unused\n"}},
	"project/dot_github/workflows/ci.yml.tmpl": {{"go test -race ./...", "go test ./..."}},
	"project/docs/operations.md.tmpl":          {{"# Operations\n", "# Running it\n"}},
	"project/README.md.tmpl":                   {{"\n## Test\n", "\n## Tests\n"}},
	"project/config/default.yaml.tmpl":         {{"logger:\n  level: info\n", "logger:\n  level: info\n  format: text\n"}},
	"project/internal/tools/tools.go":          {{", one in each file", ""}},
}

// sinceAdded are the templates that the older one did not have.
var sinceAdded = []string{
	"project/docs/testing.md", "project/dot_editorconfig", "project/config/local.example.yaml", "project/CLAUDE.md",
	"project/deploy/compose.yaml.tmpl",
}

// OlderFamcp puts the older famcp together.
func OlderFamcp(t testing.TB) Older {
	t.Helper()
	dir := filepath.Join(Checkout(t), "internal", "testkit", "testdata", "older")
	files := mapFS(t, os.DirFS(filepath.Join(Checkout(t), "templates")), "project", "bare")
	for name, edits := range olderEdits {
		files[name] = &fstest.MapFile{Data: unedit(t, name, files[name].Data, edits), Mode: 0o644}
	}
	for _, name := range sinceAdded {
		if files[name] == nil {
			t.Fatalf("template %s is gone: adapt the older template, in older.go", name)
		}
		delete(files, name)
	}
	for name, file := range mapFS(t, os.DirFS(filepath.Join(dir, "templates")), "project") {
		if files[name] != nil {
			t.Fatalf("template %s is in the current template again: adapt testdata/older", name)
		}
		files[name] = file
	}

	runtime := mapFS(t, Runtime(t), ".")
	runtime["famcp.go"] = &fstest.MapFile{Data: append(bytes.Clone(runtime["famcp.go"].Data), "\n// The end of v0.1.0.\n"...), Mode: 0o644}
	runtime["internal/runtime/pace/pace.go"] = &fstest.MapFile{
		Data: []byte("// Package pace is gone since.\npackage pace\n"), Mode: 0o644,
	}
	config, err := os.ReadFile(filepath.Join(dir, "default.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return Older{Version: "v0.1.0", Templates: files, Runtime: runtime, Config: config}
}

func unedit(t testing.TB, name string, text []byte, edits [][2]string) []byte {
	t.Helper()
	for _, e := range edits {
		if bytes.Count(text, []byte(e[0])) != 1 {
			t.Fatalf("template %s does not hold this once any more: adapt the older template, in older.go\n%s", name, e[0])
		}
		text = bytes.Replace(text, []byte(e[0]), []byte(e[1]), 1)
	}
	return text
}

// mapFS copies the trees of source into memory.
func mapFS(t testing.TB, source fs.FS, trees ...string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	for _, tree := range trees {
		err := fs.WalkDir(source, tree, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			data, err := fs.ReadFile(source, name)
			files[path.Clean(name)] = &fstest.MapFile{Data: data, Mode: 0o644}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// olderModules are requirements of that time, with their lines in go.sum.
var olderModules = []struct{ path, version, zip, mod string }{
	{
		"github.com/modelcontextprotocol/go-sdk", "v1.6.1",
		"h1:0zOSupjKUxPKSocPT1Wtago+mUHU2/uZ4xSOY0FGReU=", "h1:kzm3kzFL1/+AziGOE0nUs3gvPoNxMCvkxokMkuFapXQ=",
	},
	{
		"go.yaml.in/yaml/v3", "v3.0.4",
		"h1:tfq32ie2Jv2UxXFdLJdh3jXuOzWiL1fo0bu/FbuKpbc=", "h1:DhzuOOF2ATzADvBadXxruRBLzYTpT36CKvDb3+aBEFg=",
	},
}

// Modules are the go.mod and go.sum of a project that the older famcp made, from those that the current one makes.
func (o Older) Modules(t testing.TB, mod, sum []byte) (olderMod, olderSum []byte) {
	t.Helper()
	f, err := modfile.Parse("go.mod", mod, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range olderModules {
		if err := f.AddRequire(m.path, m.version); err != nil {
			t.Fatal(err)
		}
		var lines [][]byte
		for line := range bytes.Lines(sum) {
			if !bytes.HasPrefix(line, []byte(m.path+" ")) {
				lines = append(lines, line)
			}
		}
		lines = append(lines, []byte(m.path+" "+m.version+" "+m.zip+"\n"), []byte(m.path+" "+m.version+"/go.mod "+m.mod+"\n"))
		sum = bytes.Join(lines, nil)
	}
	if err := f.AddGoStmt("1.25.0"); err != nil {
		t.Fatal(err)
	}
	if mod, err = f.Format(); err != nil {
		t.Fatal(err)
	}
	return mod, sum
}
