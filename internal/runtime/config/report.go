package config

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Report is a loaded configuration as operators see it, without secrets. It is
// not changed after [Load] and may be read concurrently.
type Report struct {
	Env    string  // the environment, such as production
	Values []Value // in the order of the struct's fields
}

// Value is a key with its effective value.
type Value struct {
	Key
	Value  any    `json:"value"`  // like Key.Default; "********" for a secret that is set
	Source string `json:"source"` // "default", "config/local.yaml:12" or a variable's name
}

// Source says where the value of the key at path came from; empty for an unknown
// key.
func (r *Report) Source(path string) string {
	for _, v := range r.Values {
		if v.Path == path {
			return v.Source
		}
	}
	return ""
}

// MarshalJSON writes {"schema":1,"environment":…,"keys":[…]}.
func (r *Report) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Schema int     `json:"schema"`
		Env    string  `json:"environment"`
		Keys   []Value `json:"keys"`
	}{1, r.Env, r.Values})
}

// WriteText writes a table of keys, values and sources.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# environment: %s\nKEY\tVALUE\tSOURCE\n", r.Env)
	for _, v := range r.Values {
		fmt.Fprintf(&b, "%s\t%s\t%s\n", v.Path, display(v.Value), v.Source)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(tw, b.String()); err != nil {
		return err
	}
	return tw.Flush()
}

// display is a value in one line; quoted where it would be misread.
func display(v any) string {
	text := text(v)
	if text == "" || strings.TrimSpace(text) != text || !isPrintable(text) {
		return strconv.Quote(text)
	}
	return text
}

func isPrintable(text string) bool {
	for _, r := range text {
		if !strconv.IsPrint(r) {
			return false
		}
	}
	return true
}

// text is a value as a variable would hold it.
func text(v any) string {
	items, ok := v.([]any)
	if !ok {
		return fmt.Sprint(v)
	}
	parts := make([]string, len(items))
	for i, item := range items {
		parts[i] = fmt.Sprint(item)
	}
	return strings.Join(parts, ",")
}
