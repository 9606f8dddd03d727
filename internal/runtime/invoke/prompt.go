package invoke

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Prompt is one prompt of the server.
type Prompt struct {
	Listed *mcp.Prompt
	Access Access

	Deprecated *Deprecated // nil: it stays
	Handle     func(ctx context.Context, c *Call, args map[string]string) ([]*mcp.PromptMessage, error)
}

// AddPrompt registers p, or replaces the prompt of that name.
func (e *Engine) AddPrompt(s *mcp.Server, p *Prompt) {
	e.mu.Lock()
	e.prompts[p.Listed.Name] = p
	e.mu.Unlock()
	s.AddPrompt(p.Listed, func(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		c := e.newCall(ctx, "prompts/get", p.Listed.Name, req)
		defer c.finish()
		return e.getPrompt(ctx, c, p, req)
	})
}

// RemovePrompts removes the prompts that exist and reports whether any did.
func (e *Engine) RemovePrompts(s *mcp.Server, names ...string) bool {
	return remove(e, e.prompts, names, s.RemovePrompts)
}

func (e *Engine) getPrompt(ctx context.Context, c *Call, p *Prompt, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	if err := p.Access.admit(ctx, c, unknown("prompt", p.Listed.Name)); err != nil {
		return nil, err
	}
	e.used(ctx, c, p.Deprecated, "prompt", p.Listed.Name)
	for _, arg := range p.Listed.Arguments {
		if _, ok := req.Params.Arguments[arg.Name]; arg.Required && !ok {
			return nil, &Fault{Kind: Invalid, Field: arg.Name, Message: fmt.Sprintf("the argument %q is required", arg.Name)}
		}
	}
	args, err := json.Marshal(req.Params.Arguments)
	if err != nil {
		return nil, err
	}
	messages, ask, err := converse(ctx, c, request{
		name: p.Listed.Name, args: args,
		responses: req.Params.InputResponses, state: req.Params.RequestState,
	}, e.cfg.ToolTimeout, func(ctx context.Context) ([]*mcp.PromptMessage, error) {
		return p.Handle(ctx, c, req.Params.Arguments)
	})
	if err != nil {
		return nil, e.fault(err)
	}
	if ask != nil {
		return &mcp.GetPromptResult{InputRequests: ask.requests, RequestState: ask.state}, nil
	}
	if messages == nil {
		messages = []*mcp.PromptMessage{}
	}
	return &mcp.GetPromptResult{Description: p.Listed.Description, Messages: messages}, nil
}
