package famcp_test

import (
	"bytes"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/famcp/famcp"
)

const module = "github.com/famcp/famcp"

// TestImports holds the directions of docs/design.md over all dependencies;
// the linter sees direct ones only.
func TestImports(t *testing.T) {
	const sdk, cobra, huh = "github.com/modelcontextprotocol/go-sdk", "github.com/spf13/cobra", "charm.land"
	tests := []struct {
		pkg    string
		denied []string
	}{
		{module, []string{cobra, huh, "github.com/go-git", "github.com/Masterminds", module + "/internal/scaffold", module + "/cmd", module + "/templates"}},
		{module + "/famcptest", []string{cobra, huh, "github.com/go-git", "github.com/rogpeppe", "github.com/stretchr"}},
		{module + "/internal/runtime/protocol", []string{module, "github.com"}},
		{module + "/internal/runtime/config", []string{sdk, module}},
		{module + "/internal/runtime/invoke", []string{module + "/internal/runtime/front", module + "/internal/runtime/wire"}},
		{module + "/internal/scaffold", []string{cobra, huh, sdk, module + "/internal/runtime"}},
	}
	for _, tt := range tests {
		t.Run(tt.pkg, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", tt.pkg).Output()
			if err != nil {
				t.Fatal(err)
			}
			deps := strings.Fields(string(out))
			if !slices.Contains(deps, tt.pkg) {
				t.Fatalf("go list named %d packages, not %s itself", len(deps), tt.pkg)
			}
			for _, dep := range deps {
				for _, denied := range tt.denied {
					own := dep == tt.pkg || (denied == module && dep == module+"/internal/runtime/protocol")
					if !own && (dep == denied || strings.HasPrefix(dep, denied+"/")) {
						t.Errorf("imports %s, which it must not", dep)
					}
				}
			}
		})
	}
}

// TestOnlyFixturesImportTheRoot keeps the engines below the façade.
func TestOnlyFixturesImportTheRoot(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./internal/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if slices.Contains(fields[1:], module) && fields[0] != module+"/internal/everything" {
			t.Errorf("%s imports the root package", fields[0])
		}
	}
}

// TestTestImports keeps what lands in the go.sum of every project small: the
// tests of the root package and famcptest come along with them.
func TestTestImports(t *testing.T) {
	allowed := []string{"github.com/google/go-cmp", "github.com/modelcontextprotocol/go-sdk", module}
	for _, dir := range []string{".", "famcptest"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, error %v", dir, len(files), err)
		}
		for _, file := range files {
			if dir == "." && !strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range f.Imports {
				path := strings.Trim(spec.Path.Value, `"`)
				if host, _, _ := strings.Cut(path, "/"); !strings.Contains(host, ".") {
					continue
				}
				if !slices.ContainsFunc(allowed, func(a string) bool { return path == a || strings.HasPrefix(path, a+"/") }) {
					t.Errorf("%s imports %s", file, path)
				}
			}
		}
	}
}

// TestSourceStaysOutOfServers proves that the linker drops the runtime's
// source from a program that does not ask for it, and that the program which
// does has all of it.
func TestSourceStaysOutOfServers(t *testing.T) {
	// Any long comment of the runtime does; comments are in source only.
	const comment = "// The linker drops this from every program that does not call Source."
	for _, tt := range []struct {
		pkg  string
		want bool
	}{
		{"./internal/everything", false},
		{"./cmd/famcp", true},
	} {
		t.Run(tt.pkg, func(t *testing.T) {
			bin := filepath.Join(t.TempDir(), "bin")
			if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, tt.pkg).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			data, err := os.ReadFile(bin)
			if err != nil {
				t.Fatal(err)
			}
			if got := bytes.Contains(data, []byte(comment)); got != tt.want {
				t.Errorf("carries the source: %v, want %v", got, tt.want)
			}
		})
	}
}

// TestSourceIsComplete compares what is embedded with what is on disk: a
// nested go.mod, a dotfile or a link is dropped from an embed in silence.
func TestSourceIsComplete(t *testing.T) {
	roots := []string{"famcptest", "internal/runtime"}
	for _, root := range roots {
		var disk, embedded []string
		collect := func(list *[]string) fs.WalkDirFunc {
			return func(path string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() && strings.HasSuffix(path, ".go") {
					*list = append(*list, filepath.ToSlash(path))
				}
				return err
			}
		}
		if err := filepath.WalkDir(root, collect(&disk)); err != nil {
			t.Fatal(err)
		}
		if err := fs.WalkDir(famcp.Source(), root, collect(&embedded)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(disk, embedded) {
			t.Errorf("%s: on disk %v\nembedded %v", root, disk, embedded)
		}
	}
}
