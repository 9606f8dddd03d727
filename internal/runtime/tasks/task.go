// Package tasks keeps what a server has promised to finish after its answer:
// the tasks of both protocol eras, on one store.
//
// A [Manager] knows whose a task is, how long it lives and which transitions
// its status may take; a [Store] keeps the records, for this process or for all
// replicas. What a task does, and how it looks on the wire, is the business of
// package invoke.
//
// Sources: the extension io.modelcontextprotocol/tasks (SEP-2663) and the tasks
// utility of revision 2025-11-25.
package tasks

import (
	"encoding/json"
	"errors"
	"time"
)

// Extension is the name under which the modern era negotiates tasks.
const Extension = "io.modelcontextprotocol/tasks"

// Status is where a task stands. The last three are final.
type Status string

// The statuses, which are the same in both eras.
const (
	Working       Status = "working"
	InputRequired Status = "input_required"
	Completed     Status = "completed" // with a result, which may report an error
	Failed        Status = "failed"    // with a JSON-RPC error
	Cancelled     Status = "cancelled"
)

// Final reports whether the status is the last one of a task.
func (s Status) Final() bool { return s == Completed || s == Failed || s == Cancelled }

// Task is the record of a task. A store gives out copies.
type Task struct {
	ID      string        `json:"id"`
	Subject string        `json:"subject,omitempty"` // whose it is; "" is whoever knows the id
	Name    string        `json:"name"`              // of the tool
	Status  Status        `json:"status"`
	Message string        `json:"message,omitempty"`
	Created time.Time     `json:"created"`
	Updated time.Time     `json:"updated"`
	TTL     time.Duration `json:"ttl"` // from Created

	Result  json.RawMessage `json:"result,omitempty"`  // of a completed task
	IsError bool            `json:"isError,omitempty"` // the result reports an error
	Error   json.RawMessage `json:"error,omitempty"`   // of a failed task: a JSON-RPC error

	Questions map[string]json.RawMessage `json:"questions,omitempty"` // open: requests to the client by key
	Answers   map[string]json.RawMessage `json:"answers,omitempty"`   // given, and not yet taken

	// Lease is until when the process that runs the task is believed to be
	// alive; zero is for ever.
	Lease time.Time `json:"lease,omitzero"`
}

// Expires returns when the task may be forgotten.
func (t *Task) Expires() time.Time { return t.Created.Add(t.TTL) }

// Expired reports whether the task's time is over.
func (t *Task) Expired(now time.Time) bool { return !now.Before(t.Expires()) }

// lapsed reports whether the process that ran the task is gone.
func (t *Task) lapsed(now time.Time) bool {
	return !t.Status.Final() && !t.Lease.IsZero() && now.After(t.Lease)
}

// end makes the status final: nothing is asked any more.
func (t *Task) end(status Status, message string) {
	t.Status, t.Questions, t.Answers = status, nil, nil
	if message != "" {
		t.Message = message
	}
}

var (
	// ErrUnknown is the error of an id that stands for no task, for one whose
	// time is over, and for one of another subject: they must look the same.
	ErrUnknown = errors.New("unknown task")
	// ErrFull is the error of a task that is one too many while none of the
	// others has ended.
	ErrFull = errors.New("too many tasks are running")
	// ErrEnded is the error of a change that a final status does not take.
	ErrEnded = errors.New("the task has ended")
)

// Causes with which the context of a task's handler is cancelled.
var (
	errCancelled = errors.New("the task was cancelled")
	errExpired   = errors.New("the task's time is over")
	errStopped   = errors.New("the server is stopping")
)
