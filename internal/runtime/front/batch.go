package front

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"sync"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/protocol"
)

// maxBatch bounds what one body can start at once.
const maxBatch = 64

// serveBatch serves the elements of a batch at the same time and answers with
// an array of what they answer (2025-03-26, base protocol).
func (f *Front) serveBatch(p *request, s *session) {
	var elements []json.RawMessage
	if err := json.Unmarshal(p.body, &elements); err != nil || len(elements) == 0 {
		f.refuse(p.w, nil, Refusal{Code: protocol.CodeInvalidRequest, Message: "an empty batch is not a request"})
		return
	}
	if len(elements) > maxBatch {
		f.refuse(p.w, nil, Refusal{Code: protocol.CodeInvalidRequest, Message: fmt.Sprintf("a batch has at most %d messages", maxBatch)})
		return
	}
	if f.running.isDraining() {
		f.refuse(p.w, nil, draining)
		return
	}
	// Once for all: for a caller who is not let in nothing in it is looked at.
	caller := f.facts(p.r, protocol.EraLegacy, &protocol.Message{})
	if !f.authorize(p.w, p.r, s, caller, nil) {
		return
	}
	answers := make([]json.RawMessage, len(elements))
	limited := make([]http.Header, len(elements))
	var wg sync.WaitGroup
	for i, body := range elements {
		wg.Go(func() { answers[i], limited[i] = f.serveElement(p, s, caller, body) })
	}
	wg.Wait()
	for _, h := range limited { // those of one caller, so they hardly differ
		maps.Copy(p.w.Header(), h)
	}
	var present []json.RawMessage
	for _, a := range answers {
		if a != nil {
			present = append(present, a)
		}
	}
	if present == nil {
		p.w.WriteHeader(http.StatusAccepted)
		return
	}
	all, _ := json.Marshal(present) // parsed before, so it can be written
	if p.accept.json {
		p.w.Header().Set("Content-Type", "application/json")
		_, _ = p.w.Write(all)
		return
	}
	st := openStream(p.w, func(error) {})
	st.send(event(all))
	st.close()
}

// serveElement returns the answer to one message of a batch, or nil, and the
// headers of its refusal. It runs in a goroutine of its own, so a panic is
// answered here.
func (f *Front) serveElement(p *request, s *session, caller *call.Facts, body []byte) (answer json.RawMessage, limited http.Header) {
	requestID := p.r.Header.Get(protocol.HeaderRequestID)
	refused := func(id json.RawMessage, x *Refusal) (json.RawMessage, http.Header) {
		x.Data.RequestID = requestID
		return protocol.ErrorResponse(id, x.Code, x.Message, x.Data), x.Header
	}
	m, err := protocol.Parse(body)
	defer func() {
		if v := recover(); v != nil {
			f.reportPanic(v, requestID)
			answer, limited = refused(m.ID, &Refusal{Code: protocol.CodeInternal, Message: "internal error"})
		}
	}()
	if err != nil {
		return refused(m.ID, &Refusal{Code: protocol.CodeInvalidRequest, Message: err.Error()})
	}
	if m.Method == "initialize" {
		return refused(m.ID, &Refusal{Code: protocol.CodeInvalidRequest, Message: "initialize cannot be part of a batch"})
	}
	facts := f.facts(p.r, protocol.EraLegacy, m)
	facts.CanAsk = false
	var x *Refusal
	if caller.Anonymous() { // what it may do differs by message
		x = f.admit(p.r.Clone(p.r.Context()), s, facts, m)
	} else {
		facts.As(caller)
		x = f.count(facts, m)
	}
	if x != nil {
		if m.Kind != protocol.Request {
			return nil, nil
		}
		return refused(m.ID, x)
	}
	e := &exchange{}
	if !f.deliver(p, s, m, body, facts, e) {
		x := duplicateID
		return refused(m.ID, &x)
	}
	return e.final, nil
}
