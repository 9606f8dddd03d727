package tasks

import (
	"container/heap"
	"container/list"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Memory is the store of one process. Make one with [NewMemory]. It holds no
// goroutine: a timer runs while there are tasks.
type Memory struct {
	Hub
	now func() time.Time

	mu    sync.Mutex
	tasks map[string]*entry
	ended list.List // of *entry, the one that ended first in front
	byEnd expiries
	order int64
	timer *time.Timer
}

// entry is a task of a [Memory]. Its task is never changed in place.
type entry struct {
	task  *Task
	order int64         // of creation
	ended *list.Element // nil while it runs
	index int           // in byEnd
}

// NewMemory returns an empty store. A nil now is time.Now.
func NewMemory(now func() time.Time) *Memory {
	if now == nil {
		now = time.Now
	}
	return &Memory{now: now, tasks: map[string]*entry{}}
}

// Create implements [Store].
func (m *Memory) Create(_ context.Context, t *Task, most int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep()
	if most > 0 && len(m.tasks) >= most {
		oldest := m.ended.Front()
		if oldest == nil {
			return ErrFull
		}
		m.drop(oldest.Value.(*entry))
	}
	m.order++
	e := &entry{task: clone(t), order: m.order}
	m.tasks[t.ID] = e
	heap.Push(&m.byEnd, e)
	m.schedule()
	return nil
}

// Get implements [Store].
func (m *Memory) Get(_ context.Context, id string) (*Task, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.tasks[id]
	if e == nil || e.task.Expired(m.now()) {
		return nil, ErrUnknown
	}
	return clone(e.task), nil
}

// Change implements [Store].
func (m *Memory) Change(_ context.Context, id string, change func(*Task) error) (*Task, error) {
	m.mu.Lock()
	e := m.tasks[id]
	if e == nil || e.task.Expired(m.now()) {
		m.mu.Unlock()
		return nil, ErrUnknown
	}
	t := clone(e.task)
	if err := change(t); err != nil {
		m.mu.Unlock()
		return nil, err
	}
	e.task = t
	if t.Status.Final() && e.ended == nil {
		e.ended = m.ended.PushBack(e)
	}
	m.mu.Unlock()
	m.Publish(id)
	return clone(t), nil
}

// List implements [Store].
func (m *Memory) List(_ context.Context, subject string) ([]*Task, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []*entry
	for _, e := range m.tasks {
		if e.task.Subject == subject && !e.task.Expired(m.now()) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b *entry) int { return int(a.order - b.order) })
	out := make([]*Task, len(found))
	for i, e := range found {
		out[i] = clone(e.task)
	}
	return out, nil
}

// Renew implements [Store].
func (m *Memory) Renew(_ context.Context, ids []string, until time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		if e := m.tasks[id]; e != nil {
			t := clone(e.task)
			t.Lease = until
			e.task = t
		}
	}
	return nil
}

// sweep drops what has expired. m.mu is held.
func (m *Memory) sweep() {
	now := m.now()
	for len(m.byEnd) > 0 && m.byEnd[0].task.Expired(now) {
		m.drop(m.byEnd[0])
	}
}

// drop forgets a task and tells who watches it. m.mu is held.
func (m *Memory) drop(e *entry) {
	delete(m.tasks, e.task.ID)
	heap.Remove(&m.byEnd, e.index)
	if e.ended != nil {
		m.ended.Remove(e.ended)
	}
	m.Publish(e.task.ID)
}

// schedule sets the timer to the next expiry. m.mu is held.
func (m *Memory) schedule() {
	if m.timer != nil {
		m.timer.Stop()
	}
	if len(m.byEnd) == 0 {
		m.timer = nil
		return
	}
	m.timer = time.AfterFunc(m.byEnd[0].task.Expires().Sub(m.now()), func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.sweep()
		m.schedule()
	})
}

func clone(t *Task) *Task {
	out := *t
	out.Questions, out.Answers = maps.Clone(t.Questions), maps.Clone(t.Answers)
	return &out
}

// expiries is a heap, what expires first in front.
type expiries []*entry

func (x expiries) Len() int           { return len(x) }
func (x expiries) Less(i, j int) bool { return x[i].task.Expires().Before(x[j].task.Expires()) }

func (x expiries) Swap(i, j int) {
	x[i], x[j] = x[j], x[i]
	x[i].index, x[j].index = i, j
}

// Push implements [heap.Interface].
func (x *expiries) Push(v any) {
	e := v.(*entry)
	e.index = len(*x)
	*x = append(*x, e)
}

// Pop implements [heap.Interface].
func (x *expiries) Pop() any {
	old := *x
	last := len(old) - 1
	e := old[last]
	old[last] = nil
	*x = old[:last]
	return e
}
