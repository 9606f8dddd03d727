package config

import (
	"strings"
	"unicode/utf8"
)

// environ is the environment as a map.
func environ(list []string) map[string]string {
	vars := make(map[string]string, len(list))
	for _, entry := range list {
		if name, value, ok := strings.Cut(entry, "="); ok {
			vars[name] = value
		}
	}
	return vars
}

// environment applies the variables as the last layer. Unknown ones are nobody's
// business: clients set variables such as MCP_TIMEOUT for themselves.
func (l *loader) environment(vars map[string]string) {
	for _, f := range l.schema.fields {
		if f.Env == "" {
			continue
		}
		name, text := f.Env, vars[f.Env]
		if path := vars[f.Env+"_FILE"]; path != "" {
			if text != "" {
				l.fail(f.Env, f.Path, "set together with %s_FILE; unset one of them", f.Env)
				continue
			}
			name += "_FILE"
			data, err := readBounded(path, maxValueBytes)
			if err != nil {
				// The path stays out: it may be the secret itself, set by mistake.
				l.fail(name, f.Path, "reading the file it names: %v", err)
				continue
			}
			text = strings.TrimRight(string(data), "\r\n")
			if text == "" || !utf8.ValidString(text) {
				l.fail(name, f.Path, "the file it names is empty or not a text")
				continue
			}
		}
		if text == "" {
			continue
		}
		if err := f.setText(f.in(l.dst), text); err != nil {
			l.fail(name, f.Path, "%v", err)
			continue
		}
		l.sources[f] = name
	}
}
