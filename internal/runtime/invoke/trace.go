package invoke

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/trace"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/protocol"
	"github.com/famcp/famcp/internal/runtime/telemetry"
)

// trace starts the span of a request. Its name has nothing that a client can
// make up: of tools and prompts only those that there are.
func (e *Engine) trace(ctx context.Context, method string, f *call.Facts, req mcp.Request) (context.Context, trace.Span) {
	o := telemetry.Origin{Header: f.Header, Ambient: f.Transport == call.HTTP && f.Era == protocol.EraModern}
	if !nilParams(req) {
		if p, ok := req.GetParams().(interface{ GetMeta() map[string]any }); ok {
			o.Meta = p.GetMeta()
		}
	}
	name, tool, prompt := method, "", ""
	switch r := req.(type) {
	case *mcp.CallToolRequest:
		if r.Params != nil {
			tool, name = r.Params.Name, e.spanName(method, r.Params.Name)
		}
	case *mcp.GetPromptRequest:
		if r.Params != nil {
			prompt, name = r.Params.Name, e.spanName(method, r.Params.Name)
		}
	}
	ctx, span := e.traces.Start(ctx, name, o)
	if !span.IsRecording() {
		return ctx, span
	}
	op := &telemetry.Operation{
		Method: method, Version: versionOf(req), RequestID: clip(strings.Trim(string(f.ID), `"`)),
		Tool: clip(tool), Prompt: clip(prompt), HTTP: f.Transport == call.HTTP,
	}
	if f.Address.IsValid() {
		op.Client = f.Address.String()
	}
	switch r := req.(type) {
	case *mcp.ReadResourceRequest:
		if r.Params != nil {
			op.Resource = telemetry.MaskText(r.Params.URI[:min(len(r.Params.URI), 512)])
		}
	case *mcp.SubscribeRequest:
		if r.Params != nil {
			op.Resource = telemetry.MaskText(r.Params.URI[:min(len(r.Params.URI), 512)])
		}
	}
	telemetry.Describe(span, op)
	return ctx, span
}

func (e *Engine) spanName(method, entry string) string {
	e.mu.RLock()
	_, tool := e.tools[entry]
	_, prompt := e.prompts[entry]
	e.mu.RUnlock()
	if tool && method == "tools/call" || prompt && method == "prompts/get" {
		return method + " " + entry
	}
	return method
}

// endSpan ends the span of a request that is answered with res or err.
func endSpan(span trace.Span, res mcp.Result, err error) {
	if !span.IsRecording() {
		span.End()
		return
	}
	var wire *jsonrpc.Error
	switch {
	case errors.As(err, &wire):
		telemetry.Failed(span, strconv.FormatInt(wire.Code, 10), wire.Message)
	case err != nil:
		telemetry.Failed(span, "_OTHER", internalMessage)
	default:
		if r, ok := res.(*mcp.CallToolResult); ok && r != nil && r.IsError {
			telemetry.ToolFailed(span)
		}
	}
	span.End()
}
