package telemetry

import (
	"context"
	"log/slog"
	"net/http"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// scope is the instrumentation scope of the spans.
const scope = "github.com/famcp/famcp"

// Names of attributes by the OpenTelemetry semantic conventions for MCP
// (open-telemetry/semantic-conventions-genai, docs/gen-ai/mcp.md, status
// Development). mcp.session.id is left out: with authentication off the id is
// all that a session is protected by.
const (
	attrMethod     = "mcp.method.name"
	attrVersion    = "mcp.protocol.version"
	attrRequestID  = "jsonrpc.request.id"
	attrTool       = "gen_ai.tool.name"
	attrPrompt     = "gen_ai.prompt.name"
	attrOperation  = "gen_ai.operation.name"
	attrResource   = "mcp.resource.uri"
	attrErrorType  = "error.type"
	attrStatusCode = "rpc.response.status_code"
	attrTransport  = "network.transport"
	attrProtocol   = "network.protocol.name"
	attrClient     = "client.address"
)

// Traces makes the spans of requests. It uses the tracer provider that the
// project has set with otel.SetTracerProvider; without one, spans are not
// recorded and only the caller's context is passed on.
type Traces struct{ tracer trace.Tracer }

// NewTraces returns what makes the spans of one server.
func NewTraces() *Traces { return &Traces{otel.Tracer(scope)} }

// Origin says where a request's trace comes from.
type Origin struct {
	Header http.Header    // of the HTTP request; nil on stdio
	Meta   map[string]any // params._meta
	// Ambient says that the context is the request's own, so that a span in it
	// is the parent. The context of a session is that of another request.
	Ambient bool
}

// carrier reads the W3C fields from strings in a map.
type carrier map[string]any

func (c carrier) Get(key string) string { s, _ := c[key].(string); return s }
func (c carrier) Set(string, string)    {}
func (c carrier) Keys() []string        { return nil }

var (
	w3cTrace   propagation.TraceContext
	w3cBaggage propagation.Baggage
)

// Start starts the server span of a request. Its parent is, in this order, the
// span of the context where that is the request's own, the header traceparent,
// traceparent in _meta (SEP-414). What _meta names beside another parent is
// linked. The context carries the span, or at least the caller's, and the
// caller's baggage.
func (t *Traces) Start(ctx context.Context, name string, o Origin) (context.Context, trace.Span) {
	parent := trace.SpanContextFromContext(ctx)
	if !o.Ambient && parent.IsValid() {
		ctx, parent = trace.ContextWithSpanContext(ctx, trace.SpanContext{}), trace.SpanContext{}
	}
	if !parent.IsValid() && o.Header["Traceparent"] != nil {
		ctx = w3cTrace.Extract(ctx, propagation.HeaderCarrier(o.Header))
		parent = trace.SpanContextFromContext(ctx)
	}
	options := make([]trace.SpanStartOption, 1, 2)
	options[0] = serverKind
	if o.Meta["traceparent"] != nil {
		switch remote := trace.SpanContextFromContext(w3cTrace.Extract(context.Background(), carrier(o.Meta))); {
		case !remote.IsValid():
		case !parent.IsValid():
			ctx = trace.ContextWithRemoteSpanContext(ctx, remote)
		case !remote.Equal(parent):
			options = append(options, trace.WithLinks(trace.Link{SpanContext: remote}))
		}
	}
	switch {
	case o.Header["Baggage"] != nil:
		ctx = w3cBaggage.Extract(ctx, propagation.HeaderCarrier(o.Header))
	case o.Meta["baggage"] != nil:
		ctx = w3cBaggage.Extract(ctx, carrier(o.Meta))
	}
	return t.tracer.Start(ctx, name, options...)
}

var serverKind = trace.WithSpanKind(trace.SpanKindServer)

// Operation is what a span says of its request. Empty fields are left out.
type Operation struct {
	Method, Version, RequestID string
	Tool, Prompt, Resource     string
	Client                     string // the caller's address; "" on stdio
	HTTP                       bool
}

// Describe puts the attributes of a request on a span that is recorded.
func Describe(span trace.Span, o *Operation) {
	attrs := make([]attribute.KeyValue, 0, 10)
	add := func(key, value string) {
		if value != "" {
			attrs = append(attrs, attribute.String(key, value))
		}
	}
	add(attrMethod, o.Method)
	add(attrVersion, o.Version)
	add(attrRequestID, o.RequestID)
	add(attrTool, o.Tool)
	if o.Tool != "" {
		add(attrOperation, "execute_tool")
	}
	add(attrPrompt, o.Prompt)
	add(attrResource, o.Resource)
	add(attrClient, o.Client)
	if o.HTTP {
		add(attrTransport, "tcp")
		add(attrProtocol, "http")
	} else {
		add(attrTransport, "pipe")
	}
	span.SetAttributes(attrs...)
}

// Failed marks a span whose request was answered with a JSON-RPC error.
func Failed(span trace.Span, code, message string) {
	span.SetAttributes(attribute.String(attrErrorType, code), attribute.String(attrStatusCode, code))
	span.SetStatus(codes.Error, message)
}

// ToolFailed marks a span whose tool answered with a result that is an error.
func ToolFailed(span trace.Span) {
	span.SetAttributes(attribute.String(attrErrorType, "tool_error"))
	span.SetStatus(codes.Error, "")
}

// LogTraces returns a handler that puts the trace of a line's context on the
// line, or that of fallback when the line has none.
func LogTraces(h slog.Handler, fallback context.Context) slog.Handler { //nolint:revive // the context is a value here, not this call's
	if t, ok := h.(tracedHandler); ok {
		h = t.Handler
	}
	t := tracedHandler{Handler: h}
	if fallback != nil {
		t.fallback = trace.SpanContextFromContext(fallback)
	}
	return t
}

type tracedHandler struct {
	slog.Handler
	fallback trace.SpanContext
}

func (h tracedHandler) Handle(ctx context.Context, r slog.Record) error {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		span = h.fallback
	}
	if span.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("traceId", span.TraceID().String()), slog.String("spanId", span.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h tracedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return tracedHandler{h.Handler.WithAttrs(attrs), h.fallback}
}

func (h tracedHandler) WithGroup(name string) slog.Handler {
	return tracedHandler{h.Handler.WithGroup(name), h.fallback}
}
