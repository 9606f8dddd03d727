// Package tests checks what clients of this server rely on, in both protocol eras. When a test here fails after a
// change that was meant, clients see that change: adapt the test and write it into CHANGELOG.md.
package tests

import (
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/famcptest"
	"github.com/famcp/famcp/templates/bare/internal/app"
	"github.com/famcp/famcp/templates/bare/internal/config"
)

// build makes the server as main does, but with documents that do not change.
func build(t testing.TB) *famcp.Server {
	t.Helper()
	cfg, err := famcp.Load[config.Config]("")
	if err != nil {
		t.Fatal(err)
	}
	s, err := famcp.New(&cfg.Config, famcp.Info{Name: "contract", Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	if err := app.Register(s, cfg, fstest.MapFS{"README.md": {Data: []byte("# Read me\n")}}); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNames(t *testing.T) {
	want := map[string][]string{
		"tools":   nil,
		"prompts": {"agent_brief", "agent_prompt", "tool_prompt"},
		"resources": {
			"contract://agent/brief", "contract://agent/prompt",
			"project://id", "project://name", "project://version", "use://auth", "use://http-headers",
		},
		"templates": nil,
	}
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		got := map[string][]string{
			"tools":     names(c.Tools(), func(x *mcp.Tool) string { return x.Name }),
			"prompts":   names(c.Prompts(), func(x *mcp.Prompt) string { return x.Name }),
			"resources": names(c.Resources(), func(x *mcp.Resource) string { return x.URI }),
			"templates": names(c.Templates(), func(x *mcp.ResourceTemplate) string { return x.URITemplate }),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func names[T any](entries []T, name func(T) string) []string {
	var all []string
	for _, e := range entries {
		all = append(all, name(e))
	}
	slices.Sort(all)
	return all
}

func TestBuiltInEntries(t *testing.T) {
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		if got := c.Read("project://version").Text(); got != "1.0.0" {
			t.Errorf("project://version = %q, want 1.0.0", got)
		}
		if res := c.Prompt("agent_brief", nil); res.Err != nil {
			t.Errorf("agent_brief: %v", res.Err)
		}
	})
}

func TestRefusals(t *testing.T) {
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		if res := c.CallTool("no_such_tool", nil); res.Err == nil || res.Err.Code != -32602 {
			t.Errorf("unknown tool: %v, want code -32602", res.Err)
		}
		if res := c.Read("note://absent"); res.Err == nil {
			t.Errorf("absent resource: %s, want an error", res.Raw)
		}
	})
}
