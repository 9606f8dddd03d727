//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAddAsksForWhatIsMissing(t *testing.T) {
	for name, env := range map[string][]string{"form": nil, "lines": {"TERM=dumb"}} {
		t.Run(name, func(t *testing.T) {
			p := project{dir: filepath.Join(t.TempDir(), "shop"), env: offline(t)}
			p.make(t, "famcp", "--no-examples", "--runtime", "vendored", "--no-git", "--yes")
			m := onTerminal(t, p.dir, env, "add", "tool")
			m.expect("Name of the tool").press("Erase" + enter).expect("must match")
			if env == nil {
				m.press(strings.Repeat("\x7f", len("Erase")))
			}
			m.press("erase" + enter)
			m.expect("What it does").press("Erases." + enter)
			m.expect("How bad a call by mistake would be")
			if env == nil {
				m.press("\x1b[B\x1b[B\x1b[B" + enter)
			} else {
				m.press("high" + enter)
			}
			m.expect("What a call changes").press("It is gone." + enter)
			m.expect("An argument").press("id:what:x" + enter).expect("the type is")
			if env == nil {
				m.press(strings.Repeat("\x7f", len("id:what:x")))
			}
			m.press("id:string:Which." + enter)
			m.expect("Another argument").press(enter)
			if code := m.wait(); code != 0 {
				t.Fatalf("code = %d, want 0; terminal:\n%s", code, m.plain())
			}
			text, err := os.ReadFile(filepath.Join(p.dir, "internal", "tools", "erase.go"))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{`famcp.Mutates(famcp.HighRisk, "It is gone.")`, `"Erases."`, "`json:\"id\" jsonschema:\"Which.\"`"} {
				if !strings.Contains(string(text), want) {
					t.Errorf("the tool is\n%s\nwant %s in it", text, want)
				}
			}
		})
	}
}
