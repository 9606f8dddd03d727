package famcp_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var link = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)\s]*)?\)`)

// TestLinks keeps the links between this repository's documents true.
func TestLinks(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range append(pages, "README.md", "AGENTS.md", "CONTRIBUTING.md", "CHANGELOG.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			found++
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			}
		}
	}
	if found == 0 {
		t.Error("no links were found at all")
	}
}

// TestConformancePins keeps docs/conformance.md at the versions that run.
func TestConformancePins(t *testing.T) {
	page, err := os.ReadFile("docs/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	pins, err := os.ReadFile(".ci/node/package.json")
	if err != nil {
		t.Fatal(err)
	}
	pin := regexp.MustCompile(`"(@modelcontextprotocol/[a-z]+)": "([^"]+)"`)
	all := pin.FindAllStringSubmatch(string(pins), -1)
	if len(all) != 3 {
		t.Fatalf("%d pins, want 3", len(all))
	}
	for _, m := range all {
		name := "`" + m[1] + "`"
		if m[1] == "@modelcontextprotocol/conformance" {
			name = "conformance suite"
		}
		if !strings.Contains(string(page), name+" "+m[2]) {
			t.Errorf("docs/conformance.md does not say %s %s", name, m[2])
		}
	}
}
