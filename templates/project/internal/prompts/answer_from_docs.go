package prompts

import (
	"context"
	"fmt"

	"github.com/famcp/famcp"
)

type answerFromDocsIn struct {
	Question string `json:"question" jsonschema:"What the user wants to know about this server."`
}

var answerFromDocsPrompt = famcp.Prompt{
	Name:        "answer_from_docs",
	Title:       "Answer from the documentation",
	Description: "Answers a question about this server, with sources.",
}

func answerFromDocs(_ context.Context, _ *famcp.Call, in answerFromDocsIn) ([]famcp.Message, error) {
	return []famcp.Message{famcp.UserMessage(fmt.Sprintf(`Answer this question about the server: %s

Find the facts with the tool search_docs, and read the resource of each hit you rely on. Name the document and the
section behind every statement. If the documentation does not have the answer, say so and do not guess.`, in.Question))}, nil
}
