package front

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/protocol"
)

// serveInitialize opens a session.
func (f *Front) serveInitialize(p *request) {
	m := p.message
	if !f.cfg.Eras.Serves(protocol.EraLegacy) {
		f.refuseVersion(p, m.ParamString("protocolVersion"))
		return
	}
	if f.running.isDraining() {
		f.refuse(p.w, m.ID, draining)
		return
	}
	facts := f.facts(p.r, protocol.EraLegacy, m)
	facts.CanAsk = p.accept.stream
	if !f.authorize(p.w, p.r, nil, facts, m) {
		return
	}
	release, ok := f.sessions.reserve()
	if !ok {
		f.refuse(p.w, m.ID, Refusal{
			Code: protocol.CodeUnavailable, Message: "too many sessions are open; retry later",
			Data:   protocol.ErrorData{Reason: "mcp.sessions.max", RetryAfter: 30},
			Header: http.Header{"Retry-After": {"30"}},
		})
		return
	}
	defer release()
	ctx, drop, leave := f.running.enter(p.r.Context(), false)
	defer leave()
	opened, owner := false, ""
	if facts.Authenticated {
		owner = facts.Subject
	}
	wireID := sdkID(m.ID)
	e := &exchange{
		w: p.w, accept: p.accept, era: protocol.EraLegacy, requestID: facts.RequestID,
		method: m.Method, id: m.ID, wireID: wireID, drop: drop, messages: f.cfg.Messages,
		opened: func(id, version string) { opened = true; f.sessions.add(id, version, owner) },
	}
	f.delegate(ctx, e, p.r, replaceID(opaqueMeta(p.body, m), m, wireID), facts, func(h http.Header) {
		h.Del(protocol.HeaderSession)
		h.Del(protocol.HeaderVersion)
	})
	if id := e.header.Get(protocol.HeaderSession); id != "" && !opened {
		f.endSession(&session{id: id}) // the client never learns of it
	}
}

// authorize asks [Front.admit]; m is nil for GET and DELETE, and s outside of a
// session. If it refuses, the request has been answered.
func (f *Front) authorize(w http.ResponseWriter, r *http.Request, s *session, facts *call.Facts, m *protocol.Message) bool {
	refusal := f.admit(r, s, facts, m)
	if refusal == nil {
		return true
	}
	f.refuse(w, facts.ID, *refusal)
	return false
}

// serveSession serves a POST on a live session.
func (f *Front) serveSession(p *request, s *session) {
	if p.fault == protocol.ErrBatch && s.version == protocol.BatchRevision { //nolint:errorlint // returned as it is
		f.serveBatch(p, s)
		return
	}
	if p.fault != nil {
		f.refuseFault(p)
		return
	}
	m := p.message
	if m.Kind == protocol.Request && f.running.isDraining() {
		f.refuse(p.w, m.ID, draining)
		return
	}
	facts := f.facts(p.r, protocol.EraLegacy, m)
	facts.CanAsk = p.accept.stream
	if m.Method == "tools/call" {
		facts.Task = m.Params["task"]
	}
	if !f.authorize(p.w, p.r, s, facts, m) {
		return
	}
	e := &exchange{w: p.w, accept: p.accept}
	if !f.deliver(p, s, m, p.body, facts, e) {
		f.refuse(p.w, m.ID, duplicateID)
	}
}

var duplicateID = Refusal{Code: protocol.CodeInvalidRequest, Message: "a request with this id is in flight on this session"}

// deliver hands one message to the session's engine; false means that its id
// is in flight. The slot of the message is given back once its handler ends.
func (f *Front) deliver(p *request, s *session, m *protocol.Message, body []byte, facts *call.Facts, e *exchange) bool {
	delegated := false
	defer func() {
		if !delegated {
			facts.Release()
		}
	}()
	ctx, drop, leave := f.running.enter(p.r.Context(), false)
	defer leave()
	e.era, e.requestID, e.method, e.drop = protocol.EraLegacy, facts.RequestID, m.Method, drop
	e.stepUp, e.messages = f.stepUp(facts), f.cfg.Messages
	e.ask = func(id json.RawMessage) { go f.declineQuestion(s, id) }
	body = opaqueMeta(body, m)
	switch {
	case m.Kind == protocol.Request:
		wireID, end, ok := f.sessions.begin(s, m.ID, e.cancel)
		if !ok {
			return false
		}
		// A legacy call outlives the request of a client that goes away, and
		// ending the session has to cancel it even then.
		facts.Done = func() { end(); facts.Release() }
		e.id, e.wireID = m.ID, wireID
		body = replaceID(body, m, wireID)
	case m.Method == "notifications/cancelled":
		body = f.cancelled(s, m, body)
	}
	if m.Kind == protocol.Response {
		facts.ID = nil // it answers a question; nothing is called
	}
	if m.Kind != protocol.Request {
		// The SDK holds on to the last message of a session, however long nothing
		// follows it. Headers would be a third of what an idle session takes.
		facts.Header = http.Header{"Content-Type": {"application/json"}}
	}
	if code, message := unserved(m.Method); code != 0 && e.id != nil {
		facts.Done()
		e.header = http.Header{}
		e.fail(code, message)
		e.finish(ctx)
		return true
	}
	delegated = true
	f.delegate(ctx, e, p.r, body, facts, func(h http.Header) {
		h.Set(protocol.HeaderVersion, s.version)
		h.Set(protocol.HeaderSession, s.id)
		h.Del(protocol.HeaderMethod)
		h.Del(protocol.HeaderName)
	})
	if e.status == http.StatusNotFound && f.sessions.remove(s) {
		f.log.Debug("session ended by the server", "requestId", facts.RequestID)
	}
	return true
}

// unserved returns the error code of a method that a live session refuses, or
// 0. The SDK has one method table for both eras.
func unserved(method string) (code int64, message string) {
	switch method {
	case "initialize":
		return protocol.CodeInvalidRequest, "the session is initialized already"
	case "server/discover", "subscriptions/listen", "tasks/update":
		return protocol.CodeMethodNotFound, "the method is not served here"
	}
	return 0, ""
}

// cancelled notes a cancellation and names the call as the SDK knows it.
func (f *Front) cancelled(s *session, m *protocol.Message, body []byte) []byte {
	id := m.Params["requestId"]
	wireID := f.sessions.cancel(s, id)
	if wireID == nil || bytes.Equal(wireID, id) {
		return body
	}
	return rewrite(body, func(params map[string]json.RawMessage) { params["requestId"] = wireID })
}

// declineQuestion answers a request of the server that the client cannot get.
func (f *Front) declineQuestion(s *session, id json.RawMessage) {
	f.inject(s, protocol.ErrorResponse(id, protocol.CodeInvalidRequest, "the client takes no stream and cannot be asked", protocol.ErrorData{}))
}

// inject sends a message to a session as if the client had.
func (f *Front) inject(s *session, body []byte) {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	f.internal(http.MethodPost, s, h, body)
}

func (f *Front) internal(method string, s *session, h http.Header, body []byte) {
	r, err := http.NewRequestWithContext(context.Background(), method, Path, nil)
	if err != nil { // impossible: method and path are constant
		return
	}
	h.Set(protocol.HeaderSession, s.id)
	if s.version != "" {
		h.Set(protocol.HeaderVersion, s.version)
	}
	f.legacy.ServeHTTP(&exchange{header: http.Header{}}, f.engineRequest(r.Context(), r, body, h))
}

// endSession ends an SDK session. The SDK waits for the calls that run, so
// they are cancelled first.
func (f *Front) endSession(s *session) {
	ids := f.sessions.inFlight(s)
	go func() {
		for _, id := range ids {
			f.inject(s, fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"the session ended"}}`, id))
		}
		f.internal(http.MethodDelete, s, http.Header{}, nil)
	}()
}

// serveStream serves GET: the stream of a session.
func (f *Front) serveStream(w http.ResponseWriter, r *http.Request) {
	s, leave, ok := f.sessionOf(w, r)
	if !ok {
		return
	}
	defer leave()
	if accept := acceptedBy(r.Header); !accept.stream {
		f.refuse(w, nil, Refusal{
			Status: http.StatusNotAcceptable, Code: protocol.CodeInvalidRequest,
			Message: "this is a stream; Accept must allow text/event-stream",
		})
		return
	}
	if f.running.isDraining() {
		f.refuse(w, nil, draining)
		return
	}
	facts := f.facts(r, protocol.EraLegacy, &protocol.Message{})
	if !f.authorize(w, r, s, facts, nil) {
		return
	}
	end, ok := f.stream(w, facts)
	if !ok {
		return
	}
	defer end()
	ctx, cancel := withExpiry(r.Context(), facts)
	defer cancel()
	ctx, drop, leave2 := f.running.enter(ctx, true)
	defer leave2()
	if facts.Anonymous() {
		f.sessions.leaveWhenOwned(s, func() { drop(errOwned) })
	}
	e := &exchange{
		w: w, accept: accepted{stream: true}, era: protocol.EraLegacy, requestID: facts.RequestID, drop: drop, messages: f.cfg.Messages,
		taskStatus: f.cfg.Calls.TaskStatus,
	}
	f.delegate(ctx, e, r, nil, facts, func(h http.Header) {
		h.Set(protocol.HeaderVersion, s.version)
		h.Set(protocol.HeaderSession, s.id)
	})
	if e.status == http.StatusNotFound {
		f.sessions.remove(s)
	}
}

var errOwned = errors.New("the session belongs to a subject now")

// withExpiry ends ctx with the credentials: a stream must not outlive what it
// was opened with.
func withExpiry(ctx context.Context, facts *call.Facts) (context.Context, context.CancelFunc) {
	if facts.Expires.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, facts.Expires)
}

// serveDelete serves DELETE: the end of a session.
func (f *Front) serveDelete(w http.ResponseWriter, r *http.Request) {
	s, leave, ok := f.sessionOf(w, r)
	if !ok {
		return
	}
	defer leave()
	if !f.authorize(w, r, s, f.facts(r, protocol.EraLegacy, &protocol.Message{}), nil) {
		return
	}
	if f.sessions.remove(s) {
		f.endSession(s)
	}
	w.WriteHeader(http.StatusNoContent)
}

// sessionOf returns the session that GET and DELETE name, or answers.
func (f *Front) sessionOf(w http.ResponseWriter, r *http.Request) (*session, func(), bool) {
	id := header(r.Header, protocol.HeaderSession)
	if id == "" || isModernVersion(header(r.Header, protocol.HeaderVersion)) || !f.cfg.Eras.Serves(protocol.EraLegacy) {
		f.refuseMethod(w)
		return nil, nil, false
	}
	s, leave, ok := f.sessions.use(id)
	if !ok {
		f.refuse(w, nil, Refusal{Code: protocol.CodeSession, Message: sessionLost})
		return nil, nil, false
	}
	return s, leave, true
}
