package front

import (
	"bytes"
	"encoding/json"

	"github.com/famcp/famcp/internal/runtime/protocol"
)

// replaceID returns body with the id that the engine shall see.
func replaceID(body []byte, m *protocol.Message, wireID json.RawMessage) []byte {
	if bytes.Equal(m.ID, wireID) {
		return body
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		return body
	}
	members["id"] = wireID
	out, err := json.Marshal(members)
	if err != nil {
		return body
	}
	return out
}

// rewrite returns body with changed params.
func rewrite(body []byte, change func(params map[string]json.RawMessage)) []byte {
	var members, params map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil || json.Unmarshal(members["params"], &params) != nil || params == nil {
		return body
	}
	change(params)
	raw, err := json.Marshal(params)
	if err != nil {
		return body
	}
	members["params"] = raw
	out, err := json.Marshal(members)
	if err != nil {
		return body
	}
	return out
}

// opaqueMeta removes from a legacy message what a client of both eras put
// into _meta for the other one: the SDK would go by it (contract §1).
func opaqueMeta(body []byte, m *protocol.Message) []byte {
	meta, ok := m.Params["_meta"]
	if !ok {
		return body
	}
	reserved := m.Meta == nil && string(meta) != "{}"
	for key := range m.Meta {
		reserved = reserved || protocol.IsRequestMeta(key)
	}
	if !reserved {
		return body
	}
	return rewrite(body, func(params map[string]json.RawMessage) {
		kept := map[string]json.RawMessage{}
		for key, value := range m.Meta {
			if !protocol.IsRequestMeta(key) {
				kept[key] = value
			}
		}
		if len(kept) == 0 {
			delete(params, "_meta")
			return
		}
		params["_meta"], _ = json.Marshal(kept) // parsed before, so it can be written
	})
}
