package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp"
)

// addAskingTools adds the tools that ask the client: by their own requests in
// the legacy era, by input_required results in the modern one.
func addAskingTools(s *famcp.Server) {
	ask := func(name, description string) famcp.Tool {
		return famcp.Tool{Name: name, Description: description, Effect: famcp.ReadOnly()}
	}
	famcp.AddTool(s, ask("test_sampling", "Asks the client's model."), sampling)
	famcp.AddTool(s, ask("test_missing_capability", "Needs a client with a model."), needsSampling)
	famcp.AddTool(s, ask("test_elicitation", "Asks the user for name and address."), elicitation)
	famcp.AddTool(s, ask("test_elicitation_sep1034_defaults", "Asks with a default for every primitive type."), form(defaultsForm))
	famcp.AddTool(s, ask("test_elicitation_sep1330_enums", "Asks with every form of enumeration."), form(enumsForm))

	famcp.AddTool(s, ask("test_input_required_result_elicitation", "Asks for a name."), askName)
	famcp.AddTool(s, ask("test_input_required_result_sampling", "Asks for a capital."), askCapital)
	famcp.AddTool(s, ask("test_input_required_result_list_roots", "Asks for the roots."), askRoots)
	famcp.AddTool(s, ask("test_input_required_result_request_state", "Asks to confirm."), askConfirm)
	famcp.AddTool(s, ask("test_input_required_result_tampered_state", "Asks to confirm and refuses a changed state."), askConfirm)
	famcp.AddTool(s, ask("test_input_required_result_multiple_inputs", "Asks three things at once."), askThree)
	famcp.AddTool(s, ask("test_input_required_result_multi_round", "Asks twice in turn."), askTwice)
	famcp.AddTool(s, ask("test_input_required_result_capabilities", "Asks only what the client can answer."), askPossible)
}

func question(text string, maxTokens int64) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{
		Messages:  []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}},
		MaxTokens: maxTokens,
	}
}

func answerText(res *mcp.CreateMessageResult) string {
	if text, ok := res.Content.(*mcp.TextContent); ok {
		return text.Text
	}
	return "(no text)"
}

type promptInput struct {
	Prompt string `json:"prompt" jsonschema:"What to ask the model."`
}

func sampling(_ context.Context, call *famcp.Call, in promptInput) (string, error) {
	res, err := call.Sample("answer", question(in.Prompt, 100))
	if err != nil {
		return "", err
	}
	return "LLM response: " + answerText(res), nil
}

func needsSampling(_ context.Context, call *famcp.Call, _ none) (string, error) {
	res, err := call.Sample("ready", question("Are you there?", 10))
	if err != nil {
		return "", err
	}
	return "The client's model says: " + answerText(res), nil
}

type messageInput struct {
	Message string `json:"message" jsonschema:"What to show the user."`
}

type person struct {
	Username string `json:"username" jsonschema:"User's response"`
	Email    string `json:"email" jsonschema:"User's email address"`
}

func elicitation(_ context.Context, call *famcp.Call, in messageInput) (string, error) {
	p, err := famcp.Elicit[person](call, "person", in.Message)
	if errors.Is(err, famcp.ErrDeclined) {
		return "User response: declined", nil
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("User response: username=%s, email=%s", p.Username, p.Email), nil
}

// form returns a handler that asks with a schema that no Go type infers.
func form(schema string) func(context.Context, *famcp.Call, none) (string, error) {
	return func(_ context.Context, call *famcp.Call, _ none) (string, error) {
		answers, err := call.Ask(map[string]mcp.InputRequest{
			"form": &mcp.ElicitParams{Message: "Please fill in the form.", RequestedSchema: json.RawMessage(schema)},
		})
		if err != nil {
			return "", err
		}
		return "Elicitation completed: " + string(answers["form"]), nil
	}
}

const defaultsForm = `{
	"type": "object",
	"properties": {
		"name": {"type": "string", "description": "User name", "default": "John Doe"},
		"age": {"type": "integer", "description": "User age", "default": 30},
		"score": {"type": "number", "description": "User score", "default": 95.5},
		"status": {"type": "string", "description": "User status", "enum": ["active", "inactive", "pending"], "default": "active"},
		"verified": {"type": "boolean", "description": "Verification status", "default": true}
	}
}`

const enumsForm = `{
	"type": "object",
	"properties": {
		"untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
		"titledSingle": {"type": "string", "oneOf": [
			{"const": "value1", "title": "First Option"},
			{"const": "value2", "title": "Second Option"},
			{"const": "value3", "title": "Third Option"}
		]},
		"legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
		"untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
		"titledMulti": {"type": "array", "items": {"anyOf": [
			{"const": "value1", "title": "First Choice"},
			{"const": "value2", "title": "Second Choice"},
			{"const": "value3", "title": "Third Choice"}
		]}}
	}
}`

type nameForm struct {
	Name string `json:"name"`
}

type colorForm struct {
	Color string `json:"color"`
}

type okForm struct {
	OK bool `json:"ok"`
}

func askName(_ context.Context, call *famcp.Call, _ none) (string, error) {
	user, err := famcp.Elicit[nameForm](call, "user_name", "What is your name?")
	if err != nil {
		return "", err
	}
	return "Hello, " + user.Name + "!", nil
}

func askCapital(_ context.Context, call *famcp.Call, _ none) (string, error) {
	res, err := call.Sample("capital_question", question("What is the capital of France?", 100))
	if err != nil {
		return "", err
	}
	return "Sampling response: " + answerText(res), nil
}

func askRoots(_ context.Context, call *famcp.Call, _ none) (string, error) {
	roots, err := call.Roots("client_roots")
	if err != nil {
		return "", err
	}
	uris := make([]string, len(roots))
	for i, root := range roots {
		uris[i] = root.URI
	}
	return fmt.Sprintf("The client has %d roots: %s", len(roots), strings.Join(uris, ", ")), nil
}

// askConfirm relies on the runtime to seal the state that a modern client
// carries and to refuse one that was changed.
func askConfirm(_ context.Context, call *famcp.Call, _ none) (string, error) {
	answer, err := famcp.Elicit[okForm](call, "confirm", "Please confirm")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("state-ok: confirmed %t", answer.OK), nil
}

// possible lists the questions of the three kinds that the client can answer.
func possible(call *famcp.Call) map[string]mcp.InputRequest {
	questions := map[string]mcp.InputRequest{}
	if call.Can(famcp.CanElicit) {
		schema := json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`)
		questions["user_name"] = &mcp.ElicitParams{Message: "What is your name?", RequestedSchema: schema}
	}
	if call.Can(famcp.CanSample) {
		questions["greeting"] = question("Generate a greeting", 50)
	}
	if call.Can(famcp.CanRoots) {
		questions["client_roots"] = &mcp.ListRootsParams{}
	}
	return questions
}

func askThree(_ context.Context, call *famcp.Call, _ none) (string, error) {
	questions := possible(call)
	if len(questions) < 3 {
		return "", famcp.Failf("this needs a client with elicitation, sampling and roots")
	}
	answers, err := call.Ask(questions)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Got %d answers.", len(answers)), nil
}

func askPossible(_ context.Context, call *famcp.Call, _ none) (string, error) {
	answers, err := call.Ask(possible(call))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Got %d answers.", len(answers)), nil
}

func askTwice(_ context.Context, call *famcp.Call, _ none) (string, error) {
	user, err := famcp.Elicit[nameForm](call, "step1", "Step 1: What is your name?")
	if err != nil {
		return "", err
	}
	favourite, err := famcp.Elicit[colorForm](call, "step2", "Step 2: What is your favorite color?")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Multi-round complete: %s likes %s", user.Name, favourite.Color), nil
}
