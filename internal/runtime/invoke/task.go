package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/protocol"
	"github.com/famcp/famcp/internal/runtime/tasks"
)

// TaskSupport says whether calls of a tool may become tasks.
type TaskSupport string

const (
	TasksForbidden TaskSupport = "forbidden"
	TasksOptional  TaskSupport = "optional"
	TasksRequired  TaskSupport = "required"
)

// DefaultTaskGrace is how long a modern call may take before it becomes a task.
const DefaultTaskGrace = 50 * time.Millisecond

// requiresTasks is the requiredCapabilities object of -32021.
var requiresTasks = json.RawMessage(`{"extensions":{"` + tasks.Extension + `":{}}}`)

func needsTasks() *Fault {
	return &Fault{
		Kind: CannotAsk, Message: "this needs the client extension " + tasks.Extension, Needs: requiresTasks,
	}
}

// taskPlan says how a call may become a task; nil never.
type taskPlan struct {
	now   bool           // before anything runs
	ttl   *time.Duration // asked for; nil is the default
	grace time.Duration
}

// planTask decides by the tool and the client. In the modern era the server
// makes a task where the client knows them; in revision 2025-11-25 the client
// asks for one; older revisions have none.
func (e *Engine) planTask(c *Call, t *Tool) (*taskPlan, error) {
	if e.cfg.Tasks == nil {
		return nil, nil
	}
	support := t.taskSupport()
	if c.Facts.Era == protocol.EraModern {
		switch {
		case support == TasksForbidden:
			return nil, nil
		case c.knowsTasks():
			return &taskPlan{grace: t.taskGrace()}, nil
		case support == TasksRequired:
			return nil, needsTasks()
		}
		return nil, nil
	}
	asked := c.Facts.Task != nil && c.version == protocol.NewestLegacy
	switch {
	case asked && support == TasksForbidden:
		return nil, notAsked(fmt.Sprintf("tool %q cannot run as a task; call it without params.task", t.Listed.Name))
	case !asked && support == TasksRequired:
		return nil, notAsked(fmt.Sprintf("tool %q runs as a task only; call it with params.task (revision %s)", t.Listed.Name, protocol.NewestLegacy))
	case !asked:
		return nil, nil
	}
	ttl, err := askedTTL(c.Facts.Task)
	return &taskPlan{now: true, ttl: ttl}, err
}

// notAsked is -32601 with words of its own.
func notAsked(message string) error {
	return newError(protocol.CodeMaskedMethodNotFound, message, protocol.ErrorData{Field: "task"})
}

// askedTTL reads the ttl of a task parameter: milliseconds, or null for the
// longest there is, which is bounded like every other.
func askedTTL(raw json.RawMessage) (*time.Duration, error) {
	var p struct {
		TTL json.RawMessage `json:"ttl"`
	}
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &p) != nil {
		return nil, &Fault{Kind: Malformed, Field: "task", Message: "must be an object"}
	}
	if p.TTL == nil {
		return nil, nil
	}
	longest := time.Duration(math.MaxInt64)
	if string(p.TTL) == "null" {
		return &longest, nil
	}
	var ms float64
	if json.Unmarshal(p.TTL, &ms) != nil || ms < 0 {
		return nil, &Fault{Kind: Malformed, Field: "task.ttl", Message: "must be a number of milliseconds"}
	}
	if ttl := ms * float64(time.Millisecond); ttl < float64(longest) {
		longest = time.Duration(ttl)
	}
	return &longest, nil
}

func (t *Tool) taskSupport() TaskSupport {
	if t.Tasks == "" {
		return TasksForbidden
	}
	return t.Tasks
}

func (t *Tool) taskGrace() time.Duration {
	if t.TaskGrace == 0 {
		return DefaultTaskGrace
	}
	return t.TaskGrace
}

// knowsTasks reports whether the client of a modern request declared the
// extension.
func (c *Call) knowsTasks() bool {
	_, ok := c.capabilities().Extensions[tasks.Extension]
	return ok
}

// taskOwner returns the subject that a caller's tasks belong to. Who cannot be
// told from others has none: then the id is the key.
func (c *Call) taskOwner() string {
	if c.Facts.Transport == call.HTTP && !c.Facts.Authenticated {
		return ""
	}
	return c.Facts.Subject
}

// deferral is a call on its way to become a task, or not.
type deferral struct {
	call   *Call
	tool   *Tool
	start  time.Time
	cancel context.CancelCauseFunc // of the handler

	mu      sync.Mutex
	settled bool // it is answered as it is
	run     *tasks.Run
}

// settle decides that the call does not become a task, unless it is one.
func (d *deferral) settle() bool {
	if d == nil {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.run == nil {
		d.settled = true
	}
	return d.settled
}

// task returns the task that the call has become, or nil.
func (d *deferral) task() *tasks.Run {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.run
}

// promote makes the call a task, unless it is settled.
func (d *deferral) promote(ctx context.Context, ttl *time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.settled {
		return nil
	}
	c := d.call
	run, err := c.engine.cfg.Tasks.Start(ctx, tasks.Spec{
		Subject: c.taskOwner(), Name: c.Name, TTL: ttl, Cancel: d.cancel, Changed: c.statusNotifier(),
	})
	if err != nil {
		d.settled = true
		return err
	}
	d.run = run
	return nil
}

// created is where the middleware finds that a call has become a task: the
// SDK's handlers return results of their own type alone.
type created struct{ task *tasks.Task }

type createdKey struct{}

// runTask runs a call that may become a task. It returns the call's own answer
// when that comes first.
func (e *Engine) runTask(ctx context.Context, c *Call, t *Tool, req *mcp.CallToolRequest, plan *taskPlan) (*mcp.CallToolResult, error) {
	holder, _ := ctx.Value(createdKey{}).(*created)
	if holder == nil { // below a transport that is not ours
		return e.answerTool(ctx, c, t, req, t.Timeout)
	}
	// The handler outlives the request once it is a task's.
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	d := &deferral{call: c, tool: t, start: e.cfg.Now(), cancel: cancel}
	c.deferral = d
	if plan.now {
		if err := d.promote(ctx, plan.ttl); err != nil {
			cancel(nil)
			return nil, e.sanitize(ctx, c, taskFault(err))
		}
		holder.task = d.run.Task
	}
	type answer struct {
		res *mcp.CallToolResult
		err error
	}
	answered := make(chan answer, 1)
	release := func() {}
	if plan.now {
		release = c.Facts.KeepSlot()
	}
	releases := make(chan func(), 1)
	go func() {
		defer cancel(nil)
		res, err := e.recovered(work, c, t, req)
		if d.settle() {
			answered <- answer{res, err}
			return
		}
		defer func() { (<-releases)() }()
		e.endTask(work, d, res, err)
	}()
	if plan.now {
		releases <- release
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	}
	grace := time.NewTimer(plan.grace)
	defer grace.Stop()
	select {
	case a := <-answered:
		return a.res, a.err
	case <-ctx.Done():
		d.settle()
		cancel(context.Cause(ctx))
		return nil, e.sanitize(ctx, c, context.Cause(ctx))
	case <-grace.C:
	}
	if err := d.promote(ctx, nil); err != nil {
		cancel(err)
		return nil, e.sanitize(ctx, c, taskFault(err))
	}
	run := d.task()
	if run == nil { // the answer came just now
		a := <-answered
		return a.res, a.err
	}
	releases <- c.Facts.KeepSlot()
	holder.task = run.Task
	return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
}

func taskFault(err error) error {
	if errors.Is(err, tasks.ErrFull) {
		return &Fault{Kind: RateLimited, Message: "too many tasks are running; wait for one to end", RetryAfter: time.Second, Cause: err}
	}
	return &Fault{Kind: Unavailable, Message: "tasks cannot be kept at the moment; retry later", Cause: err}
}

// recovered is answerTool for a goroutine of its own. Only what the tool
// itself asks for bounds it: a task has its TTL.
func (e *Engine) recovered(ctx context.Context, c *Call, t *Tool, req *mcp.CallToolRequest) (res *mcp.CallToolResult, err error) {
	defer func() {
		if p := recover(); p != nil {
			res, err = nil, e.sanitize(ctx, c, panicFault(c, p))
		}
	}()
	return e.answerTool(ctx, c, t, req, t.Timeout)
}

// endTask stores what a task's handler has come to.
func (e *Engine) endTask(ctx context.Context, d *deferral, res *mcp.CallToolResult, err error) {
	c := d.call
	c.finish()
	var o tasks.Outcome
	if err == nil {
		o.IsError = res.IsError
		if o.Result, err = json.Marshal(res); err != nil {
			err = e.sanitize(ctx, c, err)
		}
	}
	if err != nil {
		err = e.sanitize(ctx, c, err)
		var wire *jsonrpc.Error
		errors.As(err, &wire) // sanitize returns nothing else
		o = tasks.Outcome{Message: wire.Message}
		o.Error, _ = json.Marshal(wire)
	}
	d.run.End(ctx, o)
	status := toolStatus(ctx, res, err)
	d.tool.calls.Done(status, e.cfg.Now().Sub(d.start))
	e.logCall(ctx, c, d.start, slog.String("status", status), slog.String("task", d.run.Task.ID))
}

// askTask puts the questions of a task to whoever looks at it.
func (c *Call) askTask(ctx context.Context, run *tasks.Run, open map[string]mcp.InputRequest) error {
	release, ok := c.engine.asking.enter(c.Facts.Subject, len(open), c.engine.cfg.MaxPending)
	if !ok {
		return &Fault{Kind: Failed, Message: "too many questions of this client are open; answer one first"}
	}
	defer release()
	defer c.Facts.Pause()()
	raw, err := json.Marshal(mcp.InputRequestMap(open))
	if err != nil {
		return err
	}
	var questions map[string]json.RawMessage
	if err := json.Unmarshal(raw, &questions); err != nil {
		return err
	}
	limit := c.engine.cfg.AskTimeout
	asked := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		asked, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	answers, err := run.Ask(asked, questions)
	switch {
	case err == nil:
	case ctx.Err() == nil && asked.Err() != nil:
		return &Fault{Kind: Failed, Message: fmt.Sprintf("no answer from the client within %s", limit)}
	default:
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, answer := range answers {
		c.answer(key, answer)
	}
	return nil
}

// Task returns the id of the task that the call has become.
func (c *Call) Task() (id string, ok bool) {
	run := c.deferral.task()
	if run == nil {
		return "", false
	}
	return run.Task.ID, true
}

// statusNotifier returns what sends notifications/tasks/status of revision
// 2025-11-25 on the session; nil in the modern era, whose clients listen. The
// SDK has no such notification, so it travels as progress under a token that
// the transports know.
func (c *Call) statusNotifier() func(*tasks.Task) {
	if c.Facts.Era == protocol.EraModern || c.engine.cfg.Calls == nil || c.session == nil {
		return nil
	}
	session, table, log := c.session, c.engine.cfg.Calls, c.Log()
	poll := c.engine.cfg.TaskPoll
	return func(t *tasks.Task) {
		raw, err := json.Marshal(legacyTask(t, poll))
		if err == nil {
			// On no request's stream: the answer is long out.
			err = session.NotifyProgress(context.Background(), &mcp.ProgressNotificationParams{
				ProgressToken: table.StatusToken(), Message: string(raw),
			})
		}
		if err != nil {
			log.Debug("task status not delivered", "task", t.ID, "error", err)
		}
	}
}
