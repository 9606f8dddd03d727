//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFormTakesDefaults(t *testing.T) {
	dir := t.TempDir()
	m := onTerminal(t, dir, nil, "new", "demo", "--no-git")
	m.expect("Name").press(strings.Repeat(enter, 4))
	m.expect("HTTP port").press(strings.Repeat(enter, 4))
	m.expect("License").press(strings.Repeat(enter, 3)) // this famcp is not published: the runtime is not asked for
	m.expect("Create it?").press("y")
	if code := m.wait(); code != 0 {
		t.Fatalf("code = %d, want 0; terminal:\n%s", code, m.plain())
	}
	for _, want := range []string{"Copyright holder", "Made demo in ", "famcp new demo --yes --no-git\r\n"} {
		if !strings.Contains(m.plain(), want) {
			t.Errorf("terminal:\n%s\nwant %q in it", m.plain(), want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "demo", "README.md")); err != nil {
		t.Error(err)
	}
}

func TestFormAsksOnlyWhatIsOpen(t *testing.T) {
	m := onTerminal(t, t.TempDir(), nil, append([]string{"new", "demo"}, allBut("title")...)...)
	m.expect("Title").press("It's mine" + enter)
	m.expect("Create it?").press("y")
	if code := m.wait(); code != 0 {
		t.Fatalf("code = %d, want 0; terminal:\n%s", code, m.plain())
	}
	if want := "--title 'It'\\''s mine' "; !strings.Contains(m.plain(), want) {
		t.Errorf("terminal:\n%s\nwant %q in it", m.plain(), want)
	}
	for _, answered := range []string{"Go module path", "HTTP port", "License"} {
		if strings.Contains(m.plain(), answered) {
			t.Errorf("asked for %q, which a flag had answered", answered)
		}
	}
}

// What follows from an answer is asked after it, and else not at all.
func TestFormAsksForTheProvider(t *testing.T) {
	m := onTerminal(t, t.TempDir(), nil, append([]string{"new", "demo"}, allBut("auth", "license")...)...)
	m.expect("Authentication").press(strings.Repeat(down, 4) + enter)
	m.expect("License").press(enter)
	m.expect("Issuer").press("login" + enter).expect("must be a URL")
	m.press(strings.Repeat("\x7f", len("login")) + "https://login.example.com/" + enter)
	m.expect("key set").press("https://login.example.com/keys" + enter)
	m.expect("Create it?").press("y")
	if code := m.wait(); code != 0 {
		t.Fatalf("code = %d, want 0; terminal:\n%s", code, m.plain())
	}
	if want := "--auth remoteJwks --issuer https://login.example.com/"; !strings.Contains(m.plain(), want) {
		t.Errorf("terminal:\n%s\nwant %q in it", m.plain(), want)
	}

	m = onTerminal(t, t.TempDir(), nil, append([]string{"new", "demo"}, allBut("auth", "license")...)...)
	m.expect("Authentication").press(down + enter)
	m.expect("License").press(enter)
	m.expect("Create it?").press("y")
	if code := m.wait(); code != 0 || !strings.Contains(m.plain(), "--auth hs256") || strings.Contains(m.plain(), "Issuer") {
		t.Errorf("code = %d, want 0 and --auth hs256 without an issuer; terminal:\n%s", code, m.plain())
	}

	m = onTerminal(t, t.TempDir(), []string{"TERM=dumb"}, append([]string{"new", "demo"}, allBut("auth")...)...)
	m.expect("none, hs256, embedded, localKey, remoteJwks [none]: ").press("remoteJwks\n")
	m.expect("Issuer of your identity provider: ").press("\n").expect("is missing; --auth remoteJwks needs a URL such as")
	m.press("https://login.example.com/\n").expect("(JWKS): ").press("https://login.example.com/keys\n")
	m.expect("Create it?").press("y\n")
	if code := m.wait(); code != 0 {
		t.Errorf("code = %d, want 0; terminal:\n%s", code, m.plain())
	}
}

func TestFormNamesTheDirectory(t *testing.T) {
	dir := t.TempDir()
	m := onTerminal(t, dir, nil, append([]string{"new"}, allBut("name")...)...)
	m.expect("Name").press(enter).expect("is missing")
	m.press("Bad Name" + enter).expect("lower case letters")
	m.press(strings.Repeat("\x7f", len("Bad Name")) + "good" + enter)
	m.expect("Create it?").press("y")
	if code := m.wait(); code != 0 {
		t.Fatalf("code = %d, want 0; terminal:\n%s", code, m.plain())
	}
	if _, err := os.Stat(filepath.Join(dir, "good", "README.md")); err != nil {
		t.Error(err)
	}
}

// Breaking off is no error and leaves nothing behind.
func TestBreakingOff(t *testing.T) {
	plain := []string{"TERM=dumb"}
	tests := []struct {
		name string
		env  []string
		args []string
		keys func(*terminal)
		code int
	}{
		{name: "ctrl-c in the form", args: []string{"new", "demo"}, keys: func(m *terminal) { m.expect("Name").press(ctrlC) }, code: 130},
		{
			name: "ctrl-c at the confirmation", args: append([]string{"new", "demo"}, allBut()...),
			keys: func(m *terminal) { m.expect("Create it?").press(ctrlC) }, code: 130,
		},
		{
			name: "no at the confirmation", args: append([]string{"new", "demo"}, allBut()...),
			keys: func(m *terminal) { m.expect("Create it?").press("n").expect("Nothing was written") }, code: 130,
		},
		{name: "ctrl-c in plain prompts", env: plain, args: []string{"new", "demo"}, keys: func(m *terminal) { m.expect("Name").press(ctrlC) }, code: 130},
		{
			name: "no at the plain confirmation", env: plain, args: append([]string{"new", "demo"}, allBut()...),
			keys: func(m *terminal) { m.expect("Create it?").press("no\n").expect("Nothing was written") }, code: 130,
		},
		{
			name: "end of input in plain prompts", env: []string{"ACCESSIBLE=1"}, args: []string{"new", "demo"},
			keys: func(m *terminal) {
				m.expect("Name").press("\n").expect("module").press(ctrlD).expect("pass the answers as flags")
			}, code: 2,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			m := onTerminal(t, dir, tt.env, tt.args...)
			tt.keys(m)
			start := time.Now()
			if code := m.wait(); code != tt.code {
				t.Errorf("code = %d, want %d", code, tt.code)
			}
			if d := time.Since(start); d > 2*time.Second {
				t.Errorf("took %s to end, want under 2 s", d)
			}
			if n := len(m.raw()); n > 64<<10 {
				t.Errorf("wrote %d bytes, want under 64 KiB", n)
			}
			if tt.code == 130 && strings.Contains(m.plain(), "famcp:") {
				t.Errorf("terminal:\n%s\nwant no error", m.plain())
			}
			if entries, _ := os.ReadDir(dir); len(entries) > 0 {
				t.Errorf("left behind: %v", entries)
			}
		})
	}
}

// A dumb terminal gets text and nothing else.
func TestDumbTerminal(t *testing.T) {
	dir := t.TempDir()
	m := onTerminal(t, dir, []string{"TERM=dumb"}, append([]string{"new"}, allBut("name", "port", "ci", "examples")...)...)
	m.expect("Name: ").press("\n").expect("Name is missing")
	m.expect("Name: ").press("demo\n")
	m.expect("HTTP port [3000]: ").press("zero\n").expect("whole number")
	m.expect("HTTP port [3000]: ").press("0\n").expect("from 1 to 65535")
	m.expect("HTTP port [3000]: ").press("\n")
	m.expect("github, gitlab, both, none [github]: ").press("gitlab\n")
	m.expect("yes, no [yes]: ").press("maybe\n").expect("must be yes or no")
	m.expect("yes, no [yes]: ").press("y\n")
	m.expect("Create it? yes, no [yes]: ").press("perhaps\n").expect("must be yes or no")
	m.expect("Create it? yes, no [yes]: ").press("Y\n").expect("Made demo")
	if code := m.wait(); code != 0 {
		t.Errorf("code = %d, want 0; terminal:\n%s", code, m.plain())
	}
	if strings.ContainsRune(m.raw(), '\x1b') {
		t.Errorf("escape sequences on a dumb terminal: %q", m.raw())
	}
	if want := "famcp new demo --yes"; !strings.Contains(m.plain(), want) {
		t.Errorf("terminal:\n%s\nwant %q in it", m.plain(), want)
	}
}

// Without colour nobody could tell which of two buttons is the chosen one.
func TestNoColorTerminal(t *testing.T) {
	m := onTerminal(t, t.TempDir(), []string{"NO_COLOR=1"}, append([]string{"new", "demo"}, allBut("examples")...)...)
	m.expect("yes, no [yes]: ").press("n\n")
	m.expect("Create it? yes, no [yes]: ").press("yes\n").expect("Made demo")
	if code := m.wait(); code != 0 {
		t.Errorf("code = %d, want 0; terminal:\n%s", code, m.plain())
	}
	if want := "--no-examples"; !strings.Contains(m.plain(), want) {
		t.Errorf("terminal:\n%s\nwant %q in it", m.plain(), want)
	}
	if strings.ContainsRune(m.raw(), '\x1b') {
		t.Errorf("escape sequences without colour: %q", m.raw())
	}
}

// What cannot work is said before a dozen questions, not after.
func TestRefusedBeforeTheForm(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string
		code int
	}{
		{name: "occupied directory", args: []string{"new", "taken"}, want: "is not empty", code: 1},
		{name: "occupied directory by name", args: []string{"new", "--name", "taken"}, want: "is not empty", code: 1},
		{name: "bad answer", args: []string{"new", "demo", "--port", "0"}, want: "port (--port) must be", code: 2},
		{name: "bad name", args: []string{"new", "--name", "Bad"}, want: "name (--name) must be", code: 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Join(dir, "taken", "mine"), 0o755); err != nil {
				t.Fatal(err)
			}
			m := onTerminal(t, dir, nil, tt.args...)
			m.expect(tt.want)
			if code := m.wait(); code != tt.code {
				t.Errorf("code = %d, want %d", code, tt.code)
			}
			if strings.Contains(m.plain(), "Title") {
				t.Errorf("terminal:\n%s\nwant no question", m.plain())
			}
		})
	}
}

// On a terminal, too, these ask nothing.
func TestNothingIsAsked(t *testing.T) {
	for _, args := range [][]string{
		{"new", "demo", "--yes"},
		{"new", "demo", "--json"},
		{"new", "--help"},
		append([]string{"new", "demo", "--dry-run"}, allBut()...),
	} {
		t.Run(strings.Join(args[1:min(3, len(args))], " "), func(t *testing.T) {
			m := onTerminal(t, t.TempDir(), nil, append(args, "--no-git")...)
			if code := m.wait(); code != 0 {
				t.Errorf("code = %d, want 0; terminal:\n%s", code, m.plain())
			}
		})
	}
}

// A command without a form leaves the terminal alone: it asks it nothing, waits
// for no answer and eats no key.
func TestTerminalIsLeftAlone(t *testing.T) {
	start := time.Now()
	m := onTerminal(t, t.TempDir(), nil, "version")
	if code := m.wait(); code != 0 {
		t.Errorf("code = %d, want 0", code)
	}
	if strings.ContainsRune(m.raw(), '\x1b') {
		t.Errorf("output = %q, want no escape sequence", m.raw())
	}
	if d := time.Since(start); d > 4*time.Second {
		t.Errorf("took %s, want an instant", d)
	}
}

// allBut answers every question by flag except those with these keys.
func allBut(open ...string) []string {
	args := []string{"--no-git"}
	for _, a := range [][2]string{
		{"name", "demo"},
		{"module", "example.com/demo"},
		{"title", "Demo"},
		{"description", "A demo."},
		{"port", "3000"},
		{"transport", "both"},
		{"auth", "none"},
		{"ci", "none"},
		{"examples", "true"},
		{"license", "none"},
		{"author", "me"},
		{"runtime", "vendored"},
	} {
		if !strings.Contains(" "+strings.Join(open, " ")+" ", " "+a[0]+" ") {
			args = append(args, "--"+a[0]+"="+a[1])
		}
	}
	return args
}
