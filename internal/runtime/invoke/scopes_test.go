package invoke

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestScopes(t *testing.T) {
	e, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	access := func(scopes ...string) Access { return Access{Scopes: scopes} }
	e.tools["t"] = &Tool{Listed: &mcp.Tool{Name: "t"}, Access: access("write", "read")}
	e.prompts["p"] = &Prompt{Listed: &mcp.Prompt{Name: "p"}, Access: access("read")}
	e.resources["r"] = &Resource{Listed: &mcp.Resource{URI: "r"}, Access: access("admin")}
	e.templates["x"] = &Template{Listed: &mcp.ResourceTemplate{URITemplate: "x"}, Access: access("extra")}
	if d := cmp.Diff([]string{"admin", "extra", "read", "write"}, e.Scopes()); d != "" {
		t.Error(d)
	}
}
