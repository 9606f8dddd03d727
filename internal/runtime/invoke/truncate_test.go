package invoke

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestTruncate(t *testing.T) {
	text := func(s string) *mcp.TextContent { return &mcp.TextContent{Text: s} }
	image := &mcp.ImageContent{MIMEType: "image/png", Data: []byte(strings.Repeat("x", 4000))}
	tests := []struct {
		name    string
		res     *mcp.CallToolResult
		cut     bool
		texts   int // contents left, the note included
		isError bool
	}{
		{"small ones stay", &mcp.CallToolResult{Content: []mcp.Content{text("hi")}, StructuredContent: 1}, false, 1, false},
		{"a long text is cut", &mcp.CallToolResult{Content: []mcp.Content{text(strings.Repeat("é\n\"<", 2000))}}, true, 2, false},
		{"structured content goes", &mcp.CallToolResult{Content: []mcp.Content{text("hi")}, StructuredContent: strings.Repeat("x", 3000)}, true, 2, false},
		{"images are whole or gone", &mcp.CallToolResult{Content: []mcp.Content{text("hi"), image}}, true, 2, false},
		{"errors stay errors", &mcp.CallToolResult{IsError: true, Content: []mcp.Content{text(strings.Repeat("x", 3000))}}, true, 2, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			const most = 2048
			got := truncate(tt.res, most)
			raw, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if len(raw) > most {
				t.Errorf("got %d bytes, want at most %d", len(raw), most)
			}
			if !utf8.Valid(raw) {
				t.Error("not valid UTF-8")
			}
			if len(got.Content) != tt.texts || got.IsError != tt.isError {
				t.Errorf("got %d contents, isError %v; want %d, %v", len(got.Content), got.IsError, tt.texts, tt.isError)
			}
			if marked := strings.Contains(string(raw), "[truncated: the result had "); marked != tt.cut {
				t.Errorf("marker shown: %v, want %v", marked, tt.cut)
			}
			if tt.cut && got.StructuredContent != nil {
				t.Error("structured content is still there")
			}
		})
	}
}
