package famcp

import (
	"fmt"
	"io"
	"log/slog"
	"strconv"
)

// masked is what is shown of a [Secret], whatever its length.
const masked = "********"

// Secret is a text that is not shown by fmt, slog, JSON, YAML or any other
// encoding that asks for a text. The empty Secret shows as empty, so that a
// missing one is noticed.
//
// fmt cannot ask the unexported fields of a struct how they print: keep secrets
// in exported fields.
type Secret string

// Reveal returns the text itself.
func (s Secret) Reveal() string { return string(s) }

// String returns a mask, or an empty text for an empty Secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return masked
}

// Format implements [fmt.Formatter]: no verb shows the text.
func (s Secret) Format(f fmt.State, verb rune) {
	text := s.String()
	switch {
	case verb == 'v' && f.Flag('#'):
		text = "famcp.Secret(" + strconv.Quote(text) + ")"
	case verb == 'q':
		text = strconv.Quote(text)
	}
	_, _ = io.WriteString(f, text)
}

// LogValue implements [slog.LogValuer].
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText implements [encoding.TextMarshaler], which JSON and YAML follow.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
