package migrate_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/famcp/famcp/internal/migrate"
)

var (
	old = migrate.Version{Famcp: "v0.1.0", SDK: "v1.6.1"}
	now = migrate.Version{Famcp: "v0.2.0", SDK: "v1.8.0"}
)

// Each archive in testdata has a project below before/, the files that the migrations change below after/, what they
// say in report, and where it matters the source of a runtime below runtime/. FAMCP_UPDATE=1 writes after/ and report.
func TestMigrations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			before, runtime, want := fstest.MapFS{}, fstest.MapFS{}, map[string]string{}
			var input []txtar.File
			for _, f := range archive.Files {
				data := f.Data
				if bytes.Contains(data, []byte("⏎")) { // lines of a file with CRLF, which txtar does not keep in every checkout
					data = bytes.ReplaceAll(data, []byte("⏎\n"), []byte("\r\n"))
				}
				if name, ok := strings.CutPrefix(f.Name, "before/"); ok {
					before[name] = &fstest.MapFile{Data: data, Mode: 0o644}
					input = append(input, f)
				} else if name, ok := strings.CutPrefix(f.Name, "runtime/"); ok {
					runtime[name] = &fstest.MapFile{Data: data, Mode: 0o644}
					input = append(input, f)
				} else {
					want[f.Name] = string(f.Data)
				}
			}
			p := migrate.Project{FS: before, Module: "example.com/p"}
			if len(runtime) > 0 {
				p.Runtime = runtime
			}
			migrations := append(migrate.All(), testMigrations...)
			result, err := migrate.Apply(t.Context(), p, old, now, migrations)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{"report": report(result)}
			after := maps.Clone(before)
			for name, data := range result.Files {
				got["after/"+name] = strings.ReplaceAll(string(data), "\r\n", "⏎\n")
				after[name] = &fstest.MapFile{Data: data, Mode: 0o644}
			}
			if os.Getenv("FAMCP_UPDATE") != "" {
				archive.Files = input
				for _, name := range slices.Sorted(maps.Keys(got)) {
					archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(got[name])})
				}
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got; FAMCP_UPDATE=1 writes it):\n%s", diff)
			}

			p.FS = after
			again, err := migrate.Apply(t.Context(), p, old, now, migrations)
			if err != nil {
				t.Fatal(err)
			}
			if len(again.Files) != 0 || len(again.Changes) != 0 {
				t.Errorf("a second time changes %q:\n%s", slices.Sorted(maps.Keys(again.Files)), report(again))
			}
		})
	}
}

func report(r *migrate.Result) string {
	var b strings.Builder
	for _, c := range r.Changes {
		fmt.Fprintf(&b, "%s: %s\n", c.Migration, c)
	}
	for _, c := range r.Notes {
		fmt.Fprintf(&b, "note: %s: %s\n", c.Migration, c)
	}
	return b.String()
}

// Keys that moved in configurations of testdata. No key of the runtime has moved yet.
var testMigrations = []migrate.Migration{
	migrate.MoveKey(migrate.KeyMove{
		ID: "rename", Since: "v0.2.0", From: "mcp.limits.toolTimeout", To: "mcp.limits.toolTimeoutMs",
		OldEnv: "MCP_LIMITS_TOOL_TIMEOUT", NewEnv: "MCP_LIMITS_TOOL_TIMEOUT_MS",
	}),
	migrate.MoveKey(migrate.KeyMove{ID: "deeper", Since: "v0.2.0", From: "webServer.cors", To: "webServer.browser.cors.enabled"}),
	migrate.MoveKey(migrate.KeyMove{ID: "elsewhere", Since: "v0.2.0", From: "mcp.log", To: "logger.level"}),
	migrate.MoveKey(migrate.KeyMove{ID: "up", Since: "v0.2.0", From: "mcp.store.list", To: "stores"}),
}

func TestDue(t *testing.T) {
	notice := migrate.Notice("n", "github.com/modelcontextprotocol/go-sdk", "v1.8.0", "Read this")
	tests := []struct {
		name     string
		from, to migrate.Version
		want     bool
	}{
		{"passes", old, now, true},
		{"passed before", now, now, false},
		{"not there yet", old, old, false},
		{"unknown before", migrate.Version{}, now, true},
		{"development builds", migrate.Version{SDK: "devel"}, migrate.Version{}, true},
		{"back", now, old, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := migrate.Apply(t.Context(), migrate.Project{FS: fstest.MapFS{}}, tt.from, tt.to, []migrate.Migration{notice})
			if err != nil {
				t.Fatal(err)
			}
			if got := len(r.Notes) == 1; got != tt.want {
				t.Errorf("due = %t, want %t", got, tt.want)
			}
		})
	}
}

func TestNoteFile(t *testing.T) {
	notices := []migrate.Migration{
		migrate.Notice("a", "github.com/famcp/famcp", "v0.2.0", "First thing"),
		migrate.Notice("b", "github.com/famcp/famcp", "v0.2.0", "Second thing"),
	}
	const header = "# Left to do after an upgrade\n\nfamcp upgrade could not do these by itself. Tick off what is done, and delete this file at the end.\n\n"
	tests := []struct{ name, there, want string }{
		{"new", "", header + "- [ ] First thing.\n- [ ] Second thing.\n"},
		{"ticked off", "# Ours\n- [x] First thing.\nby us", "# Ours\n- [x] First thing.\nby us\n- [ ] Second thing.\n"},
		{"all there", "- [ ] Second thing.\n- [X] First thing.\n", ""},
		{"CRLF", "- [ ] Second thing.\r\n", "- [ ] Second thing.\r\n- [ ] First thing.\r\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := fstest.MapFS{}
			if tt.there != "" {
				files[migrate.NotePath] = &fstest.MapFile{Data: []byte(tt.there)}
			}
			r, err := migrate.Apply(t.Context(), migrate.Project{FS: files}, old, now, notices)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(r.Files[migrate.NotePath])); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSDKVersion(t *testing.T) {
	for mod, want := range map[string]string{
		"module m\n\nrequire github.com/modelcontextprotocol/go-sdk v1.6.1\n": "v1.6.1",
		"module m\n": "",
		"{":          "",
	} {
		if got := migrate.SDKVersion([]byte(mod)); got != want {
			t.Errorf("SDKVersion(%q) = %q, want %q", mod, got, want)
		}
	}
}

// What is vendored, secret, of another module or not text is not even opened.
func TestWhatIsRead(t *testing.T) {
	const setting = "MCPGODEBUG=seterroroverwrite=1\n"
	files := guarded{fstest.MapFS{}, t}
	for _, name := range []string{
		"third_party/famcp/x.sh", "vendor/x.sh", "a/node_modules/x.sh", ".git/hooks/x.sh", "a/testdata/x.sh", "_old/x.sh",
		"config/local.yaml", ".env", ".env.local", "README.md", "nested/x.sh", "data.bin",
	} {
		files.MapFS[name] = &fstest.MapFile{Data: []byte(setting)}
	}
	files.MapFS["nested/go.mod"] = &fstest.MapFile{Data: []byte("module n\n")}
	files.MapFS["link.sh"] = &fstest.MapFile{Data: []byte("nested/x.sh"), Mode: fs.ModeSymlink}
	files.MapFS["huge.sh"] = &fstest.MapFile{Data: append([]byte(setting), make([]byte, 1<<20)...)}
	files.MapFS["binary.sh"] = &fstest.MapFile{Data: []byte(setting + "\x00")}
	files.MapFS["start.sh"] = &fstest.MapFile{Data: []byte(setting)}
	r, err := migrate.Plan(t.Context(), migrate.Project{FS: files}, old, now)
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(r.Files)); !slices.Equal(got, []string{migrate.NotePath, "start.sh"}) {
		t.Errorf("changed %q, want the note and start.sh", got)
	}
}

// guarded refuses to open what is none of the migrations' business.
type guarded struct {
	fstest.MapFS
	t *testing.T
}

func (g guarded) Open(name string) (fs.File, error) {
	switch base := filepath.Base(name); {
	case strings.HasPrefix(base, ".env"), name == "config/local.yaml", strings.HasPrefix(name, "third_party/"), strings.HasPrefix(name, "nested/x"):
		g.t.Errorf("%s is read", name)
	}
	return g.MapFS.Open(name)
}
