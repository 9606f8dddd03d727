package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/famcp/famcp/internal/testkit"
)

// Each script in testdata/script is named for the behaviour it shows.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("..", "..", "testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setup,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"older": newOlderFamcp(t).script,
			"edit":  edit,
		},
	})
}

// setup gives a script a home of its own with a git identity, and the caches
// of the go command, which testscript hides.
func setup(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, ".home")
	if err := os.Mkdir(home, 0o755); err != nil {
		return err
	}
	config := "[user]\n\tname = Gopher\n\temail = gopher@example.com\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o644); err != nil {
		return err
	}
	env.Setenv("HOME", home)
	env.Setenv("USERPROFILE", home)
	env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	env.Setenv("CI", "")
	famcp, err := exec.LookPath("famcp")
	if err != nil {
		return err
	}
	env.Setenv("FAMCP", famcp)
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY").Output()
	if err != nil {
		return err
	}
	values := strings.Split(string(out), "\n")
	for i, name := range []string{"GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY"} {
		env.Setenv(name, strings.TrimSuffix(values[i], "\r"))
	}
	return nil
}

// Help is part of the interface: a change of it shows in a review.
func TestHelp(t *testing.T) {
	tests := []struct {
		name string
		args []string
	}{
		{name: "famcp", args: []string{"--help"}},
		{name: "new", args: []string{"new", "--help"}},
		{name: "upgrade", args: []string{"upgrade", "--help"}},
		{name: "token", args: []string{"token", "--help"}},
		{name: "token-keys", args: []string{"token", "keys", "--help"}},
		{name: "token-inspect", args: []string{"token", "inspect", "--help"}},
		{name: "add", args: []string{"add", "--help"}},
		{name: "add-tool", args: []string{"add", "tool", "--help"}},
		{name: "add-prompt", args: []string{"add", "prompt", "--help"}},
		{name: "add-resource", args: []string{"add", "resource", "--help"}},
		{name: "version", args: []string{"version", "--help"}},
		{name: "exit-codes", args: []string{"help", "exit-codes"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := exec.Command("famcp", tt.args...)
			out, err := c.Output()
			if err != nil {
				t.Fatal(err)
			}
			testkit.Golden(t, filepath.Join("..", "..", "testdata", "help", tt.name+".txt"), out)
		})
	}
}
