package render

import (
	"fmt"
	"strconv"
	"strings"
	"text/template"
	"unicode"
	"unicode/utf16"

	"github.com/Masterminds/sprig/v3"
)

// functions are sprig's without clock, randomness, environment and network, and one quoting function per format:
// an answer goes through the one of the file it lands in, so that any text arrives as itself.
func functions() template.FuncMap {
	funcs := sprig.HermeticTxtFuncMap()
	funcs["json"] = quoteJSON
	funcs["yaml"] = quoteYAML
	funcs["toml"] = quoteYAML // the basic strings of TOML escape alike
	funcs["goquote"] = strconv.Quote
	funcs["mdtext"] = escapeMarkdown
	return funcs
}

// quoteJSON is s as a JSON string.
func quoteJSON(s string) string {
	return quote(s, func(r rune) string {
		if r1, r2 := utf16.EncodeRune(r); r1 != unicode.ReplacementChar {
			return fmt.Sprintf(`\u%04x\u%04x`, r1, r2)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

// quoteYAML is s as a double-quoted scalar of YAML, which is also a basic string of TOML.
func quoteYAML(s string) string {
	return quote(s, func(r rune) string {
		if r > 0xffff {
			return fmt.Sprintf(`\U%08x`, r)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

// quote puts s between double quotes; escape spells a rune that does not print.
func quote(s string, escape func(rune) string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(escape(r))
		}
	}
	b.WriteByte('"')
	return b.String()
}

// escapeMarkdown is s as one line of Markdown that shows as s, also in a heading, a table or at the start of a line.
func escapeMarkdown(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	s = markdown.Replace(s)
	if s != "" && strings.ContainsRune("-+=", rune(s[0])) {
		return `\` + s
	}
	if rest := strings.TrimLeft(s, "0123456789"); rest != s && rest != "" && strings.ContainsRune(".)", rune(rest[0])) {
		return s[:len(s)-len(rest)] + `\` + rest // not an ordered list
	}
	return s
}

var markdown = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`,
	"|", `\|`, "&", `\&`, "~", `\~`, "$", `\$`, "#", `\#`)
