package invoke

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxCompletions is the most values one answer carries (completion utility).
const maxCompletions = 100

// CompletionHandler returns the values that start with prefix.
type CompletionHandler func(ctx context.Context, c *Call, prefix string) ([]string, error)

type completionKey struct{ ref, argument string }

// AddCompletion sets the provider for an argument of a prompt (by name) or of
// a resource template (by URI template).
func (e *Engine) AddCompletion(ref, argument string, h CompletionHandler) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.completer[completionKey{ref, argument}] = h
}

// CheckCompletions returns a fault for each provider of what there is not.
func (e *Engine) CheckCompletions() error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	var errs []error
	for key := range e.completer {
		known := false
		if p, ok := e.prompts[key.ref]; ok {
			known = slices.ContainsFunc(p.Listed.Arguments, func(a *mcp.PromptArgument) bool { return a.Name == key.argument })
		} else if t, ok := e.templates[key.ref]; ok {
			known = slices.Contains(t.uri.Varnames(), key.argument)
		}
		if !known {
			errs = append(errs, fmt.Errorf("completion of %q of %q: no prompt or resource template has it", key.argument, key.ref))
		}
	}
	return errors.Join(errs...)
}

func (e *Engine) completes() bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return len(e.completer) > 0
}

// Complete is the server's CompletionHandler. A known reference without a
// provider has no values; an unknown one is invalid.
func (e *Engine) Complete(ctx context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	ref := req.Params.Ref
	name := ref.Name
	if ref.Type == "ref/resource" {
		name = ref.URI
	}
	c := e.newCall(ctx, "completion/complete", name, req)
	defer c.finish()
	access, ok := e.referred(ref.Type, name)
	unknown := &Fault{Kind: Invalid, Field: "ref", Message: fmt.Sprintf("unknown reference %q", name)}
	if !ok {
		return nil, unknown
	}
	if err := access.admit(ctx, c, unknown); err != nil {
		return nil, err
	}
	if req.Params.Context != nil {
		c.Completed = req.Params.Context.Arguments
	}
	e.mu.RLock()
	h := e.completer[completionKey{name, req.Params.Argument.Name}]
	e.mu.RUnlock()
	values := []string{}
	if h != nil {
		found, err := run(ctx, c, e.cfg.ToolTimeout, func(ctx context.Context) ([]string, error) {
			return h(ctx, c, req.Params.Argument.Value)
		})
		if err != nil {
			return nil, e.fault(err)
		}
		values = append(values, found...)
	}
	total := len(values)
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{
		Values: values[:min(total, maxCompletions)], Total: total, HasMore: total > maxCompletions,
	}}, nil
}

func (e *Engine) referred(kind, name string) (*Access, bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	switch kind {
	case "ref/prompt":
		if p, ok := e.prompts[name]; ok {
			return &p.Access, true
		}
	case "ref/resource":
		if t, ok := e.templates[name]; ok {
			return &t.Access, true
		}
		if r, ok := e.resources[name]; ok {
			return &r.Access, true
		}
	}
	return nil, false
}
