package protocol

import "strings"

// Reword returns an error that go-sdk v1.8.0 makes below its middleware in
// the contract's words: its own texts name Go types and repeat the input.
// Errors of this module pass unchanged. The field is the parameter at fault,
// when it is known.
func Reword(code int64, message string) (newCode int64, newMessage, field string) {
	switch {
	case code == 0: // errors about the order of messages carry no code
		return CodeInvalidRequest, "the request is not valid at this point", ""
	case code == CodeMaskedMethodNotFound:
		return CodeMethodNotFound, message, ""
	case code == CodeMethodNotFound:
		return code, "the method is not served here", ""
	case code == CodeInvalidParams && strings.HasPrefix(message, "handling '"):
		if _, at, ok := strings.Cut(message, "Go struct field "); ok {
			at, _, _ = strings.Cut(at, " ")
			// Type, then the path: mcp.ListToolsParams.cursor.
			if parts := strings.SplitN(at, ".", 3); len(parts) == 3 {
				field = parts[2]
			}
		}
		if field == "" {
			return code, "params are not what the method takes", ""
		}
		return code, "params." + field + " is not of the type that the method takes", field
	}
	return code, message, ""
}
