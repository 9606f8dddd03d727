//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// withoutAnswer makes a project of the older template as if that had not asked for the license.
func withoutAnswer(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "demo")
	if err := newOlderFamcp(t).project(dir, "demo"); err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(dir, ".famcp", "manifest.yaml")
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	now, err := replaceOnce(string(text), "  license: mit\n", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(manifest, []byte(now), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A new question is asked, and nothing else; then the plan is shown, and nothing is written before it is agreed to.
func TestUpgradeAsksOnATerminal(t *testing.T) {
	dir := withoutAnswer(t)
	old := project{dir: dir}.files(t)

	m := onTerminal(t, dir, nil, "upgrade", "--allow-dirty", "--no-verify")
	m.expect("License").press(enter)
	m.expect("Upgrade it?").press("n").expect("Nothing was written")
	if code := m.wait(); code != 130 {
		t.Fatalf("code = %d, want 130; terminal:\n%s", code, m.plain())
	}
	for _, not := range []string{"Port", "Transport", "Name"} {
		if strings.Contains(m.plain(), not+"\r\n") {
			t.Errorf("asked for %q again; terminal:\n%s", not, m.plain())
		}
	}
	if diff := cmp.Diff(old, project{dir: dir}.files(t)); diff != "" {
		t.Errorf("something was written (-before +after):\n%s", diff)
	}

	m = onTerminal(t, dir, nil, "upgrade", "--allow-dirty", "--no-verify")
	m.expect("License").press(down + down + enter) // MIT, Apache, none
	m.expect("An upgrade from famcp v0.1.0 to devel").expect("Upgrade it?").press("y")
	if code := m.wait(); code != 0 {
		t.Fatalf("code = %d, want 0; terminal:\n%s", code, m.plain())
	}
	// What was agreed to is not told twice, and what is the team's to decide comes last.
	if list, advice := strings.Count(m.plain(), "update `main.go`"), strings.Count(m.plain(), "+++ b/README.md"); list != 1 || advice != 1 {
		t.Errorf("the list is there %d times and the advice %d times; terminal:\n%s", list, advice, m.plain())
	}
	text, err := os.ReadFile(filepath.Join(dir, ".famcp", "manifest.yaml"))
	if err != nil || !strings.Contains(string(text), "  license: none\n") {
		t.Errorf("%v, record:\n%s\nterminal:\n%s", err, text, m.plain())
	}
}

// Breaking off at the question or at the agreement leaves every byte.
func TestUpgradeBreaksOff(t *testing.T) {
	dir := withoutAnswer(t)
	old := project{dir: dir}.files(t)
	for _, tt := range []struct {
		name, text string
		env, args  []string
	}{
		{name: "question", text: "License"},
		{name: "plain question", text: "License", env: []string{"TERM=dumb"}},
		{name: "agreement", text: "Upgrade it?", args: []string{"--license", "mit"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := onTerminal(t, dir, tt.env, append([]string{"upgrade", "--allow-dirty"}, tt.args...)...)
			m.expect(tt.text).press(ctrlC)
			if code := m.wait(); code != 130 {
				t.Errorf("code = %d, want 130; terminal:\n%s", code, m.plain())
			}
			if diff := cmp.Diff(old, project{dir: dir}.files(t)); diff != "" {
				t.Errorf("something was written (-before +after):\n%s", diff)
			}
		})
	}
}
