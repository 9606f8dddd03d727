package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/famcp/famcp"
)

// recorder is a tracer provider that keeps the spans that have ended.
type recorder struct {
	embedded.TracerProvider
	mu    sync.Mutex
	last  byte
	spans []*recorded
}

type recorded struct {
	noop.Span
	r            *recorder
	name         string
	kind         trace.SpanKind
	self, parent trace.SpanContext
	links        []trace.Link
	attrs        map[string]string
	status       codes.Code
	message      string
}

type tracer struct {
	embedded.Tracer
	recorder *recorder
}

func (r *recorder) Tracer(string, ...trace.TracerOption) trace.Tracer { return tracer{recorder: r} }

func (t tracer) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	r, cfg := t.recorder, trace.NewSpanStartConfig(opts...)
	s := &recorded{r: r, name: name, kind: cfg.SpanKind(), parent: trace.SpanContextFromContext(ctx), links: cfg.Links(), attrs: map[string]string{}}
	r.mu.Lock()
	r.last++
	id := s.parent.TraceID()
	if !id.IsValid() {
		id = trace.TraceID{15: r.last}
	}
	s.self = trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: trace.SpanID{7: r.last}, TraceFlags: trace.FlagsSampled})
	r.mu.Unlock()
	return trace.ContextWithSpan(ctx, s), s
}

func (s *recorded) SpanContext() trace.SpanContext { return s.self }
func (s *recorded) IsRecording() bool              { return true }
func (s *recorded) SetStatus(c codes.Code, m string) {
	s.status, s.message = c, m
}

func (s *recorded) SetAttributes(kv ...attribute.KeyValue) {
	for _, a := range kv {
		s.attrs[string(a.Key)] = a.Value.String()
	}
}

func (s *recorded) End(...trace.SpanEndOption) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.r.spans = append(s.r.spans, s)
}

// take returns the spans ended so far of one name.
func (r *recorder) take(name string) (found []*recorded) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.spans {
		if s.name == name {
			found = append(found, s)
		}
	}
	return found
}

const (
	fromHeader = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	fromMeta   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

// TestSpans: the server span of a request, its parent and its attributes, in
// both eras over a socket (OpenTelemetry semantic conventions for MCP).
func TestSpans(t *testing.T) {
	r := &recorder{}
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(r)
	defer otel.SetTracerProvider(before)
	cfg := famcp.DefaultConfig()
	cfg.MCP.Tasks.Enabled = true
	cfg.Logger.Level = "error"
	s, err := newServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan context.Context, 10)
	famcp.AddTool(s, famcp.Tool{Name: "span", Description: "Shows its context.", Effect: famcp.ReadOnly()},
		func(ctx context.Context, _ *famcp.Call, in struct {
			Fail bool `json:"fail,omitempty"`
		},
		) (string, error) {
			seen <- ctx
			if in.Fail {
				return "", famcp.Failf("as asked")
			}
			return "ok", nil
		})
	handler, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(handler)
	defer web.Close()
	defer func() { _ = s.Close(context.WithoutCancel(t.Context())) }()
	post := func(body string, head ...string) http.Header {
		t.Helper()
		h, _ := post(t, web.URL, body, head...)
		return h
	}
	modern := func(tool, arguments, meta string, head ...string) {
		t.Helper()
		post(fmt.Sprintf(`{"jsonrpc":"2.0","id":"r7","method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}%s}}}`, tool, arguments, meta),
			append(head, "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: "+tool)...)
	}
	last := func(name string) *recorded {
		t.Helper()
		all := r.take(name)
		if len(all) == 0 {
			t.Fatalf("no span %q", name)
		}
		return all[len(all)-1]
	}
	checkParent := func(s *recorded, traceparent string) {
		t.Helper()
		got := ""
		if s.parent.IsValid() {
			got = fmt.Sprintf("00-%s-%s-01", s.parent.TraceID(), s.parent.SpanID())
		}
		if got != traceparent {
			t.Errorf("parent %q, want %q", got, traceparent)
		}
	}
	const span = "tools/call span"

	modern("span", `{}`, "")
	got := last(span)
	checkParent(got, "")
	for key, want := range map[string]string{
		"mcp.method.name": "tools/call", "mcp.protocol.version": "2026-07-28", "jsonrpc.request.id": "r7",
		"gen_ai.tool.name": "span", "gen_ai.operation.name": "execute_tool",
		"network.transport": "tcp", "network.protocol.name": "http", "client.address": "127.0.0.1",
	} {
		if got.attrs[key] != want {
			t.Errorf("%s is %q, want %q", key, got.attrs[key], want)
		}
	}
	if got.kind != trace.SpanKindServer || got.status != codes.Unset || got.attrs["error.type"] != "" {
		t.Errorf("kind %v, status %v, attributes %v", got.kind, got.status, got.attrs)
	}
	if inner := trace.SpanContextFromContext(<-seen); !inner.Equal(got.self) {
		t.Errorf("the handler is in %v, want %v", inner.SpanID(), got.self.SpanID())
	}

	modern("span", `{}`, "", "Traceparent: "+fromHeader, "Baggage: tenant=a")
	checkParent(last(span), fromHeader)
	if b := baggage.FromContext(<-seen).Member("tenant").Value(); b != "a" {
		t.Errorf("baggage %q", b)
	}
	modern("span", `{}`, `,"traceparent":"`+fromMeta+`","baggage":"tenant=b"`)
	checkParent(last(span), fromMeta)
	if b := baggage.FromContext(<-seen).Member("tenant").Value(); b != "b" {
		t.Errorf("baggage %q", b)
	}
	modern("span", `{}`, `,"traceparent":"`+fromMeta+`"`, "Traceparent: "+fromHeader)
	got = last(span)
	checkParent(got, fromHeader)
	if len(got.links) != 1 || got.links[0].SpanContext.TraceID().String() != fromMeta[3:35] {
		t.Errorf("links %v", got.links)
	}
	<-seen
	modern("span", `{}`, `,"traceparent":5`, "Traceparent: 00-nonsense")
	checkParent(last(span), "")
	<-seen

	modern("span", `{"fail":true}`, "")
	if got = last(span); got.status != codes.Error || got.attrs["error.type"] != "tool_error" {
		t.Errorf("failed: %v %v", got.status, got.attrs)
	}
	<-seen
	modern("made_up", `{}`, "")
	if got = last("tools/call"); got.status != codes.Error || got.attrs["error.type"] != "-32602" || got.attrs["rpc.response.status_code"] != "-32602" {
		t.Errorf("unknown tool: %v %v", got.status, got.attrs)
	}

	// On a session each request has its own parent, not that of initialize.
	session := post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		"Traceparent: "+fromHeader).Get("Mcp-Session-Id")
	checkParent(last("initialize"), fromHeader)
	call := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"span","arguments":{}%s}}`
	head := "Mcp-Session-Id: " + session
	post(fmt.Sprintf(call, ""), head)
	checkParent(last(span), "")
	<-seen
	post(fmt.Sprintf(call, `,"_meta":{"traceparent":"`+fromMeta+`"}`), head)
	checkParent(last(span), fromMeta)
	<-seen
	post(fmt.Sprintf(call, ""), head, "Traceparent: "+fromHeader)
	checkParent(last(span), fromHeader)
	if got := last(span); got.attrs["mcp.protocol.version"] != "2025-11-25" {
		t.Errorf("version %q", got.attrs["mcp.protocol.version"])
	}
	for _, s := range r.spans {
		for _, value := range s.attrs {
			if session != "" && strings.Contains(value, session) {
				t.Errorf("the session id is in span %q", s.name)
			}
		}
	}
}

// TestTraceInLog: without a tracer provider the caller's trace goes into the log
// and on to the handler all the same, and neither the log nor the file of
// messages has a secret or an argument.
func TestTraceInLog(t *testing.T) {
	cfg := famcp.DefaultConfig()
	cfg.MCP.Tasks.Enabled = true
	cfg.Logger.UseFileLogger, cfg.Logger.Dir = true, filepath.Join(t.TempDir(), "logs")
	cfg.MCP.Debug.LogFile = filepath.Join(cfg.Logger.Dir, "messages.jsonl")
	s, err := newServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	famcp.AddTool(s, famcp.Tool{Name: "logs", Description: "Logs.", Effect: famcp.ReadOnly()},
		func(ctx context.Context, c *famcp.Call, in struct {
			Text string `json:"text"`
		},
		) (string, error) {
			c.Log().Info("mine", "password", in.Text)
			return trace.SpanContextFromContext(ctx).TraceID().String(), nil
		})
	handler, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(handler)
	defer web.Close()
	defer func() { _ = s.Close(context.WithoutCancel(t.Context())) }()
	_, body := post(t, web.URL, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"logs","arguments":{"text":"s3cret-arg"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		"Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: logs", "Traceparent: "+fromHeader, "X-Request-Id: r-42", "Authorization: Bearer s3cret-token")
	id := fromHeader[3:35]
	if !strings.Contains(body, id) {
		t.Errorf("the handler's context lacks the caller's trace: %s", body)
	}
	log, err := os.ReadFile(filepath.Join(cfg.Logger.Dir, "everything.log"))
	if err != nil {
		t.Fatal(err)
	}
	messages, err := os.ReadFile(cfg.MCP.Debug.LogFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`msg=mine requestId=r-42 name=logs password=******** traceId=` + id, `msg="tool call" requestId=r-42 name=logs`} {
		if !strings.Contains(string(log), part) {
			t.Errorf("no %q in the log:\n%s", part, log)
		}
	}
	if n := strings.Count(string(log), "traceId="+id); n != 2 {
		t.Errorf("%d lines have the trace:\n%s", n, log)
	}
	lines := strings.Split(strings.TrimSpace(string(messages)), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `"direction":"in","requestId":"r-42"`) || !strings.Contains(lines[0], `"arguments":{"text":"********"}`) ||
		!strings.Contains(lines[1], `"direction":"out","requestId":"r-42"`) {
		t.Errorf("messages:\n%s", messages)
	}
	if strings.Contains(string(log)+string(messages), "s3cret") {
		t.Errorf("a secret in\n%s\n%s", log, messages)
	}
}

func post(t *testing.T, url, body string, head ...string) (http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for _, line := range head {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.Header, string(answer)
}
