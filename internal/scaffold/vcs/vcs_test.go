package vcs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp/internal/scaffold/render"
	"github.com/famcp/famcp/internal/scaffold/vcs"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.FixedZone("", 3600))

func testCommit() vcs.Commit {
	who := object.Signature{Name: "Ada Löve", Email: "ada@example.com", When: noon}
	return vcs.Commit{
		Branch:    "trunk",
		Message:   "Begin",
		Author:    who,
		Committer: who,
		Files: []render.File{
			{Path: "a-b.txt", Mode: 0o644, Data: []byte("one\n")},
			{Path: "a/b/deep.txt", Mode: 0o644, Data: []byte("one\n")}, // the blob of a-b.txt again
			{Path: "a/run.sh", Mode: 0o755, Data: []byte("#!/bin/sh\n")},
			{Path: "a0", Mode: 0o644, Data: nil},
			{Path: "ünï.txt", Mode: 0o644, Data: []byte("x")},
		},
	}
}

func TestMakeIsACleanRepositoryToGit(t *testing.T) {
	c := testCommit()
	made, hash, err := c.Make()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, dir, c.Files)
	write(t, filepath.Join(dir, ".git"), append(vcs.Init(c.Branch, true), made...))

	got := map[string]string{
		"status": git(t, dir, "status", "--porcelain", "--branch"),
		"fsck":   git(t, dir, "fsck", "--strict", "--full"),
		"files":  git(t, dir, "-c", "core.quotePath=false", "ls-files", "--format=%(objectmode) %(path)"),
		"log":    git(t, dir, "log", "--format=%H|%an|%ae|%ad|%cn|%ce|%s|%P"),
	}
	want := map[string]string{
		"status": "## trunk\n",
		"fsck":   "",
		"files":  "100644 a-b.txt\n100644 a/b/deep.txt\n100755 a/run.sh\n100644 a0\n100644 ünï.txt\n",
		"log":    hash + "|Ada Löve|ada@example.com|Fri Jan 2 12:00:00 2026 +0100|Ada Löve|ada@example.com|Begin|\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("git (-want +got):\n%s", diff)
	}
}

func TestStageLeavesTheCommitToThePerson(t *testing.T) {
	c := testCommit()
	made, err := c.Stage()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, dir, c.Files)
	write(t, filepath.Join(dir, ".git"), append(vcs.Init("main", true), made...))

	want := "## No commits yet on main\nA  a-b.txt\nA  a/b/deep.txt\nA  a/run.sh\nA  a0\nA  ünï.txt\n"
	if diff := cmp.Diff(want, git(t, dir, "-c", "core.quotePath=false", "status", "--porcelain", "--branch")); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	git(t, dir, "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "-m", "Begin")
	if got := git(t, dir, "status", "--porcelain"); got != "" {
		t.Errorf("status after the commit = %q, want it clean", got)
	}
}

func TestMakeIsReproducible(t *testing.T) {
	c := testCommit()
	one, _, err := c.Make()
	if err != nil {
		t.Fatal(err)
	}
	two, _, err := c.Make()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(one, two); diff != "" {
		t.Errorf("two runs differ:\n%s", diff)
	}
}

func TestReadSettings(t *testing.T) {
	type person struct{ Name, Email string }
	tests := []struct {
		name    string
		files   map[string]string // below the home directory
		env     map[string]string // $HOME stands for the home directory
		author  person
		missing string
		branch  string
	}{
		{
			name:    "nothing",
			missing: "git does not know your name",
		},
		{
			name:   "global",
			files:  map[string]string{".gitconfig": "[user]\n\tname = Ada\n\temail = ada@example.com\n[Init]\n\tDefaultBranch = trunk\n"},
			author: person{"Ada", "ada@example.com"},
			branch: "trunk",
		},
		{
			name: "global over XDG over system",
			files: map[string]string{
				"system":             "[user]\n\tname = System\n\temail = system@example.com\n[init]\n\tdefaultBranch = system\n",
				".config/git/config": "[user]\n\tname = XDG\n\temail = xdg@example.com\n",
				".gitconfig":         "[user]\n\tname = Ada\n",
			},
			env:    map[string]string{"GIT_CONFIG_NOSYSTEM": "", "GIT_CONFIG_SYSTEM": "$HOME/system"},
			author: person{"Ada", "xdg@example.com"},
			branch: "system",
		},
		{
			name: "XDG_CONFIG_HOME and GIT_CONFIG_GLOBAL",
			files: map[string]string{
				"x/git/config": "[user]\n\tname = XDG\n\temail = xdg@example.com\n",
				"global":       "[user]\n\tname = Global\n\temail = global@example.com\n",
			},
			env:    map[string]string{"XDG_CONFIG_HOME": "$HOME/x", "GIT_CONFIG_GLOBAL": "$HOME/global"},
			author: person{"Global", "global@example.com"},
		},
		{
			name: "environment alone",
			env: map[string]string{
				"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.com",
				"GIT_COMMITTER_NAME": "Bot", "GIT_COMMITTER_EMAIL": "bot@example.com",
			},
			author: person{"Ada", "ada@example.com"},
		},
		{
			name:   "EMAIL",
			files:  map[string]string{".gitconfig": "[user]\n\tname = Ada\n"},
			env:    map[string]string{"EMAIL": "ada@example.com"},
			author: person{"Ada", "ada@example.com"},
		},
		{
			name:    "committer missing",
			env:     map[string]string{"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.com"},
			author:  person{"Ada", "ada@example.com"},
			missing: "git does not know your name",
		},
		{
			name:    "address missing",
			files:   map[string]string{".gitconfig": "[user]\n\tname = Ada\n"},
			author:  person{"Ada", ""},
			missing: "git does not know your e-mail address",
		},
		{
			name: "includes, also by directory",
			files: map[string]string{
				".gitconfig": "[user]\n\tname = Ada\n\temail = private@example.com\n[include]\n\tpath = more\n" +
					"[includeIf \"gitdir:~/work/\"]\n\tpath = ~/work.config\n" +
					"[includeIf \"gitdir:~/other/\"]\n\tpath = ~/other.config\n" +
					"[includeIf \"onbranch:main\"]\n\tpath = ~/other.config\n",
				"more":         "[init]\n\tdefaultBranch = trunk\n",
				"work.config":  "[user]\n\temail = work@example.com\n",
				"other.config": "[user]\n\temail = other@example.com\n",
			},
			author: person{"Ada", "work@example.com"},
			branch: "trunk",
		},
		{
			name: "include of itself",
			files: map[string]string{
				".gitconfig": "[user]\n\tname = Ada\n\temail = ada@example.com\n[include]\n\tpath = .gitconfig\n",
			},
			author: person{"Ada", "ada@example.com"},
		},
		{
			name: "GIT_CONFIG_COUNT",
			env: map[string]string{
				"GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "Ada",
				"GIT_CONFIG_KEY_1": "user.email", "GIT_CONFIG_VALUE_1": "ada@example.com",
			},
			author: person{"Ada", "ada@example.com"},
		},
		{
			name:   "characters git does not allow",
			files:  map[string]string{".gitconfig": "[user]\n\tname = \" <Ada> L. \"\n\temail = \"<ada@example.com>\"\n"},
			author: person{"Ada L", "ada@example.com"},
		},
		{
			name:   "unusable branch",
			files:  map[string]string{".gitconfig": "[user]\n\tname = A\n\temail = a@b\n[init]\n\tdefaultBranch = \"a..b\"\n"},
			author: person{"A", "a@b"},
			branch: "main",
		},
		{
			name:    "broken configuration",
			files:   map[string]string{".gitconfig": "[user\n\tname = Ada\n"},
			missing: "git's configuration cannot be read: ",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			for name, text := range tt.files {
				write(t, home, []render.File{{Path: name, Mode: 0o644, Data: []byte(text)}})
			}
			env := map[string]string{"HOME": home, "GIT_CONFIG_NOSYSTEM": "1"}
			for k, v := range tt.env {
				env[k] = strings.ReplaceAll(v, "$HOME", home)
			}
			got := vcs.ReadSettings(func(k string) string { return env[k] }, filepath.Join(home, "work", "demo", ".git"), noon)
			if diff := cmp.Diff(tt.author, person{got.Author.Name, got.Author.Email}); diff != "" {
				t.Errorf("author (-want +got):\n%s", diff)
			}
			if !strings.HasPrefix(got.Missing, tt.missing) || (tt.missing == "" && got.Missing != "") {
				t.Errorf("Missing = %q, want %q", got.Missing, tt.missing)
			}
			want := tt.branch
			if want == "" {
				want = "main"
			}
			if got.Branch != want {
				t.Errorf("Branch = %q, want %q", got.Branch, want)
			}
			if !got.Author.When.Equal(noon) {
				t.Errorf("author date = %v, want %v", got.Author.When, noon)
			}
		})
	}
}

func TestReadSettingsDates(t *testing.T) {
	tests := []struct {
		name, date string
		want       time.Time
	}{
		{"raw", "1700000000 +0100", time.Unix(1700000000, 0)},
		{"raw with at sign", "@1700000000 +0000", time.Unix(1700000000, 0)},
		{"ISO 8601", "2026-11-30T10:00:00+01:00", time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)},
		{"ISO-like", "2026-11-30 10:00:00 +0000", time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)},
		{"RFC 2822", "Mon, 30 Nov 2026 10:00:00 +0000", time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)},
		{"unknown", "yesterday", noon},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := map[string]string{"GIT_AUTHOR_DATE": tt.date, "GIT_CONFIG_NOSYSTEM": "1"}
			got := vcs.ReadSettings(func(k string) string { return env[k] }, t.TempDir(), noon)
			if !got.Author.When.Equal(tt.want) {
				t.Errorf("author date = %v, want %v", got.Author.When, tt.want)
			}
			if !got.Committer.When.Equal(noon) {
				t.Errorf("committer date = %v, want %v", got.Committer.When, noon)
			}
		})
	}
}

func TestRoot(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	repo := filepath.Join(base, "repo")
	git(t, base, "init", "-q", repo)
	git(t, repo, "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "x")
	linked := filepath.Join(base, "linked")
	git(t, repo, "worktree", "add", "-q", linked)
	fake := filepath.Join(base, "fake")
	if err := os.MkdirAll(filepath.Join(fake, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, dir, want string }{
		{"outside", base, ""},
		{"itself", repo, repo},
		{"below, not there yet", filepath.Join(repo, "a", "b"), repo},
		{"linked worktree", filepath.Join(linked, "a"), linked},
		{"a .git that is none", fake, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := vcs.Root(tt.dir); got != tt.want {
				t.Errorf("Root(%q) = %q, want %q", tt.dir, got, tt.want)
			}
		})
	}
}

func TestUnborn(t *testing.T) {
	commit := []string{"-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "x"}
	tests := []struct {
		name   string
		git    [][]string
		branch string
		reason string
	}{
		{"new", [][]string{{"init", "-q", "-b", "trunk"}}, "trunk", ""},
		{"committed", [][]string{{"init", "-q"}, commit}, "", "its repository already has commits"},
		{"committed and packed", [][]string{{"init", "-q"}, commit, {"pack-refs", "--all"}}, "", "its repository already has commits"},
		{"orphan branch", [][]string{{"init", "-q"}, commit, {"checkout", "-q", "--orphan", "new"}}, "", "its repository already has commits"},
		{"SHA-256", [][]string{{"init", "-q", "--object-format=sha256"}}, "", "its repository has a newer format"},
		{"index", [][]string{{"init", "-q"}, {"read-tree", "--empty"}}, "", "its repository has staged changes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, args := range tt.git {
				git(t, dir, args...)
			}
			branch, reason := vcs.Unborn(filepath.Join(dir, ".git"))
			if branch != tt.branch || reason != tt.reason {
				t.Errorf("Unborn = %q, %q; want %q, %q", branch, reason, tt.branch, tt.reason)
			}
		})
	}
}

func write(t *testing.T, dir string, files []render.File) {
	t.Helper()
	for _, f := range files {
		name := filepath.Join(dir, f.Path)
		parent := filepath.Dir(name)
		if f.Mode.IsDir() {
			parent = name
		}
		if err := os.MkdirAll(parent, 0o755); err != nil {
			t.Fatal(err)
		}
		if f.Mode.IsDir() {
			continue
		}
		if err := os.WriteFile(name, f.Data, f.Mode); err != nil {
			t.Fatal(err)
		}
	}
}

// git runs the real git without the configuration of the person who tests.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git to compare with")
	}
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C.UTF-8"}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}
