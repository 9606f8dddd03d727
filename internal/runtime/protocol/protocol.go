// Package protocol holds the facts of MCP that more than one engine needs:
// revisions, reserved names, error codes and the shape of a message.
//
// It is a leaf: it imports nothing of this module, and its values are
// constants or pure functions, safe for concurrent use.
package protocol

import "slices"

// Modern is the revision without sessions: every request carries its version
// and the client's capabilities in params._meta.
const Modern = "2026-07-28"

// NewestLegacy is the newest revision that starts with an initialize handshake.
const NewestLegacy = "2025-11-25"

// BatchRevision is the only revision that has JSON-RPC batches.
const BatchRevision = "2025-03-26"

// StrictInputRevision is the newest revision in which a violated input schema
// is a protocol error; later ones report it in the result, for the model.
const StrictInputRevision = "2025-06-18"

var legacy = []string{NewestLegacy, StrictInputRevision, BatchRevision, "2024-11-05"}

// Legacy returns the revisions with a handshake, newest first.
func Legacy() []string { return slices.Clone(legacy) }

// IsLegacy reports whether version is exactly one of [Legacy].
func IsLegacy(version string) bool { return slices.Contains(legacy, version) }

// Negotiate returns the revision a server answers an initialize request with:
// the one asked for when it is known, else [NewestLegacy].
// Source: lifecycle, version negotiation, of the 2025-11-25 specification.
func Negotiate(requested string) string {
	if IsLegacy(requested) {
		return requested
	}
	return NewestLegacy
}

// Era tells the two families of revisions apart.
type Era int

const (
	EraLegacy Era = iota // revisions with a handshake and sessions
	EraModern            // [Modern] and later
)

// String returns "legacy" or "modern".
func (e Era) String() string {
	if e == EraModern {
		return "modern"
	}
	return "legacy"
}

// EraOf returns the era of a revision; an unknown one is modern, as routing
// treats it (contract §1).
func EraOf(version string) Era {
	if IsLegacy(version) {
		return EraLegacy
	}
	return EraModern
}

// Eras says which eras a server answers.
type Eras string

const (
	ErasBoth   Eras = "both"
	ErasModern Eras = "modern"
	ErasLegacy Eras = "legacy"
)

// Serves reports whether requests of era e are answered. The zero value
// serves both.
func (s Eras) Serves(e Era) bool {
	switch s {
	case ErasModern:
		return e == EraModern
	case ErasLegacy:
		return e == EraLegacy
	default:
		return true
	}
}

// Versions returns the revisions served, newest first.
func (s Eras) Versions() []string {
	var v []string
	if s.Serves(EraModern) {
		v = append(v, Modern)
	}
	if s.Serves(EraLegacy) {
		v = append(v, legacy...)
	}
	return v
}

// Keys reserved in a request's params._meta.
const (
	MetaVersion      = "io.modelcontextprotocol/protocolVersion"
	MetaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaClientInfo   = "io.modelcontextprotocol/clientInfo"
	MetaLogLevel     = "io.modelcontextprotocol/logLevel"
	MetaServerInfo   = "io.modelcontextprotocol/serverInfo"
	MetaSubscription = "io.modelcontextprotocol/subscriptionId"
)

// IsRequestMeta reports whether a modern request's _meta gives key a meaning.
// On a legacy session it has none.
func IsRequestMeta(key string) bool {
	switch key {
	case MetaVersion, MetaCapabilities, MetaClientInfo, MetaLogLevel:
		return true
	}
	return false
}

// IsLegacyMethod reports whether revision 2026-07-28 has removed a method. The
// SDK knows them in every era.
func IsLegacyMethod(method string) bool {
	switch method {
	case "initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tasks/list", "tasks/result":
		return true
	}
	return false
}

// Levels returns the severities of log messages, the least severe first
// (RFC 5424, as the logging utility has them).
func Levels() []string { return slices.Clone(levels) }

var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// LevelAtLeast reports whether a log message of a level is wanted by who asked
// for least. An unknown level is the lowest.
func LevelAtLeast(level, least string) bool {
	return slices.Index(levels, level) >= slices.Index(levels, least)
}

// HTTP header names, in canonical form.
const (
	HeaderVersion   = "Mcp-Protocol-Version"
	HeaderSession   = "Mcp-Session-Id"
	HeaderMethod    = "Mcp-Method"
	HeaderName      = "Mcp-Name"
	HeaderParam     = "Mcp-Param-" // prefix
	HeaderRequestID = "X-Request-Id"
)

// Error codes of the contract, §6.
const (
	CodeParse             = -32700
	CodeInvalidRequest    = -32600
	CodeMethodNotFound    = -32601
	CodeInvalidParams     = -32602
	CodeInternal          = -32603
	CodeServer            = -32000
	CodeSession           = -32001
	CodeResourceNotFound  = -32002
	CodeRateLimited       = -32003
	CodeTimeout           = -32004
	CodeTooLarge          = -32005
	CodeUnavailable       = -32006
	CodeConflict          = -32007
	CodeHeaderMismatch    = -32020
	CodeMissingCapability = -32021
	CodeVersion           = -32022
)

// CodeMaskedMethodNotFound stands for CodeMethodNotFound on the way through
// go-sdk v1.8.0, which would take message and data of that one; [Reword] takes
// the mask off.
const CodeMaskedMethodNotFound = CodeMethodNotFound - 100_000

// Status returns the HTTP status of an error that answers a modern request,
// or that the HTTP front itself refuses a request with (contract §6).
func Status(code int64) int {
	switch code {
	case CodeMethodNotFound, CodeSession:
		return 404
	case CodeInternal, CodeServer:
		return 500
	case CodeRateLimited:
		return 429
	case CodeTimeout:
		return 504
	case CodeTooLarge:
		return 413
	case CodeUnavailable:
		return 503
	case CodeConflict:
		return 409
	case CodeParse, CodeInvalidRequest, CodeInvalidParams, CodeHeaderMismatch, CodeMissingCapability, CodeVersion:
		return 400
	default:
		return 500
	}
}
