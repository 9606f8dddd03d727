package wire

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/protocol"
)

// acknowledgement is the first message of a subscription.
const acknowledgement = "notifications/subscriptions/acknowledged"

// listenFor reads what a subscription wants beside what the SDK knows of.
func listenFor(m *protocol.Message) (*call.Listen, *jsonrpc.Error) {
	l := &call.Listen{Began: make(chan struct{})}
	raw := member(m.Params["notifications"], "taskIds")
	if raw != nil && json.Unmarshal(raw, &l.TaskIDs) != nil {
		return nil, (&refusal{
			protocol.CodeInvalidParams, "params.notifications.taskIds must be a list of strings",
			protocol.ErrorData{Field: "notifications.taskIds", Reason: "type"},
		}).wireError("")
	}
	l.Meta, _ = protocol.Encode(map[string]json.RawMessage{protocol.MetaSubscription: m.ID}) // parsed before
	return l, nil
}

// acknowledge adds to the acknowledgement of a subscription the tasks that the
// server agreed to tell of.
func acknowledge(l *call.Listen, params json.RawMessage) (json.RawMessage, error) {
	if len(l.TaskIDs) == 0 {
		return params, nil
	}
	ids, err := protocol.Encode(l.TaskIDs)
	if err != nil {
		return nil, err
	}
	return withMember(params, ids, "notifications", "taskIds")
}
