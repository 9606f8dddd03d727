package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/protocol"
)

// Kind classifies a [Fault].
type Kind int

const (
	Internal    Kind = iota // unexpected: the client learns nothing but the request id
	Failed                  // the tool's own failure, for the model to act on
	Invalid                 // an argument the handler refuses
	Malformed               // the request itself, apart from its arguments
	NotFound                // what was named does not exist
	Conflict                // the state of the world forbids it
	RateLimited             // too many requests; RetryAfter says when
	Unavailable             // something upstream is down
	TimedOut                // the handler ran out of time
	Forbidden               // a scope is missing
	CannotAsk               // the client, or this channel, cannot carry a question
)

// Fault is an error with a text that may go out. Cause is for the log only.
type Fault struct {
	Kind       Kind
	Message    string
	Field      string // the argument concerned
	RetryAfter time.Duration
	Violations []protocol.Violation
	Missing    []string        // scopes
	Needs      json.RawMessage // client capabilities, for CannotAsk
	Cause      error
}

// Error returns the message and the cause: it is the text for the log.
func (f *Fault) Error() string {
	if f.Cause == nil {
		return f.Message
	}
	return f.Message + ": " + f.Cause.Error()
}

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Cause }

const internalMessage = "internal error"

// fault reads any error of a handler as a Fault.
func (e *Engine) fault(err error) *Fault {
	var f *Fault
	if errors.As(err, &f) {
		return f
	}
	if e.cfg.Fault != nil {
		if f, ok := e.cfg.Fault(err); ok {
			return f
		}
	}
	return &Fault{Kind: Internal, Message: internalMessage, Cause: err}
}

// wireError is the JSON-RPC error of a fault outside of tool results.
func (e *Engine) wireError(c *Call, f *Fault) *jsonrpc.Error {
	data := protocol.ErrorData{RequestID: c.Facts.RequestID, Field: f.Field, Missing: f.Missing, Errors: f.Violations}
	code, message := int64(protocol.CodeInternal), f.Message
	switch f.Kind {
	case Internal:
		message = internalMessage
	case Failed:
		code = protocol.CodeServer
	case Invalid, Malformed:
		code, data.Reason = protocol.CodeInvalidParams, f.Message
		if len(f.Violations) > 0 {
			data.Field, data.Reason = f.Violations[0].Field, f.Violations[0].Reason
		}
	case NotFound:
		code = protocol.CodeInvalidParams
		if strings.HasPrefix(c.Facts.Method, "resources/") {
			data.URI, data.Field = f.Field, ""
			if c.Facts.Era == protocol.EraLegacy {
				code = protocol.CodeResourceNotFound
			}
		}
	case Conflict:
		code = protocol.CodeConflict
	case RateLimited:
		code, data.RetryAfter = protocol.CodeRateLimited, f.RetryAfter.Seconds()
		if c.Facts.Era == protocol.EraLegacy {
			code = protocol.CodeServer // on a session the other reads as a lost connection to go-sdk clients
		}
	case Unavailable:
		code = protocol.CodeUnavailable
	case TimedOut:
		code = protocol.CodeTimeout
	case Forbidden:
		code, data.Field, data.Reason = protocol.CodeServer, "scope", "insufficient_scope"
	case CannotAsk:
		code, data.RequiredCapabilities = protocol.CodeMissingCapability, f.Needs
		if c.Facts.Era == protocol.EraLegacy {
			code = protocol.CodeInvalidRequest
			data.RequiredCapabilities = nil
		}
	}
	return newError(code, message, data)
}

func newError(code int64, message string, data protocol.ErrorData) *jsonrpc.Error {
	raw, _ := json.Marshal(data) // plain data: cannot fail
	return &jsonrpc.Error{Code: code, Message: message, Data: raw}
}

// toolFailure answers a tool call that failed: what a model can act on is a
// result with isError, the rest a JSON-RPC error (contract §6).
func (e *Engine) toolFailure(c *Call, f *Fault) (*mcp.CallToolResult, error) {
	asResult := false
	switch f.Kind {
	case Failed, NotFound:
		asResult = true
	case Invalid:
		asResult = e.inputErrorsAsResult(c)
	case RateLimited, TimedOut, CannotAsk:
		// On a session these codes read as a lost connection to go-sdk clients.
		asResult = c.Facts.Era == protocol.EraLegacy
	}
	if !asResult {
		return nil, e.wireError(c, f)
	}
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: failureText(f)}}}, nil
}

func failureText(f *Fault) string {
	text := f.Message
	if f.Kind == Invalid && len(f.Violations) == 0 && f.Field != "" {
		text = f.Field + ": " + text
	}
	if f.Kind == RateLimited && f.RetryAfter > 0 {
		text += "; retry after " + f.RetryAfter.Round(time.Second).String()
	}
	return text
}

// inputErrorsAsResult decides how a violated input schema is answered.
// Revisions up to 2025-06-18 call it a protocol error; later ones want a
// result that the model can correct itself by (contract §5).
func (e *Engine) inputErrorsAsResult(c *Call) bool {
	switch e.cfg.InputErrors {
	case "protocol":
		return false
	case "result":
		return true
	default:
		return c.version > protocol.StrictInputRevision
	}
}

// sanitize turns whatever a method returned into a JSON-RPC error that may go
// out, and logs what may not. JSON-RPC errors must be the SDK's or this
// package's: those of handlers have been through [Engine.fault].
func (e *Engine) sanitize(ctx context.Context, c *Call, err error) error {
	var f *Fault
	if errors.As(err, &f) {
		return e.logged(ctx, c, f)
	}
	var wire *jsonrpc.Error
	if errors.As(err, &wire) {
		out := *wire
		if err.Error() != wire.Error() && (wire.Code == protocol.CodeInvalidParams || wire.Code == protocol.CodeInvalidRequest) {
			out.Message = err.Error() // the SDK's sentinel with its explanation around it
		}
		if out.Code == 0 {
			out.Code = protocol.CodeInvalidRequest
		}
		out.Data = withRequestID(out.Data, c.Facts.RequestID)
		return &out
	}
	return e.logged(ctx, c, e.fault(err))
}

func (e *Engine) logged(ctx context.Context, c *Call, f *Fault) error {
	e.record(ctx, c, f)
	return e.wireError(c, f)
}

// record logs what a fault keeps from the client. A panic is already logged.
func (e *Engine) record(ctx context.Context, c *Call, f *Fault) {
	switch {
	case f.Cause == nil || ctx.Err() != nil || errors.Is(f.Cause, errPanic):
	case f.Kind == Internal:
		c.Log().ErrorContext(ctx, internalMessage, "error", f.Cause)
	case !errors.Is(f.Cause, ErrCannotAsk):
		c.Log().InfoContext(ctx, "refused", "message", f.Message, "error", f.Cause)
	}
}

// unknown is the fault of a name that stands for nothing, or for an entry that
// the caller may not know of: the two must look the same.
func unknown(kind, name string) *Fault {
	return &Fault{Kind: Invalid, Field: "name", Message: fmt.Sprintf("unknown %s %q", kind, name)}
}

func notFound(uri string) *Fault {
	return &Fault{Kind: NotFound, Field: uri, Message: "resource not found"}
}

// reread turns the SDK's errors about names that it does not know, which have
// no data or none that is sure to be JSON, into those of hidden entries.
func reread(req mcp.Request, err error) error {
	wire, ok := err.(*jsonrpc.Error) //nolint:errorlint // the SDK returns them as they are
	if !ok || wire.Code != protocol.CodeInvalidParams {
		return err
	}
	if name, ok := unknownTool(req, err); ok {
		return unknown("tool", name)
	}
	switch r := req.(type) {
	case *mcp.GetPromptRequest:
		if wire.Data == nil && strings.HasPrefix(wire.Message, "unknown prompt ") {
			return unknown("prompt", r.Params.Name)
		}
	case *mcp.ReadResourceRequest:
		if wire.Message == "Resource not found" {
			return notFound(r.Params.URI)
		}
	}
	return err
}

// unknownTool returns the name of the tool that a call was refused for.
func unknownTool(req mcp.Request, err error) (name string, ok bool) {
	wire, isWire := err.(*jsonrpc.Error) //nolint:errorlint // the SDK returns them as they are
	r, isCall := req.(*mcp.CallToolRequest)
	if !isWire || !isCall || wire.Code != protocol.CodeInvalidParams || wire.Data != nil || !strings.HasPrefix(wire.Message, "unknown tool ") {
		return "", false
	}
	return r.Params.Name, true
}

// withRequestID adds the request id to error data that is absent or an object.
func withRequestID(data json.RawMessage, id string) json.RawMessage {
	members := map[string]json.RawMessage{}
	if len(data) > 0 && string(data) != "null" && json.Unmarshal(data, &members) != nil {
		return data
	}
	if _, ok := members["requestId"]; ok {
		return data
	}
	members["requestId"], _ = json.Marshal(id)
	out, _ := json.Marshal(members)
	return out
}
