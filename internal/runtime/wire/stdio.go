// Package wire carries messages between clients and the one [mcp.Server]: a
// [Lane] is a connection of the SDK that we feed, [Stdio] serves both protocol
// eras over one pair of streams with lanes, and [Engine] serves the modern
// requests that come by HTTP.
package wire

/*
How stdio is multiplexed

The SDK's own stdio transport serves one era per process: its session takes on
the era of whoever spoke last, ends with the first line that is not JSON, loses
all but the last subscriptions/listen and answers cancelled calls. So the lines
are read here, and the SDK sees lanes, each a session of its own over the same
server:

	legacy   opened by initialize, until the end of input
	modern   opened by the first modern request; all of them share it
	listen   one for each subscriptions/listen, because the SDK keeps one
	         subscription per session

Every message decides for itself (contract §1): initialize and whatever has no
modern version in _meta is legacy, whatever has one is modern, and
server/discover always is. notifications/cancelled goes to the lane that runs
the request it names.

Ids. The SDK reads ids as 64-bit floats. Requests therefore travel inwards
under integers of ours, one sequence for all lanes, and everything that names
them is put back on the way out: the id of the answer, the progress token and
the subscription id. The table of open calls is also what finds duplicates,
finds the lane to cancel on, and drops what a cancelled call still says. The
server's own requests go out under the SDK's ids; only the legacy lane may have
any, so they cannot collide.

Goroutines. One reads lines and hands them to the goroutine of Run, which alone
opens lanes and starts calls. Handlers run in goroutines of the SDK and write
through the sink, one whole line at a time. A client that does not read blocks
those writes and no more: reading goes on until maxOpen calls are open, or
until something has to be refused, and then waits as well. So a client that
floods without reading stops itself, and memory stays bounded.

The end. At the end of input no answer of the client can come any more: the
server's open questions fail, subscriptions end with their result, running
calls finish, all answers go out, and Run returns nil. When the context is
cancelled the same happens within Grace; what still runs then is cancelled.
*/

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/protocol"
	"github.com/famcp/famcp/internal/runtime/telemetry"
)

const (
	// maxOpen bounds the calls that are open at once, and the messages of a batch.
	maxOpen = 1024

	// DefaultGrace is how long running calls may go on after a cancel.
	DefaultGrace = 5 * time.Second

	// linger is how long Run waits for cancelled handlers to return.
	linger = time.Second
)

// Stdio serves one client over a pair of streams, in both protocol eras.
// Its fields are not changed while it runs.
type Stdio struct {
	Server *mcp.Server // required
	Calls  *call.Table // required; a request's RequestExtra.Header names its entry under [call.Header]
	Eras   protocol.Eras

	In  io.Reader // required; never closed
	Out io.Writer // required; gets whole lines in single writes, nothing else, and is never closed

	// MaxLine is the longest line that is read, in bytes; 0 is unbounded.
	// A longer one is skipped and answered with -32005.
	MaxLine int64

	Subject   string // of every request; "" is "stdio"
	AllScopes bool
	Scopes    []string

	// Authorize is asked before a request is delivered; nil allows all. An
	// error of type *jsonrpc.Error is the answer, any other is logged and
	// hidden.
	Authorize func(*call.Facts, *protocol.Message) error

	Messages *telemetry.Messages // is given what goes in and out; nil is nobody

	Logger *slog.Logger  // nil discards; must not write to Out
	Grace  time.Duration // for running calls when the context is cancelled; 0 is [DefaultGrace]
}

// Run serves until the end of input and returns nil once every answer is out.
// It returns ctx.Err() after a cancel, and the error of a stream that
// failed, a closed pipe included. It must be called once.
//
// Nothing that Run started outlives it, but for what Go cannot interrupt: a
// Read of In or a Write of Out that is blocked, and a handler that ignores its
// context. Nothing is written to Out once Run has returned, but for such a
// Write.
func (s *Stdio) Run(ctx context.Context) error {
	if _, ok := s.Out.(*os.File); ok {
		// A write to a closed standard output kills a Go program that has not
		// asked for SIGPIPE; it must be an error like any other here.
		ignored := make(chan os.Signal, 1)
		signal.Notify(ignored, syscall.SIGPIPE)
		defer signal.Stop(ignored)
	}
	m := &mux{
		Stdio: *s,
		out:   newLineWriter(s.Out, s.Messages),
		calls: map[int64]*pending{},
		byID:  map[string]*pending{},
		asks:  map[int64]bool{},
		idle:  make(chan struct{}),
	}
	if m.Logger == nil {
		m.Logger = slog.New(slog.DiscardHandler)
	}
	if m.Grace == 0 {
		m.Grace = DefaultGrace
	}
	if m.Subject == "" {
		m.Subject = "stdio"
	}
	err := m.serve(ctx)
	return m.shutDown(ctx, err)
}

// mux is the state of one [Stdio.Run].
type mux struct {
	Stdio
	out      *lineWriter
	sessions sync.WaitGroup // of the SDK

	// Of the goroutine of Run alone.
	legacy, modern *Lane
	negotiated     string // the revision of the legacy lane

	mu     sync.Mutex
	last   int64               // the internal id given out last
	calls  map[int64]*pending  // open calls by internal id
	byID   map[string]*pending // calls whose ids are taken, by the key of the client's id
	asks   map[int64]bool      // open requests of the server's own
	asking bool                // the client can answer: initialized, and the input has not ended
	ended  bool                // no input will come any more
	open   int                 // calls whose answer is not out yet
	idle   chan struct{}       // closed when ended and open is 0
}

// pending is a call between its delivery and its answer.
type pending struct {
	*call.Facts
	number int64  // the internal id
	key    string // of the client's id
	token  []byte // the progress token as sent; nil without one
	lane   *Lane
	listen bool // the lane is its own
	batch  *batch
	untake func() // removes the facts if nobody took them

	// Under mux.mu.
	cancelled    bool
	acknowledged bool // a subscription has begun

	reply   *jsonrpc.Response // set before settled is closed
	settled chan struct{}     // closed when the answer is out
}

// serve handles lines until the input ends, ctx is done or a stream fails.
func (m *mux) serve(ctx context.Context) error {
	lines := make(chan line)
	stop := make(chan struct{})
	defer close(stop)
	var readErr error // set before lines is closed
	go func() {
		defer close(lines)
		r := newLineReader(m.In, m.MaxLine)
		for {
			l, err := r.next()
			if err != nil {
				readErr = err
				return
			}
			select {
			case lines <- l:
			case <-stop:
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-m.out.broken:
			return m.out.err
		case l, ok := <-lines:
			if !ok {
				if errors.Is(readErr, io.EOF) {
					return nil
				}
				return fmt.Errorf("reading messages: %w", readErr)
			}
			if err := m.line(ctx, l); err != nil {
				return cmp.Or(ctx.Err(), err)
			}
		}
	}
}

// line handles one line. Like everything below it, it returns an error only
// when serving cannot go on.
func (m *mux) line(ctx context.Context, l line) error {
	if l.long {
		return m.tooLong(ctx, l)
	}
	data := bytes.Trim(l.data, " \t\r")
	if len(data) == 0 {
		return nil
	}
	m.Messages.In("", data)
	msg, err := protocol.Parse(data)
	if errors.Is(err, protocol.ErrBatch) {
		return m.serveBatch(ctx, data)
	}
	return m.message(ctx, nil, data, msg, err)
}

func (m *mux) message(ctx context.Context, b *batch, data []byte, msg *protocol.Message, fault error) error {
	switch {
	case fault != nil && answerLike(data):
		// Answering an answer, even a damaged one, can go on for ever.
		m.Logger.Debug("dropped an answer", "error", fault)
		return nil
	case fault != nil:
		return m.refuse(ctx, b, msg.ID, &refusal{code: protocol.Code(fault), message: fault.Error()})
	case msg.Kind == protocol.Response:
		return m.clientAnswer(data, msg)
	case msg.Kind == protocol.Notification:
		return m.notification(msg)
	default:
		return m.request(ctx, b, msg)
	}
}

// tooLong refuses a line of which only the ends are known.
func (m *mux) tooLong(ctx context.Context, l line) error {
	id, answer := l.peek()
	limit := fmt.Sprintf("the message is longer than %d bytes (mcp.limits.maxPayloadBytes)", m.MaxLine)
	if answer {
		return m.settleAsk(id, &jsonrpc.Response{Error: errors.New(limit)})
	}
	return m.refuse(ctx, nil, id, &refusal{code: protocol.CodeTooLarge, message: limit})
}

// eraOf decides which lanes a message belongs to.
func eraOf(msg *protocol.Message) protocol.Era {
	if msg.Method == "initialize" {
		return protocol.EraLegacy
	}
	if _, ok := msg.Meta[protocol.MetaVersion]; ok {
		return protocol.EraOf(msg.MetaString(protocol.MetaVersion))
	}
	if msg.Method == "server/discover" {
		return protocol.EraModern
	}
	return protocol.EraLegacy
}

func (m *mux) request(ctx context.Context, b *batch, msg *protocol.Message) error {
	key, _ := idKey(msg.ID)
	m.mu.Lock()
	_, duplicate := m.byID[key]
	full := m.open >= maxOpen
	m.mu.Unlock()
	switch {
	case duplicate:
		return m.refuse(ctx, b, msg.ID, &refusal{
			code:    protocol.CodeInvalidRequest,
			message: "the id belongs to a request that is still running",
		})
	case full:
		return m.refuse(ctx, b, msg.ID, &refusal{
			code:    protocol.CodeUnavailable,
			message: fmt.Sprintf("%d requests are open; wait for answers", maxOpen),
		})
	}

	facts := &call.Facts{
		RequestID: call.NewRequestID(), ID: msg.ID, Method: msg.Method, Era: eraOf(msg),
		Transport: call.Stdio, Subject: m.Subject, Scopes: m.Scopes, AllScopes: m.AllScopes,
		CanAsk: true,
	}
	if facts.Era == protocol.EraLegacy && msg.Method == "ping" && m.legacy == nil && m.Eras.Serves(protocol.EraLegacy) {
		return m.out.write(ctx, answerLine(msg.ID, "result", []byte("{}")))
	}
	if r := m.check(facts.Era, msg, b != nil); r != nil {
		return m.refuse(ctx, b, msg.ID, r)
	}
	if m.Authorize != nil {
		if err := m.Authorize(facts, msg); err != nil {
			return m.answer(ctx, b, errorLine(msg.ID, m.clean(facts, err)))
		}
	}
	return m.start(ctx, &pending{Facts: facts, key: key, batch: b}, msg)
}

// check applies what can be decided without the server.
func (m *mux) check(era protocol.Era, msg *protocol.Message, inBatch bool) *refusal {
	invalid := func(text string) *refusal {
		return &refusal{code: protocol.CodeInvalidRequest, message: text}
	}
	switch {
	case isNotificationMethod(msg.Method):
		// The SDK would take notifications/cancelled for one whatever it has.
		return invalid(msg.Method + " is a notification and takes no id")
	case era == protocol.EraModern && inBatch:
		return invalid("revision " + protocol.Modern + " has no batches")
	case !m.Eras.Serves(era):
		requested := msg.MetaString(protocol.MetaVersion)
		if msg.Method == "initialize" {
			requested = msg.ParamString("protocolVersion")
		}
		return unsupportedVersion(requested, m.Eras)
	case era == protocol.EraModern:
		return checkModern(msg, m.Eras)
	case msg.Method == "initialize" && inBatch:
		return invalid("initialize cannot be part of a batch")
	case msg.Method == "initialize" && m.legacy != nil:
		return invalid("the session is initialized already")
	case msg.Method != "initialize" && m.legacy == nil:
		return invalid("send initialize first, or name revision " + protocol.Modern + " in _meta")
	case msg.Method == "subscriptions/listen":
		return unknownMethod() // the SDK would serve it on a legacy session
	}
	return nil
}

// start delivers a request to its lane under an id of ours.
func (m *mux) start(ctx context.Context, p *pending, msg *protocol.Message) error {
	p.settled = make(chan struct{})
	p.token = msg.Meta["progressToken"]
	if _, ok := idKey(p.token); !ok { // a token is what an id is: a string or an integer
		p.token = nil
		delete(msg.Meta, "progressToken")
	}
	p.listen = msg.Method == "subscriptions/listen"
	if p.listen {
		var fault *jsonrpc.Error
		if p.Listen, fault = listenFor(msg); fault != nil {
			return m.answer(ctx, p.batch, errorLine(p.ID, fault))
		}
		p.Notify = func(method string, params json.RawMessage) { m.tell(ctx, p, method, params) }
	}
	if msg.Method == "tools/call" && p.Era == protocol.EraLegacy {
		p.Task = msg.Params["task"]
	}
	if err := m.chooseLane(ctx, p); err != nil {
		return err
	}

	m.mu.Lock()
	m.last++
	p.number = m.last
	m.calls[p.number] = p
	m.byID[p.key] = p
	m.open++
	m.mu.Unlock()
	if p.batch != nil {
		p.batch.expect()
	}

	params, err := inwardParams(msg, p)
	if err != nil {
		return err
	}
	id, err := jsonrpc.MakeID(float64(p.number))
	if err != nil {
		return err
	}
	var key string
	key, p.untake = m.Calls.Put(p.Facts)
	err = p.lane.Deliver(&jsonrpc.Request{
		ID: id, Method: msg.Method, Params: params,
		Extra: &mcp.RequestExtra{Header: http.Header{call.Header: {key}}},
	})
	if err != nil || msg.Method != "initialize" {
		return err
	}
	return m.initialized(ctx, p)
}

// initialized waits for the answer to initialize, because what the session
// speaks decides about the next line.
func (m *mux) initialized(ctx context.Context, p *pending) error {
	select {
	case <-p.settled:
	case <-m.out.broken:
		return m.out.err
	case <-ctx.Done():
		return ctx.Err()
	}
	live := p.reply.Error == nil
	m.mu.Lock()
	m.asking = live
	m.mu.Unlock()
	if live {
		m.negotiated = asString(member(p.reply.Result, "protocolVersion"))
	} else {
		_ = m.legacy.Close()
		m.legacy = nil
	}
	return nil
}

// chooseLane sets the lane of a call, and opens it when it is the first there.
func (m *mux) chooseLane(ctx context.Context, p *pending) (err error) {
	shared := &m.legacy
	if p.Era == protocol.EraModern {
		shared = &m.modern
	}
	switch {
	case p.listen:
		p.lane, err = m.openLane(ctx, protocol.EraModern)
	case *shared == nil:
		*shared, err = m.openLane(ctx, p.Era)
		p.lane = *shared
	default:
		p.lane = *shared
	}
	return err
}

// openLane connects a session. A modern one must have a modern revision from
// the start: the SDK decides by the session, not by the request, whether a
// handler may answer input_required, and sends list changes unasked to a
// session without one.
func (m *mux) openLane(ctx context.Context, era protocol.Era) (*Lane, error) {
	var lane *Lane
	lane = NewLane(func(ctx context.Context, msg jsonrpc.Message) error {
		return m.outward(ctx, lane, era, msg)
	})
	opts := &mcp.ServerSessionOptions{}
	if era == protocol.EraModern {
		opts.State = &mcp.ServerSessionState{
			InitializeParams: &mcp.InitializeParams{ProtocolVersion: protocol.Modern},
		}
	}
	session, err := m.Server.Connect(ctx, lane, opts)
	if err != nil {
		return nil, fmt.Errorf("opening a %s session: %w", era, err)
	}
	m.sessions.Go(func() { _ = session.Wait() })
	return lane, nil
}

func (m *mux) notification(msg *protocol.Message) error {
	if msg.Method == "notifications/cancelled" {
		return m.cancel(msg)
	}
	lane := m.legacy
	if eraOf(msg) == protocol.EraModern {
		lane = m.modern
	}
	if lane == nil {
		m.Logger.Debug("dropped a notification that belongs to no session", "method", msg.Method)
		return nil
	}
	params, err := inwardParams(msg, nil)
	if err != nil {
		return err
	}
	return lane.Deliver(&jsonrpc.Request{Method: msg.Method, Params: params})
}

// cancel cancels a call of the client. Its id is free again at once.
func (m *mux) cancel(msg *protocol.Message) error {
	key, _ := idKey(msg.Params["requestId"])
	m.mu.Lock()
	p := m.byID[key]
	if p == nil || p.Method == "initialize" { // which must not be cancelled (2025-11-25, cancellation)
		m.mu.Unlock()
		return nil
	}
	p.cancelled = true
	delete(m.byID, key)
	m.mu.Unlock()
	m.Logger.Debug("cancelled by the client", "requestId", p.RequestID, "reason", msg.ParamString("reason"))
	return m.stop(p)
}

// stop cancels the context of a call's handler.
func (m *mux) stop(p *pending) error {
	params := fmt.Appendf(nil, `{"requestId":%d}`, p.number)
	err := p.lane.Deliver(&jsonrpc.Request{Method: "notifications/cancelled", Params: params})
	if errors.Is(err, ErrClosed) { // answered meanwhile
		return nil
	}
	return err
}

// clientAnswer brings an answer to the question of the server's that it names.
func (m *mux) clientAnswer(data []byte, msg *protocol.Message) error {
	reply := &jsonrpc.Response{Error: errors.New("the client's answer cannot be read")}
	if decoded, err := jsonrpc.DecodeMessage(data); err == nil {
		if r, ok := decoded.(*jsonrpc.Response); ok {
			reply = r
		}
	}
	return m.settleAsk(msg.ID, reply)
}

func (m *mux) settleAsk(id []byte, reply *jsonrpc.Response) error {
	number, ok := asInteger(id)
	m.mu.Lock()
	ok = ok && m.asks[number]
	delete(m.asks, number)
	m.mu.Unlock()
	if !ok {
		m.Logger.Debug("dropped an answer to no open question")
		return nil
	}
	reply.ID, _ = jsonrpc.MakeID(float64(number))
	return m.legacy.Deliver(reply)
}

// refuse answers a message that is not delivered.
func (m *mux) refuse(ctx context.Context, b *batch, id []byte, r *refusal) error {
	if key, ok := idKey(id); ok {
		m.mu.Lock()
		if m.byID[key] != nil {
			id = nil // it would be taken for the answer to the running call
		}
		m.mu.Unlock()
	}
	requestID := call.NewRequestID()
	m.Logger.Debug("refused a message", "requestId", requestID, "code", r.code, "reason", r.message)
	return m.answer(ctx, b, errorLine(id, r.wireError(requestID)))
}

// answer sends an answer, or collects it in its batch.
func (m *mux) answer(ctx context.Context, b *batch, line []byte) error {
	if b != nil {
		b.add(line)
		return nil
	}
	return m.out.write(ctx, line)
}

// shutDown lets running calls finish and ends all lanes. err is why serving
// ended, nil at the end of input.
func (m *mux) shutDown(ctx context.Context, err error) error {
	m.endInput()
	select {
	case <-m.idle:
	case <-m.out.broken:
	case <-ctx.Done():
		select {
		case <-m.idle:
		case <-m.out.broken:
		case <-time.After(m.Grace):
			m.Logger.Warn("cancelling calls that did not finish in time", "grace", m.Grace)
		}
	}
	failed := m.out.end(errors.New("the server has stopped"))
	m.closeLanes()
	return cmp.Or(failed, err, ctx.Err())
}

// endInput fails what waits for the client and ends subscriptions.
func (m *mux) endInput() {
	m.mu.Lock()
	m.asking, m.ended = false, true
	if m.open == 0 {
		close(m.idle)
	}
	asks := slices.Collect(maps.Keys(m.asks))
	clear(m.asks)
	var listens []*pending
	for _, p := range m.calls {
		// One that has not begun would end with an error; it is ended when it has.
		if p.listen && p.acknowledged {
			listens = append(listens, p)
		}
	}
	m.mu.Unlock()

	// An error here means that the lane is closed, and what was open on it too.
	for _, number := range asks {
		id, _ := jsonrpc.MakeID(float64(number))
		_ = m.legacy.Deliver(&jsonrpc.Response{ID: id, Error: errCannotAnswer})
	}
	for _, p := range listens {
		_ = m.stop(p)
	}
}

var errCannotAnswer = errors.New("the client cannot answer: its session has not begun, or it has closed its end")

// closeLanes ends all sessions and waits for their goroutines, but not for
// ever: a handler may ignore its context.
func (m *mux) closeLanes() {
	for _, lane := range []*Lane{m.legacy, m.modern} {
		if lane != nil {
			_ = lane.Close()
		}
	}
	m.mu.Lock()
	for _, p := range m.calls {
		_ = p.lane.Close()
	}
	m.mu.Unlock()
	done := make(chan struct{})
	go func() {
		m.sessions.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(linger):
		m.Logger.Error("handlers ignore that they were cancelled")
	}
}
