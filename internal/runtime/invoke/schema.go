package invoke

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/famcp/famcp/internal/runtime/protocol"
)

const draft2020 = "https://json-schema.org/draft/2020-12/schema"

// Schema is a JSON Schema 2020-12, ready to list and to check values with.
// It is not changed after it is made and safe for concurrent use.
type Schema struct {
	JSON     json.RawMessage // as listed
	IsObject bool            // type is exactly "object"
	schema   *jsonschema.Schema
	resolved *jsonschema.Resolved
	defaults bool
}

// SchemaFor infers the schema of the JSON form of t.
func SchemaFor(t reflect.Type) (*Schema, error) {
	if cyclic := findCycle(t, nil); cyclic != nil {
		return nil, fmt.Errorf("type %s contains itself, which has no finite schema; give the schema by hand", cyclic)
	}
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[[]byte]():          {Types: []string{"null", "string"}, ContentEncoding: "base64"},
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[json.Number]():     {Type: "number"},
	}})
	if err != nil {
		return nil, fmt.Errorf("type %s has no JSON Schema: %w", t, err)
	}
	if t.Kind() != reflect.Pointer && slices.Contains(s.Types, "null") {
		// A nil slice or map at the root: the runtime sends it empty instead.
		s.Types = slices.DeleteFunc(s.Types, func(x string) bool { return x == "null" })
		if len(s.Types) == 1 {
			s.Type, s.Types = s.Types[0], nil
		}
	}
	return newSchema(s)
}

// ParseSchema reads a schema given by hand: anything that marshals to one.
// References out of the document are refused.
func ParseSchema(v any) (*Schema, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("the schema does not marshal: %w", err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("the schema is not a JSON Schema: %w", err)
	}
	return newSchema(&s)
}

func newSchema(s *jsonschema.Schema) (*Schema, error) {
	s.Schema = draft2020
	resolved, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		return nil, fmt.Errorf("the schema does not resolve: %w", err)
	}
	out := &Schema{schema: s, resolved: resolved, IsObject: s.Type == "object"}
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	var tree any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&tree); err != nil {
		return nil, err
	}
	out.defaults = hasDefault(s)
	if out.IsObject {
		// Clients of OpenAI-like APIs reject an object without properties.
		if root := tree.(map[string]any); root["properties"] == nil {
			s.Properties = map[string]*jsonschema.Schema{}
			raw = bytes.Replace(raw, []byte(`"type":"object"`), []byte(`"type":"object","properties":{}`), 1)
		}
	}
	out.JSON = noBooleans(raw)
	return out, nil
}

// noBooleans replaces the schema true by {} wherever a sub-schema stands but
// in additionalProperties: some clients drop a server that lists one. Member
// order is kept, since it is the order of the Go fields.
func noBooleans(raw []byte) []byte {
	var out bytes.Buffer
	rewriteSchema(raw, &out)
	return out.Bytes()
}

func rewriteSchema(raw json.RawMessage, out *bytes.Buffer) {
	members, ok := orderedMembers(raw)
	if !ok {
		out.Write(raw)
		return
	}
	out.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			out.WriteByte(',')
		}
		key, _ := json.Marshal(m.name)
		out.Write(key)
		out.WriteByte(':')
		switch m.name {
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			rewriteMap(m.value, out)
		case "items", "contains", "not", "if", "then", "else", "propertyNames":
			rewriteSub(m.value, out)
		case "additionalProperties":
			if string(m.value) == "true" || string(m.value) == "false" {
				out.Write(m.value)
			} else {
				rewriteSub(m.value, out)
			}
		case "allOf", "anyOf", "oneOf", "prefixItems":
			rewriteSlice(m.value, out)
		default:
			out.Write(m.value)
		}
	}
	out.WriteByte('}')
}

func rewriteSub(raw json.RawMessage, out *bytes.Buffer) {
	switch string(raw) {
	case "true":
		out.WriteString("{}")
	case "false":
		out.WriteString(`{"not":{}}`)
	default:
		rewriteSchema(raw, out)
	}
}

func rewriteMap(raw json.RawMessage, out *bytes.Buffer) {
	members, ok := orderedMembers(raw)
	if !ok {
		out.Write(raw)
		return
	}
	out.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			out.WriteByte(',')
		}
		key, _ := json.Marshal(m.name)
		out.Write(key)
		out.WriteByte(':')
		rewriteSub(m.value, out)
	}
	out.WriteByte('}')
}

func rewriteSlice(raw json.RawMessage, out *bytes.Buffer) {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		out.Write(raw)
		return
	}
	out.WriteByte('[')
	for i, item := range items {
		if i > 0 {
			out.WriteByte(',')
		}
		rewriteSub(item, out)
	}
	out.WriteByte(']')
}

type member struct {
	name  string
	value json.RawMessage
}

func orderedMembers(raw json.RawMessage) ([]member, bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	var out []member
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, false
		}
		m := member{name: t.(string)}
		if dec.Decode(&m.value) != nil {
			return nil, false
		}
		out = append(out, m)
	}
	return out, true
}

func hasDefault(s *jsonschema.Schema) bool {
	if s == nil {
		return false
	}
	for _, p := range s.Properties {
		if p.Default != nil || hasDefault(p) {
			return true
		}
	}
	return false
}

// Check validates raw and returns it with the schema's defaults filled in.
// Violations name field and constraint, never the value that was sent; there
// are at most eight.
func (s *Schema) Check(raw json.RawMessage) (json.RawMessage, []protocol.Violation) {
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return raw, []protocol.Violation{{Reason: "must be valid JSON"}}
	}
	if s.resolved.Validate(numbers(v)) != nil {
		return raw, s.explain(v)
	}
	if !s.defaults {
		return raw, nil
	}
	m, ok := v.(map[string]any)
	if !ok || s.resolved.ApplyDefaults(&m) != nil {
		return raw, nil
	}
	filled, err := json.Marshal(m)
	if err != nil {
		return raw, nil
	}
	return filled, nil
}

// numbers copies v with each json.Number as the Go number that the validator
// knows. The exact text stays in the original, which handlers decode.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, _ := v.Float64()
		return f
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = numbers(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = numbers(x)
		}
		return out
	default:
		return v
	}
}

// findCycle returns a struct type that contains itself, or nil.
func findCycle(t reflect.Type, path []reflect.Type) reflect.Type {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return findCycle(t.Elem(), path)
	case reflect.Struct:
		if slices.Contains(path, t) {
			return t
		}
		path = append(slices.Clone(path), t)
		for i := range t.NumField() {
			f := t.Field(i)
			if (!f.IsExported() && !f.Anonymous) || strings.HasPrefix(f.Tag.Get("json"), "-") {
				continue
			}
			if c := findCycle(f.Type, path); c != nil {
				return c
			}
		}
	}
	return nil
}
