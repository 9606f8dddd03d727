package wire

import (
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/famcp/famcp/internal/runtime/protocol"
)

// withoutModern are the legacy methods that revision 2026-07-28 has removed.
// The SDK knows them in every era.
var withoutModern = []string{
	"initialize", "ping", "logging/setLevel",
	"resources/subscribe", "resources/unsubscribe",
	"tasks/list", "tasks/result",
}

// checkModern applies to a request of the modern era the checks that come
// between its shape and its authorization, in the order of contract §1.
// It returns nil when the request may go on.
func checkModern(m *protocol.Message, eras protocol.Eras) *jsonrpc.Error {
	version := m.MetaString(protocol.MetaVersion)
	if version == "" {
		return newError(protocol.CodeInvalidParams,
			"_meta needs "+protocol.MetaVersion+", a protocol revision",
			protocol.ErrorData{Field: "_meta/" + protocol.MetaVersion})
	}
	if caps := m.Meta[protocol.MetaCapabilities]; len(caps) == 0 || caps[0] != '{' {
		return newError(protocol.CodeInvalidParams,
			"_meta needs "+protocol.MetaCapabilities+", an object",
			protocol.ErrorData{Field: "_meta/" + protocol.MetaCapabilities})
	}
	if version != protocol.Modern {
		return unsupportedVersion(version, eras)
	}
	if slices.Contains(withoutModern, m.Method) {
		return unknownMethod(m.Method)
	}
	return nil
}

func unsupportedVersion(requested string, eras protocol.Eras) *jsonrpc.Error {
	return newError(protocol.CodeVersion, "this protocol revision is not served",
		protocol.ErrorData{Supported: eras.Versions(), Requested: requested})
}

func unknownMethod(method string) *jsonrpc.Error {
	return newError(protocol.CodeMethodNotFound, "method not found: "+method, protocol.ErrorData{})
}

func newError(code int64, message string, data protocol.ErrorData) *jsonrpc.Error {
	e := &jsonrpc.Error{Code: code, Message: message}
	if raw, err := json.Marshal(data); err == nil && string(raw) != "{}" {
		e.Data = raw
	}
	return e
}
