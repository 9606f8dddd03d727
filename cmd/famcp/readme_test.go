package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/famcp/famcp/internal/testkit"
)

// The commands of our README, run as they stand but for the place of the project.
func TestReadme(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("needs a POSIX shell")
	}
	checkout := testkit.Checkout(t)
	blocks := shellBlocks(t, filepath.Join(checkout, "README.md"))
	if len(blocks) < 2 {
		t.Fatal("found no two blocks of commands")
	}
	start, call := blocks[0], blocks[1]
	start, ok := strings.CutSuffix(start, " && ./my-server http\n")
	if !ok || !strings.Contains(start, " ../my-server ") {
		t.Fatalf("the first block is %q, want it to make ../my-server and serve it", start)
	}

	p := project{dir: filepath.Join(t.TempDir(), "my-server"), env: offline(t)}
	from := project{dir: checkout, env: append(p.env, "MY_SERVER="+p.dir)}
	from.run(t, sh, "-ec", strings.ReplaceAll(start, "../my-server", `"$MY_SERVER"`))
	if _, err := os.Stat(filepath.Join(p.dir, ".git")); err != nil {
		t.Errorf("the project is no repository: %v", err)
	}
	p.binary = filepath.Join(p.dir, "my-server")
	p.serve(t)
	if out := p.run(t, sh, "-ec", call); !strings.Contains(out, "docs://") {
		t.Errorf("the call answers %q, want hits", out)
	}
}
