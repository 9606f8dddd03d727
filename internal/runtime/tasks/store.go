package tasks

import (
	"context"
	"sync"
	"time"
)

// Store keeps tasks until they expire. Its methods are safe for concurrent
// use. Errors other than those named mean that the store cannot be reached.
type Store interface {
	// Create adds t. When most tasks are there already, the one that ended
	// first is dropped; without an ended one the error is ErrFull.
	Create(ctx context.Context, t *Task, most int) error
	// Get returns the task, or ErrUnknown.
	Get(ctx context.Context, id string) (*Task, error)
	// Change applies change to the task as one step and returns what it has
	// become, or ErrUnknown. An error of change is returned as it is, and the
	// task stays as it was. change may be called more than once.
	Change(ctx context.Context, id string, change func(*Task) error) (*Task, error)
	// List returns the tasks of a subject in the order of their creation.
	List(ctx context.Context, subject string) ([]*Task, error)
	// Renew sets the lease of tasks; unknown ones are skipped.
	Renew(ctx context.Context, ids []string, until time.Time) error
	// Watch has changed called after each change of the task, by whichever
	// process, until stop is called. It must neither block nor call the store.
	Watch(id string, changed func()) (stop func())
}

// Hub tells the watchers within this process of changes. The zero value is
// ready to use. It is safe for concurrent use.
type Hub struct {
	mu       sync.Mutex
	watchers map[string]map[*func()]bool
}

// Watch is that of [Store].
func (h *Hub) Watch(id string, changed func()) (stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watchers == nil {
		h.watchers = map[string]map[*func()]bool{}
	}
	if h.watchers[id] == nil {
		h.watchers[id] = map[*func()]bool{}
	}
	h.watchers[id][&changed] = true
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watchers[id], &changed)
		if len(h.watchers[id]) == 0 {
			delete(h.watchers, id)
		}
	}
}

// Publish tells the watchers of a task that it has changed.
func (h *Hub) Publish(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for changed := range h.watchers[id] {
		(*changed)()
	}
}
