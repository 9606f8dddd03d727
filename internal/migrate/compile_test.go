package migrate_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"

	"github.com/famcp/famcp/internal/migrate"
	"github.com/famcp/famcp/internal/testkit"
)

// What is rewritten for go-sdk compiles against the go-sdk that this module has: before, and afterwards without what is
// deprecated.
func TestRewrittenCodeCompiles(t *testing.T) {
	checkout := testkit.Checkout(t)
	overlay := map[string]string{}
	var packages []string
	for _, name := range []string{"sdk_capabilities", "sdk_cross_origin", "sdk_not_found"} {
		archive, err := txtar.ParseFile("testdata/" + name + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		texts := map[string]map[string]string{"before": {}, "after": {}}
		for _, f := range archive.Files {
			if side, file, _ := strings.Cut(f.Name, "/"); path.Ext(file) == ".go" {
				texts[side][file] = string(f.Data)
			}
		}
		for file, text := range texts["before"] {
			if texts["after"][file] == "" {
				texts["after"][file] = text // it does not change
			}
		}
		for side, files := range texts {
			packages = append(packages, "./internal/migrate/testdata/"+name+"_"+side)
			for file, text := range files {
				real := filepath.Join(t.TempDir(), file)
				if err := os.WriteFile(real, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				overlay[filepath.Join(checkout, "internal", "migrate", "testdata", name+"_"+side, file)] = real
			}
		}
	}
	data, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", append([]string{"build", "-overlay", file}, packages...)...)
	build.Dir = checkout
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("go build: %v\n%s", err, out)
	}
}

// Keys of a configuration of an older famcp that never was, moved to where the runtime of today reads them.
func TestKeysOfAnOlderConfiguration(t *testing.T) {
	older := testkit.OlderFamcp(t)
	r, err := migrate.Apply(t.Context(), migrate.Project{FS: fstest.MapFS{"config/default.yaml": {Data: older.Config}}},
		migrate.Version{Famcp: older.Version}, migrate.Version{Famcp: "v0.2.0"}, []migrate.Migration{
			migrate.MoveKey(migrate.KeyMove{ID: "logger", Since: "v0.2.0", From: "logging", To: "logger"}),
			migrate.MoveKey(migrate.KeyMove{ID: "rate", Since: "v0.2.0", From: "limits.maxRequests", To: "mcp.rateLimit.maxRequests"}),
		})
	if err != nil {
		t.Fatal(err)
	}
	const want = `# Settings of every environment, built into the binary.

webServer:
  port: 3000 # behind the proxy of the platform team

# Louder than usual until the incident of last week is understood.
logger:
  level: debug

limits:
mcp:
  rateLimit:
    # measured, not guessed
    maxRequests: 60
`
	if got := string(r.Files["config/default.yaml"]); got != want {
		t.Errorf("got\n%s\nwant\n%s\nnotes: %v", got, want, r.Notes)
	}
}
