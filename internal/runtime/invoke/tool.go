package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/protocol"
	"github.com/famcp/famcp/internal/runtime/telemetry"
)

// Output is what a tool's handler returned.
type Output struct {
	Structured json.RawMessage // nil: none
	Content    []mcp.Content   // nil: the JSON text of Structured
}

// Tool is one tool of the server.
type Tool struct {
	Listed  *mcp.Tool // InputSchema and OutputSchema are set from Input and Output
	Access  Access
	Timeout time.Duration // of one run; 0 takes the engine's, negative is none
	Input   *Schema
	Output  *Schema // nil without structured output

	Tasks     TaskSupport   // "" is forbidden
	TaskGrace time.Duration // before a modern call becomes a task; 0 is DefaultTaskGrace, negative is none

	Deprecated *Deprecated // nil: it stays
	Handle     func(ctx context.Context, c *Call, args json.RawMessage) (Output, error)

	calls *telemetry.Tool
}

// AddTool registers t, or replaces the tool of that name.
func (e *Engine) AddTool(s *mcp.Server, t *Tool) {
	t.Listed.InputSchema = t.Input.JSON
	if t.Output != nil && !e.cfg.AnswerAsText { // a schema would promise structuredContent
		t.Listed.OutputSchema = t.Output.JSON
	}
	if e.cfg.HideAnnotations {
		t.Listed.Annotations = nil
	}
	t.calls = e.cfg.Metrics.Tool(t.Listed.Name)
	e.mu.Lock()
	e.tools[t.Listed.Name] = t
	e.mu.Unlock()
	s.AddTool(t.Listed, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return e.callTool(ctx, t, req)
	})
}

// ParamHeaders returns the arguments of a tool that modern clients repeat as
// headers; nil for an unknown tool, and for one that callers may not know of:
// its call checks them.
func (e *Engine) ParamHeaders(tool string) protocol.ParamHeaders {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if t, ok := e.tools[tool]; ok && t.Access.Visible == nil {
		return t.Input.Headers
	}
	return nil
}

// RemoveTools removes the tools that exist and reports whether any did.
func (e *Engine) RemoveTools(s *mcp.Server, names ...string) bool {
	removed := remove(e, e.tools, names, s.RemoveTools)
	for _, name := range names {
		e.cfg.Metrics.Forget(name)
	}
	return removed
}

// remove takes entries out of the SDK first: as long as one can be listed its
// access must be known. Its callers do not run at the same time.
func remove[T any](e *Engine, entries map[string]T, names []string, fromSDK func(...string)) bool {
	var found []string
	e.mu.RLock()
	for _, name := range names {
		if _, ok := entries[name]; ok {
			found = append(found, name)
		}
	}
	e.mu.RUnlock()
	if len(found) == 0 {
		return false
	}
	fromSDK(found...)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range found {
		delete(entries, name)
	}
	e.removed += len(found)
	return true
}

func (e *Engine) callTool(ctx context.Context, t *Tool, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	start := e.cfg.Now()
	c := e.newCall(ctx, "tools/call", t.Listed.Name, req)
	res, err := e.serveTool(ctx, c, t, req)
	if id, ok := c.Task(); ok {
		e.logCall(ctx, c, start, slog.String("status", "task"), slog.String("task", id))
		return res, err
	}
	c.finish()
	status := toolStatus(ctx, res, err)
	t.calls.Done(status, e.cfg.Now().Sub(start))
	e.logCall(ctx, c, start, slog.String("status", status))
	return res, err
}

// logCall writes the line of a tool call, attributes one by one: a logger with
// them costs as much as the call.
func (e *Engine) logCall(ctx context.Context, c *Call, start time.Time, outcome ...slog.Attr) {
	if !e.cfg.Logger.Enabled(ctx, slog.LevelInfo) {
		return
	}
	e.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "tool call", append([]slog.Attr{
		slog.String("requestId", c.Facts.RequestID), slog.String("name", c.Name),
		slog.Int64("durationMs", e.cfg.Now().Sub(start).Milliseconds()), slog.String("era", c.Facts.Era.String()),
	}, outcome...)...)
}

func toolStatus(ctx context.Context, res *mcp.CallToolResult, err error) string {
	switch {
	case ctx.Err() != nil:
		return telemetry.StatusCancelled
	case err != nil:
		return telemetry.StatusError
	case res.IsError:
		return telemetry.StatusFailed
	case res.InputRequests != nil:
		return telemetry.StatusInputRequired
	default:
		return telemetry.StatusOK
	}
}

func (e *Engine) serveTool(ctx context.Context, c *Call, t *Tool, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if err := t.Access.admit(ctx, c, unknown("tool", t.Listed.Name)); err != nil {
		return nil, e.sanitize(ctx, c, err)
	}
	if t.Access.Visible != nil && c.Facts.Transport == call.HTTP && c.Facts.Era == protocol.EraModern {
		if header, reason := t.Input.Headers.Mismatch(c.Facts.Header, req.Params.Arguments); header != "" {
			return nil, newError(protocol.CodeHeaderMismatch, "header "+header+" "+reason,
				protocol.ErrorData{RequestID: c.Facts.RequestID, Field: header, Reason: reason})
		}
	}
	e.used(ctx, c, t.Deprecated, "tool", t.Listed.Name)
	plan, err := e.planTask(c, t)
	if err != nil {
		return nil, e.sanitize(ctx, c, err)
	}
	if plan != nil {
		return e.runTask(ctx, c, t, req, plan)
	}
	timeout := t.Timeout
	if timeout == 0 {
		timeout = e.cfg.ToolTimeout
	}
	return e.answerTool(ctx, c, t, req, timeout)
}

// answerTool checks the arguments and runs the handler, each time for at most
// timeout; not above zero is without limit.
func (e *Engine) answerTool(ctx context.Context, c *Call, t *Tool, req *mcp.CallToolRequest, timeout time.Duration) (*mcp.CallToolResult, error) {
	check := t.Input.Check
	if e.cfg.UncheckedInput {
		check = t.Input.Fill
	}
	args, violations := check(req.Params.Arguments)
	if len(violations) > 0 {
		return e.toolFailure(c, &Fault{Kind: Invalid, Message: "invalid arguments: " + describe(violations), Violations: violations})
	}
	out, ask, err := converse(ctx, c, request{
		name: t.Listed.Name, args: req.Params.Arguments,
		responses: req.Params.InputResponses, state: req.Params.RequestState,
	}, max(timeout, 0), func(ctx context.Context) (Output, error) { return t.Handle(ctx, c, args) })
	if err != nil {
		return e.toolError(ctx, c, err)
	}
	if ask != nil {
		return &mcp.CallToolResult{Content: []mcp.Content{}, InputRequests: ask.requests, RequestState: ask.state}, nil
	}
	return e.toolResult(ctx, c, t, out)
}

func (e *Engine) toolError(ctx context.Context, c *Call, err error) (*mcp.CallToolResult, error) {
	f := e.fault(err)
	if ctx.Err() != nil && f.Kind == Internal {
		return nil, &Fault{Kind: Failed, Message: "the request was cancelled", Cause: err}
	}
	e.record(ctx, c, f)
	return e.toolFailure(c, f)
}

// toolResult is a copy each time: the SDK writes into the result it is given.
func (e *Engine) toolResult(ctx context.Context, c *Call, t *Tool, out Output) (*mcp.CallToolResult, error) {
	res := &mcp.CallToolResult{Content: out.Content}
	if t.Output != nil {
		if _, violations := t.Output.Check(out.Structured); len(violations) > 0 {
			err := errors.New("the result breaks the tool's output schema: " + describe(violations))
			return nil, e.sanitize(ctx, c, &Fault{Kind: Internal, Message: internalMessage, Cause: err})
		}
	}
	if out.Structured != nil {
		mirror := func() mcp.Content { return &mcp.TextContent{Text: string(out.Structured)} }
		// Before 2026-07-28 structuredContent must be an object.
		if !e.cfg.AnswerAsText && (c.Facts.Era == protocol.EraModern || out.Structured[0] == '{') {
			res.StructuredContent = out.Structured
		}
		switch {
		case e.cfg.AnswerAsText:
			res.Content = append([]mcp.Content{mirror()}, res.Content...)
		case res.Content == nil && (res.StructuredContent == nil || !c.rendersStructured()):
			res.Content = []mcp.Content{mirror()}
		}
	}
	if res.Content == nil {
		res.Content = []mcp.Content{}
	}
	return truncate(res, e.cfg.MaxResultBytes), nil
}

// appsExtension is the extension of clients that show structured content
// themselves: the same as text would fill their model's context.
const appsExtension = "io.modelcontextprotocol/ui"

func (c *Call) rendersStructured() bool {
	_, ok := c.capabilities().Extensions[appsExtension]
	return ok
}
