package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"
)

// Kind is what a JSON-RPC message is.
type Kind int

const (
	Request      Kind = iota // has a method and an id
	Notification             // has a method and no id
	Response                 // has a result or an error
)

// Message is one JSON-RPC message as far as routing needs it. Member names
// are matched exactly, as the protocol and go-sdk do; encoding/json alone
// would accept "METHOD".
type Message struct {
	Kind   Kind
	ID     json.RawMessage // as sent, byte for byte; nil when absent
	Method string
	Params map[string]json.RawMessage // nil when absent
	Meta   map[string]json.RawMessage // params._meta; nil when absent or not an object
}

// Faults of [Parse]. Each carries its JSON-RPC code in [Code].
var (
	ErrSyntax  = errors.New("the message is not valid JSON")
	ErrBatch   = errors.New("JSON-RPC batches are not accepted here; send one message")
	ErrInvalid = errors.New("the message is not a JSON-RPC 2.0 request, notification or response")
	ErrID      = errors.New("the id must be a string or an integer")
)

// Code returns the JSON-RPC error code of a fault returned by [Parse].
func Code(err error) int64 {
	if errors.Is(err, ErrSyntax) {
		return CodeParse
	}
	return CodeInvalidRequest
}

// Parse reads exactly one message; bytes after it other than white space are
// [ErrSyntax]. On a fault the message holds what could still be read, above
// all a usable ID, and is never nil. Its values are parts of data.
func Parse(data []byte) (*Message, error) {
	m := &Message{}
	if !json.Valid(data) || !utf8.Valid(data) {
		return m, ErrSyntax
	}
	whole := bytes.TrimLeft(data, " \t\r\n")
	switch whole[0] {
	case '[':
		return m, ErrBatch
	case '{':
		return parseMembers(m, split(whole))
	}
	return m, ErrInvalid
}

func parseMembers(m *Message, members map[string]json.RawMessage) (*Message, error) {
	id, hasID := members["id"]
	if hasID {
		if !ValidID(id) {
			return m, ErrID
		}
		m.ID = id
	}
	if rawString(members["jsonrpc"]) != "2.0" {
		return m, ErrInvalid
	}
	method, hasMethod := members["method"]
	_, hasResult := members["result"]
	_, hasError := members["error"]
	if !hasMethod {
		if !hasResult && !hasError {
			return m, ErrInvalid
		}
		m.Kind = Response
		return m, nil
	}
	if m.Method = rawString(method); m.Method == "" || hasResult || hasError {
		return m, ErrInvalid
	}
	if !hasID {
		m.Kind = Notification
	}
	params, ok := members["params"]
	if !ok || string(params) == "null" {
		return m, nil
	}
	if params[0] != '{' {
		return m, ErrInvalid
	}
	m.Params = split(params)
	// Whether a _meta that is no object matters is the era's business.
	if meta := m.Params["_meta"]; len(meta) > 0 && meta[0] == '{' {
		m.Meta = split(meta)
	}
	return m, nil
}

// MetaString returns a string member of params._meta, or "" when it is absent
// or of another type.
func (m *Message) MetaString(key string) string { return rawString(m.Meta[key]) }

// ParamString returns a string member of params, or "" when it is absent or
// of another type.
func (m *Message) ParamString(key string) string { return rawString(m.Params[key]) }

// NameParam returns the parameter that the Mcp-Name header repeats for a
// method, and whether the method has one (2026-07-28, transports).
func NameParam(method string) (param string, ok bool) {
	switch method {
	case "tools/call", "prompts/get":
		return "name", true
	case "resources/read":
		return "uri", true
	case "tasks/get", "tasks/update", "tasks/cancel":
		return "taskId", true
	}
	return "", false
}

// ValidID reports whether a JSON value can be an id: strings and integers of
// any size can; null, fractions and exponents cannot (JSON-RPC 2.0 §4, MCP base
// protocol).
func ValidID(raw json.RawMessage) bool {
	if len(raw) == 0 {
		return false
	}
	if raw[0] == '"' {
		return utf8.Valid(raw)
	}
	if raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return false
	}
	return !strings.ContainsAny(string(raw), ".eE")
}
