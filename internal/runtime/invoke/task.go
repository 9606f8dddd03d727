package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"runtime/debug"
	"slices"
	"strings"
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

// AddTasks makes the SDK pass the tasks methods on to [Engine.Middleware].
func (e *Engine) AddTasks(s *mcp.Server) error {
	var errs []error
	for _, method := range tasks.Methods() {
		errs = append(errs, mcp.AddReceivingCustomMethod(s, method,
			func(context.Context, *mcp.ServerSession, *tasks.Params) (*rawResult, error) {
				return nil, newError(protocol.CodeMethodNotFound, "the method is not served here", protocol.ErrorData{})
			}))
	}
	return errors.Join(errs...)
}

// task serves the tasks methods.
func (e *Engine) task(ctx context.Context, c *Call, method string, req mcp.Request) (mcp.Result, error) {
	modern := c.Facts.Era == protocol.EraModern
	r, ok := req.(*tasks.Request)
	if !ok || e.cfg.Tasks == nil || protocol.IsLegacyMethod(method) == modern && method != "tasks/get" && method != "tasks/cancel" ||
		!modern && c.version != protocol.NewestLegacy {
		return nil, newError(protocol.CodeMethodNotFound, "the method is not served here", protocol.ErrorData{})
	}
	if modern && !c.knowsTasks() {
		return nil, needsTasks()
	}
	p := r.Params
	if p == nil {
		p = &tasks.Params{}
	}
	if method == "tasks/list" {
		return e.listTasks(ctx, c, p.Cursor)
	}
	if p.TaskID == "" {
		return nil, &Fault{Kind: Malformed, Field: "taskId", Message: "is required"}
	}
	owner := c.taskOwner()
	var (
		res mcp.Result
		err error
	)
	switch method {
	case "tasks/get":
		var t *tasks.Task
		if t, err = e.cfg.Tasks.Get(ctx, owner, p.TaskID); err == nil {
			res = &rawResult{members: e.taskMembers(c, t)}
		}
	case "tasks/update":
		if p.InputResponses == nil {
			return nil, &Fault{Kind: Malformed, Field: "inputResponses", Message: "is required"}
		}
		if err = e.checkAnswers(ctx, owner, p); err == nil {
			err, res = e.cfg.Tasks.Answer(ctx, owner, p.TaskID, p.InputResponses), acknowledged()
		}
	case "tasks/cancel":
		res, err = e.cancelTask(ctx, c, owner, p.TaskID)
	case "tasks/result":
		res, err = e.taskResult(ctx, c, owner, p.TaskID)
	}
	return res, taskError(ctx, err)
}

// taskError says in the protocol's words what the manager did.
func taskError(ctx context.Context, err error) error {
	var (
		f    *Fault
		wire *jsonrpc.Error
	)
	switch {
	case err == nil || ctx.Err() != nil || errors.As(err, &f) || errors.As(err, &wire):
		return err
	case errors.Is(err, tasks.ErrUnknown):
		return &Fault{Kind: Malformed, Field: "taskId", Message: "unknown task, or its time is over"}
	case errors.Is(err, tasks.ErrEnded):
		return &Fault{Kind: Malformed, Field: "taskId", Message: "the task has ended already"}
	default:
		return taskFault(err)
	}
}

func acknowledged() mcp.Result {
	return &rawResult{members: map[string]any{"resultType": "complete"}}
}

// cancelTask ends a task. What had ended already is acknowledged in the modern
// era, whose cancellation is a wish, and refused in the legacy one.
func (e *Engine) cancelTask(ctx context.Context, c *Call, owner, id string) (mcp.Result, error) {
	t, err := e.cfg.Tasks.Cancel(ctx, owner, id)
	if c.Facts.Era == protocol.EraModern {
		if errors.Is(err, tasks.ErrEnded) {
			err = nil
		}
		return acknowledged(), err
	}
	if err != nil {
		return nil, err
	}
	return &rawResult{members: legacyTask(t, e.cfg.TaskPoll)}, nil
}

// checkAnswers refuses answers to open questions that no client's handler of
// that question can have given; the question stays open.
func (e *Engine) checkAnswers(ctx context.Context, owner string, p *tasks.Params) error {
	t, err := e.cfg.Tasks.Get(ctx, owner, p.TaskID)
	if err != nil {
		return err
	}
	for key, raw := range p.InputResponses {
		question, open := t.Questions[key]
		if !open {
			continue
		}
		var q struct {
			Method string `json:"method"`
		}
		var answer struct {
			Action string            `json:"action"`
			Role   string            `json:"role"`
			Roots  []json.RawMessage `json:"roots"`
		}
		_ = json.Unmarshal(question, &q) // what was stored is a request
		readable := json.Unmarshal(raw, &answer) == nil
		switch q.Method {
		case "elicitation/create":
			readable = readable && slices.Contains([]string{"accept", "decline", "cancel"}, answer.Action)
		case "sampling/createMessage":
			readable = readable && answer.Role != ""
		case "roots/list":
			readable = readable && answer.Roots != nil
		}
		if !readable {
			return &Fault{Kind: Malformed, Field: "inputResponses." + key, Message: "is no answer to " + q.Method}
		}
	}
	return nil
}

// listTasks serves tasks/list of revision 2025-11-25, where callers can be told apart.
func (e *Engine) listTasks(ctx context.Context, c *Call, cursor string) (mcp.Result, error) {
	owner := c.taskOwner()
	if owner == "" {
		return nil, newError(protocol.CodeMethodNotFound, "tasks are not listed for callers without credentials", protocol.ErrorData{})
	}
	after, err := openCursor(cursor)
	if err != nil {
		return nil, err
	}
	all, err := e.cfg.Tasks.List(ctx, owner)
	if err != nil {
		return nil, taskFault(err)
	}
	// The cursor is the time of creation and the id: a task that is gone since
	// then does not matter.
	key := func(t *tasks.Task) string { return fmt.Sprintf("%020d %s", t.Created.UnixNano(), t.ID) }
	slices.SortFunc(all, func(a, b *tasks.Task) int { return strings.Compare(key(a), key(b)) })
	page := make([]map[string]any, 0, len(all))
	members := map[string]any{}
	for i, t := range all {
		if key(t) <= after {
			continue
		}
		page = append(page, legacyTask(t, e.cfg.TaskPoll))
		if size := e.cfg.PageSize; size > 0 && len(page) == size && i < len(all)-1 {
			members["nextCursor"] = sealCursor(key(t))
			break
		}
	}
	members["tasks"] = page
	return &rawResult{members: members}, nil
}

// taskResult serves tasks/result of revision 2025-11-25: it blocks until the
// task has ended, and asks the client what the task asks on the way.
func (e *Engine) taskResult(ctx context.Context, c *Call, owner, id string) (mcp.Result, error) {
	var (
		ended  *tasks.Task
		failed error
	)
	err := e.cfg.Tasks.Watch(ctx, owner, id, func(t *tasks.Task) bool {
		if t.Status.Final() {
			ended = t
			return false
		}
		if len(t.Questions) > 0 {
			failed = e.relay(ctx, c, owner, t)
		}
		return failed == nil
	})
	if err = errors.Join(err, failed); err != nil {
		return nil, err
	}
	related := mcp.Meta{metaRelatedTask: map[string]any{"taskId": id}}
	if ended.Status == tasks.Completed {
		members, err := legacyToolResult(ended.Result)
		return &rawResult{ResultBase: mcp.ResultBase{Meta: related}, members: members}, err
	}
	wire := &jsonrpc.Error{Code: protocol.CodeServer, Message: "the task was cancelled"}
	if ended.Status == tasks.Failed {
		wire = &jsonrpc.Error{Code: protocol.CodeInternal, Message: internalMessage}
		_ = json.Unmarshal(ended.Error, wire) // as it was stored
	}
	return nil, wire
}

const metaRelatedTask = "io.modelcontextprotocol/related-task"

// relay asks the client of tasks/result what its task asks.
func (e *Engine) relay(ctx context.Context, c *Call, owner string, t *tasks.Task) error {
	answers := map[string]json.RawMessage{}
	for _, key := range slices.Sorted(maps.Keys(t.Questions)) {
		q, err := relatedRequest(t.Questions[key], t.ID)
		if err != nil {
			return &Fault{Kind: Internal, Message: internalMessage, Cause: err}
		}
		answer, err := c.askOne(ctx, q)
		if err != nil {
			return err
		}
		answers[key] = answer
	}
	return e.cfg.Tasks.Answer(ctx, owner, t.ID, answers)
}

// relatedRequest reads a stored question and names the task it belongs to.
func relatedRequest(raw json.RawMessage, id string) (mcp.InputRequest, error) {
	var parsed mcp.InputRequestMap
	if err := json.Unmarshal([]byte(`{"q":`+string(raw)+`}`), &parsed); err != nil {
		return nil, err
	}
	related := map[string]any{"taskId": id}
	withTask := func(meta mcp.Meta) mcp.Meta {
		if meta == nil {
			meta = mcp.Meta{}
		}
		meta[metaRelatedTask] = related
		return meta
	}
	switch q := parsed["q"].(type) {
	case *mcp.ElicitParams:
		q.Meta = withTask(q.Meta)
		return q, nil
	case *mcp.CreateMessageParams:
		q.Meta = withTask(q.Meta)
		return q, nil
	case *mcp.CreateMessageWithToolsParams:
		q.Meta = withTask(q.Meta)
		return q, nil
	case *mcp.ListRootsParams:
		q.Meta = withTask(q.Meta)
		return q, nil
	default:
		return nil, fmt.Errorf("question of unknown type %T", q)
	}
}

// taskMembers returns a task as its era sees it.
func (e *Engine) taskMembers(c *Call, t *tasks.Task) map[string]any {
	if c.Facts.Era == protocol.EraLegacy {
		return legacyTask(t, e.cfg.TaskPoll)
	}
	members := modernTask(t, e.cfg.TaskPoll)
	members["resultType"] = "complete"
	return members
}

// createdResult returns the answer to a call that has become a task.
func (e *Engine) createdResult(c *Call, t *tasks.Task) mcp.Result {
	if c.Facts.Era == protocol.EraLegacy {
		return &rawResult{members: map[string]any{"task": legacyTask(t, e.cfg.TaskPoll)}}
	}
	members := modernTask(t, e.cfg.TaskPoll)
	members["resultType"] = "task"
	return &rawResult{members: members}
}

// withTasks adds what revision 2025-11-25 calls the tasks capability, and the
// SDK has no field for.
func (e *Engine) withTasks(f *call.Facts, res mcp.Result) (mcp.Result, error) {
	var members map[string]json.RawMessage
	raw, err := json.Marshal(res)
	if err == nil {
		err = json.Unmarshal(raw, &members)
	}
	var capabilities map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(members["capabilities"], &capabilities)
	}
	if err != nil {
		return nil, fmt.Errorf("adding the tasks capability: %w", err)
	}
	capabilities["tasks"] = json.RawMessage(`{"cancel":{},"requests":{"tools":{"call":{}}}}`)
	if c := (&Call{Facts: f}); f != nil && c.taskOwner() != "" {
		capabilities["tasks"] = json.RawMessage(`{"cancel":{},"list":{},"requests":{"tools":{"call":{}}}}`)
	}
	out := make(map[string]any, len(members))
	for name, value := range members {
		out[name] = value
	}
	out["capabilities"] = capabilities
	return &rawResult{members: out}, nil
}

// withExecution adds to the tools of a list whether they can be tasks, as
// revision 2025-11-25 has it.
func (e *Engine) withExecution(listed []*mcp.Tool) []any {
	out := make([]any, len(listed))
	e.mu.RLock()
	defer e.mu.RUnlock()
	for i, t := range listed {
		out[i] = t
		if known := e.tools[t.Name]; known != nil && known.taskSupport() != TasksForbidden {
			out[i] = executable{t, map[string]TaskSupport{"taskSupport": known.taskSupport()}}
		}
	}
	return out
}

// executable is a tool with the member that the SDK's type lacks.
type executable struct {
	*mcp.Tool
	Execution map[string]TaskSupport `json:"execution"`
}

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// modernTask is a DetailedTask of SEP-2663.
func modernTask(t *tasks.Task, poll time.Duration) map[string]any {
	members := map[string]any{
		"taskId": t.ID, "status": t.Status,
		"createdAt": timestamp(t.Created), "lastUpdatedAt": timestamp(t.Updated),
		"ttlMs": t.TTL.Milliseconds(),
	}
	if poll > 0 {
		members["pollIntervalMs"] = poll.Milliseconds()
	}
	if t.Message != "" {
		members["statusMessage"] = t.Message
	}
	switch t.Status {
	case tasks.InputRequired:
		members["inputRequests"] = t.Questions
	case tasks.Completed:
		members["result"] = modernToolResult(t.Result)
	case tasks.Failed:
		members["error"] = t.Error
	}
	return members
}

// legacyTask is a Task of revision 2025-11-25, to which a result that reports
// an error is a failure.
func legacyTask(t *tasks.Task, poll time.Duration) map[string]any {
	status := t.Status
	if status == tasks.Completed && t.IsError {
		status = tasks.Failed
	}
	members := map[string]any{
		"taskId": t.ID, "status": status,
		"createdAt": timestamp(t.Created), "lastUpdatedAt": timestamp(t.Updated),
		"ttl": t.TTL.Milliseconds(),
	}
	if poll > 0 {
		members["pollInterval"] = poll.Milliseconds()
	}
	if t.Message != "" {
		members["statusMessage"] = t.Message
	}
	return members
}

// modernToolResult adds the type that results have in the modern era.
func modernToolResult(raw json.RawMessage) any {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return raw
	}
	members["resultType"] = json.RawMessage(`"complete"`)
	return members
}

// legacyToolResult takes out what the legacy era does not have.
func legacyToolResult(raw json.RawMessage) (map[string]any, error) {
	var stored map[string]json.RawMessage
	if err := json.Unmarshal(raw, &stored); err != nil {
		return nil, &Fault{Kind: Internal, Message: internalMessage, Cause: err}
	}
	delete(stored, "resultType")
	if structured := stored["structuredContent"]; len(structured) > 0 && structured[0] != '{' {
		delete(stored, "structuredContent")
	}
	members := make(map[string]any, len(stored)+1)
	for name, value := range stored {
		members[name] = value
	}
	return members, nil
}

// listen serves subscriptions/listen around the SDK's own, which knows
// nothing of tasks.
func (e *Engine) listen(ctx context.Context, c *Call, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	l := c.Facts.Listen
	if l == nil || len(l.TaskIDs) == 0 {
		return next(ctx, method, req)
	}
	if e.cfg.Tasks == nil {
		l.TaskIDs = nil
		return next(ctx, method, req)
	}
	full := e.newCall(ctx, method, "", req)
	if !full.knowsTasks() {
		return nil, needsTasks()
	}
	if len(l.TaskIDs) > maxSubscriptions {
		return nil, &Fault{Kind: Malformed, Field: "notifications.taskIds", Message: fmt.Sprintf("lists more than %d tasks", maxSubscriptions)}
	}
	owner := full.taskOwner()
	slices.Sort(l.TaskIDs)
	l.TaskIDs = slices.DeleteFunc(slices.Compact(l.TaskIDs), func(id string) bool {
		_, err := e.cfg.Tasks.Get(ctx, owner, id)
		return err != nil
	})
	watching, stop := context.WithCancel(ctx)
	defer stop()
	for _, id := range l.TaskIDs {
		go e.notifyTask(watching, full, owner, id)
	}
	res, err := next(ctx, method, req)
	if err == nil && len(l.TaskIDs) > 0 {
		<-ctx.Done() // where tasks are all there is to hear of, the SDK's is over
	}
	return res, err
}

// notifyTask tells a subscription of one task until that has ended.
func (e *Engine) notifyTask(ctx context.Context, c *Call, owner, id string) {
	defer func() {
		if p := recover(); p != nil {
			c.Log().Error("panic in a subscription", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	select {
	case <-c.Facts.Listen.Began:
	case <-ctx.Done():
		return
	}
	var last time.Time
	err := e.cfg.Tasks.Watch(ctx, owner, id, func(t *tasks.Task) bool {
		if t.Updated.Equal(last) {
			return true
		}
		last = t.Updated
		members := modernTask(t, e.cfg.TaskPoll)
		members["_meta"] = c.Facts.Listen.Meta
		raw, err := json.Marshal(members)
		if err != nil {
			c.Log().Error("a task cannot be sent", "task", id, "error", err)
			return false
		}
		c.Facts.Notify("notifications/tasks", raw)
		return !t.Status.Final()
	})
	if err != nil && ctx.Err() == nil && !errors.Is(err, tasks.ErrUnknown) {
		c.Log().Warn("a task is not watched any more", "task", id, "error", err)
	}
}
