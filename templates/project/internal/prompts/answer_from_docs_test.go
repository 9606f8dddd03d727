package prompts

import (
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/famcptest"
)

func TestAnswerFromDocs(t *testing.T) {
	messages, err := answerFromDocs(t.Context(), famcptest.NewCall(t), answerFromDocsIn{Question: "Where are the logs?"})
	if err != nil {
		t.Fatal(err)
	}
	if len(messages) != 1 || messages[0].Role != "user" {
		t.Fatalf("messages = %+v, want one of the user", messages)
	}
	text := messages[0].Content.(*mcp.TextContent).Text
	for _, want := range []string{"Where are the logs?", "search_docs"} {
		if !strings.Contains(text, want) {
			t.Errorf("the prompt does not mention %q:\n%s", want, text)
		}
	}
}
