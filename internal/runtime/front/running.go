package front

import (
	"context"
	"errors"
	"sync"
	"time"
)

// exchanges keeps track of what is being served.
type exchanges struct {
	mu       sync.Mutex
	draining bool
	closing  bool
	calls    map[*running]struct{}
	idle     chan struct{} // what close waits for: closed when nothing runs
}

// running is one request in service.
type running struct {
	cancel  context.CancelCauseFunc
	endless bool // a stream that ends only with its client or the server
}

var errClosing = errors.New("the server is closing")

// enter registers a request; the caller runs leave when it is over.
func (e *exchanges) enter(ctx context.Context, endless bool) (_ context.Context, cancel context.CancelCauseFunc, leave func()) {
	ctx, cancel = context.WithCancelCause(ctx)
	r := &running{cancel: cancel, endless: endless}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.calls == nil {
		e.calls = map[*running]struct{}{}
	}
	e.calls[r] = struct{}{}
	if endless && e.closing {
		cancel(errClosing)
	}
	return ctx, cancel, func() {
		cancel(nil)
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.calls, r)
		e.endIfIdle()
	}
}

// endIfIdle is called with the mutex held.
func (e *exchanges) endIfIdle() {
	if len(e.calls) == 0 && e.idle != nil {
		close(e.idle)
		e.idle = nil
	}
}

func (e *exchanges) drain() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.draining = true
}

func (e *exchanges) isDraining() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.draining
}

// lastWords is how long cancelled calls have to answer when the server closes.
const lastWords = time.Second

func (e *exchanges) close(ctx context.Context) error {
	e.mu.Lock()
	e.draining, e.closing = true, true
	if e.idle == nil {
		e.idle = make(chan struct{})
	}
	idle := e.idle
	e.endIfIdle()
	for r := range e.calls {
		if r.endless {
			r.cancel(errClosing)
		}
	}
	e.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	e.mu.Lock()
	for r := range e.calls {
		r.cancel(errClosing)
	}
	e.mu.Unlock()
	// A cancelled call still has to tell its client.
	last := time.NewTimer(lastWords)
	defer last.Stop()
	select {
	case <-idle:
	case <-last.C:
	}
	return ctx.Err()
}
