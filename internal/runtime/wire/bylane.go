package wire

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/protocol"
)

// laneID is the id of the one request on a lane.
const laneID = 1

// farewell is how long a subscription whose context is done may take to give
// its result.
const farewell = time.Second

// byLane serves a request on a session of its own.
func (e *Engine) byLane(ctx context.Context, f *call.Facts, m *protocol.Message) (json.RawMessage, *jsonrpc.Error) {
	if m.Method == "subscriptions/listen" {
		var fault *jsonrpc.Error
		if f.Listen, fault = listenFor(m); fault != nil {
			return nil, fault
		}
	}
	replies := make(chan *jsonrpc.Response, 1)
	var lane *Lane
	lane = NewLane(func(_ context.Context, msg jsonrpc.Message) error {
		switch msg := msg.(type) {
		case *jsonrpc.Response:
			replies <- msg // the only one
		case *jsonrpc.Request:
			if msg.IsCall() {
				return refuseCall(lane, msg)
			}
			return forward(f, msg)
		}
		return nil
	})
	defer lane.Close()
	if _, err := connectModern(e.cfg.Server, lane, ""); err != nil {
		return nil, e.asWireError(ctx, f, err)
	}
	raw, err := inwardParams(m, nil)
	if err != nil {
		return nil, e.asWireError(ctx, f, err)
	}
	id, _ := jsonrpc.MakeID(float64(laneID))
	key, release := e.cfg.Calls.Put(f)
	defer release()
	header := http.Header{call.Header: {key}}
	for name, values := range f.Header {
		header[name] = values
	}
	request := &jsonrpc.Request{ID: id, Method: m.Method, Params: raw, Extra: &mcp.RequestExtra{Header: header}}
	if err := lane.Deliver(request); err != nil {
		return nil, e.asWireError(ctx, f, err)
	}
	select {
	case reply := <-replies:
		return e.reply(ctx, f, m, reply)
	case <-ctx.Done():
	}
	if m.Method == "subscriptions/listen" {
		if reply := e.endListen(lane, replies); reply != nil {
			return e.reply(ctx, f, m, reply)
		}
	}
	return nil, e.asWireError(ctx, f, context.Cause(ctx)) // closing the lane cancels the handler
}

// endListen ends a subscription and returns its result, nil when it gives none.
func (e *Engine) endListen(lane *Lane, replies <-chan *jsonrpc.Response) *jsonrpc.Response {
	err := lane.Deliver(&jsonrpc.Request{Method: "notifications/cancelled", Params: json.RawMessage(`{"requestId":1}`)})
	if err != nil {
		return nil
	}
	select {
	case reply := <-replies:
		return reply
	case <-time.After(farewell):
		return nil
	}
}

// forward sends a notification of the lane's request to its client.
func forward(f *call.Facts, msg *jsonrpc.Request) error {
	if f.Notify == nil {
		return nil
	}
	params := msg.Params
	if member(params, "_meta", protocol.MetaSubscription) != nil {
		var err error
		if params, err = withMember(params, f.ID, "_meta", protocol.MetaSubscription); err != nil {
			return err
		}
	}
	if msg.Method != acknowledgement || f.Listen == nil {
		f.Notify(msg.Method, params)
		return nil
	}
	params, err := acknowledge(f.Listen, params)
	if err != nil {
		return err
	}
	f.Notify(msg.Method, params)
	close(f.Listen.Began)
	return nil
}

func (e *Engine) reply(ctx context.Context, f *call.Facts, m *protocol.Message, reply *jsonrpc.Response) (json.RawMessage, *jsonrpc.Error) {
	if reply.Error != nil {
		return nil, e.asWireError(ctx, f, reply.Error)
	}
	if m.Method == "subscriptions/listen" {
		if patched, err := withMember(reply.Result, f.ID, "_meta", protocol.MetaSubscription); err == nil {
			return patched, nil
		}
	}
	return reply.Result, nil
}
