package famcp

import (
	"regexp"

	"github.com/famcp/famcp/internal/runtime/telemetry"
)

// MaskRules say what [Mask] hides beside what it hides in any case.
type MaskRules struct {
	// Fields are names of members whose values are hidden. Case, "_", "-" and
	// "." do not count, and a longer name that has one in it counts as well:
	// "iban" hides customer_IBAN.
	Fields []string
	// Patterns are parts of texts that are hidden.
	Patterns []*regexp.Regexp
}

// Mask returns a copy of value that may be logged: a text, or the form that the
// value has as JSON, with secrets replaced by asterisks. Hidden are the values
// of members named like a password, token, key, cookie or credential, what looks
// like a JWT, an Authorization header, a private key, an access key or the user
// part of a URL wherever it stands, and what rules add. An error is masked as its
// text; a value that has no JSON form is hidden as a whole.
//
// The server's own log is masked in the same way, attribute by attribute.
func Mask(value any, rules MaskRules) any {
	return telemetry.Mask(value, telemetry.MaskRules{Fields: rules.Fields, Patterns: rules.Patterns})
}
