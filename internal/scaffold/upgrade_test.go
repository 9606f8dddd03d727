package scaffold

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/famcp/famcp/internal/migrate"
	"github.com/famcp/famcp/internal/scaffold/journal"
)

// upgradeFrom makes a project of testdata/templates with the files of old instead of the template's, lets edit change
// it, and plans the upgrade to the files of now.
func upgradeFrom(t *testing.T, old, now map[string]string, edit func(dir string)) *UpgradePlan {
	t.Helper()
	dir := filepath.Join(realTempDir(t), "demo")
	o := testOptions(dir)
	o.Git = false
	o.Templates = patched(t, old)
	o.Release.Version = "v1.0.0"
	plan, err := PlanNew(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plan.Apply(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	edit(dir)
	found, err := Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = found.Close() })
	up, err := PlanUpgrade(t.Context(), found, UpgradeOptions{Templates: patched(t, now), Runtime: o.Runtime, Release: testRelease})
	if err != nil {
		t.Fatal(err)
	}
	if err := up.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	return up
}

// patched are testdata/templates with some files more.
func patched(t *testing.T, files map[string]string) fs.FS {
	t.Helper()
	templates := fstest.MapFS{}
	source := os.DirFS("testdata/templates")
	err := fs.WalkDir(source, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(source, name)
		templates[name] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		templates[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return templates
}

func (p *UpgradePlan) file(name string) UpgradeFile {
	i := slices.IndexFunc(p.Files, func(f UpgradeFile) bool { return f.Path == name })
	if i < 0 {
		return UpgradeFile{}
	}
	return p.Files[i]
}

func TestUpgradeFiles(t *testing.T) {
	write := func(t *testing.T, dir, name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const doc, moved = "project/docs/a.md", "project/docs/b.md"
	renames := "docs/a.md docs/b.md # since v1.1\n"
	tests := []struct {
		name     string
		old, now map[string]string
		edit     func(t *testing.T, dir string)
		path     string
		action   Action
		want     string // the file's text; empty for none
	}{
		{
			name: "a rename takes the edits along", old: map[string]string{doc: "one\ntwo\nthree\nfour\n"},
			now:  map[string]string{moved: "one\ntwo\nthree\n4\n", "renames.txt": renames},
			edit: func(t *testing.T, dir string) { write(t, dir, "docs/a.md", "ONE\ntwo\nthree\nfour\n") },
			path: "docs/b.md", action: Merge, want: "ONE\ntwo\nthree\n4\n",
		},
		{
			name: "a conflict is shown at the new path", old: map[string]string{doc: "one\n"},
			now:  map[string]string{moved: "1\n", "renames.txt": renames},
			edit: func(t *testing.T, dir string) { write(t, dir, "docs/a.md", "ONE\n") },
			path: "docs/b.md", action: Conflict,
			want: "<<<<<<< yours\nONE\n||||||| old template\none\n=======\n1\n>>>>>>> new template\n",
		},
		{
			name: "deleted by the team, renamed by the template", old: map[string]string{doc: "one\n"},
			now:  map[string]string{moved: "1\n", "renames.txt": renames},
			edit: func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, "docs", "a.md")) },
			path: "docs/b.md", action: Keep,
		},
		{
			name: "a project with CRLF stays one", old: map[string]string{doc: "one\ntwo\n"}, now: map[string]string{doc: "one\n2\n"},
			edit: func(t *testing.T, dir string) { write(t, dir, "docs/a.md", "one\r\ntwo\r\n") },
			path: "docs/a.md", action: Update, want: "one\r\n2\r\n",
		},
		{
			name: "data without lines that both changed", old: map[string]string{doc: "\x00old"}, now: map[string]string{doc: "\x00new"},
			edit: func(t *testing.T, dir string) { write(t, dir, "docs/a.md", "\x00ours") },
			path: "docs/a.md", action: Conflict, want: "\x00ours",
		},
		{
			name: "data without lines that the team left", old: map[string]string{doc: "\x00old"}, now: map[string]string{doc: "\x00new"},
			edit: func(*testing.T, string) {},
			path: "docs/a.md", action: Update, want: "\x00new",
		},
		{
			name: "a new file that the team has already", now: map[string]string{doc: "theirs\n"},
			edit: func(t *testing.T, dir string) { write(t, dir, "docs/a.md", "ours\n") },
			path: "docs/a.md", action: Conflict,
			want: "<<<<<<< yours\nours\n||||||| old template\n=======\ntheirs\n>>>>>>> new template\n",
		},
		{
			name: "gone from the template, edited by the team", old: map[string]string{doc: "one\n"},
			edit: func(t *testing.T, dir string) { write(t, dir, "docs/a.md", "ours\n") },
			path: "docs/a.md", action: Keep, want: "ours\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			plan := upgradeFrom(t, tt.old, tt.now, func(dir string) { tt.edit(t, dir) })
			if got := plan.file(tt.path); got.Action != tt.action {
				t.Errorf("%s: %+v, want %s", tt.path, got, tt.action)
			}
			text, err := os.ReadFile(filepath.Join(plan.Found.Dir, tt.path))
			if string(text) != tt.want || (err != nil) != (tt.want == "") {
				t.Errorf("%s = %q, %v, want %q", tt.path, text, err, tt.want)
			}
			if tt.now[moved] != "" {
				if _, err := os.Stat(filepath.Join(plan.Found.Dir, "docs", "a.md")); err == nil {
					t.Error("the old path is still there")
				}
			}
		})
	}
}

// A file that leads out of the project is left alone, and what it leads to as well.
func TestUpgradeLeavesLinks(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside.md")
	if err := os.WriteFile(outside, []byte("outside\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const doc = "project/docs/a.md"
	plan := upgradeFrom(t, map[string]string{doc: "one\n"}, map[string]string{doc: "1\n"}, func(dir string) {
		name := filepath.Join(dir, "docs", "a.md")
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, name); err != nil {
			t.Skip(err)
		}
	})
	if f := plan.file("docs/a.md"); f.Action != Keep || !strings.Contains(f.Why, "not a regular file") {
		t.Errorf("%+v", f)
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "outside\n" {
		t.Errorf("outside: %q, %v", text, err)
	}
}

// What is called like a secret is neither read, nor recorded, nor written, whatever a template says.
func TestUpgradeLeavesSecrets(t *testing.T) {
	for name, want := range map[string]bool{
		"config/local.yaml": true, ".env": true, "deploy/.env.production": true, "tls/server.key": true, "a.pem": true, "a.p12": true,
		".env.example": false, "config/local.example.yaml": false, "docs/keys.md": false,
	} {
		if got := secret(name); got != want {
			t.Errorf("secret(%q) = %v, want %v", name, got, want)
		}
	}
}

func TestUpgradeMode(t *testing.T) {
	for _, tt := range []struct{ base, ours, theirs, want fs.FileMode }{
		{0o644, 0o600, 0o644, 0o600},
		{0o644, 0o640, 0o755, 0o750},
		{0o755, 0o755, 0o644, 0o644},
		{0o644, 0o755, 0o644, 0o755},
	} {
		if got := mergeMode(tt.base, tt.ours, tt.theirs); got != tt.want {
			t.Errorf("mergeMode(%v, %v, %v) = %v, want %v", tt.base, tt.ours, tt.theirs, got, tt.want)
		}
	}
}

// A record from before a question was asked: it has to be answered, or left to its default.
func TestUpgradeAsksNewQuestions(t *testing.T) {
	o := testOptions(filepath.Join(t.TempDir(), "demo"))
	m, err := record(o)
	if err != nil {
		t.Fatal(err)
	}
	delete(m.Answers, "license")
	_, err = upgradeAnswers(m, UpgradeOptions{Release: o.Release})
	if err == nil || !strings.Contains(err.Error(), "pass --license, or --yes") {
		t.Errorf("error %v", err)
	}
	if a, err := upgradeAnswers(m, UpgradeOptions{Release: o.Release, Defaults: true}); err != nil || a.License != "mit" {
		t.Errorf("default %q, %v", a.License, err)
	}
	if a, err := upgradeAnswers(m, UpgradeOptions{Release: o.Release, Given: map[string]string{"license": "none"}}); err != nil || a.License != "none" {
		t.Errorf("given %q, %v", a.License, err)
	}
	if _, err := upgradeAnswers(m, UpgradeOptions{Release: o.Release, Defaults: true, Given: map[string]string{"port": "1"}}); err == nil {
		t.Error("an answer of old was changed")
	}
}

func TestPlannedFiles(t *testing.T) {
	p := &planned{FS: fstest.MapFS{"go.mod": {Data: []byte("module x\n")}, "a/gone.go": {Data: []byte("package a\n")}}}
	p.files = planFiles(map[string]string{"b/c/new.go": "package c\n"}, "a/gone.go")
	var names []string
	err := fs.WalkDir(p, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if got := strings.Join(names, " "); err != nil || got != "b/c/new.go go.mod" {
		t.Errorf("files %q, %v", got, err)
	}
	if text, err := fs.ReadFile(p, "b/c/new.go"); err != nil || string(text) != "package c\n" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := migrate.Plan(t.Context(), migrate.Project{FS: p, Module: "x"}, migrate.Version{}, migrate.Version{}); err != nil {
		t.Error(err)
	}
}

func planFiles(files map[string]string, gone ...string) map[string]*journal.Content {
	out := map[string]*journal.Content{}
	for name, text := range files {
		out[name] = &journal.Content{Data: []byte(text), Mode: 0o644}
	}
	for _, name := range gone {
		out[name] = nil
	}
	return out
}
