package vcs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Dirty says of a directory what git status says.
func TestDirty(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git to compare with")
	}
	root, home := t.TempDir(), t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = root
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[core]\n\texcludesFile = ~/ignored\n[user]\n\tname = G\n\temail = g@example.com\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "ignored"), []byte("*.personal\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	git("init", "-q")
	write(".gitignore", "*.log\n")
	write("p/.gitignore", "/out/\n!keep.log\n")
	for _, name := range []string{"p/same", "p/changed", "p/removed", "p/staged", "p/mode.sh", "p/dir/deep", "p/crlf", "p/secret", "elsewhere"} {
		write(name, "text\n")
	}
	git("add", "-A")
	git("commit", "-qm", "all")
	dirty := func() string {
		t.Helper()
		names, err := Dirty(func(name string) string { return map[string]string{"HOME": home, "GIT_CONFIG_NOSYSTEM": "1"}[name] },
			root, filepath.Join(root, "p"), func(name string) bool { return name == "secret" })
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(names, " ")
	}
	if got := dirty(); got != "" {
		t.Errorf("a clean tree: %s", got)
	}
	for _, name := range []string{"p/a.log", "p/out/x", "p/x.personal", "elsewhere", "new", "p/secret"} { // none of it counts
		write(name, "changed\n")
	}
	write("p/crlf", "text\r\n")
	if got := dirty(); got != "" {
		t.Errorf("nothing that counts: %s", got)
	}
	write("p/changed", "other\n")
	write("p/staged", "other\n")
	git("add", "p/staged")
	write("p/keep.log", "new\n")
	write("p/dir/new", "new\n")
	write("p/added", "new\n")
	git("add", "p/added")
	if err := os.Remove(filepath.Join(root, "p", "removed")); err != nil {
		t.Fatal(err)
	}
	git("rm", "-q", "--cached", "p/dir/deep")
	if err := os.Chmod(filepath.Join(root, "p", "mode.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	want := "added changed dir/deep dir/new keep.log mode.sh removed staged"
	if diff := cmp.Diff(want, dirty()); diff != "" {
		t.Errorf("(-want +got):\n%s\ngit says\n%s", diff, git("status", "--short"))
	}
	// A linked worktree has its .git elsewhere.
	git("stash", "-q")
	git("worktree", "add", "-q", filepath.Join(home, "tree"))
	names, err := Dirty(func(string) string { return "" }, filepath.Join(home, "tree"), filepath.Join(home, "tree", "p"), func(string) bool { return false })
	if err != nil || len(names) > 0 {
		t.Errorf("in a linked worktree: %v, %v", names, err)
	}
}
