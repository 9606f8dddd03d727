package wire

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/famcp/famcp/internal/runtime/protocol"
)

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
	value, err := protocol.Encode(e)
	if err != nil { // the data of a handler's error was not JSON
		value, _ = protocol.Encode(&jsonrpc.Error{Code: e.Code, Message: e.Message})
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
	return protocol.Encode(members)
}

// idKey returns a form of a JSON-RPC id that is equal for equal ids however
// they are spelled, and whether raw is an id at all: a string or an integer.
func idKey(raw json.RawMessage) (key string, ok bool) {
	if !json.Valid(raw) || !protocol.ValidID(raw) {
		return "", false
	}
	if raw[0] == '"' {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return "", false
		}
		return "s" + s, true
	}
	return "n" + string(raw), true
}
