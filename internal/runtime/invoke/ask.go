package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/protocol"
)

// Capability is something a client can be asked for.
type Capability string

const (
	ElicitForm Capability = "elicitation"
	ElicitURL  Capability = "elicitation.url"
	Sampling   Capability = "sampling"
	Roots      Capability = "roots"
)

// needs is the requiredCapabilities object of -32021 (2026-07-28).
func (k Capability) needs() json.RawMessage {
	switch k {
	case ElicitURL:
		return json.RawMessage(`{"elicitation":{"url":{}}}`)
	default:
		return json.RawMessage(`{"` + string(k) + `":{}}`)
	}
}

var (
	// ErrAsked is what a handler returns while a question is open. It never
	// leaves the pipeline.
	ErrAsked = errors.New("the client has been asked; the handler is called again with the answer")
	// ErrDeclined says that the user declined or dismissed a question.
	ErrDeclined = errors.New("the user declined")
	// ErrCannotAsk says that the client, or the channel of this request,
	// cannot carry the question.
	ErrCannotAsk = errors.New("the client cannot be asked")
)

const (
	maxRounds    = 32       // a handler that asks for ever is a fault of the handler
	maxKeptBytes = 32 << 10 // per kept value
)

// Can reports whether the client declared a capability and this request's
// channel can carry it.
func (c *Call) Can(k Capability) bool {
	if c.session == nil || (!c.Facts.CanAsk && c.deferral.task() == nil) {
		return false
	}
	caps := c.capabilities()
	switch k {
	case ElicitForm: // an empty capability means form
		return caps.Elicitation != nil && (caps.Elicitation.Form != nil || caps.Elicitation.URL == nil)
	case ElicitURL:
		return caps.Elicitation != nil && caps.Elicitation.URL != nil
	case Sampling:
		return caps.Sampling != nil
	case Roots:
		return caps.RootsV2 != nil
	}
	return false
}

// Ask returns the answer to the question under key, or an error to return
// from the handler: [ErrAsked] while the answer is not there, a fault that
// wraps [ErrCannotAsk] where it never will be. Keys are unique in a handler.
func (c *Call) Ask(key string, k Capability, q mcp.InputRequest) (json.RawMessage, error) {
	if !c.Can(k) {
		return nil, &Fault{
			Kind:    CannotAsk,
			Message: fmt.Sprintf("this needs the client capability %s, which the client does not offer on this request", k),
			Needs:   k.needs(), Cause: ErrCannotAsk,
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if raw, ok := c.answers[key]; ok {
		return raw, nil
	}
	if c.pending == nil {
		c.pending = map[string]mcp.InputRequest{}
	}
	c.pending[key] = q
	return nil, ErrAsked
}

// Kept returns the value stored by an earlier round under key.
func (c *Call) Kept(key string) (json.RawMessage, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	raw, ok := c.kept[key]
	return raw, ok
}

// Keep stores a value for the later rounds of this request.
func (c *Call) Keep(key string, value json.RawMessage) error {
	if len(value) > maxKeptBytes {
		return &Fault{Kind: Internal, Message: internalMessage, Cause: fmt.Errorf("value of %d bytes kept under %q is over %d", len(value), key, maxKeptBytes)}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept = map[string]json.RawMessage{}
	}
	c.kept[key] = value
	return nil
}

// questions is the answer to a modern request whose handler asked.
type questions struct {
	requests mcp.InputRequestMap
	state    string
}

// request is what a retry brings along, and what binds its state.
type request struct {
	name      string
	args      json.RawMessage
	responses mcp.InputResponseMap
	state     string
}

func (c *Call) binding(r request) []byte {
	return binding(c.Facts.Subject, c.Facts.Method, r.name, r.args)
}

// converse runs h until it has no open question. A pending question beats
// what that run returned, unless it timed out, panicked, or has another
// question that cannot be asked: the user is not asked for nothing.
func converse[T any](ctx context.Context, c *Call, r request, timeout time.Duration, h func(context.Context) (T, error)) (T, *questions, error) {
	var zero T
	if c.Facts.Era == protocol.EraModern {
		if err := c.resume(r); err != nil {
			return zero, nil, err
		}
	}
	for {
		value, err := run(ctx, c, timeout, h)
		open := c.takePending()
		if len(open) == 0 || fatal(err) {
			if errors.Is(err, ErrAsked) && len(open) == 0 {
				err = errors.New("the handler returned ErrAsked without a question of this call")
			}
			return value, nil, err
		}
		if c.round++; c.round >= maxRounds {
			return zero, nil, &Fault{Kind: Internal, Message: internalMessage, Cause: fmt.Errorf("the handler still asks after %d rounds", maxRounds)}
		}
		switch {
		case !c.deferral.settle():
			err = c.askTask(ctx, c.deferral.task(), open)
		case c.Facts.Era == protocol.EraModern:
			q, err := c.suspend(r, open)
			return zero, q, err
		default:
			err = c.askSession(ctx, open)
		}
		if err != nil {
			return zero, nil, err
		}
	}
}

func fatal(err error) bool {
	var f *Fault
	return errors.Is(err, errPanic) || errors.Is(err, context.Canceled) ||
		(errors.As(err, &f) && (f.Kind == TimedOut || f.Kind == CannotAsk))
}

func (c *Call) takePending() map[string]mcp.InputRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	open := c.pending
	c.pending = nil
	return open
}

// resume restores the earlier rounds and adds the answers of this one. An
// answer never replaces an earlier one, and one that nobody asks for is never
// looked at. Answers may come without a state: whatever the client says, it
// could have said in two steps.
func (c *Call) resume(r request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.state != "" {
		st, err := c.engine.sealer.open(r.state, c.binding(r))
		if err != nil {
			return &Fault{Kind: Malformed, Field: "requestState", Message: err.Error()}
		}
		c.round, c.kept, c.answers = st.Round, st.Kept, st.Answers
		c.progress, c.started = st.Progress, st.Progress > 0
	}
	for key, answer := range r.responses {
		if _, ok := c.answers[key]; ok {
			continue
		}
		raw, err := json.Marshal(answer)
		if err != nil {
			return &Fault{Kind: Malformed, Field: "inputResponses", Message: "an answer is not readable"}
		}
		c.answer(key, raw)
	}
	return nil
}

func (c *Call) answer(key string, raw json.RawMessage) {
	if c.answers == nil {
		c.answers = map[string]json.RawMessage{}
	}
	c.answers[key] = raw
}

func (c *Call) suspend(r request, open map[string]mcp.InputRequest) (*questions, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, err := c.engine.sealer.seal(state{
		Round: c.round, Answers: c.answers, Kept: c.kept, Progress: c.progress,
	}, c.binding(r))
	if err != nil {
		return nil, err
	}
	return &questions{requests: open, state: text}, nil
}

// askSession puts the questions to a legacy client, all at once, and waits for
// the answers or the first failure.
func (c *Call) askSession(ctx context.Context, open map[string]mcp.InputRequest) error {
	release, ok := c.engine.asking.enter(c.Facts.Subject, len(open), c.engine.cfg.MaxPending)
	if !ok {
		return &Fault{Kind: Failed, Message: "too many questions of this client are open; answer one first"}
	}
	defer release()
	defer c.Facts.Pause()()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for key, q := range open {
		wg.Go(func() {
			raw, err := c.askOne(ctx, q)
			if err != nil {
				cancel(err) // the first error is the one that is kept
				return
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.answer(key, raw)
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func (c *Call) askOne(ctx context.Context, q mcp.InputRequest) (json.RawMessage, error) {
	limit := c.engine.cfg.RequestTimeout
	if _, person := q.(*mcp.ElicitParams); person {
		limit = c.engine.cfg.AskTimeout
	}
	asked := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		asked, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	var (
		answer any
		raw    json.RawMessage
		err    error
	)
	switch q := q.(type) {
	case *mcp.ElicitParams:
		answer, err = c.session.Elicit(asked, q)
	case *mcp.CreateMessageParams:
		answer, err = c.session.CreateMessage(asked, q)
	case *mcp.CreateMessageWithToolsParams:
		answer, err = c.session.CreateMessageWithTools(asked, q)
	case *mcp.ListRootsParams:
		raw, err = c.engine.roots.ask(asked, c, q)
	default:
		err = fmt.Errorf("question of unknown type %T", q)
	}
	switch {
	case err == nil && raw != nil:
		return raw, nil
	case err == nil:
		return json.Marshal(answer)
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(asked.Err(), context.DeadlineExceeded):
		return nil, &Fault{Kind: Failed, Message: fmt.Sprintf("no answer from the client within %s", limit)}
	default:
		return nil, &Fault{Kind: Failed, Message: "the client could not answer a question of this call", Cause: err}
	}
}

// pendingCounter counts the open questions of each subject. The zero value is
// ready to use.
type pendingCounter struct {
	mu   sync.Mutex
	open map[string]int
}

func (p *pendingCounter) enter(subject string, n, most int) (release func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if most > 0 && p.open[subject]+n > most {
		return nil, false
	}
	if p.open == nil {
		p.open = map[string]int{}
	}
	p.open[subject] += n
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.open[subject] -= n; p.open[subject] == 0 {
			delete(p.open, subject)
		}
	}, true
}
