package famcptest

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Question is what a server asks its client during a call.
type Question struct {
	Key     string          // the handler's key; "" in the legacy era, which does not send it
	Method  string          // elicitation/create, sampling/createMessage or roots/list
	Message string          // of an elicitation
	URL     string          // of a page to visit
	Schema  json.RawMessage // of the form to fill in
	Params  json.RawMessage // all of it, as sent
}

func readQuestion(key, method string, params json.RawMessage) Question {
	q := Question{Key: key, Method: method, Params: params}
	var p struct {
		Message string          `json:"message"`
		URL     string          `json:"url"`
		Schema  json.RawMessage `json:"requestedSchema"`
	}
	if json.Unmarshal(params, &p) == nil {
		q.Message, q.URL, q.Schema = p.Message, p.URL, p.Schema
	}
	return q
}

// Answer is the client's answer to a [Question]. The zero value refuses to
// answer at all: an elicitation is declined, another question fails the test.
type Answer struct{ result any }

// Accept fills in a form with fields, a struct or a map; nil accepts to visit
// a page.
func Accept(fields any) Answer {
	if fields == nil {
		return Answer{map[string]any{"action": "accept"}}
	}
	return Answer{map[string]any{"action": "accept", "content": fields}}
}

// Confirm answers a yes-or-no question.
func Confirm(yes bool) Answer { return Accept(map[string]any{"confirm": yes}) }

// Decline answers a form, a confirmation or a page to visit with no.
func Decline() Answer { return Answer{map[string]any{"action": "decline"}} }

// Cancel dismisses a form, a confirmation or a page to visit.
func Cancel() Answer { return Answer{map[string]any{"action": "cancel"}} }

// Completion answers sampling with a text by the client's model.
func Completion(text string) Answer {
	return Answer{&mcp.CreateMessageResult{
		Role: "assistant", Model: "famcptest", StopReason: "endTurn", Content: &mcp.TextContent{Text: text},
	}}
}

// Roots answers the question for the client's workspace folders.
func Roots(uris ...string) Answer {
	roots := make([]*mcp.Root, len(uris))
	for i, uri := range uris {
		roots[i] = &mcp.Root{URI: uri}
	}
	return Answer{&mcp.ListRootsResult{Roots: roots}}
}

// Reply answers with a result of the caller's own making, right or wrong.
func Reply(result any) Answer { return Answer{result} }

// decline is the client's way to answer until [Client.Answer] is called.
func decline(q Question) Answer {
	switch q.Method {
	case "elicitation/create":
		return Decline()
	case "roots/list":
		return Roots()
	}
	return Answer{}
}
