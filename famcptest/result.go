package famcptest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Result is the answer to a request.
type Result struct {
	Err *Error // a JSON-RPC error instead of a result; nil for none

	IsError    bool            // the tool failed; Text says why
	Content    []mcp.Content   // of a tool
	Structured json.RawMessage // structuredContent of a tool as sent; nil for none

	Messages []*mcp.PromptMessage    // of a prompt
	Contents []*mcp.ResourceContents // of a resource

	Raw   json.RawMessage // the result as sent; nil with Err
	Asked int             // questions that the client has answered on the way
}

// Text returns the texts of the content, messages or contents, one a line.
func (r *Result) Text() string {
	var texts []string
	add := func(c mcp.Content) {
		if t, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, t.Text)
		}
	}
	for _, c := range r.Content {
		add(c)
	}
	for _, m := range r.Messages {
		add(m.Content)
	}
	for _, c := range r.Contents {
		texts = append(texts, c.Text)
	}
	return strings.Join(texts, "\n")
}

// Error is a JSON-RPC error.
type Error struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"` // as sent; nil for none
	Status  int             `json:"-"`              // HTTP status it came with
}

// Error returns the message with code, status and data.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s (code %d, HTTP %d)", e.Message, e.Code, e.Status)
	if e.Data != nil {
		text += " " + string(e.Data)
	}
	return text
}

// Notification is a message of the server that wants no answer.
type Notification struct {
	Method string
	Params json.RawMessage
}

// Notifications are in the order of their arrival.
type Notifications []Notification

// Progress returns the progress messages.
func (n Notifications) Progress() []mcp.ProgressNotificationParams {
	return ofMethod[mcp.ProgressNotificationParams](n, "notifications/progress")
}

// Logs returns the log messages.
func (n Notifications) Logs() []mcp.LoggingMessageParams {
	return ofMethod[mcp.LoggingMessageParams](n, "notifications/message")
}

func ofMethod[T any](all Notifications, method string) []T {
	var list []T
	for _, n := range all {
		if n.Method != method {
			continue
		}
		var p T
		if json.Unmarshal(n.Params, &p) == nil {
			list = append(list, p)
		}
	}
	return list
}
