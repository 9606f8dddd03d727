package tasks

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// Config configures a [Manager].
type Config struct {
	Store Store // nil is a [Memory]

	DefaultTTL     time.Duration // of a task whose caller asked for none
	MinTTL, MaxTTL time.Duration // bounds of what a caller asks for; a MaxTTL of zero is none
	Most           int           // tasks at once; zero is without limit

	// Lease is how long the tasks of a process that has gone silent are taken
	// for running; zero is for ever, which fits a store that ends with it.
	Lease time.Duration

	Stopped json.RawMessage  // the JSON-RPC error of a task whose server has stopped
	Ended   func(Status)     // told of each task that ends in this process; nil is nobody
	Now     func() time.Time // nil is time.Now
	Logger  *slog.Logger     // nil discards
}

// Manager runs tasks and answers for all of the store's. It is safe for
// concurrent use.
type Manager struct {
	cfg Config

	mu      sync.Mutex
	runs    map[string]*Run
	beating bool
	closed  bool
	idle    chan struct{} // closed when closed and no run is left
}

// New returns a manager. It starts nothing; end it with Close.
func New(cfg Config) *Manager {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Store == nil {
		cfg.Store = NewMemory(cfg.Now)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Ended == nil {
		cfg.Ended = func(Status) {}
	}
	return &Manager{cfg: cfg, runs: map[string]*Run{}, idle: make(chan struct{})}
}

// Spec says what a new task is.
type Spec struct {
	Subject string         // whose; "" is whoever knows the id
	Name    string         // of the tool
	TTL     *time.Duration // asked for; nil is the default

	// Cancel ends the handler when somebody cancels the task, its time is over
	// or the server stops.
	Cancel context.CancelCauseFunc
	// Changed is told of each new status; nil is nobody.
	Changed func(*Task)
}

// Start makes a task that runs in this process. It can be read once Start
// returns. Errors are ErrFull and those of the store.
func (m *Manager) Start(ctx context.Context, s Spec) (*Run, error) {
	now := m.cfg.Now().UTC()
	t := &Task{
		ID: rand.Text(), Subject: s.Subject, Name: s.Name,
		Status: Working, Created: now, Updated: now, TTL: m.ttl(s.TTL),
	}
	if m.cfg.Lease > 0 {
		t.Lease = now.Add(m.cfg.Lease)
	}
	watching, stop := context.WithCancel(context.Background())
	r := &Run{Task: t, m: m, spec: s, stop: stop, last: Working}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		stop()
		return nil, errStopped
	}
	m.runs[t.ID] = r
	if m.cfg.Lease > 0 && !m.beating {
		m.beating = true
		go m.beat()
	}
	m.mu.Unlock()
	if err := m.cfg.Store.Create(ctx, t, m.cfg.Most); err != nil {
		r.leave()
		return nil, err
	}
	go r.follow(watching)
	return r, nil
}

func (m *Manager) ttl(asked *time.Duration) time.Duration {
	ttl := m.cfg.DefaultTTL
	if asked != nil {
		ttl = *asked
	}
	ttl = max(ttl, m.cfg.MinTTL)
	if m.cfg.MaxTTL > 0 {
		ttl = min(ttl, m.cfg.MaxTTL)
	}
	return ttl
}

// beat renews the leases of the tasks that run here, as long as any does.
func (m *Manager) beat() {
	ticker := time.NewTicker(m.cfg.Lease / 3)
	defer ticker.Stop()
	for range ticker.C {
		m.mu.Lock()
		ids := slices.Collect(maps.Keys(m.runs))
		m.beating = len(ids) > 0
		m.mu.Unlock()
		if len(ids) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), m.cfg.Lease/3)
		if err := m.cfg.Store.Renew(ctx, ids, m.cfg.Now().Add(m.cfg.Lease)); err != nil {
			m.cfg.Logger.Warn("the leases of running tasks are not renewed", "tasks", len(ids), "error", err)
		}
		cancel()
	}
}

// Get returns a task of the subject. One whose process is gone has failed.
func (m *Manager) Get(ctx context.Context, subject, id string) (*Task, error) {
	t, err := m.cfg.Store.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if t.Subject != "" && t.Subject != subject {
		return nil, ErrUnknown
	}
	return m.settled(ctx, t)
}

// settled ends a task whose process is gone.
func (m *Manager) settled(ctx context.Context, t *Task) (*Task, error) {
	if !t.lapsed(m.cfg.Now()) {
		return t, nil
	}
	ended, err := m.change(ctx, t.ID, func(t *Task) error {
		if !t.lapsed(m.cfg.Now()) {
			return ErrEnded
		}
		m.stopped(t)
		return nil
	})
	if errors.Is(err, ErrEnded) { // somebody else was first
		return m.cfg.Store.Get(ctx, t.ID)
	}
	return ended, err
}

// stopped ends a task whose server has.
func (m *Manager) stopped(t *Task) {
	t.end(Failed, "the server that ran the task has stopped; start it again")
	t.Error = m.cfg.Stopped
}

func (m *Manager) change(ctx context.Context, id string, change func(*Task) error) (*Task, error) {
	return m.cfg.Store.Change(ctx, id, func(t *Task) error {
		if err := change(t); err != nil {
			return err
		}
		t.Updated = m.cfg.Now().UTC()
		return nil
	})
}

// List returns the tasks of the subject in the order of their creation.
func (m *Manager) List(ctx context.Context, subject string) ([]*Task, error) {
	all, err := m.cfg.Store.List(ctx, subject)
	if err != nil {
		return nil, err
	}
	for i, t := range all {
		if all[i], err = m.settled(ctx, t); err != nil && !errors.Is(err, ErrUnknown) {
			return nil, err
		}
	}
	return slices.DeleteFunc(all, func(t *Task) bool { return t == nil }), nil
}

// Cancel ends a task of the subject and its handler, wherever that runs. It
// returns ErrEnded for a task that has ended already.
func (m *Manager) Cancel(ctx context.Context, subject, id string) (*Task, error) {
	if _, err := m.Get(ctx, subject, id); err != nil {
		return nil, err
	}
	return m.change(ctx, id, func(t *Task) error {
		if t.Status.Final() {
			return ErrEnded
		}
		t.end(Cancelled, "cancelled by request")
		return nil
	})
}

// errNothing is what a change returns that would change nothing.
var errNothing = errors.New("nothing to change")

// Answer gives answers to open questions of a task of the subject. Others are
// ignored: nobody asked, or somebody has answered already.
func (m *Manager) Answer(ctx context.Context, subject, id string, answers map[string]json.RawMessage) error {
	if _, err := m.Get(ctx, subject, id); err != nil {
		return err
	}
	_, err := m.change(ctx, id, func(t *Task) error {
		taken := false
		for key, answer := range answers {
			if _, open := t.Questions[key]; !open {
				continue
			}
			taken = true
			delete(t.Questions, key)
			if t.Answers == nil {
				t.Answers = map[string]json.RawMessage{}
			}
			t.Answers[key] = answer
		}
		if !taken {
			return errNothing
		}
		if len(t.Questions) == 0 {
			t.Status = Working
		}
		return nil
	})
	if errors.Is(err, errNothing) {
		return nil
	}
	return err
}

// Watch calls see with a task of the subject, and again after changes, until
// see returns false. Changes in quick succession may be seen as one. It
// returns ErrUnknown when the task is gone, and the cause of ctx when that is
// done.
func (m *Manager) Watch(ctx context.Context, subject, id string, see func(*Task) (more bool)) error {
	wake := make(chan struct{}, 1)
	defer m.cfg.Store.Watch(id, func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	})()
	for {
		t, err := m.Get(ctx, subject, id)
		if err != nil {
			return err
		}
		if !see(t) {
			return nil
		}
		next := time.NewTimer(m.untilNews(t))
		select {
		case <-wake:
		case <-next.C:
		case <-ctx.Done():
			next.Stop()
			return context.Cause(ctx)
		}
		next.Stop()
	}
}

// untilNews returns when to look at a task again that nobody changes.
func (m *Manager) untilNews(t *Task) time.Duration {
	at := t.Expires()
	if !t.Status.Final() && !t.Lease.IsZero() && t.Lease.Before(at) {
		at = t.Lease.Add(time.Millisecond)
	}
	return at.Sub(m.cfg.Now())
}

// Close ends what runs here. Where other processes can read the results,
// tasks may finish until ctx is done; the rest fails, and says so. No task
// starts any more. A second call does nothing.
func (m *Manager) Close(ctx context.Context) {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return
	}
	m.closed = true
	if len(m.runs) == 0 {
		close(m.idle)
	}
	m.mu.Unlock()
	if m.cfg.Lease > 0 {
		select {
		case <-m.idle:
		case <-ctx.Done():
		}
	}
	m.mu.Lock()
	left := slices.Collect(maps.Values(m.runs))
	m.mu.Unlock()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	for _, r := range left {
		ended, err := m.change(last, r.Task.ID, func(t *Task) error {
			if t.Status.Final() {
				return ErrEnded
			}
			m.stopped(t)
			return nil
		})
		r.spec.Cancel(errStopped)
		r.over(last, ended, err)
	}
}

// Run is a task that runs in this process. Its methods are safe for concurrent
// use.
type Run struct {
	Task *Task // as it was created; not changed

	m    *Manager
	spec Spec
	stop context.CancelFunc // of follow

	mu   sync.Mutex
	last Status // told of
}

// tell passes a new status on, once.
func (r *Run) tell(t *Task) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.Status != r.last && r.spec.Changed != nil {
		r.spec.Changed(t)
	}
	r.last = t.Status
}

// follow tells of changes that came from elsewhere.
func (r *Run) follow(ctx context.Context) {
	for {
		err := r.m.Watch(ctx, r.Task.Subject, r.Task.ID, func(t *Task) bool {
			r.tell(t)
			switch t.Status {
			case Cancelled:
				r.spec.Cancel(errCancelled)
			case Failed: // given up for dead, by another process
				r.spec.Cancel(errStopped)
			}
			return !t.Status.Final()
		})
		switch {
		case err == nil || ctx.Err() != nil:
			return
		case errors.Is(err, ErrUnknown):
			r.spec.Cancel(errExpired)
			return
		}
		r.m.cfg.Logger.Warn("a task cannot be followed", "task", r.Task.ID, "error", err)
		if !pause(ctx, time.Second) {
			return
		}
	}
}

// Say sets the message of the task's status.
func (r *Run) Say(ctx context.Context, message string) error {
	_, err := r.m.change(ctx, r.Task.ID, func(t *Task) error {
		if t.Status.Final() {
			return ErrEnded
		}
		t.Message = message
		return nil
	})
	return err
}

// Ask makes the task wait for answers to all the questions and returns them.
// Its error is the cause of ctx, ErrEnded, ErrUnknown or one of the store.
func (r *Run) Ask(ctx context.Context, questions map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	_, err := r.m.change(ctx, r.Task.ID, func(t *Task) error {
		if t.Status.Final() {
			return ErrEnded
		}
		t.Status, t.Questions, t.Answers = InputRequired, maps.Clone(questions), nil
		return nil
	})
	if err != nil {
		return nil, err
	}
	ended := false
	err = r.m.Watch(ctx, r.Task.Subject, r.Task.ID, func(t *Task) bool {
		ended = t.Status.Final()
		return !ended && len(t.Questions) > 0
	})
	if err != nil {
		r.withdraw(ctx)
		return nil, err
	}
	if ended {
		return nil, ErrEnded
	}
	var answers map[string]json.RawMessage
	_, err = r.m.change(ctx, r.Task.ID, func(t *Task) error {
		if t.Status.Final() {
			return ErrEnded
		}
		answers, t.Answers = t.Answers, nil
		return nil
	})
	return answers, err
}

// withdraw takes questions back whose time to answer is over.
func (r *Run) withdraw(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, err := r.m.change(ctx, r.Task.ID, func(t *Task) error {
		if t.Status != InputRequired {
			return errNothing
		}
		t.Status, t.Questions, t.Answers = Working, nil, nil
		return nil
	})
	if err != nil && !errors.Is(err, errNothing) && !errors.Is(err, ErrUnknown) {
		r.m.cfg.Logger.Warn("questions of a task are not withdrawn", "task", r.Task.ID, "error", err)
	}
}

// Outcome is how a task's handler ended: with a result or with a JSON-RPC error.
type Outcome struct {
	Result  json.RawMessage
	IsError bool            // the result reports an error
	Error   json.RawMessage // nil with a result
	Message string          // of the last status; "" keeps the one there is
}

// patience is how long End goes on trying to reach the store.
const patience = time.Minute

// End stores how the task ended. A task that was cancelled stays so. It
// returns when the outcome is stored, or never will be.
func (r *Run) End(ctx context.Context, o Outcome) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		ended, err := r.m.change(ctx, r.Task.ID, func(t *Task) error {
			if t.Status.Final() {
				return ErrEnded
			}
			status := Completed
			if o.Error != nil {
				status = Failed
			}
			t.end(status, o.Message)
			t.Result, t.IsError, t.Error = o.Result, o.IsError, o.Error
			return nil
		})
		if err == nil || errors.Is(err, ErrEnded) || errors.Is(err, ErrUnknown) {
			r.over(ctx, ended, err)
			return
		}
		r.m.cfg.Logger.Warn("the outcome of a task is not stored yet", "task", r.Task.ID, "error", err)
		if !pause(ctx, wait) {
			r.m.cfg.Logger.Error("the outcome of a task is lost", "task", r.Task.ID, "error", err)
			r.leave()
			return
		}
	}
}

// over ends the run. The error is that of the change that would have ended the
// task: with ErrEnded somebody else was first.
func (r *Run) over(ctx context.Context, ended *Task, err error) {
	if errors.Is(err, ErrEnded) {
		ended, err = r.m.cfg.Store.Get(ctx, r.Task.ID)
	}
	if err == nil {
		r.tell(ended)
	}
	if r.leave() && err == nil {
		r.m.cfg.Ended(ended.Status)
	}
}

// leave takes the run out of the process and reports whether it was there.
func (r *Run) leave() bool {
	r.stop()
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if r.m.runs[r.Task.ID] == nil {
		return false
	}
	delete(r.m.runs, r.Task.ID)
	if r.m.closed && len(r.m.runs) == 0 {
		close(r.m.idle)
	}
	return true
}

// pause waits and reports whether ctx is still there.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
