package protocol

import (
	"bytes"
	"encoding/json"
)

// ErrorData is the data member of every error this module answers with
// (contract §6). Zero fields are left out.
type ErrorData struct {
	RequestID  string   `json:"requestId,omitempty"`
	Field      string   `json:"field,omitempty"`
	Reason     string   `json:"reason,omitempty"`
	RetryAfter float64  `json:"retryAfter,omitempty"` // seconds
	Missing    []string `json:"missing,omitempty"`
	URI        string   `json:"uri,omitempty"`

	Errors []Violation `json:"errors,omitempty"`

	Supported            []string        `json:"supported,omitempty"`
	Requested            string          `json:"requested,omitempty"`
	RequiredCapabilities json.RawMessage `json:"requiredCapabilities,omitempty"`
}

// Violation is one broken constraint of an input schema. It names the field
// and the rule, never the value that was sent.
type Violation struct {
	Field  string `json:"field"`
	Reason string `json:"reason"`
}

// ErrorResponse returns the bytes of a JSON-RPC error answer. A nil id leaves
// the member out: clients reject "id": null.
func ErrorResponse(id json.RawMessage, code int64, message string, data ErrorData) []byte {
	type wireError struct {
		Code    int64      `json:"code"`
		Message string     `json:"message"`
		Data    *ErrorData `json:"data,omitempty"`
	}
	e := wireError{Code: code, Message: message}
	if raw, err := json.Marshal(data); err == nil && string(raw) != "{}" {
		e.Data = &data
	}
	// Only raw messages that were parsed before go in: this cannot fail.
	raw, _ := Encode(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id,omitempty"`
		Error   wireError       `json:"error"`
	}{"2.0", id, e})
	return raw
}

// Encode is json.Marshal without escaping for HTML: ids go back byte for byte
// and texts as they are.
func Encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
