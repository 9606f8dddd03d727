package famcp

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Content is one piece of what a tool or prompt gives: text, image, audio, a
// link to a resource or a resource itself. Make one with [Text], [Image],
// [Audio], [Link] or [Embed].
type Content = mcp.Content

// Annotations tell a client whom a content is for and how it matters.
type Annotations = mcp.Annotations

// Icon is a picture a client may show for a feature.
type Icon = mcp.Icon

// Contents is what a resource holds: Text, or Blob for binary data. An empty
// MIME takes that of the resource.
type Contents struct {
	MIME string
	Text string
	Blob []byte
}

func (c Contents) wire(uri string) *mcp.ResourceContents {
	return &mcp.ResourceContents{URI: uri, MIMEType: c.MIME, Text: c.Text, Blob: c.Blob}
}

// Result is the output of a tool that gives content of its own beside its
// structured value.
type Result[T any] struct {
	Value   T
	Content []Content // nil: the JSON text of Value
}

// Text returns a text content.
func Text(s string) Content { return &mcp.TextContent{Text: s} }

// Image returns an image content; data is the file's bytes.
func Image(mime string, data []byte) Content { return &mcp.ImageContent{MIMEType: mime, Data: data} }

// Audio returns an audio content; data is the file's bytes.
func Audio(mime string, data []byte) Content { return &mcp.AudioContent{MIMEType: mime, Data: data} }

// Link returns a link to a resource, which the client reads when it wants to.
func Link(uri, name string) Content { return &mcp.ResourceLink{URI: uri, Name: name} }

// Embed returns a resource with its contents.
func Embed(uri string, c Contents) Content { return &mcp.EmbeddedResource{Resource: c.wire(uri)} }

// Annotate sets the annotations of a content made by this package and returns
// it.
func Annotate(c Content, a Annotations) Content {
	switch c := c.(type) {
	case *mcp.TextContent:
		c.Annotations = &a
	case *mcp.ImageContent:
		c.Annotations = &a
	case *mcp.AudioContent:
		c.Annotations = &a
	case *mcp.ResourceLink:
		c.Annotations = &a
	case *mcp.EmbeddedResource:
		c.Annotations = &a
	}
	return c
}

// Message is one message of a prompt.
type Message struct {
	Role    string // user or assistant; "" is user
	Content Content
}

// UserMessage returns a message of text from the user.
func UserMessage(text string) Message { return Message{Role: "user", Content: Text(text)} }

// AssistantMessage returns a message of text from the model.
func AssistantMessage(text string) Message { return Message{Role: "assistant", Content: Text(text)} }
