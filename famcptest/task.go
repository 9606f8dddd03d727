package famcptest

import (
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/tasks"
)

// Task is a tool call that goes on after its answer.
type Task struct {
	ID string // "" when the call was over before it became a task

	c    *Client
	over *Result
}

// StartTask calls a tool as a client that knows tasks: in the modern era it
// declares the extension, in the legacy one it asks for a task. It fails the
// test when the call is refused. The server may answer at once in the modern
// era; the task is then over.
func (c *Client) StartTask(tool string, args any) *Task {
	c.t.Helper()
	if args == nil {
		args = map[string]any{}
	}
	knowing := *c
	knowing.tasks = true
	params := map[string]any{"name": tool, "arguments": args}
	if !c.modern() {
		params["task"] = map[string]any{}
	}
	res := knowing.converse("tools/call", params)
	if res.Err != nil {
		c.t.Fatalf("starting a task of %s: %v", tool, res.Err)
	}
	var r struct {
		Type string `json:"resultType"`
		ID   string `json:"taskId"`
		Task struct {
			ID string `json:"taskId"`
		} `json:"task"`
	}
	knowing.decode(res, &r)
	task := &Task{ID: r.ID + r.Task.ID, c: &knowing}
	if task.ID == "" {
		task.over = knowing.toolResult(res)
	}
	return task
}

// state is what both eras tell of a task.
type taskState struct {
	Status    tasks.Status `json:"status"`
	Message   string       `json:"statusMessage"`
	Questions map[string]struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	} `json:"inputRequests"`
	Result json.RawMessage `json:"result"`
	Error  *Error          `json:"error"`
}

func (t *Task) get() taskState {
	t.c.t.Helper()
	var s taskState
	t.c.must("tasks/get", map[string]any{"taskId": t.ID}, &s)
	return s
}

// Status returns the task's status and its message.
func (t *Task) Status() (status, message string) {
	t.c.t.Helper()
	if t.over != nil {
		return string(tasks.Completed), ""
	}
	s := t.get()
	return string(s.Status), s.Message
}

// Cancel asks the server to cancel the task.
func (t *Task) Cancel() {
	t.c.t.Helper()
	if res := t.c.converse("tasks/cancel", map[string]any{"taskId": t.ID}); res.Err != nil {
		t.c.t.Fatalf("cancelling the task: %v", res.Err)
	}
}

// Listen hears the task's changes from now on.
func (t *Task) Listen() *Subscription {
	t.c.t.Helper()
	return t.c.listen(map[string]any{"taskIds": []string{t.ID}})
}

// poll is the time between two looks at a task.
const poll = 10 * time.Millisecond

// Result waits until the task has ended, answering what it asks on the way. Err
// is set for a task that failed or was cancelled.
func (t *Task) Result() *Result {
	t.c.t.Helper()
	if t.over != nil {
		return t.over
	}
	if !t.c.modern() {
		res := t.c.converse("tasks/result", map[string]any{"taskId": t.ID})
		if res.Err != nil {
			return res
		}
		return t.c.toolResult(res)
	}
	asked := 0
	for end := time.Now().Add(timeout); time.Now().Before(end); {
		s := t.get()
		switch s.Status {
		case tasks.Completed:
			return t.c.toolResult(&Result{Raw: s.Result, Asked: asked})
		case tasks.Failed:
			return &Result{Err: s.Error, Asked: asked}
		case tasks.Cancelled:
			return &Result{Err: &Error{Message: "the task was cancelled"}, Asked: asked}
		case tasks.InputRequired:
			asked += t.answer(s)
		case tasks.Working:
			time.Sleep(poll)
		}
	}
	t.c.t.Fatalf("the task has not ended within %s", timeout)
	return nil
}

func (t *Task) answer(s taskState) (asked int) {
	t.c.t.Helper()
	answers := map[string]any{}
	for key, q := range s.Questions {
		answer, ok := t.c.answerTo(readQuestion(key, q.Method, q.Params))
		if !ok {
			t.c.unanswered(q.Method)
		}
		answers[key] = answer
	}
	t.c.must("tasks/update", map[string]any{"taskId": t.ID, "inputResponses": answers}, &struct{}{})
	return len(answers)
}

// toolResult reads the result of a tool.
func (c *Client) toolResult(res *Result) *Result {
	c.t.Helper()
	var r struct {
		IsError    bool            `json:"isError"`
		Structured json.RawMessage `json:"structuredContent"`
	}
	c.decode(res, &r)
	res.IsError, res.Structured = r.IsError, r.Structured
	var content mcp.CallToolResult
	c.decode(res, &content)
	res.Content = content.Content
	return res
}
