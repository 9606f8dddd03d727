//go:build unix

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const terminalSecret = "5b1d0c7e9f2a4863b7d1e0f5a9c8274613de50fb98a7c6d4"

var tokenPattern = regexp.MustCompile(`eyJ[\w-]+\.[\w-]+\.[\w-]+`)

func TestTokenFormAsksForWhatIsMissing(t *testing.T) {
	for name, env := range map[string][]string{"form": nil, "plain": {"TERM=dumb"}} {
		t.Run(name, func(t *testing.T) {
			m := onTerminal(t, t.TempDir(), append(env, "SECRET="+terminalSecret), "token", "--secret-env", "SECRET", "--audience", "x")
			m.expect("Subject").press(enter).expect("needs a subject").press("alice" + enter)
			if name == "form" {
				m.expect("submit") // as Enter does in the last field, which has the focus now
			} else {
				m.expect("Life")
			}
			m.press("soon" + enter).expect("is not the life of a token")
			if name == "form" {
				m.press(strings.Repeat("\x7f", len("soon")))
			}
			m.press("30d" + enter).expect("A token for alice, good until ").expect(", in 30 days.")
			if code := m.wait(); code != 0 {
				t.Fatalf("code = %d, want 0; terminal:\n%s", code, m.plain())
			}
			if !tokenPattern.MatchString(m.plain()) {
				t.Errorf("terminal:\n%s\nwant a token", m.plain())
			}
			if strings.Contains(m.plain(), terminalSecret) {
				t.Error("the secret was shown")
			}
		})
	}
}

func TestTokenFormAsksNothingElse(t *testing.T) {
	tests := []struct {
		name string
		args []string
		keys func(*terminal)
		code int
	}{
		{name: "nothing is missing", args: []string{"--subject", "a", "--ttl", "1h"}, keys: func(*terminal) {}},
		{name: "one is missing", args: []string{"--subject", "a"}, keys: func(m *terminal) { m.expect("Life").press("1h" + enter) }},
		{name: "a document asks nothing", args: []string{"--json"}, keys: func(m *terminal) { m.expect("nobody to ask") }, code: 2},
		{name: "broken off", keys: func(m *terminal) { m.expect("Subject").press(ctrlC) }, code: 130},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"token", "--secret-env", "SECRET", "--audience", "x"}, tt.args...)
			m := onTerminal(t, t.TempDir(), []string{"SECRET=" + terminalSecret}, args...)
			tt.keys(m)
			if code := m.wait(); code != tt.code {
				t.Errorf("code = %d, want %d; terminal:\n%s", code, tt.code, m.plain())
			}
			if strings.Contains(strings.Join(tt.args, " "), "--subject") && strings.Contains(m.plain(), "Subject") {
				t.Errorf("terminal:\n%s\nwant no question for the subject", m.plain())
			}
		})
	}
}

// A token that is pasted is not shown, and may be longer than the line of a
// terminal.
func TestInspectReadsFromTheTerminal(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte(terminalSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("long", 1800)
	p := project{dir: dir, env: environ()}
	raw := strings.TrimSpace(p.run(t, "famcp", "token", "--secret-file", "secret", "--subject", "alice", "--ttl", "1h", "--audience", "x", "--claim", "note="+long))
	if len(raw) < 8000 {
		t.Fatalf("the token has %d bytes, want more than a line of a terminal", len(raw))
	}

	m := onTerminal(t, dir, nil, "token", "inspect")
	m.expect("not shown): ").press(raw + "x\x7f" + enter).expect("subject (sub)").expect("alice")
	if code := m.wait(); code != 0 {
		t.Fatalf("code = %d, want 0; terminal:\n%s", code, m.plain())
	}
	if strings.Contains(m.plain(), raw[:20]) {
		t.Error("the token was shown")
	}

	m = onTerminal(t, dir, nil, "token", "inspect", "-")
	m.expect("not shown): ").press("eyJ" + ctrlC)
	if code := m.wait(); code != 130 {
		t.Errorf("after Ctrl-C: code = %d, want 130", code)
	}
	m = onTerminal(t, dir, []string{"CI=true"}, "token", "inspect")
	m.expect("nobody to ask")
	if code := m.wait(); code != 2 {
		t.Errorf("with nobody there: code = %d, want 2", code)
	}
}
