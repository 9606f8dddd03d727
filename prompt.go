package famcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/invoke"
)

// Prompt describes a prompt. Name and Description are required.
type Prompt struct {
	Name        string
	Title       string
	Description string
	Access      Access
	Icons       []Icon
	Deprecated  *Deprecated // nil: it stays
}

// AddPrompt registers a prompt. In is a struct of string fields: each is an
// argument, named by its json tag, described by its jsonschema tag, optional
// with omitempty. A fault in the registration is kept for [Server.Err].
func AddPrompt[In any](s *Server, p Prompt, h func(context.Context, *Call, In) ([]Message, error)) {
	args, err := promptArguments(reflect.TypeFor[In]())
	err = errors.Join(err, p.Deprecated.check())
	if p.Name == "" {
		err = errors.Join(err, errors.New("no Name"))
	}
	if p.Description == "" {
		err = errors.Join(err, errors.New("no Description; say what the prompt is for"))
	}
	if h == nil {
		err = errors.Join(err, errors.New("the handler is nil"))
	}
	if err != nil {
		s.fail(fmt.Errorf("prompt %q: %w", p.Name, err))
		return
	}
	s.addPrompt(p, &invoke.Prompt{
		Listed: &mcp.Prompt{Name: p.Name, Title: p.Title, Description: p.Deprecated.pipeline().Describe(p.Description), Arguments: args, Icons: p.Icons},
		Access: p.Access.pipeline(), Deprecated: p.Deprecated.pipeline(),
		Handle: func(ctx context.Context, c *invoke.Call, given map[string]string) ([]*mcp.PromptMessage, error) {
			raw, err := json.Marshal(given)
			if err != nil {
				return nil, err
			}
			in, err := decode[In](raw)
			if err != nil {
				return nil, Invalidf("arguments", "do not fit the prompt").With(err)
			}
			ctx, call := wrap(ctx, c)
			messages, err := h(ctx, call, in)
			if err != nil {
				return nil, err
			}
			out := make([]*mcp.PromptMessage, len(messages))
			for i, m := range messages {
				if m.Role == "" {
					m.Role = "user"
				}
				out[i] = &mcp.PromptMessage{Role: mcp.Role(m.Role), Content: m.Content}
			}
			return out, nil
		},
	})
}

// promptArguments reads the arguments off a struct type by way of its schema.
func promptArguments(t reflect.Type) ([]*mcp.PromptArgument, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("the arguments are a struct of strings, not %s", t)
	}
	schema, err := invoke.SchemaFor(t)
	if err != nil {
		return nil, err
	}
	var args []*mcp.PromptArgument
	for _, f := range schema.Fields() {
		if f.Type != "string" {
			return nil, fmt.Errorf("argument %q is of type %s; prompt arguments are strings", f.Name, f.Type)
		}
		args = append(args, &mcp.PromptArgument{Name: f.Name, Description: f.Description, Required: f.Required})
	}
	return args, nil
}
