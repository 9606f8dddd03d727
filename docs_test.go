package famcp_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/famcp/famcp"
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
	ofProjects, err := os.ReadFile("templates/project/docs/conformance.md")
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
		if !strings.Contains(string(ofProjects), name+" "+m[2]) {
			t.Errorf("the page of projects does not say %s %s", name, m[2])
		}
	}
}

// TestContractMap keeps docs/contract.md true: each test that it names is there,
// and it names each of the contract's own.
func TestContractMap(t *testing.T) {
	page, err := os.ReadFile("docs/contract.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{} // as the page writes them
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err = filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		prefix := ""
		if dir := filepath.Dir(path); dir != "." {
			prefix = filepath.Base(dir) + "."
		}
		for _, m := range declared.FindAllSubmatch(source, -1) {
			tests[prefix+string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`((?:\\w+\\.)?(?:Test|Fuzz)\\w+)`").FindAllSubmatch(page, -1) {
		name := string(m[1])
		named[name] = true
		if !tests[name] {
			t.Errorf("docs/contract.md names %s, which is not there", name)
		}
	}
	for name := range tests {
		if strings.HasPrefix(name, "TestContract") && !named[name] {
			t.Errorf("docs/contract.md does not name %s", name)
		}
	}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) == 4 && !strings.Contains(line, "`") && !strings.Contains(line, "---") && strings.TrimSpace(cells[2]) != "tests" {
			t.Errorf("no test in the row %s", line)
		}
	}
}

// methodRow is a row of the table of methods: name, modern, legacy.
var methodRow = regexp.MustCompile("(?m)^\\| (`[a-z/A-Z`, ]+`) \\| ([^|]+) \\| ([^|]+) \\|$")

// TestConformanceMethods keeps the table of methods true, by asking a server
// that has everything enabled, and the same in the page of projects.
func TestConformanceMethods(t *testing.T) {
	url := newContract(t, func(c *famcp.Config) { c.MCP.Tasks.Enabled = true })
	s := open(t, url, "2025-11-25")
	var tables []string
	for _, path := range []string{"docs/conformance.md", "templates/project/docs/conformance.md"} {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		rows := methodRow.FindAllStringSubmatch(string(page), -1)
		var table strings.Builder
		for _, row := range rows {
			table.WriteString(row[0] + "\n")
		}
		tables = append(tables, table.String())
		if path != "docs/conformance.md" {
			continue
		}
		if len(rows) < 10 {
			t.Fatalf("%d rows were found", len(rows))
		}
		for _, row := range rows {
			for _, method := range strings.Split(strings.ReplaceAll(row[1], "`", ""), ", ") {
				params := `"taskId":"t","uri":"doc://a","name":"x"`
				m := modern(t, url, method, ","+params, "", "Accept: application/json", "Mcp-Name: "+nameOf(method))
				l := s.request(t, method, params)
				for era, answer := range map[string]struct {
					*reply
					cell string
				}{"modern": {m, row[2]}, "legacy": {l, row[3]}} {
					if served := answer.Error.Code != -32601 && method != "initialize" || method == "initialize" && era == "legacy"; served != (answer.cell != "–") {
						t.Errorf("%s, %s: the page says %q, the server %d %s", method, era, answer.cell, answer.Status, answer.Body)
					}
				}
			}
		}
	}
	if tables[0] != tables[1] {
		t.Errorf("the tables of the two pages differ:\n%s\n%s", tables[0], tables[1])
	}
}

// nameOf is what the header Mcp-Name repeats in that test.
func nameOf(method string) string {
	switch {
	case strings.HasPrefix(method, "tasks/"):
		return "t"
	case method == "resources/read":
		return "doc://a"
	}
	return "x"
}

// TestConformanceBaseline: what may fail is said.
func TestConformanceBaseline(t *testing.T) {
	page, err := os.ReadFile("docs/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	baseline, err := os.ReadFile(".ci/conformance-baseline.yml")
	if err != nil {
		t.Fatal(err)
	}
	entries := regexp.MustCompile(`(?m)^\s*- (\S+)`).FindAllStringSubmatch(string(baseline), -1)
	if says := strings.Contains(string(page), "which is empty"); says != (len(entries) == 0) {
		t.Errorf("the baseline has %d entries, and the page says that it is empty: %t", len(entries), says)
	}
	for _, entry := range entries {
		family, _, _ := strings.Cut(entry[1], "-")
		if !strings.Contains(string(page), entry[1]) && !strings.Contains(string(page), family+"-*") {
			t.Errorf("the page does not say that %s may fail", entry[1])
		}
	}
}
