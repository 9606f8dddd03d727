package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/protocol"
)

// inwardParams returns the parameters to deliver. They are written anew from
// what was parsed, so that no second parser can read them in another way.
// p is nil for a notification.
func inwardParams(msg *protocol.Message, p *pending) (json.RawMessage, error) {
	if msg.Params == nil {
		return nil, nil
	}
	meta := maps.Clone(msg.Meta)
	if meta != nil && eraOf(msg) == protocol.EraLegacy {
		// _meta is opaque to the legacy era; the SDK would act on these.
		maps.DeleteFunc(meta, func(key string, _ json.RawMessage) bool { return protocol.IsRequestMeta(key) })
	}
	if p != nil && p.token != nil {
		meta["progressToken"] = strconv.AppendInt(nil, p.number, 10)
	}
	if meta == nil {
		return protocol.Encode(msg.Params)
	}
	raw, err := protocol.Encode(meta)
	if err != nil {
		return nil, err
	}
	params := maps.Clone(msg.Params)
	params["_meta"] = raw
	return protocol.Encode(params)
}

// outward is the sink of all lanes.
func (m *mux) outward(ctx context.Context, lane *Lane, era protocol.Era, msg jsonrpc.Message) error {
	switch msg := msg.(type) {
	case *jsonrpc.Response:
		return m.finish(ctx, msg)
	case *jsonrpc.Request:
		switch {
		case ctx.Err() != nil: // of a cancelled call, which says nothing more
			return ctx.Err()
		case msg.IsCall():
			return m.ask(ctx, lane, era, msg)
		default:
			return m.notify(ctx, msg)
		}
	}
	return nil
}

// finish sends the answer to a call of the client.
func (m *mux) finish(ctx context.Context, reply *jsonrpc.Response) error {
	number, _ := reply.ID.Raw().(int64)
	m.mu.Lock()
	p := m.calls[number]
	if p == nil {
		m.mu.Unlock()
		return nil
	}
	delete(m.calls, number)
	if p.batch == nil && m.byID[p.key] == p {
		// The client may use the id again as soon as it sees the answer; in a
		// batch that is later.
		delete(m.byID, p.key)
	}
	cancelled := p.cancelled
	m.mu.Unlock()

	defer m.settle(p)
	p.reply = reply
	p.untake()
	if p.listen {
		_ = p.lane.Close()
	}
	if cancelled {
		return nil
	}
	return m.answer(ctx, p.batch, m.replyLine(p))
}

// settle counts a call out whose answer is written, or never will be.
func (m *mux) settle(p *pending) {
	if p.batch != nil {
		p.batch.done()
	}
	m.mu.Lock()
	m.open--
	if m.ended && m.open == 0 {
		close(m.idle)
	}
	m.mu.Unlock()
	close(p.settled)
}

func (m *mux) replyLine(p *pending) []byte {
	if p.reply.Error != nil {
		return errorLine(p.ID, m.clean(p.Facts, p.reply.Error))
	}
	result := p.reply.Result
	if p.listen {
		if patched, err := withMember(result, p.ID, "_meta", protocol.MetaSubscription); err == nil {
			result = patched
		}
	}
	return answerLine(p.ID, "result", result)
}

// clean returns the error to send. One that a handler or a middleware made
// goes out as it is; the SDK's own ones name Go types and quote the input, and
// others have no code.
func (m *mux) clean(facts *call.Facts, err error) *jsonrpc.Error {
	if e, ok := err.(*jsonrpc.Error); ok && e.Code != 0 { //nolint:errorlint // a wrapped one is not meant for clients
		if e.Code == protocol.CodeMaskedMethodNotFound {
			return &jsonrpc.Error{Code: protocol.CodeMethodNotFound, Message: e.Message, Data: e.Data}
		}
		return e
	}
	clean := refusal{code: protocol.CodeInternal, message: "internal error"}
	if facts.Method == "initialize" { // the one method whose params the SDK refuses without a code
		clean = refusal{code: protocol.CodeInvalidParams, message: "params are not what the method takes"}
	}
	var coded *jsonrpc.Error
	if errors.As(err, &coded) {
		switch coded.Code {
		case protocol.CodeMethodNotFound, protocol.CodeInvalidParams, protocol.CodeInvalidRequest:
			clean.code, clean.message, clean.data.Field = protocol.Reword(coded.Code, err.Error())
		}
	}
	level := slog.LevelDebug
	if clean.code == protocol.CodeInternal {
		level = slog.LevelError
	}
	m.Logger.Log(context.Background(), level, "request failed",
		"requestId", facts.RequestID, "method", facts.Method, "code", clean.code, "error", err)
	return clean.wireError(facts.RequestID)
}

// ask sends a request of the server's own. Where no answer can come it is
// answered at once.
func (m *mux) ask(ctx context.Context, lane *Lane, era protocol.Era, msg *jsonrpc.Request) error {
	number, _ := msg.ID.Raw().(int64)
	var refused error
	m.mu.Lock()
	switch {
	case era == protocol.EraModern:
		refused = &jsonrpc.Error{Code: protocol.CodeMethodNotFound, Message: "revision " + protocol.Modern + " has no requests to the client"}
	case !m.asking:
		refused = errCannotAnswer
	default:
		m.asks[number] = true
	}
	m.mu.Unlock()
	if refused != nil {
		return lane.Deliver(&jsonrpc.Response{ID: msg.ID, Error: refused})
	}
	return m.send(ctx, msg)
}

// notify sends a notification, with the client's own names for its request.
func (m *mux) notify(ctx context.Context, msg *jsonrpc.Request) error {
	switch {
	case msg.Method == "notifications/cancelled":
		if number, ok := asInteger(member(msg.Params, "requestId")); ok {
			m.mu.Lock()
			delete(m.asks, number)
			m.mu.Unlock()
		}
	case msg.Method == "notifications/progress":
		if status := m.Calls.TaskStatus(msg.Params); status != nil {
			return m.send(ctx, &jsonrpc.Request{Method: "notifications/tasks/status", Params: status})
		}
		return m.notifyFor(ctx, msg, func(p *pending) []byte { return p.token }, "progressToken")
	case bytes.Contains(msg.Params, []byte(protocol.MetaSubscription)):
		return m.notifyFor(ctx, msg, func(p *pending) []byte { return p.ID }, "_meta", protocol.MetaSubscription)
	}
	return m.send(ctx, msg)
}

// notifyFor sends a notification whose member at path is the internal id of a
// call. When the call is over, so is what it has to say.
func (m *mux) notifyFor(ctx context.Context, msg *jsonrpc.Request, name func(*pending) []byte, path ...string) error {
	number, _ := asInteger(member(msg.Params, path...))
	m.mu.Lock()
	p := m.calls[number]
	over := p == nil || p.cancelled
	m.mu.Unlock()
	if over || name(p) == nil {
		return nil
	}
	params, err := withMember(msg.Params, name(p), path...)
	if err != nil {
		return err
	}
	if msg.Method != acknowledgement {
		return m.send(ctx, &jsonrpc.Request{Method: msg.Method, Params: params})
	}
	if params, err = acknowledge(p.Listen, params); err != nil {
		return err
	}
	if err := m.send(ctx, &jsonrpc.Request{Method: msg.Method, Params: params}); err != nil {
		return err
	}
	close(p.Listen.Began)
	return m.acknowledged(p)
}

// tell sends a notification of a subscription that the SDK knows nothing of.
func (m *mux) tell(ctx context.Context, p *pending, method string, params json.RawMessage) {
	m.mu.Lock()
	over := m.calls[p.number] != p || p.cancelled
	m.mu.Unlock()
	if !over {
		_ = m.send(ctx, &jsonrpc.Request{Method: method, Params: params}) // a broken stream ends Run
	}
}

// acknowledged ends a subscription that has begun only after the end of input.
func (m *mux) acknowledged(p *pending) error {
	m.mu.Lock()
	p.acknowledged = true
	ended := m.ended
	m.mu.Unlock()
	if ended {
		return m.stop(p)
	}
	return nil
}

func (m *mux) send(ctx context.Context, msg jsonrpc.Message) error {
	line, err := jsonrpc.EncodeMessage(msg)
	if err != nil { // an error would be taken for a broken lane
		m.Logger.Error("dropped a message that cannot be encoded", "error", err)
		return nil
	}
	return m.out.write(ctx, line)
}

func isNotificationMethod(method string) bool { return strings.HasPrefix(method, "notifications/") }

// answerLike reports whether a damaged message is an answer.
func answerLike(data []byte) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil || members["method"] != nil {
		return false
	}
	return members["result"] != nil || members["error"] != nil
}

func asInteger(raw json.RawMessage) (int64, bool) {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return n, err == nil
}

func asString(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}
