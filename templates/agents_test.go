package templates_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The smallest tool there is: no argument, and a text as its result.
const pingTool = `package tools

import (
	"context"

	"github.com/famcp/famcp"
)

var pingTool = famcp.Tool{
	Name:        "ping",
	Title:       "Ping",
	Description: "Answers pong.",
	Effect:      famcp.ReadOnly().ClosedWorld(),
}

func ping(context.Context, *famcp.Call, struct{}) (string, error) { return "pong", nil }

func registerPing(s *famcp.Server) { famcp.AddTool(s, pingTool, ping) }
`

// Who adds a tool does what AGENTS.md says, no more, and is green.
func TestAddingAToolByAGENTS(t *testing.T) {
	type edit struct{ file, old, new string }
	tests := []struct {
		tree  string
		edits []edit
	}{
		{tree: "project", edits: []edit{
			{"internal/tools/tools.go", "famcp.AddTool(s, searchDocsTool,", "registerPing(s)\n\tfamcp.AddTool(s, searchDocsTool,"},
			{"tests/contract_test.go", `		"search_docs":`, `		"ping": "read-only idempotent",
		"search_docs":`},
		}},
		{tree: "bare", edits: []edit{
			{"internal/tools/tools.go", "Register(_ *famcp.Server, _ Deps) {}", "Register(s *famcp.Server, _ Deps) { registerPing(s) }"},
			{"tests/contract_test.go", `map[string]string{}
	prompts`, `map[string]string{"ping": "read-only idempotent"}
	prompts`},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.tree, func(t *testing.T) {
			dir := t.TempDir()
			replace := map[string]string{}
			write := func(name, text string) {
				at, err := filepath.Abs(filepath.Join(tt.tree, filepath.FromSlash(name)))
				if err != nil {
					t.Fatal(err)
				}
				file := filepath.Join(dir, filepath.Base(name))
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				replace[at] = file
			}
			write("internal/tools/ping.go", pingTool)
			texts := map[string]string{}
			for _, e := range tt.edits {
				if texts[e.file] == "" {
					data, err := os.ReadFile(filepath.Join(tt.tree, filepath.FromSlash(e.file)))
					if err != nil {
						t.Fatal(err)
					}
					texts[e.file] = string(data)
				}
				if strings.Count(texts[e.file], e.old) != 1 {
					t.Fatalf("%s does not have %q once", e.file, e.old)
				}
				texts[e.file] = strings.Replace(texts[e.file], e.old, e.new, 1)
				write(e.file, texts[e.file])
			}
			overlay, err := json.Marshal(map[string]any{"Replace": replace})
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "overlay.json")
			if err := os.WriteFile(file, overlay, 0o644); err != nil {
				t.Fatal(err)
			}
			test := exec.CommandContext(t.Context(), "go", "test", "-overlay", file, "./"+tt.tree+"/tests")
			if out, err := test.CombinedOutput(); err != nil {
				t.Errorf("go test: %v\n%s", err, out)
			}
		})
	}
}
