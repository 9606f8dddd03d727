package invoke

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/protocol"
	"github.com/famcp/famcp/internal/runtime/tasks"
)

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
