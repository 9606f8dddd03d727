package front

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/famcp/famcp/internal/runtime/protocol"
	"github.com/famcp/famcp/internal/runtime/telemetry"
)

const (
	modernSilence = 10 * time.Second // before an answer becomes a stream (contract §1)
	legacySilence = time.Second
)

// exchange is the answer to one request in the making. The modern engine hands
// it messages. For the SDK's handler it is the response writer: what is written
// is read back as messages, which may come from several goroutines, one whole
// event per write. Either way they go to the client as it accepts them.
type exchange struct {
	w         http.ResponseWriter // nil: the answer is only kept, for a batch
	accept    accepted
	era       protocol.Era
	requestID string
	method    string
	id        json.RawMessage // as the client sent it; nil for GET and notifications
	wireID    json.RawMessage // as the SDK's handler knows it
	drop      context.CancelCauseFunc

	// opened is run when an initialize request has been answered well, before
	// the client learns of the session.
	opened func(sessionID, version string)
	// taskStatus finds the status of a task in a progress notification; nil does not
	// look.
	taskStatus func(progress json.RawMessage) json.RawMessage
	// stepUp returns the challenge of a caller who lacks scopes, or ""; nil for
	// none.
	stepUp func(missing []string) string
	// ask is given each request of the server that cannot be delivered.
	ask func(id json.RawMessage)

	messages *telemetry.Messages // is given what goes out before the final message

	header http.Header // what the SDK's handler set

	mu        sync.Mutex
	silence   *time.Timer
	status    int
	raw       bytes.Buffer    // output that is not a stream
	result    bool            // final is a result of the modern engine
	fault     *wireError      // an error of the modern engine
	final     json.RawMessage // the response
	cancelled bool            // by the client's notification
	over      bool
	closing   bool // the server ended the request
	stream    *stream
}

// Header implements [http.ResponseWriter].
func (e *exchange) Header() http.Header { return e.header }

// WriteHeader implements [http.ResponseWriter].
func (e *exchange) WriteHeader(status int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status = status
}

// Write implements [http.ResponseWriter].
func (e *exchange) Write(b []byte) (int, error) {
	streaming := e.header.Get("Content-Type") == "text/event-stream"
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.over:
	case !streaming || e.status >= 400:
		e.raw.Write(b)
	default:
		e.event(b)
	}
	return len(b), nil
}

// FlushError makes [http.ResponseController] content: events are flushed when
// they are written.
func (e *exchange) FlushError() error { return nil }

// start lets the answer become a stream after some silence.
func (e *exchange) start() {
	if !e.streams() || e.id == nil {
		return
	}
	wait := legacySilence
	if e.era == protocol.EraModern {
		wait = modernSilence
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.silence = time.AfterFunc(wait, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if !e.over && e.final == nil && e.status < 400 {
			// Some proxies hold the headers back until the body begins.
			e.open().send([]byte(": waiting\n\n"))
		}
	})
}

// notify sends a notification of the modern engine.
func (e *exchange) notify(method string, params json.RawMessage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over || !e.streams() {
		return
	}
	message := notification(method, params)
	e.messages.Out(e.requestID, message)
	e.open().send(event(message))
}

func notification(method string, params json.RawMessage) json.RawMessage {
	return encode(struct {
		Version string          `json:"jsonrpc"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params,omitempty"`
	}{"2.0", method, params})
}

// conclude takes the answer of the modern engine.
func (e *exchange) conclude(result json.RawMessage, fault *jsonrpc.Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if fault != nil {
		e.fault = &wireError{fault.Code, fault.Message, fault.Data}
		return
	}
	e.result = true
	e.final = slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), e.id, []byte(`,"result":`), result, []byte("}"))
}

// streams reports whether anything but the final message can be sent. The
// answer to initialize carries a header that is not known before its end.
func (e *exchange) streams() bool {
	return e.w != nil && e.accept.stream && e.method != "initialize"
}

func (e *exchange) open() *stream {
	if e.stream == nil {
		e.stream = openStream(e.w, e.drop)
	}
	return e.stream
}

// event takes one event of the engine; e.mu is held.
func (e *exchange) event(chunk []byte) {
	data := eventData(chunk)
	if len(data) == 0 { // a comment, or an event without message
		if e.streams() {
			e.open().send(bytes.Clone(chunk))
		}
		return
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	_ = json.Unmarshal(data, &m) // what the engine writes is a message
	switch {
	case m.Method == "":
		if !e.cancelled {
			e.final = e.restoreID(data)
		}
	case e.streams():
		if m.Method == "notifications/progress" && e.taskStatus != nil {
			if status := e.taskStatus(m.Params); status != nil {
				chunk = withData(chunk, notification("notifications/tasks/status", status))
			}
		}
		e.messages.Out(e.requestID, eventData(chunk))
		if len(e.wireID) == len(e.id) {
			e.open().send(bytes.Clone(chunk)) // keeps event ids
		} else {
			e.open().send(event(e.restoreID(data)))
		}
	case m.ID != nil && e.ask != nil:
		e.ask(bytes.Clone(m.ID))
	}
}

// eventData returns the data of an SSE event.
func eventData(chunk []byte) []byte {
	var data []byte
	for line := range bytes.Lines(chunk) {
		if d, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(data, bytes.TrimSpace(d)...)
		}
	}
	return data
}

// withData returns an SSE event with other data, which is one line.
func withData(chunk, data []byte) []byte {
	var out []byte
	for line := range bytes.Lines(chunk) {
		if !bytes.HasPrefix(line, []byte("data:")) && len(bytes.TrimSpace(line)) > 0 {
			out = append(out, line...)
		}
	}
	return append(append(append(out, "data: "...), data...), "\n\n"...)
}

// restoreID returns a copy of a message with the client's id in the place of
// the engine's.
func (e *exchange) restoreID(message []byte) []byte {
	if bytes.Equal(e.id, e.wireID) {
		return bytes.Clone(message)
	}
	return bytes.ReplaceAll(message, e.wireID, e.id)
}

// cancel says that the client does not want the answer any more.
func (e *exchange) cancel() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cancelled = true
}

// finish sends what is left to send once the engine has returned. With a
// batch it only makes the answer ready.
func (e *exchange) finish(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	e.closing = context.Cause(ctx) == errClosing //nolint:errorlint // set by this package, as it is
	if e.silence != nil {
		e.silence.Stop()
	}
	status := e.outcome(ctx)
	switch {
	case e.w == nil:
	case e.stream != nil:
		if e.final != nil {
			e.stream.send(event(e.final))
		}
		e.stream.close()
	case e.final == nil && e.cancelled && e.accept.stream:
		openStream(e.w, e.drop).close() // no answer follows
	case e.final == nil:
		if status != 0 {
			e.w.WriteHeader(status)
		}
	case status < 400 && !e.accept.json:
		s := openStream(e.w, e.drop)
		s.send(event(e.final))
		s.close()
	default:
		h := e.w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Content-Length", strconv.Itoa(len(e.final)))
		e.w.WriteHeader(status)
		// A client that is gone gets nothing; there is nobody to tell.
		_ = put(e.w, e.final)
	}
}

// outcome makes e.final the message to answer with, if any, and returns the
// HTTP status.
func (e *exchange) outcome(ctx context.Context) int {
	if e.final == nil && e.raw.Len() > 0 && e.status < 400 {
		e.final = e.restoreID(bytes.TrimSpace(e.raw.Bytes()))
	}
	gone := ctx.Err() != nil && !e.closing
	switch {
	case e.result && e.method == "subscriptions/listen" && e.stream == nil && e.closing:
		return e.stopped() // it has not begun
	case e.result:
		return http.StatusOK
	case e.fault != nil && !gone:
		return e.errored(e.fault, http.StatusOK)
	case e.final != nil:
		return e.answered()
	case e.status >= 400:
		return e.refused()
	case e.status == http.StatusAccepted:
		return http.StatusAccepted
	case e.id == nil || gone:
		return 0 // a stream that has ended, or nobody is there
	case e.cancelled && (e.w == nil || e.accept.stream):
		return http.StatusOK
	case e.cancelled:
		e.fail(protocol.CodeServer, "the request was cancelled")
		return http.StatusOK
	case e.closing:
		return e.stopped()
	case e.era == protocol.EraLegacy:
		e.id = nil
		e.fail(protocol.CodeSession, sessionLost)
		return http.StatusNotFound
	default:
		e.fail(protocol.CodeInternal, "internal error")
		return http.StatusInternalServerError
	}
}

func (e *exchange) stopped() int {
	e.fail(protocol.CodeUnavailable, "the server is closing; retry with another instance")
	return http.StatusServiceUnavailable
}

const sessionLost = "the session is unknown or has ended; send initialize without Mcp-Session-Id to open another"

func (e *exchange) fail(code int64, message string) {
	e.final = protocol.ErrorResponse(e.id, code, message, protocol.ErrorData{RequestID: e.requestID})
}

// wireError is a JSON-RPC error of an engine.
type wireError struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// encode writes a message of parts that were parsed before, which cannot fail.
func encode(message any) json.RawMessage {
	raw, _ := protocol.Encode(message)
	return raw
}

// answered completes a response of the engine and returns its HTTP status: on
// a session that of every answer is 200.
func (e *exchange) answered() int {
	var m struct {
		Result json.RawMessage `json:"result"`
		Error  *wireError      `json:"error"`
	}
	if err := json.Unmarshal(e.final, &m); err != nil || m.Error == nil {
		if e.method == "initialize" && m.Result != nil {
			e.announce(m.Result)
		}
		return http.StatusOK
	}
	return e.errored(m.Error, http.StatusOK)
}

// announce gives the client its new session.
func (e *exchange) announce(result json.RawMessage) {
	sessionID := e.header.Get(protocol.HeaderSession)
	var r struct {
		Version string `json:"protocolVersion"`
	}
	if sessionID == "" || json.Unmarshal(result, &r) != nil {
		return
	}
	e.opened(sessionID, r.Version)
	e.w.Header().Set(protocol.HeaderSession, sessionID)
}

// errored rewrites an error of the engine and returns its HTTP status, which
// is onSession in the legacy era.
func (e *exchange) errored(err *wireError, onSession int) int {
	if e.closing && e.stream == nil {
		return e.stopped() // whatever the cancelled call made of it
	}
	var field string
	err.Code, err.Message, field = protocol.Reword(err.Code, err.Message)
	data := map[string]json.RawMessage{}
	if len(err.Data) == 0 || json.Unmarshal(err.Data, &data) == nil && data != nil {
		if _, ok := data["requestId"]; !ok {
			data["requestId"], _ = json.Marshal(e.requestID)
		}
		if field != "" {
			data["field"], _ = json.Marshal(field)
		}
		err.Data, _ = json.Marshal(data) // parsed before, so it can be written
	}
	e.final = encode(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id,omitempty"`
		Error   *wireError      `json:"error"`
	}{"2.0", e.id, err})
	if seconds := json.Number(data["retryAfter"]); seconds != "" && e.era == protocol.EraModern && e.w != nil && e.stream == nil {
		if after, err := seconds.Float64(); err == nil {
			e.w.Header().Set("Retry-After", strconv.FormatFloat(math.Ceil(after), 'f', 0, 64))
		}
	}
	if string(data["reason"]) == `"insufficient_scope"` {
		e.challenge(data["missing"])
		return http.StatusForbidden
	}
	if e.era == protocol.EraLegacy {
		return onSession
	}
	return protocol.Status(err.Code)
}

// challenge tells a caller who lacks scopes what to ask for (RFC 6750 §3.1).
func (e *exchange) challenge(raw json.RawMessage) {
	var missing []string
	if e.stepUp == nil || e.w == nil || json.Unmarshal(raw, &missing) != nil {
		return
	}
	if header := e.stepUp(missing); header != "" {
		e.w.Header().Set("Www-Authenticate", header)
	}
}

// refused turns a refusal of the engine into the contract's words. The SDK's
// own texts name its types and are not passed on.
func (e *exchange) refused() int {
	text := e.raw.String()
	var m struct {
		Error *wireError `json:"error"`
	}
	if json.Unmarshal(e.raw.Bytes(), &m) == nil && m.Error != nil {
		return e.errored(m.Error, e.status)
	}
	onSession := e.era == protocol.EraLegacy && e.id != nil
	code, message := int64(protocol.CodeInvalidRequest), "the request cannot be served in this form"
	switch {
	case e.status == http.StatusNotFound:
		e.id = nil
		e.fail(protocol.CodeSession, sessionLost)
		return http.StatusNotFound
	case e.status == http.StatusConflict:
		e.fail(protocol.CodeConflict, "this session has an open stream already")
		return http.StatusConflict
	case e.status >= 500:
		e.fail(protocol.CodeInternal, "internal error")
		return e.status
	case e.method != "" && strings.Contains(text, "unsupported"):
		if e.id == nil {
			return http.StatusAccepted // an unknown notification is ignored
		}
		code, message = protocol.CodeMethodNotFound, "the method is not served here"
	case strings.Contains(text, `missing required "params"`):
		code, message = protocol.CodeInvalidParams, "params are required"
	}
	e.fail(code, message)
	if onSession {
		return http.StatusOK
	}
	return protocol.Status(code)
}
