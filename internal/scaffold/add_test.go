package scaffold

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp/internal/scaffold/feature"
	"github.com/famcp/famcp/internal/scaffold/journal"
)

// addProject is a small project on disk.
func addProject(t *testing.T) string {
	t.Helper()
	dir := realTempDir(t)
	for name, text := range map[string]string{
		"go.mod":                 "module example.com/p\n\nrequire github.com/famcp/famcp v0.0.0\n",
		"internal/tools/keep.go": "package tools\n",
		"internal/tools/tools.go": "package tools\n\nimport \"github.com/famcp/famcp\"\n\n" +
			"// Register adds the tools.\nfunc Register(s *famcp.Server) {}\n",
		".famcp/manifest.yaml":        "",
		"CHANGELOG.md":                "## [Unreleased]\n\n### Added\n\n- One.\n",
		"tests/contract_test.go":      "package tests\n\nvar tools = map[string]string{}\n",
		"third_party/famcp/go.mod":    "module github.com/famcp/famcp\n",
		"third_party/famcp/famcp.go":  "package famcp\n\ntype Server struct{}\n",
		"third_party/famcp/tool.go":   vendoredTool,
		"third_party/famcp/sub/x.txt": "",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const vendoredTool = `package famcp

import "context"

type (
	Call   struct{}
	Effect struct{}
	Tool   struct {
		Name, Title, Description string
		Effect                   Effect
	}
	Info struct{ Name, Version string }
)

func New(any, Info) (*Server, error)   { return nil, nil }

func ReadOnly() Effect                 { return Effect{} }
func Failf(string, ...any) error       { return nil }
func AddTool[In, Out any](*Server, Tool, func(context.Context, *Call, In) (Out, error)) {}
`

func planAdd(t *testing.T, dir string) *AddPlan {
	t.Helper()
	plan, err := PlanAdd(t.Context(), found(t, dir), AddOptions{Spec: feature.Spec{Kind: feature.Tool, Name: "look", Description: "Looks.", Risk: "read-only"}})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func TestAdd(t *testing.T) {
	dir := addProject(t)
	plan := planAdd(t, filepath.Join(dir, "third_party", "famcp", "sub")) // inside of the runtime is inside of the project
	if plan.found.Dir != dir || plan.Registered != "internal/tools/tools.go" {
		t.Errorf("project %s, registered in %s", plan.found.Dir, plan.Registered)
	}
	before := tree(t, dir)
	if !strings.Contains(plan.Patch(), "+++ b/internal/tools/look.go\n") {
		t.Errorf("patch:\n%s", plan.Patch())
	}
	if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
		t.Fatalf("planning changed the project:\n%s", diff)
	}
	if err := plan.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := tree(t, dir)
	for _, f := range plan.Files {
		if after[f.Path] != string(f.New) {
			t.Errorf("%s is\n%s", f.Path, after[f.Path])
		}
		mode := fs.FileMode(0o644)
		if f.Old != nil {
			mode = 0o640
		}
		if info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(f.Path))); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, mode %v, want %v", f.Path, err, info.Mode(), mode)
		}
		delete(after, f.Path)
		delete(before, f.Path)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("other files (-before +after):\n%s", diff)
	}
	if len(plan.Files) != 5 {
		t.Errorf("%d files, want two new ones and three that changed", len(plan.Files))
	}
}

// Whatever fails or interrupts it, at whatever moment, every file is what it was.
func TestAddAllOrNothing(t *testing.T) {
	errFull := errors.New("the disk is full")
	for name, interrupted := range map[string]bool{"full disk": false, "interrupt": true} {
		t.Run(name, func(t *testing.T) {
			for at := 1; ; at++ {
				dir := addProject(t)
				if err := os.RemoveAll(filepath.Join(dir, "internal", "tools")); err != nil { // so that a directory is made, too
					t.Fatal(err)
				}
				plan := planAdd(t, dir)
				before := tree(t, dir)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				d := &breakingJournal{Disk: journal.Real(plan.found.root), at: at, broke: func() error { return errFull }}
				want := errFull
				if interrupted {
					d.broke = func() error { cancel(); return nil }
					want = context.Canceled
				}
				err := plan.apply(ctx, d)
				if err == nil && d.done < at {
					if d.done < 8 {
						t.Errorf("there are %d operations only", d.done)
					}
					return
				}
				if err == nil { // interrupted when everything was done
					continue
				}
				if !errors.Is(err, want) {
					t.Errorf("operation %d: %v", at, err)
				}
				if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
					t.Errorf("operation %d (-before +after):\n%s", at, diff)
				}
			}
		})
	}
}

func TestAddKeepsWhatChangedMeanwhile(t *testing.T) {
	dir := addProject(t)
	plan := planAdd(t, dir)
	name := filepath.Join(dir, "tests", "contract_test.go")
	if err := os.WriteFile(name, []byte("package tests // by me\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	if err := plan.Apply(t.Context()); err == nil || !strings.Contains(err.Error(), "tests/contract_test.go was changed meanwhile; nothing was written") {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func TestAddRefuses(t *testing.T) {
	spec := feature.Spec{Kind: feature.Tool, Name: "look", Description: "Looks.", Risk: "read-only"}
	tests := []struct {
		name    string
		prepare func(t *testing.T, dir string)
		want    string
	}{
		{"damaged go.mod", func(t *testing.T, dir string) { overwrite(t, dir, "go.mod", "module \"x\n") }, "the project's go.mod cannot be read"},
		{"a link where the file goes", func(t *testing.T, dir string) {
			if err := os.Symlink("elsewhere", filepath.Join(dir, "internal", "tools", "look.go")); err != nil {
				t.Skip(err)
			}
		}, "because there is a internal/tools/look.go"},
		{"the same name in other case", func(t *testing.T, dir string) { overwrite(t, dir, "internal/tools/Look.go", "package tools\n") }, "because there is a file internal/tools/Look.go"},
		{"an upgrade that is not finished", func(t *testing.T, dir string) {
			if err := os.MkdirAll(filepath.Join(dir, ".famcp", "tmp", "applied-1"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, "an upgrade is not finished here"},
		{"a change that was killed", func(t *testing.T, dir string) {
			if err := os.MkdirAll(filepath.Join(dir, ".famcp", "tmp", "applying"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, "run famcp upgrade --abort"},
		{"it would not compile", func(t *testing.T, dir string) {
			overwrite(t, dir, "third_party/famcp/tool.go", strings.Replace(vendoredTool, "func Failf", "func Failed", 1))
		}, "would not compile with it: internal/tools/look.go:"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := addProject(t)
			tt.prepare(t, dir)
			_, err := PlanAdd(t.Context(), found(t, dir), AddOptions{Spec: spec})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func overwrite(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func found(t *testing.T, dir string) *Found {
	t.Helper()
	p, err := Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// breakingJournal is a disk on which the operation number at breaks.
type breakingJournal struct {
	journal.Disk
	at, done int
	broke    func() error
}

func (b *breakingJournal) step() error {
	b.done++
	if b.done == b.at {
		return b.broke()
	}
	return nil
}

func (b *breakingJournal) Mkdir(path string, mode fs.FileMode) error {
	if err := b.step(); err != nil {
		return err
	}
	return b.Disk.Mkdir(path, mode)
}

func (b *breakingJournal) WriteFile(path string, data []byte, mode fs.FileMode) error {
	if err := b.step(); err != nil {
		return errors.Join(err, b.Disk.WriteFile(path, data[:len(data)/2], mode))
	}
	return b.Disk.WriteFile(path, data, mode)
}

func (b *breakingJournal) Rename(from, to string) error {
	if err := b.step(); err != nil {
		return err
	}
	return b.Disk.Rename(from, to)
}
