package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/protocol"
	"github.com/famcp/famcp/internal/runtime/tasks"
)

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
