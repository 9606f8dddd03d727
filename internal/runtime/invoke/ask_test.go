package invoke

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/protocol"
)

// TestAskedWithoutQuestion is a fault of the handler, which its author must
// find in the log.
func TestAskedWithoutQuestion(t *testing.T) {
	var out bytes.Buffer
	e, err := New(Config{Logger: slog.New(slog.NewTextHandler(&out, nil))})
	if err != nil {
		t.Fatal(err)
	}
	input, err := SchemaFor(reflect.TypeFor[struct{}]())
	if err != nil {
		t.Fatal(err)
	}
	tool := &Tool{Listed: &mcp.Tool{Name: "t"}, Input: input, Handle: func(context.Context, *Call, json.RawMessage) (Output, error) {
		return Output{}, ErrAsked
	}}
	c := &Call{Facts: &call.Facts{RequestID: "r1", AllScopes: true, Era: protocol.EraModern}, engine: e}
	res, err := e.serveTool(t.Context(), c, tool, &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{}})
	if err == nil || strings.Contains(err.Error(), "ErrAsked") {
		t.Errorf("got %v, %v, want an internal error", res, err)
	}
	if got := out.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "ErrAsked without a question") {
		t.Errorf("the log says %q", got)
	}
}
