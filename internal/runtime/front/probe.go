package front

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// CheckKind says which probe runs a [Check].
type CheckKind int

const (
	Liveness  CheckKind = iota // /health: a failure asks for a restart
	Readiness                  // /ready: a failure takes the server out of rotation
)

// String returns "liveness" or "readiness".
func (k CheckKind) String() string {
	if k == Readiness {
		return "readiness"
	}
	return "liveness"
}

// Check is one condition of a probe. Func is given 5 s, and its error is
// logged, never shown. A result is good for a second, so that probes cannot
// be used to load what is checked.
type Check struct {
	Name string
	Kind CheckKind
	Func func(context.Context) error
}

const (
	checkTimeout = 5 * time.Second
	checkFresh   = time.Second
)

// prober runs the checks of one kind.
type prober struct{ state *probeState }

type probeState struct {
	kind   CheckKind
	log    *slog.Logger
	checks []*runningCheck

	mu   sync.Mutex
	at   time.Time
	last map[string]error
}

type runningCheck struct {
	Check
	busy atomic.Bool // a check that ignores its context is not started twice
}

func newProber(kind CheckKind, checks []Check, log *slog.Logger) prober {
	s := &probeState{kind: kind, log: log}
	for _, c := range checks {
		if c.Kind == kind {
			s.checks = append(s.checks, &runningCheck{Check: c})
		}
	}
	return prober{s}
}

// run returns the outcome of each check by name.
func (p prober) run(ctx context.Context) map[string]error {
	s := p.state
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && time.Since(s.at) < checkFresh {
		return s.last
	}
	// The result is shared: the prober that happens to ask first must not
	// cancel it for the others.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
	defer cancel()
	errs := make([]error, len(s.checks))
	var wg sync.WaitGroup
	for i, c := range s.checks {
		wg.Go(func() { errs[i] = c.run(ctx) })
	}
	wg.Wait()
	before := s.last
	s.last, s.at = make(map[string]error, len(errs)), time.Now()
	for i, c := range s.checks {
		s.last[c.Name] = errs[i]
		s.report(ctx, c.Name, before[c.Name], errs[i])
	}
	return s.last
}

// report logs a change: probes come every few seconds, and anybody can send one.
func (s *probeState) report(ctx context.Context, check string, before, now error) {
	switch {
	case now != nil && before == nil:
		s.log.WarnContext(ctx, s.kind.String()+" check failed", "check", check, "error", now)
	case now == nil && before != nil:
		s.log.InfoContext(ctx, s.kind.String()+" check is good again", "check", check)
	}
}

func (c *runningCheck) run(ctx context.Context) error {
	if !c.busy.CompareAndSwap(false, true) {
		return errors.New("still running since an earlier probe")
	}
	done := make(chan error, 1)
	go func() {
		err := errors.New("the check exited its goroutine")
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v", p)
			}
			c.busy.Store(false)
			done <- err
		}()
		err = c.Func(ctx)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("no result within %s", checkTimeout)
	}
}

func (f *Front) serveHealth(w http.ResponseWriter, r *http.Request) {
	details, ok := f.probe(r.Context(), f.liveness)
	status := "ok"
	if !ok {
		status = "failed"
	}
	writeProbe(w, r, ok, struct {
		Status  string            `json:"status"`
		Version string            `json:"version"`
		Uptime  int64             `json:"uptime"` // seconds
		Details map[string]string `json:"details"`
	}{status, f.cfg.Info.Version, int64(time.Since(f.started).Seconds()), details})
}

func (f *Front) serveReady(w http.ResponseWriter, r *http.Request) {
	checks, ok := f.probe(r.Context(), f.ready)
	status := "ready"
	switch {
	case f.running.isDraining():
		ok, status = false, "draining"
	case !ok:
		status = "not ready"
	}
	writeProbe(w, r, ok, struct {
		Status string            `json:"status"`
		Checks map[string]string `json:"checks"`
	}{status, checks})
}

func (f *Front) probe(ctx context.Context, p prober) (states map[string]string, ok bool) {
	states, ok = map[string]string{}, true
	for name, err := range p.run(ctx) {
		states[name] = "ok"
		if err != nil {
			states[name], ok = "failed", false
		}
	}
	return states, ok
}

func writeProbe(w http.ResponseWriter, r *http.Request, ok bool, body any) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		writeJSON(w, http.StatusMethodNotAllowed, map[string]string{"error": "only GET and HEAD are served here"})
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	status := http.StatusOK
	if !ok {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, body)
}

// writeJSON answers with v. net/http leaves the body out on HEAD.
func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // impossible: only plain data comes here
		status, body = http.StatusInternalServerError, []byte(`{"error":"internal error"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
