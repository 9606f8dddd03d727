package wire

import (
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/famcp/famcp/internal/runtime/protocol"
)

// A refusal is an error answer to a request that is not delivered.
type refusal struct {
	code    int64
	message string
	data    protocol.ErrorData
}

// checkModern applies to a request of the modern era the checks that come
// between its shape and its authorization, in the order of contract §1.
// It returns nil when the request may go on.
func checkModern(m *protocol.Message, eras protocol.Eras) *refusal {
	missing := func(key, what string) *refusal {
		return &refusal{protocol.CodeInvalidParams, "_meta needs " + key + ", " + what, protocol.ErrorData{Field: "_meta/" + key}}
	}
	version := m.MetaString(protocol.MetaVersion)
	if version == "" {
		return missing(protocol.MetaVersion, "a protocol revision")
	}
	if caps := m.Meta[protocol.MetaCapabilities]; len(caps) == 0 || caps[0] != '{' {
		return missing(protocol.MetaCapabilities, "an object")
	}
	if version != protocol.Modern {
		return unsupportedVersion(version, eras)
	}
	if protocol.IsLegacyMethod(m.Method) {
		return unknownMethod()
	}
	return nil
}

func unsupportedVersion(requested string, eras protocol.Eras) *refusal {
	return &refusal{
		protocol.CodeVersion, "this protocol revision is not served",
		protocol.ErrorData{Supported: eras.Versions(), Requested: requested},
	}
}

func unknownMethod() *refusal {
	return &refusal{code: protocol.CodeMethodNotFound, message: "the method is not served here"}
}

// wireError returns the error to encode. requestID makes it findable in the log.
func (r *refusal) wireError(requestID string) *jsonrpc.Error {
	data := r.data
	data.RequestID = requestID
	raw, _ := protocol.Encode(data) // plain data: cannot fail
	return &jsonrpc.Error{Code: r.code, Message: r.message, Data: raw}
}
