package invoke

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/call"
)

// Detached describes a call without a server, for tests of handlers. All
// fields but Answers, Client and Capabilities are required.
type Detached struct {
	Facts        *call.Facts
	Version      string // the revision spoken
	Client       *mcp.Implementation
	Capabilities *mcp.ClientCapabilities
	Answers      map[string]json.RawMessage // to the handler's questions, by key
	Logger       *slog.Logger
	Sent         func(method string, params json.RawMessage) // is given every notification
}

// NewDetached returns the call, whose client wants progress and log messages
// of every level. The caller runs end when the call is over.
func NewDetached(ctx context.Context, d Detached) (c *Call, end func(), err error) {
	server := mcp.NewServer(&mcp.Implementation{Name: "detached", Version: "0"}, nil)
	line := &line{sent: d.Sent, closed: make(chan struct{})}
	session, err := server.Connect(ctx, line, &mcp.ServerSessionOptions{State: &mcp.ServerSessionState{
		InitializeParams:  &mcp.InitializeParams{ProtocolVersion: d.Version, ClientInfo: d.Client, Capabilities: d.Capabilities},
		InitializedParams: &mcp.InitializedParams{},
		LogLevel:          "debug",
	}})
	if err != nil {
		return nil, nil, err
	}
	c = &Call{
		Facts: d.Facts, ctx: ctx, session: session, version: d.Version, token: "detached", answers: d.Answers,
		engine: &Engine{cfg: Config{Logger: d.Logger, LogNotifications: true, Now: time.Now}},
		client: detachedClient{&d},
	}
	return c, func() {
		c.finish()
		_ = session.Close() // there is nobody at the other end to fail
	}, nil
}

type detachedClient struct{ d *Detached }

func (c detachedClient) ClientInfo() *mcp.Implementation             { return c.d.Client }
func (c detachedClient) ClientCapabilities() *mcp.ClientCapabilities { return c.d.Capabilities }
func (c detachedClient) ProtocolVersion() string                     { return c.d.Version }

// line is a transport with nobody at the other end.
type line struct {
	sent   func(method string, params json.RawMessage)
	close  sync.Once
	closed chan struct{}
}

// Connect implements [mcp.Transport].
func (l *line) Connect(context.Context) (mcp.Connection, error) { return l, nil }

// SessionID implements [mcp.Connection].
func (l *line) SessionID() string { return "" }

// Read implements [mcp.Connection].
func (l *line) Read(context.Context) (jsonrpc.Message, error) {
	<-l.closed
	return nil, io.EOF
}

// Write implements [mcp.Connection].
func (l *line) Write(_ context.Context, m jsonrpc.Message) error {
	if r, ok := m.(*jsonrpc.Request); ok && !r.IsCall() {
		l.sent(r.Method, r.Params)
	}
	return nil
}

// Close implements [mcp.Connection].
func (l *line) Close() error {
	l.close.Do(func() { close(l.closed) })
	return nil
}
