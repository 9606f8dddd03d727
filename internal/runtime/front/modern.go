package front

import (
	"context"
	"net/http"
	"strings"

	"github.com/famcp/famcp/internal/runtime/protocol"
)

// serveModern serves a message of the era without sessions. The order of the
// checks is contract §1; a message with several faults gets the first.
func (f *Front) serveModern(p *request) {
	m := p.message
	switch {
	case p.fault != nil:
		f.refuseFault(p)
		return
	case m.Kind == protocol.Notification:
		// Nothing that a client may notify concerns a server without sessions:
		// it cancels by closing the connection.
		if p.version != "" && !f.servesModern(p.version) {
			f.refuseVersion(p, p.version)
			return
		}
		if f.authorize(p.w, p.r, nil, f.facts(p.r, protocol.EraModern, m), m) {
			p.w.WriteHeader(http.StatusAccepted)
		}
		return
	case m.Kind == protocol.Response:
		f.refuse(p.w, m.ID, Refusal{Code: protocol.CodeInvalidRequest, Message: "no request of the server is open; send a request or a notification"})
		return
	}
	if field := missingMeta(m); field != "" {
		f.refuse(p.w, m.ID, Refusal{
			Code: protocol.CodeInvalidParams, Message: "params._meta must carry " + field,
			Data: protocol.ErrorData{Field: "_meta." + field, Reason: "required"},
		})
		return
	}
	if name, reason := f.mismatch(p.r.Header, m); name != "" {
		f.refuse(p.w, m.ID, Refusal{
			Code: protocol.CodeHeaderMismatch, Message: "header " + name + " " + reason,
			Data: protocol.ErrorData{Field: name, Reason: reason},
		})
		return
	}
	if !f.servesModern(p.version) {
		f.refuseVersion(p, p.version)
		return
	}
	// Whether another method exists is known to the engine.
	if protocol.IsLegacyMethod(m.Method) || strings.HasPrefix(m.Method, "notifications/") {
		f.refuse(p.w, m.ID, Refusal{Code: protocol.CodeMethodNotFound, Message: "the method is not served here"})
		return
	}
	listens := m.Method == "subscriptions/listen"
	if listens && !p.accept.stream {
		f.refuse(p.w, m.ID, Refusal{
			Status: http.StatusNotAcceptable, Code: protocol.CodeInvalidRequest,
			Message: "a subscription is a stream; Accept must allow text/event-stream",
		})
		return
	}
	if f.running.isDraining() {
		f.refuse(p.w, m.ID, draining)
		return
	}
	facts := f.facts(p.r, protocol.EraModern, m)
	if !f.authorize(p.w, p.r, nil, facts, m) {
		return
	}
	defer facts.Release()
	if listens {
		end, ok := f.stream(p.w, facts)
		if !ok {
			return
		}
		defer end()
	}
	outer := p.r.Context()
	if listens {
		var cancel context.CancelFunc
		outer, cancel = withExpiry(outer, facts)
		defer cancel()
	}
	ctx, drop, leave := f.running.enter(outer, listens)
	defer leave()
	e := &exchange{
		w: p.w, accept: p.accept, era: protocol.EraModern, requestID: facts.RequestID,
		method: m.Method, id: m.ID, drop: drop, messages: f.cfg.Messages, stepUp: f.stepUp(facts),
	}
	facts.Notify, facts.LogLevel = e.notify, m.MetaString(protocol.MetaLogLevel)
	e.start()
	result, fault := f.engine.Serve(ctx, facts, m)
	facts.Release() // before the client can act on the answer
	e.conclude(result, fault)
	e.finish(ctx)
	f.answered(e)
}

func (f *Front) servesModern(version string) bool {
	return version == protocol.Modern && f.cfg.Eras.Serves(protocol.EraModern)
}

func missingMeta(m *protocol.Message) string {
	if m.MetaString(protocol.MetaVersion) == "" {
		return protocol.MetaVersion
	}
	if caps := m.Meta[protocol.MetaCapabilities]; len(caps) == 0 || caps[0] != '{' {
		return protocol.MetaCapabilities
	}
	return ""
}

// mismatch returns the first header that is missing or says something else
// than the body, and in which way.
func (f *Front) mismatch(h http.Header, m *protocol.Message) (name, reason string) {
	const missing, differs = "is required", "does not match the body"
	compare := func(name, want string) (string, string) {
		got := header(h, name)
		switch {
		case got == "":
			return name, missing
		case got != want:
			return name, differs
		}
		return "", ""
	}
	if name, reason = compare(protocol.HeaderVersion, m.MetaString(protocol.MetaVersion)); name != "" {
		return name, reason
	}
	if name, reason = compare(protocol.HeaderMethod, m.Method); name != "" {
		return name, reason
	}
	param, ok := protocol.NameParam(m.Method)
	if !ok {
		return "", ""
	}
	got := header(h, protocol.HeaderName)
	if got == "" {
		return protocol.HeaderName, missing
	}
	decoded, ok := protocol.DecodeHeader(got)
	if !ok {
		return protocol.HeaderName, "is not valid base64"
	}
	if decoded != m.ParamString(param) {
		return protocol.HeaderName, differs
	}
	if m.Method == "tools/call" && f.cfg.ParamHeaders != nil {
		return f.cfg.ParamHeaders(decoded).Mismatch(h, m.Params["arguments"])
	}
	return "", ""
}
