package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/tasks"
)

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
