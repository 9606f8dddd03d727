package tasks

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Methods returns the methods of both eras, of which the SDK knows none.
func Methods() []string {
	return []string{"tasks/get", "tasks/update", "tasks/cancel", "tasks/list", "tasks/result"}
}

// Params are the parameters of the methods.
type Params struct {
	mcp.ParamsBase
	TaskID         string                     `json:"taskId,omitempty"`
	InputResponses map[string]json.RawMessage `json:"inputResponses,omitempty"` // tasks/update
	Cursor         string                     `json:"cursor,omitempty"`         // tasks/list
}

// Request is a request of one of the methods.
type Request = mcp.ServerRequest[*Params]
