package telemetry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
)

// Masked is what is shown of what is hidden, whatever its length.
const Masked = "********"

// MaskRules say what [Mask] hides beside what it always does.
type MaskRules struct {
	Fields   []string         // names of members; case, "_", "-" and "." do not count, and neither does what is around them
	Patterns []*regexp.Regexp // parts of texts
}

// secretFields are parts of names whose values are hidden, in the form of plain.
var secretFields = []string{
	"password", "passwd", "passphrase", "pwd", "secret", "token", "apikey", "accesskey", "privatekey", "authorization",
	"cookie", "credential", "jwt", "connectionstring", "dsn", "requeststate",
}

// openFields are names that look like secrets and are none.
var openFields = []string{"progresstoken", "maxtokens", "tokentype", "tokenendpoint"}

// marks begin or surround the secrets that secretText finds; a text without
// any has none of them.
var marks = []string{"eyJ", "earer ", "asic ", "://", "-----BEGIN", "sk-", "gh", "AKIA", "xox"}

var secretText = regexp.MustCompile(strings.Join([]string{
	`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)*`, // JWT and JWE
	`(?i:bearer|basic) +[A-Za-z0-9._~+/=-]{6,}`,
	`://[^\s/@]+@`, // user and password in a URL
	`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`,
	`\bsk-[A-Za-z0-9_-]{16,}`, `\bgh[pousr]_[A-Za-z0-9]{20,}`, `\bAKIA[0-9A-Z]{16}`, `\bxox[abposr]-[A-Za-z0-9-]{10,}`,
}, "|"))

// plain returns a name without what does not count.
func plain(name string) string { return strings.ToLower(separators.Replace(name)) }

var separators = strings.NewReplacer("_", "", "-", "", ".", "", " ", "")

func (r *MaskRules) hides(name string) bool {
	n := plain(name)
	for _, open := range openFields {
		if n == open {
			return false
		}
	}
	for _, field := range secretFields {
		if strings.Contains(n, field) {
			return true
		}
	}
	for _, field := range r.Fields {
		if f := plain(field); f != "" && strings.Contains(n, f) {
			return true
		}
	}
	return false
}

// MaskText returns a text without the secrets that can be told by their form.
func MaskText(s string, patterns ...*regexp.Regexp) string {
	for _, mark := range marks {
		if strings.Contains(s, mark) {
			s = secretText.ReplaceAllStringFunc(s, func(found string) string {
				if strings.HasPrefix(found, "://") {
					return "://" + Masked + "@"
				}
				return Masked
			})
			break
		}
	}
	for _, p := range patterns {
		if p != nil {
			s = p.ReplaceAllLiteralString(s, Masked)
		}
	}
	return s
}

// Mask returns a copy of value in the shapes of JSON, with secrets hidden. A
// value that has no JSON form is hidden as a whole; an error is its text.
func Mask(value any, rules MaskRules) any {
	switch v := value.(type) {
	case nil:
		return nil
	case string:
		return MaskText(v, rules.Patterns...)
	case error:
		return MaskText(v.Error(), rules.Patterns...)
	case fmt.Stringer:
		if _, ok := value.(json.Marshaler); !ok {
			return MaskText(v.String(), rules.Patterns...)
		}
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return Masked
	}
	return rules.walk(decode(raw))
}

// decode reads JSON; numbers stay exact.
func decode(raw []byte) any {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return Masked
	}
	return v
}

// walk masks in place what decode made.
func (r *MaskRules) walk(value any) any {
	switch v := value.(type) {
	case string:
		return MaskText(v, r.Patterns...)
	case []any:
		for i := range v {
			v[i] = r.walk(v[i])
		}
	case map[string]any:
		for name, member := range v {
			if r.hides(name) {
				v[name] = hidden(member)
			} else {
				v[name] = r.walk(member)
			}
		}
	}
	return value
}

// hidden keeps what gives nothing away: that there is no value.
func hidden(value any) any {
	if value == nil || value == "" {
		return value
	}
	return Masked
}

// MaskAttr is for [slog.HandlerOptions].ReplaceAttr: it hides the values of
// secret names and the secrets in texts and errors.
func MaskAttr(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 {
		switch a.Key {
		case slog.TimeKey, slog.LevelKey, "requestId", "status", "era", "traceId", "spanId": // ours, in every line
			return a
		case slog.MessageKey, "name":
			if masked := MaskText(a.Value.String()); masked != a.Value.String() {
				return slog.String(a.Key, masked)
			}
			return a
		}
	}
	switch a.Value.Kind() {
	case slog.KindString:
		if text := a.Value.String(); text != "" {
			if noRules.hides(a.Key) {
				return slog.String(a.Key, Masked)
			}
			if masked := MaskText(text); masked != text {
				return slog.String(a.Key, masked)
			}
		}
	case slog.KindAny:
		switch v := a.Value.Any().(type) {
		case nil, *slog.Source:
		case error:
			return slog.String(a.Key, MaskText(v.Error()))
		default:
			if noRules.hides(a.Key) {
				return slog.String(a.Key, Masked)
			}
			return slog.Any(a.Key, Mask(v, noRules))
		}
	}
	return a
}

var noRules MaskRules
