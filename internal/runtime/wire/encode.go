package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// encode is json.Marshal without HTML escaping: text goes out as it is.
func encode(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// answerLine returns the bytes of an answer. id is written byte for byte; nil
// leaves the member out, because clients reject "id": null.
func answerLine(id json.RawMessage, member string, value json.RawMessage) []byte {
	line := make([]byte, 0, len(id)+len(value)+len(member)+32)
	line = append(line, `{"jsonrpc":"2.0",`...)
	if id != nil {
		line = append(line, `"id":`...)
		line = append(line, id...)
		line = append(line, ',')
	}
	line = append(line, '"')
	line = append(line, member...)
	line = append(line, `":`...)
	line = append(line, value...)
	return append(line, '}')
}

func errorLine(id json.RawMessage, e *jsonrpc.Error) []byte {
	value, err := encode(e)
	if err != nil { // the data of a handler's error was not JSON
		value, _ = encode(&jsonrpc.Error{Code: e.Code, Message: e.Message})
	}
	return answerLine(id, "error", value)
}

// member returns object.path[0].path[1]…, or nil when there is none.
func member(object json.RawMessage, path ...string) json.RawMessage {
	for _, name := range path {
		var members map[string]json.RawMessage
		if json.Unmarshal(object, &members) != nil {
			return nil
		}
		object = members[name]
	}
	return object
}

// withMember returns object with the value at path replaced or added.
func withMember(object, value json.RawMessage, path ...string) (json.RawMessage, error) {
	if len(path) == 0 {
		return value, nil
	}
	var members map[string]json.RawMessage
	if len(object) > 0 {
		if err := json.Unmarshal(object, &members); err != nil {
			return nil, fmt.Errorf("replacing %s: %w", strings.Join(path, "."), err)
		}
	}
	inner, err := withMember(members[path[0]], value, path[1:]...)
	if err != nil {
		return nil, err
	}
	if members == nil { // absent or null
		members = map[string]json.RawMessage{}
	}
	members[path[0]] = inner
	return encode(members)
}

// idKey returns a form of a JSON-RPC id that is equal for equal ids however
// they are spelled, and whether raw is an id at all: a string or an integer.
func idKey(raw json.RawMessage) (key string, ok bool) {
	if len(raw) == 0 {
		return "", false
	}
	if raw[0] == '"' {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return "", false
		}
		return "s" + s, true
	}
	if !json.Valid(raw) || strings.ContainsAny(string(raw), ".eE") || (raw[0] != '-' && (raw[0] < '0' || raw[0] > '9')) {
		return "", false
	}
	return "n" + string(raw), true
}
