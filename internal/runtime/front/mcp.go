package front

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/protocol"
)

// ServeHTTP implements [http.Handler].
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	requestID := call.RequestID(r.Header.Get(protocol.HeaderRequestID))
	w.Header().Set(protocol.HeaderRequestID, requestID)
	r.Header.Del(call.Header)
	r.Header.Set(protocol.HeaderRequestID, requestID)
	if f.cfg.Metrics != nil {
		m := &metered{ResponseWriter: w, status: http.StatusOK}
		defer func() { f.cfg.Metrics.Request(r.Method, f.pathLabel(r), m.status) }()
		w = m
	}
	defer f.recover(w, requestID)

	switch r.URL.Path {
	// Probes come from orchestrators that address a pod by its number.
	case "/health", "/healthz":
		f.serveHealth(w, r)
		return
	case "/ready", "/readyz":
		f.serveReady(w, r)
		return
	}
	if !f.guard(w, r) {
		return
	}
	switch path := r.URL.Path; {
	case path == Path:
		f.serveMCP(w, r)
	case path != "" && path == f.cfg.MetricsPath:
		f.serveMetrics(w, r)
	default:
		f.serveRoute(w, r)
	}
}

// recover answers a panic of the front or of a project's route; handlers of
// features run elsewhere and are recovered there. An answer that has begun
// can only be cut.
func (f *Front) recover(w http.ResponseWriter, requestID string) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler { //nolint:errorlint // net/http compares this value
		panic(p)
	}
	f.reportPanic(p, requestID)
	if rw, ok := w.(*routeWriter); ok && rw.begun {
		panic(http.ErrAbortHandler)
	}
	f.refuse(w, nil, Refusal{Code: protocol.CodeInternal, Message: "internal error"})
}

func (f *Front) reportPanic(p any, requestID string) {
	f.cfg.Metrics.Panic()
	f.log.Error("panic while serving a request", "panic", fmt.Sprint(p), "requestId", requestID, "stack", string(debug.Stack()))
}

// refuse answers with a JSON-RPC error.
func (f *Front) refuse(w http.ResponseWriter, id json.RawMessage, x Refusal) {
	h := w.Header()
	maps.Copy(h, x.Header)
	h.Set("Content-Type", "application/json")
	x.Data.RequestID = h.Get(protocol.HeaderRequestID)
	status := x.Status
	if status == 0 {
		status = protocol.Status(x.Code)
	}
	w.WriteHeader(status)
	body := protocol.ErrorResponse(id, x.Code, x.Message, x.Data)
	f.cfg.Messages.Out(x.Data.RequestID, body)
	_, _ = w.Write(body)
}

var credentials = []string{"Authorization", "Proxy-Authorization", "Cookie"}

// facts returns what is known of a request before authentication. Credentials
// go no further than this.
func (f *Front) facts(r *http.Request, era protocol.Era, m *protocol.Message) *call.Facts {
	header := r.Header
	for _, name := range credentials {
		if _, ok := r.Header[name]; ok {
			header = maps.Clone(r.Header)
			maps.DeleteFunc(header, func(name string, _ []string) bool { return slices.Contains(credentials, name) })
			break
		}
	}
	address, subject := f.cfg.Proxies.Caller(r.RemoteAddr, r.Header), r.RemoteAddr
	if address.IsValid() {
		subject = address.String()
	}
	return &call.Facts{
		RequestID: r.Header.Get(protocol.HeaderRequestID),
		ID:        m.ID, Method: m.Method, Era: era, Transport: call.HTTP,
		Subject: subject, AllScopes: true, Header: header, Address: address, CanAsk: true,
	}
}

func (f *Front) serveMCP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		f.servePost(w, r)
	case http.MethodGet:
		f.serveStream(w, r)
	case http.MethodDelete:
		f.serveDelete(w, r)
	case http.MethodOptions:
		preflight(w, r, allowedMethods)
	default:
		f.refuseMethod(w)
	}
}

func (f *Front) refuseMethod(w http.ResponseWriter) {
	w.Header().Set("Allow", allowedMethods)
	f.refuse(w, nil, Refusal{
		Status: http.StatusMethodNotAllowed, Code: protocol.CodeInvalidRequest,
		Message: "this method is not served here; send messages by POST",
	})
}

// request is a POST on its way through the front.
type request struct {
	w       http.ResponseWriter
	r       *http.Request
	accept  accepted
	body    []byte
	message *protocol.Message
	fault   error // of parsing the message

	version   string // MCP-Protocol-Version; "" when absent
	sessionID string // Mcp-Session-Id; "" when absent
}

func header(h http.Header, name string) string {
	value, _ := protocol.HeaderValue(h, name)
	return value
}

func (f *Front) servePost(w http.ResponseWriter, r *http.Request) {
	p := &request{
		w: w, r: r, accept: acceptedBy(r.Header),
		version: header(r.Header, protocol.HeaderVersion), sessionID: header(r.Header, protocol.HeaderSession),
	}
	if !isJSON(r.Header.Get("Content-Type")) {
		f.refuse(w, nil, Refusal{
			Status: http.StatusUnsupportedMediaType, Code: protocol.CodeInvalidRequest,
			Message: "the body must be sent as Content-Type application/json",
		})
		return
	}
	if p.accept.nothing() {
		f.refuse(w, nil, notAcceptable)
		return
	}
	var err error
	p.body, err = readBody(w, r, f.cfg.MaxBody)
	switch {
	case errors.Is(err, errTooLarge):
		w.Header().Set("Connection", "close")
		f.refuse(w, findID(p.body), Refusal{
			Code:    protocol.CodeTooLarge,
			Message: fmt.Sprintf("the body is over %d bytes", f.cfg.MaxBody),
			Data:    protocol.ErrorData{Reason: "mcp.limits.maxPayloadBytes"},
		})
		return
	case err != nil:
		w.Header().Set("Connection", "close")
		f.log.Debug("body not read", "error", err, "requestId", w.Header().Get(protocol.HeaderRequestID))
		f.refuse(w, nil, Refusal{Code: protocol.CodeInvalidRequest, Message: "the body did not arrive completely"})
		return
	}
	f.cfg.Metrics.Payload(len(p.body))
	f.cfg.Messages.In(r.Header.Get(protocol.HeaderRequestID), p.body)
	p.message, p.fault = protocol.Parse(p.body)
	f.route(p)
}

var notAcceptable = Refusal{
	Status: http.StatusNotAcceptable, Code: protocol.CodeInvalidRequest,
	Message: "answers are application/json or text/event-stream; Accept must allow one of them",
}

// route decides the era of a POST: the table of contract §1.
func (f *Front) route(p *request) {
	if p.version != "" && !protocol.IsLegacy(p.version) {
		f.serveModern(p)
		return
	}
	if errors.Is(p.fault, protocol.ErrSyntax) {
		f.refuseFault(p)
		return
	}
	isInitialize := p.fault == nil && p.message.Kind == protocol.Request && p.message.Method == "initialize"
	if p.sessionID != "" && f.cfg.Eras.Serves(protocol.EraLegacy) {
		if s, leave, ok := f.sessions.use(p.sessionID); ok {
			defer leave()
			f.serveSession(p, s)
			return
		}
		if !isInitialize {
			f.refuse(p.w, nil, Refusal{Code: protocol.CodeSession, Message: sessionLost})
			return
		}
	}
	switch {
	case isInitialize:
		f.serveInitialize(p)
	case p.fault != nil:
		f.refuseFault(p)
	case isModernVersion(p.message.MetaString(protocol.MetaVersion)):
		f.serveModern(p)
	case p.message.Kind == protocol.Notification && p.version == "" && p.sessionID == "":
		if f.authorize(p.w, p.r, nil, f.facts(p.r, protocol.EraLegacy, p.message), p.message) {
			p.w.WriteHeader(http.StatusAccepted)
		}
	case !f.cfg.Eras.Serves(protocol.EraLegacy) && (p.version != "" || p.sessionID != ""):
		f.refuseVersion(p, p.version)
	default:
		f.refuse(p.w, p.message.ID, Refusal{
			Code: protocol.CodeInvalidRequest,
			Message: "no session and no protocol version: send initialize first and then its Mcp-Session-Id, " +
				"or MCP-Protocol-Version " + protocol.Modern + " with the same version in params._meta",
		})
	}
}

func isModernVersion(version string) bool { return version != "" && !protocol.IsLegacy(version) }

func (f *Front) refuseFault(p *request) {
	f.refuse(p.w, p.message.ID, Refusal{Code: protocol.Code(p.fault), Message: p.fault.Error()})
}

func (f *Front) refuseVersion(p *request, requested string) {
	f.refuse(p.w, p.message.ID, Refusal{
		Code: protocol.CodeVersion, Message: "this protocol version is not served",
		Data: protocol.ErrorData{Supported: f.cfg.Eras.Versions(), Requested: clip(requested)},
	})
}

// clip bounds what is echoed of a client's input.
func clip(s string) string { return s[:min(len(s), 64)] }

var draining = Refusal{
	Code: protocol.CodeUnavailable, Message: "the server is shutting down; retry with another instance",
	Header: http.Header{"Retry-After": {"5"}},
}

// delegate hands a request to the SDK's handler and its answer to the client.
func (f *Front) delegate(ctx context.Context, e *exchange, r *http.Request, body []byte, facts *call.Facts, change func(http.Header)) {
	if facts.ID != nil {
		key, _ := f.cfg.Calls.Put(facts)
		defer func() {
			if f.cfg.Calls.Drop(key) && facts.Done != nil {
				facts.Done()
			}
		}()
		r = f.engineRequest(ctx, r, body, facts.Header)
		r.Header.Set(call.Header, key)
	} else {
		r = f.engineRequest(ctx, r, body, facts.Header)
	}
	change(r.Header)
	e.header = http.Header{}
	e.start()
	f.legacy.ServeHTTP(e, r)
	e.finish(ctx)
	f.answered(e)
}

// answered counts what was sent in answer to a request.
func (f *Front) answered(e *exchange) {
	if e.final != nil {
		f.cfg.Metrics.Result(len(e.final))
		f.cfg.Messages.Out(e.requestID, e.final)
	}
}

// engineRequest returns a request for the SDK's handler: without credentials, and
// with an Accept that go-sdk insists on.
func (f *Front) engineRequest(ctx context.Context, r *http.Request, body []byte, h http.Header) *http.Request {
	out := r.WithContext(ctx)
	out.Header = maps.Clone(h)
	out.Header.Set("Accept", "application/json, text/event-stream")
	out.Body = io.NopCloser(bytes.NewReader(body))
	out.ContentLength = int64(len(body))
	return out
}
