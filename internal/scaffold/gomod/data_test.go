package gomod_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"

	"github.com/famcp/famcp/internal/scaffold"
	"github.com/famcp/famcp/internal/scaffold/gomod"
	"github.com/famcp/famcp/internal/testkit"
)

// TestData makes the data of this package anew, by go mod tidy on the vendored runtime and on rendered projects, and
// compares. It needs the modules of this one, from the cache or the network.
func TestData(t *testing.T) {
	root := readFiles(t, testkit.Checkout(t))
	runtime := tidy(t, vendoredRuntime(t), root, nil)
	testkit.Golden(t, "data/runtime.mod", runtime.Mod)
	testkit.Golden(t, "data/runtime.sum", runtime.Sum)

	for _, examples := range []bool{true, false} { // of one requirement list, whatever they import
		dir := project(t, examples, "vendored", scaffold.Release{})
		write(t, filepath.Join(dir, filepath.FromSlash(gomod.VendorDir)), runtime)
		vendored := tidy(t, dir, start(t, root, "v0.0.0", true), nil)
		testkit.Golden(t, "data/vendored.mod", vendored.Mod)
		testkit.Golden(t, "data/vendored.sum", vendored.Sum)
	}

	published := testkit.Publish(t)
	dir := project(t, true, "module", scaffold.Release{Version: published.Version, GoSum: published.GoSum})
	module := tidy(t, dir, start(t, root, published.Version, false), published.Env)
	testkit.Golden(t, "data/module.mod", bytes.ReplaceAll(module.Mod, []byte(published.Version), []byte("v0.0.0")))
	testkit.Golden(t, "data/module.sum", famcpSums.ReplaceAll(module.Sum, nil))

	filled, err := gomod.Module("example.com/project", published.Version, published.GoSum)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(module.Sum), string(filled.Sum)); diff != "" && !testkit.Updating(t) {
		t.Errorf("go.sum with the lines of the release (-tidy +filled in):\n%s", diff)
	}
}

var famcpSums = regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(gomod.Runtime) + ` .*\n`)

// project writes a project, whose go.mod and go.sum do not matter yet, and returns its directory.
func project(t *testing.T, examples bool, runtime string, r scaffold.Release) string {
	t.Helper()
	answers := scaffold.Defaults("project", r)
	answers.Examples, answers.Runtime = examples, runtime
	plan, err := scaffold.PlanNew(t.Context(), scaffold.NewOptions{
		Dir:       filepath.Join(t.TempDir(), "project"),
		Answers:   answers,
		Templates: os.DirFS(filepath.Join(testkit.Checkout(t), "templates")),
		Runtime:   testkit.Runtime(t),
		Release:   r,
	})
	if err != nil {
		t.Fatal(err)
	}
	result, err := plan.Apply(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return result.Dir
}

// vendoredRuntime writes the runtime as a project has it, and returns its directory.
func vendoredRuntime(t *testing.T) string {
	t.Helper()
	dir := project(t, false, "vendored", scaffold.Release{})
	return filepath.Join(dir, filepath.FromSlash(gomod.VendorDir))
}

// start is a go.mod for tidy to begin with: the requirements of this module, in one block, fix the versions.
func start(t *testing.T, root gomod.Files, version string, vendored bool) gomod.Files {
	t.Helper()
	f, err := modfile.Parse("go.mod", root.Mod, nil)
	if err != nil {
		t.Fatal(err)
	}
	var mod strings.Builder
	fmt.Fprintf(&mod, "module example.com/project\n\ngo %s\n\nrequire (\n\t%s %s\n", f.Go.Version, gomod.Runtime, version)
	for _, r := range f.Require {
		fmt.Fprintf(&mod, "\t%s %s\n", r.Mod.Path, r.Mod.Version)
	}
	mod.WriteString(")\n")
	if vendored {
		fmt.Fprintf(&mod, "\nreplace %s => ./%s\n", gomod.Runtime, gomod.VendorDir)
	}
	return gomod.Files{Mod: []byte(mod.String()), Sum: root.Sum}
}

// tidy puts files into dir and returns what go mod tidy makes of them.
func tidy(t *testing.T, dir string, files gomod.Files, env []string) gomod.Files {
	t.Helper()
	write(t, dir, files)
	cmd := exec.CommandContext(t.Context(), "go", "mod", "tidy")
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "GOWORK=off", "GOFLAGS="), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		for _, offline := range []string{"module lookup disabled by GOPROXY=off", "dial tcp", "no such host"} {
			if strings.Contains(string(out), offline) {
				t.Skipf("go mod tidy needs the network here: %s", out)
			}
		}
		t.Fatalf("go mod tidy: %v\n%s", err, out)
	}
	return readFiles(t, dir)
}

func readFiles(t *testing.T, dir string) gomod.Files {
	t.Helper()
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	return gomod.Files{Mod: mod, Sum: sum}
}

func write(t *testing.T, dir string, f gomod.Files) {
	t.Helper()
	for name, data := range map[string][]byte{"go.mod": f.Mod, "go.sum": f.Sum} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
