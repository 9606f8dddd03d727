package invoke

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// truncate bounds the JSON of a result to about most bytes. What is left is
// valid UTF-8 and JSON and says what is missing: structured content goes,
// texts are cut, everything else is kept whole or dropped.
func truncate(res *mcp.CallToolResult, most int) *mcp.CallToolResult {
	if most <= 0 || small(res, most) {
		return res
	}
	size := sizeOf(res)
	if size <= most {
		return res
	}
	note := fmt.Sprintf("[truncated: the result had %d bytes, the limit is %d; ask for less]", size, most)
	cut := &mcp.CallToolResult{Meta: res.Meta, IsError: res.IsError}
	left := most - len(note) - 256 // the envelope around the contents
	for _, content := range res.Content {
		n := sizeOf(content)
		if n <= left {
			cut.Content = append(cut.Content, content)
			left -= n
			continue
		}
		if text, ok := content.(*mcp.TextContent); ok && left > 64 {
			short := *text
			short.Text = cutText(text.Text, left-64)
			cut.Content = append(cut.Content, &short)
		}
		break
	}
	cut.Content = append(cut.Content, &mcp.TextContent{Text: note})
	return cut
}

// small reports whether a result is below most however its text is escaped,
// which spares encoding it only to measure it.
func small(res *mcp.CallToolResult, most int) bool {
	const (
		longest  = 6  // of a byte's escape
		envelope = 64 // around one content
	)
	size := 4 * envelope
	switch structured := res.StructuredContent.(type) {
	case nil:
	case json.RawMessage:
		size += longest * len(structured)
	default:
		return false
	}
	for _, content := range res.Content {
		text, ok := content.(*mcp.TextContent)
		if !ok || text.Meta != nil || text.Annotations != nil {
			return false
		}
		size += longest*len(text.Text) + envelope
	}
	return res.Meta == nil && size <= most
}

func sizeOf(v any) int {
	raw, err := json.Marshal(v)
	if err != nil {
		return 0 // the SDK reports it when it marshals
	}
	return len(raw)
}

// cutText returns the longest prefix of s, at a rune boundary, whose JSON form
// has at most n bytes.
func cutText(s string, n int) string {
	if n <= 0 {
		return ""
	}
	used := 0
	for i, r := range s {
		used += jsonLen(r)
		if used > n {
			return s[:i]
		}
	}
	return s
}

func jsonLen(r rune) int {
	switch {
	case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t':
		return 2
	case r < 0x20 || r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029' || r == utf8.RuneError:
		return 6
	default:
		return utf8.RuneLen(r)
	}
}
