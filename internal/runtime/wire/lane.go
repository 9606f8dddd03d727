package wire

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Sink takes the messages that a server writes on a [Lane]. ctx is that of
// the request the message belongs to, for an answer without its cancellation.
// A sink may be called concurrently. An error while ctx is not done means that
// the lane is broken: the SDK cancels everything on it.
type Sink func(ctx context.Context, msg jsonrpc.Message) error

// A Lane is one logical connection to an [mcp.Server]: messages come in by
// [Lane.Deliver] and go out through a [Sink], so that many lanes can share one
// stream, or one lane many streams. It is both the transport and the
// connection of one session.
//
// Whoever feeds a lane owns the request ids on it: they must be integers that
// are unique on the lane, because the SDK decodes ids as 64-bit floats and
// answers nothing to a duplicate.
type Lane struct {
	sink   Sink
	in     chan jsonrpc.Message
	closed chan struct{}
	close  sync.Once
}

var (
	_ mcp.Transport  = (*Lane)(nil)
	_ mcp.Connection = (*Lane)(nil)
)

// ErrClosed is the error of [Lane.Deliver] after [Lane.Close].
var ErrClosed = errors.New("the lane is closed")

// NewLane returns an open lane that writes to sink.
func NewLane(sink Sink) *Lane {
	return &Lane{sink: sink, in: make(chan jsonrpc.Message), closed: make(chan struct{})}
}

// Deliver hands msg to the server. It returns once the SDK has taken the
// message, which never waits for a handler.
func (l *Lane) Deliver(msg jsonrpc.Message) error {
	select {
	case l.in <- msg:
		return nil
	case <-l.closed:
		return ErrClosed
	}
}

// Connect implements [mcp.Transport].
func (l *Lane) Connect(context.Context) (mcp.Connection, error) { return l, nil }

// Read implements [mcp.Connection].
func (l *Lane) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case msg := <-l.in:
		return msg, nil
	case <-l.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements [mcp.Connection].
func (l *Lane) Write(ctx context.Context, msg jsonrpc.Message) error { return l.sink(ctx, msg) }

// Close ends the session: its running handlers are cancelled and cannot
// answer any more. It may be called more than once and from within the sink.
func (l *Lane) Close() error {
	l.close.Do(func() { close(l.closed) })
	return nil
}

// SessionID implements [mcp.Connection]; a lane has no name on the wire.
func (l *Lane) SessionID() string { return "" }
