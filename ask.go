package famcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/invoke"
)

// Errors of the functions that ask the client.
var (
	// ErrAsked means that the question is on its way; return it.
	ErrAsked = invoke.ErrAsked
	// ErrDeclined means that the user declined or dismissed the question.
	ErrDeclined = invoke.ErrDeclined
	// ErrCannotAsk means that this client, or this request's channel, cannot
	// carry the question. Returned from a handler it becomes -32021 in the
	// modern era and a result with isError in the legacy one.
	ErrCannotAsk = invoke.ErrCannotAsk
)

// confirmation is the form of Confirm.
var confirmation = json.RawMessage(`{"type":"object","properties":{"confirm":{"type":"boolean","title":"Confirm"}},"required":["confirm"]}`)

// Confirm asks the user a yes-or-no question. A user who declines or
// dismisses it gives false and no error. The key names the question within
// the handler.
func (c *Call) Confirm(key, question string) (bool, error) {
	raw, err := c.c.Ask(key, invoke.ElicitForm, &mcp.ElicitParams{Mode: "form", Message: question, RequestedSchema: confirmation})
	if err != nil {
		return false, err
	}
	answer, err := decode[mcp.ElicitResult](raw)
	if err != nil {
		return false, badAnswer(key)
	}
	yes, _ := answer.Content["confirm"].(bool)
	return answer.Action == "accept" && yes, nil
}

// Elicit asks the user to fill in a form, whose fields are those of the struct
// T: strings, numbers, booleans and enumerations, without nesting. It returns
// [ErrDeclined] when the user declines.
func Elicit[T any](c *Call, key, message string) (T, error) {
	var zero T
	schema, err := invoke.SchemaFor(reflect.TypeFor[T]())
	if err != nil {
		return zero, fmt.Errorf("form %q: %w", key, err)
	}
	raw, err := c.c.Ask(key, invoke.ElicitForm, &mcp.ElicitParams{Mode: "form", Message: message, RequestedSchema: schema.Form()})
	if err != nil {
		return zero, err
	}
	var answer struct {
		Action  string          `json:"action"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(raw, &answer) != nil {
		return zero, badAnswer(key)
	}
	if answer.Action != "accept" {
		return zero, ErrDeclined
	}
	content, violations := schema.Check(answer.Content)
	if len(violations) > 0 {
		return zero, Invalidf("inputResponses."+key, "%s: %s", violations[0].Field, violations[0].Reason)
	}
	value, err := decode[T](content)
	if err != nil {
		return zero, badAnswer(key)
	}
	return value, nil
}

// Visit asks the user to open a page, for what must not pass through the
// client, such as a password. It returns [ErrDeclined] when the user declines.
func (c *Call) Visit(key, url, message string) error {
	raw, err := c.c.Ask(key, invoke.ElicitURL, &mcp.ElicitParams{Mode: "url", Message: message, URL: url, ElicitationID: c.ID() + "/" + key})
	if err != nil {
		return err
	}
	answer, err := decode[mcp.ElicitResult](raw)
	if err != nil {
		return badAnswer(key)
	}
	if answer.Action != "accept" {
		return ErrDeclined
	}
	return nil
}

// Sample asks the client's model for a completion.
func (c *Call) Sample(key string, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	return askFor[mcp.CreateMessageResult](c, key, invoke.Sampling, p)
}

// Roots asks the client for the folders it works in.
func (c *Call) Roots(key string) ([]*mcp.Root, error) {
	res, err := askFor[mcp.ListRootsResult](c, key, invoke.Roots, &mcp.ListRootsParams{})
	if err != nil {
		return nil, err
	}
	return res.Roots, nil
}

// Ask puts several questions at once and returns all the answers, by key, in
// their JSON form. When the client cannot be asked one of them it is asked
// none. It is for what the typed functions do not cover.
func (c *Call) Ask(questions map[string]mcp.InputRequest) (map[string]json.RawMessage, error) {
	answers := map[string]json.RawMessage{}
	var open error
	for key, q := range questions {
		raw, err := c.c.Ask(key, capabilityOf(q), q)
		switch {
		case err == nil:
			answers[key] = raw
		case open == nil || errors.Is(open, ErrAsked): // what cannot be asked beats the others
			open = err
		}
	}
	if open != nil {
		return nil, open
	}
	return answers, nil
}

func capabilityOf(q mcp.InputRequest) invoke.Capability {
	switch q := q.(type) {
	case *mcp.ElicitParams:
		if q.Mode == "url" || (q.Mode == "" && q.URL != "") {
			return invoke.ElicitURL
		}
		return invoke.ElicitForm
	case *mcp.ListRootsParams:
		return invoke.Roots
	default:
		return invoke.Sampling
	}
}

// Keep computes a value once and brings it along over the rounds of a request
// that asks, sealed into the state that a modern client carries: at most
// 32 KiB of JSON. A later round returns the first round's value without
// calling compute.
func Keep[T any](c *Call, key string, compute func() (T, error)) (T, error) {
	if raw, ok := c.c.Kept(key); ok {
		return decode[T](raw)
	}
	v, err := compute()
	if err != nil {
		return v, err
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return v, fmt.Errorf("keeping %q: %w", key, err)
	}
	return v, c.c.Keep(key, raw)
}

func askFor[T any](c *Call, key string, k invoke.Capability, q mcp.InputRequest) (*T, error) {
	raw, err := c.c.Ask(key, k, q)
	if err != nil {
		return nil, err
	}
	v, err := decode[T](raw)
	if err != nil {
		return nil, badAnswer(key)
	}
	return &v, nil
}

func badAnswer(key string) error {
	return Invalidf("inputResponses."+key, "the answer is not of the kind that was asked for")
}
