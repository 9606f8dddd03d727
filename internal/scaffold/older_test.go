package scaffold_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/famcp/famcp/internal/scaffold"
	"github.com/famcp/famcp/internal/testkit"
)

// The older famcp that tests upgrade from makes a project as real as the current one: it compiles.
func TestOlderProject(t *testing.T) {
	older := testkit.OlderFamcp(t)
	dir := filepath.Join(t.TempDir(), "demo")
	plan, err := scaffold.PlanNew(t.Context(), scaffold.NewOptions{
		Dir:       dir,
		Answers:   scaffold.Defaults("demo", scaffold.Release{}),
		Templates: older.Templates,
		Runtime:   older.Runtime,
		Release:   scaffold.Release{Version: older.Version},
	})
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]os.FileMode{}
	for _, f := range plan.Files {
		modes[f.Path] = f.Mode
	}
	for name, want := range map[string]os.FileMode{
		"docs/limits.md": 0o644, "deploy/run.sh": 0o755, "deploy/docker-compose.yaml": 0o644, "deploy/compose.yaml": 0,
		"third_party/famcp/internal/runtime/pace/pace.go": 0o644, ".editorconfig": 0, "docs/testing.md": 0,
	} {
		if modes[name] != want {
			t.Errorf("%s has mode %v, want %v", name, modes[name], want)
		}
	}
	if _, err := plan.Apply(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "vet", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-trimpath", "GOPROXY=off") // -trimpath: the build cache knows it in any directory
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go vet: %v\n%s", err, out)
	}

	mod, sum := older.Modules(t, read(t, dir, "go.mod"), read(t, dir, "go.sum"))
	for text, want := range map[string]string{string(mod): "go-sdk v1.6.1\n", string(sum): "go-sdk v1.6.1/go.mod h1:"} {
		if !strings.Contains(text, want) || strings.Contains(text, "go-sdk v1.8") {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
