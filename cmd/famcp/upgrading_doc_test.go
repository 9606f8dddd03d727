package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// docs/upgrading.md leads through a conflict: its commands, followed to the
// letter, do what it says they do. A block of text under a block of commands
// holds lines that are part of what these print.
func TestUpgradingDocument(t *testing.T) {
	long(t)
	for _, program := range []string{"sh", "sed", "git"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the page uses %s", program)
		}
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "upgrading.md"))
	if err != nil {
		t.Fatal(err)
	}
	p := project{dir: filepath.Join(t.TempDir(), "demo"), env: append(offline(t), "GOFLAGS=-trimpath")} // so that the build cache knows it in any directory
	if err := newOlderFamcp(t).project(p.dir, "demo"); err != nil {
		t.Fatal(err)
	}
	ran, compared := 0, 0
	var output string
	for i, block := range strings.Split(string(page), "\n```") {
		if i%2 == 0 { // between blocks
			continue
		}
		kind, text, _ := strings.Cut(block, "\n")
		switch kind {
		case "sh":
			c := p.command(t.Context(), "sh", "-ec", text)
			out, err := c.CombinedOutput()
			if err != nil {
				t.Fatalf("%s\n%v\n%s", text, err, out)
			}
			output = string(out)
			ran++
		case "text":
			for line := range strings.Lines(text) {
				if line = strings.TrimSpace(line); !strings.Contains(output, line) {
					t.Errorf("no %q in\n%s", line, output)
				}
				compared++
			}
		}
	}
	if ran < 8 || compared < 15 {
		t.Errorf("%d blocks of commands and %d lines of text: was the page read?", ran, compared)
	}
}
