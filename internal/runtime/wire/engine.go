package wire

/*
How modern requests are served

A request of the modern era brings everything along and leaves nothing behind,
but the SDK serves messages on sessions. Its HTTP handler opens one for each
request: a connection, five goroutines, and the body parsed a dozen times, which
is nine tenths of what such a request costs. The engine has two other ways in.

Direct. The standard methods are called through the server's receiving
middleware, the outermost first and the SDK's own dispatch at its core, exactly
as a session does for what it has read. What is passed by is the reading: the
front has parsed the message already. The session that handlers see is one
that lives as long as the engine. It knows no client: its state says only
that the modern revision is spoken, so an accessor that falls back to it when
the request says nothing finds nothing. Nothing waits on it, since no message
travels through it, so one is enough for any number of requests. Handlers run
in the goroutine and the context of their HTTP request: a client that goes away
cancels its own and no other.

By lane. What the SDK ties to a session gets a session of its own, a [Lane],
for the time of the request: subscriptions/listen, because a session has one
subscription; server/discover, because it writes the client into the session;
and the methods that only the SDK knows, a project's own among them.

What a handler sends on the way to its answer comes out of the session's
connection with the handler's context, and the facts in that context say where
it belongs. In direct calls it is also held against the log level of the
request, which a session would have kept for it.

Two things that the SDK does behind its middleware are done here: serverInfo
goes into every result, without touching what the handler returned, and the
result type is set where the SDK's core has not.
*/

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/protocol"
)

// EngineConfig configures an [Engine]. All fields but Tasks are required.
type EngineConfig struct {
	Tasks  bool // the server has the methods of the tasks extension
	Server *mcp.Server
	Calls  *call.Table         // brings facts to requests that travel by lane
	Info   *mcp.Implementation // the server's, for results
	Logger *slog.Logger
}

// Engine serves the requests of the modern era that come by HTTP. It is safe
// for concurrent use.
type Engine struct {
	cfg     EngineConfig
	receive mcp.MethodHandler // the server's receiving middleware and dispatch
	session *mcp.ServerSession
	lane    *Lane
	meta    json.RawMessage // of a result: who the server is
}

// NewEngine returns an engine for a server whose middleware is complete: what
// is added later sees only requests that travel by lane. End it with Close.
func NewEngine(cfg EngineConfig) (*Engine, error) {
	meta, err := protocol.Encode(map[string]any{protocol.MetaServerInfo: cfg.Info})
	if err != nil {
		return nil, fmt.Errorf("encoding the server's info: %w", err)
	}
	e := &Engine{cfg: cfg, meta: meta}
	cfg.Server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		e.receive = next
		return next
	})
	e.lane = NewLane(e.outward)
	// Levels are the requests' business: the session lets everything out.
	if e.session, err = connectModern(cfg.Server, e.lane, "debug"); err != nil {
		return nil, err
	}
	return e, nil
}

// connectModern opens a session that speaks the modern revision from the
// start: the SDK decides by the session, not by the request, whether a handler
// may answer input_required, and sends list changes unasked to a session
// without one.
func connectModern(s *mcp.Server, lane *Lane, level mcp.LoggingLevel) (*mcp.ServerSession, error) {
	session, err := s.Connect(context.Background(), lane, &mcp.ServerSessionOptions{State: &mcp.ServerSessionState{
		InitializeParams: &mcp.InitializeParams{ProtocolVersion: protocol.Modern}, LogLevel: level,
	}})
	if err != nil {
		return nil, fmt.Errorf("opening a modern session: %w", err)
	}
	return session, nil
}

// Close ends the engine's session. Requests that run are not waited for.
func (e *Engine) Close() { _ = e.lane.Close() }

// Serve serves one request, which has passed the checks of the transport, and
// returns its result or the error to answer with. It returns when ctx is done;
// a subscription that has begun still gives its result then.
func (e *Engine) Serve(ctx context.Context, f *call.Facts, m *protocol.Message) (json.RawMessage, *jsonrpc.Error) {
	if method, ok := directMethods[m.Method]; ok && (e.cfg.Tasks || !strings.HasPrefix(m.Method, "tasks/")) {
		return e.direct(ctx, f, m, method)
	}
	return e.byLane(ctx, f, m)
}

// outward takes what handlers of direct calls send on their way.
func (e *Engine) outward(ctx context.Context, msg jsonrpc.Message) error {
	request, ok := msg.(*jsonrpc.Request)
	if !ok {
		return nil // nothing was asked through this lane
	}
	if request.IsCall() {
		return refuseCall(e.lane, request)
	}
	if f := call.FromContext(ctx); f != nil && f.Notify != nil && wanted(f, request) {
		f.Notify(request.Method, request.Params)
	}
	return nil
}

// refuseCall answers a request of the server's own: the modern era has none.
func refuseCall(lane *Lane, request *jsonrpc.Request) error {
	return lane.Deliver(&jsonrpc.Response{ID: request.ID, Error: &jsonrpc.Error{
		Code: protocol.CodeMethodNotFound, Message: "revision " + protocol.Modern + " has no requests to the client",
	}})
}

// wanted reports whether the client asked for a message: log messages only
// from the level on that the request names.
func wanted(f *call.Facts, request *jsonrpc.Request) bool {
	if request.Method != "notifications/message" {
		return true
	}
	level := asString(member(request.Params, "level"))
	return f.LogLevel != "" && protocol.LevelAtLeast(level, f.LogLevel)
}

// asWireError returns err as it goes out. Errors without a code are not meant
// for clients; the front rewords what the SDK says of its own types.
func (e *Engine) asWireError(ctx context.Context, f *call.Facts, err error) *jsonrpc.Error {
	if wire, ok := err.(*jsonrpc.Error); ok { //nolint:errorlint // a wrapped one says less than the whole
		return wire
	}
	if wire := (*jsonrpc.Error)(nil); errors.As(err, &wire) {
		return &jsonrpc.Error{Code: wire.Code, Message: err.Error(), Data: wire.Data}
	}
	if ctx.Err() == nil { // else nobody waits for it
		e.cfg.Logger.Error("request failed", "requestId", f.RequestID, "method", f.Method, "error", err)
	}
	return (&refusal{code: protocol.CodeInternal, message: "internal error"}).wireError(f.RequestID)
}
