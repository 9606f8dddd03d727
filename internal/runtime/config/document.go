package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// WriteMarkdown writes a heading and a table of keys for each top section.
func WriteMarkdown(w io.Writer, keys []Key) error {
	var b strings.Builder
	for i, k := range keys {
		if i == 0 || k.section() != keys[i-1].section() {
			fmt.Fprintf(&b, "### %s\n\n", cmp.Or(code(k.section()), "Top level"))
			b.WriteString("| key | variable | type | default | meaning |\n|---|---|---|---|---|\n")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n",
			k.Path, code(k.Env), k.Type, code(text(k.Default)), cell(k.meaning()))
		if i+1 < len(keys) && k.section() != keys[i+1].section() {
			b.WriteString("\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// section is the first part of a nested path.
func (k Key) section() string {
	section, _, nested := strings.Cut(k.Path, ".")
	if !nested {
		return ""
	}
	return section
}

// WriteEnvExample writes every variable, commented out, with its default.
func WriteEnvExample(w io.Writer, keys []Key) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# The environment: it chooses config/<environment>.yaml; production is strict.\n# %s=%s\n", EnvVariable, DefaultEnv)
	for _, k := range keys {
		if k.Env != "" {
			fmt.Fprintf(&b, "\n# %s\n# %s=%s\n", oneLine(k.Path+": "+k.meaning()), k.Env, oneLine(text(k.Default)))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// meaning is the documentation with what the tags say.
func (k Key) meaning() string {
	enum, secret := "", ""
	if k.Enum != nil {
		enum = "One of " + strings.Join(k.Enum, ", ")
	}
	if k.Secret {
		secret = "Secret"
	}
	return sentences(k.Doc, enum, k.limits(), secret)
}

func (k Key) limits() string {
	unit := ""
	switch {
	case k.Type == "string":
		unit = " characters"
	case strings.HasPrefix(k.Type, "list"):
		unit = " items"
	}
	switch {
	case k.Min != "" && k.Max != "":
		return k.Min + " to " + k.Max + unit
	case k.Min != "":
		return "At least " + k.Min + unit
	case k.Max != "":
		return "At most " + k.Max + unit
	}
	return ""
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func cell(text string) string { return strings.ReplaceAll(oneLine(text), "|", `\|`) }

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + cell(text) + "`"
}

// JSONSchema is the schema (draft 2020-12) of a configuration file, for editors.
// Everything may be null, which keeps the layer below.
func JSONSchema(keys []Key) ([]byte, error) {
	root := object()
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	for _, k := range keys {
		at := root
		parts := strings.Split(k.Path, ".")
		for _, part := range parts[:len(parts)-1] {
			properties := at["properties"].(map[string]any)
			if properties[part] == nil {
				properties[part] = object()
			}
			at = properties[part].(map[string]any)
		}
		at["properties"].(map[string]any)[parts[len(parts)-1]] = k.schema()
	}
	out, err := json.MarshalIndent(root, "", "  ")
	return append(out, '\n'), err
}

func object() map[string]any {
	return map[string]any{
		"type": []string{"object", "null"}, "properties": map[string]any{}, "additionalProperties": false,
	}
}

func (k Key) schema() map[string]any {
	s := map[string]any{}
	if k.Doc != "" {
		s["description"] = k.Doc
	}
	if !k.Secret {
		s["default"] = k.Default
	}
	item, list := strings.CutPrefix(k.Type, "list of ")
	if list {
		s["type"] = []string{"array", "null"}
		items := map[string]any{"type": strings.TrimSuffix(item, "s")}
		if k.Enum != nil {
			items["enum"] = k.Enum
		}
		s["items"] = items
		k.bound(s, "minItems", "maxItems")
		return s
	}
	s["type"] = []string{k.Type, "null"}
	switch {
	case k.Enum != nil:
		values := []any{}
		for _, v := range k.Enum {
			values = append(values, v)
		}
		s["enum"] = append(values, nil)
	case k.Type == "string" && (k.Min != "" || k.Max != ""):
		limits := map[string]any{}
		k.bound(limits, "minLength", "maxLength")
		s["anyOf"] = []any{map[string]any{"maxLength": 0}, limits} // an empty text is no text
	default:
		k.bound(s, "minimum", "maximum")
	}
	return s
}

func (k Key) bound(s map[string]any, low, high string) {
	if n, err := strconv.ParseFloat(k.Min, 64); err == nil {
		s[low] = n
	}
	if n, err := strconv.ParseFloat(k.Max, 64); err == nil {
		s[high] = n
	}
}
