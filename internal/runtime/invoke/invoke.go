// Package invoke is the pipeline around every handler of a server: it finds
// the facts of the call, checks access and arguments, bounds the run in time,
// recovers panics, asks the client what the handler asks, and answers in the
// words of the caller's era.
//
// # Asking by replay
//
// A handler asks a question by returning it as its error and is called again
// from the top once the answer is there. The rounds are the same in both
// eras; only the carrier differs. A modern client gets an input_required
// result and brings the answers back with the sealed state of the earlier
// rounds, possibly to another replica. A legacy client is asked by requests on
// its session, and the loop runs here. Waiting runs no tool timeout.
//
// # Place in the SDK
//
// Features are registered on the one *mcp.Server with raw handlers, so the
// SDK neither validates nor converts. [Engine.Middleware] must be the
// outermost receiving middleware: nothing else recovers a panic, and the SDK
// dereferences a nil result.
package invoke

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/protocol"
	"github.com/famcp/famcp/internal/runtime/tasks"
	"github.com/famcp/famcp/internal/runtime/telemetry"
)

// Config configures an [Engine]. Durations and sizes of zero switch a limit
// off where that makes sense; the caller brings the defaults.
type Config struct {
	Calls  *call.Table
	Logger *slog.Logger
	Eras   protocol.Eras

	Metrics *telemetry.Metrics // nil counts nothing

	ToolTimeout      time.Duration // one run of a handler; 0 = none
	MaxResultBytes   int           // of a tool result's JSON; 0 = unbounded
	PageSize         int           // entries of a list page; 0 = all
	ProgressThrottle time.Duration // least time between two progress messages
	InputErrors      string        // era, protocol or result; "" is era
	UncheckedInput   bool          // arguments are not checked against the schema
	AnswerAsText     bool          // structured output only as JSON text, without an output schema
	HideAnnotations  bool          // list tools without annotations

	ListTTL, ReadTTL time.Duration
	CacheScope       string // private or public; "" is private

	Anonymous           bool // callers without credentials may look around
	LegacySubscriptions bool // serve resources/subscribe; subscriptions/listen always is

	LogNotifications bool   // send notifications/message
	DefaultLogLevel  string // of a legacy session that has set none

	StateSecret    string        // "" is random for this process
	StateTTL       time.Duration // 0 is 600 s
	MaxStateBytes  int           // 0 = unbounded
	AskTimeout     time.Duration // for people; 0 = none
	RequestTimeout time.Duration // for sampling and roots; 0 = none
	MaxPending     int           // open questions per subject; 0 = unbounded

	Tasks    *tasks.Manager // nil serves no tasks
	TaskPoll time.Duration  // between two looks at a task, suggested to clients; 0 suggests nothing

	// Fault reads the errors of the layer above; false means unexpected.
	Fault func(error) (*Fault, bool)
	Now   func() time.Time // nil is time.Now
}

// Engine serves the handlers of one server. It is safe for concurrent use.
type Engine struct {
	cfg    Config
	sealer *sealer
	traces *telemetry.Traces

	mu        sync.RWMutex
	tools     map[string]*Tool
	prompts   map[string]*Prompt
	resources map[string]*Resource // by URI
	templates map[string]*Template // by URI template
	completer map[completionKey]CompletionHandler
	removed   int // entries, ever

	asking  pendingCounter
	roots   rootsCache
	watch   watchers
	notices notices
}

// New returns an engine without features.
func New(cfg Config) (*Engine, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.StateTTL == 0 {
		cfg.StateTTL = 600 * time.Second
	}
	if cfg.CacheScope == "" {
		cfg.CacheScope = "private"
	}
	sealer, err := newSealer(cfg.StateSecret, cfg.StateTTL, cfg.MaxStateBytes, cfg.Now)
	if err != nil {
		return nil, err
	}
	return &Engine{
		cfg: cfg, sealer: sealer, traces: telemetry.NewTraces(),
		tools: map[string]*Tool{}, prompts: map[string]*Prompt{},
		resources: map[string]*Resource{}, templates: map[string]*Template{},
		completer: map[completionKey]CompletionHandler{},
	}, nil
}

// Access says who may see and use an entry. The zero value lets every caller
// of the server.
type Access struct {
	Public  bool // shown to callers without credentials, if it needs no scope
	Scopes  []string
	Visible func(context.Context, *Call) bool // nil shows it
}

// allowed reports the missing scopes, and whether the caller may know of the
// entry at all.
func (a *Access) allowed(ctx context.Context, c *Call) (missing []string, visible bool) {
	if (a.Visible != nil && !a.Visible(ctx, c)) || (c.Facts.Anonymous() && !a.Public) {
		return nil, false
	}
	if c.Facts.AllScopes {
		return nil, true
	}
	for _, scope := range a.Scopes {
		if !slices.Contains(c.Facts.Scopes, scope) {
			missing = append(missing, scope)
		}
	}
	return missing, true
}

// Scopes returns the scopes that entries ask for, sorted.
func (e *Engine) Scopes() []string {
	e.mu.RLock()
	defer e.mu.RUnlock()
	asked := map[string]bool{}
	collect(asked, e.tools)
	collect(asked, e.prompts)
	collect(asked, e.resources)
	collect(asked, e.templates)
	return slices.Sorted(maps.Keys(asked))
}

func collect[E entry](asked map[string]bool, entries map[string]E) {
	for _, entry := range entries {
		for _, scope := range entry.access().Scopes {
			asked[scope] = true
		}
	}
}

// restricts reports whether some callers are let in and others are not.
// anonymous says that there are callers without credentials.
func (a *Access) restricts(anonymous bool) bool {
	return a.Visible != nil || len(a.Scopes) > 0 || (anonymous && !a.Public)
}

// admit applies access to a use of an entry; unknown is the fault that a
// hidden entry looks like.
func (a *Access) admit(ctx context.Context, c *Call, unknown *Fault) error {
	missing, visible := a.allowed(ctx, c)
	if !visible {
		return unknown
	}
	if len(missing) > 0 {
		return &Fault{Kind: Forbidden, Message: "the token lacks a scope that this needs", Missing: missing}
	}
	return nil
}

// run calls h in a goroutine of its own, so that a handler which ignores its
// context still leaves the caller after timeout, and turns a panic into a
// fault.
func run[T any](ctx context.Context, c *Call, timeout time.Duration, h func(context.Context) (T, error)) (T, error) {
	var zero T
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, errTimeout)
		defer cancel()
	}
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		var out outcome
		defer func() {
			if p := recover(); p != nil {
				out = outcome{err: panicFault(c, p)}
			}
			done <- out
		}()
		out.value, out.err = h(ctx)
	}()
	select {
	case out := <-done:
		if out.err != nil && errors.Is(context.Cause(ctx), errTimeout) && errors.Is(out.err, context.DeadlineExceeded) {
			return zero, timeoutFault(timeout)
		}
		return out.value, out.err
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), errTimeout) {
			return zero, timeoutFault(timeout)
		}
		return zero, context.Cause(ctx)
	}
}

var errTimeout = errors.New("the handler ran out of time")

func timeoutFault(limit time.Duration) *Fault {
	return &Fault{Kind: TimedOut, Message: fmt.Sprintf("no result within %s; try a smaller request", limit)}
}

func panicFault(c *Call, p any) *Fault {
	c.engine.cfg.Metrics.Panic()
	c.Log().Error("panic in a handler", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return &Fault{Kind: Internal, Message: internalMessage, Cause: errPanic}
}

var errPanic = errors.New("the handler panicked")
