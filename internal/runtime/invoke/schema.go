package invoke

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"math"
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
	Headers  protocol.ParamHeaders
	schema   *jsonschema.Schema
	resolved *jsonschema.Resolved
	defaults bool
	optional bool // an empty object is valid, and nothing is filled in
}

// SchemaFor infers the schema of the JSON form of t.
func SchemaFor(t reflect.Type) (*Schema, error) {
	if cyclic := findCycle(t, nil); cyclic != nil {
		return nil, fmt.Errorf("type %s contains itself, which has no finite schema; give the schema by hand", cyclic)
	}
	s, err := infer(t)
	if err != nil {
		if where := findFault(t, ""); where != "" {
			return nil, fmt.Errorf("type %s: %s has no JSON form; change it, or leave it out with json:\"-\"", t, where)
		}
		return nil, fmt.Errorf("type %s has no JSON Schema: %w", t, err)
	}
	if t.Kind() != reflect.Pointer && slices.Contains(s.Types, "null") {
		// A nil slice or map at the root: the runtime sends it empty instead.
		s.Types = slices.DeleteFunc(s.Types, func(x string) bool { return x == "null" })
		if len(s.Types) == 1 {
			s.Type, s.Types = s.Types[0], nil
		}
	}
	if err := markHeaders(s, t); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return newSchema(raw, s)
}

// markHeaders puts x-mcp-header on the properties of fields tagged
// `mcpheader:"Name"`: modern clients repeat those arguments as Mcp-Param-Name.
func markHeaders(s *jsonschema.Schema, t reflect.Type) error {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		header := f.Tag.Get("mcpheader")
		if header == "" {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = f.Name
		}
		prop := s.Properties[name]
		if prop == nil {
			return fmt.Errorf("field %s: mcpheader needs a field that is an argument", f.Name)
		}
		prop.Extra = map[string]any{"x-mcp-header": header}
	}
	return nil
}

// ParseSchema reads a schema given by hand: anything that marshals to one. It
// is listed as given. References out of the document are refused.
func ParseSchema(v any) (*Schema, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("the schema does not marshal: %w", err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("the schema is not a JSON Schema: %w", err)
	}
	return newSchema(raw, &s)
}

func newSchema(raw json.RawMessage, s *jsonschema.Schema) (*Schema, error) {
	resolved, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		return nil, fmt.Errorf("the schema does not resolve: %w", err)
	}
	out := &Schema{schema: s, resolved: resolved, defaults: hasDefault(s), IsObject: s.Type == "object"}
	out.optional = !out.defaults && resolved.Validate(map[string]any{}) == nil
	members, ok := orderedMembers(raw)
	if !ok {
		return nil, fmt.Errorf("the schema is %s; it must be an object", raw)
	}
	if s.Schema == "" {
		members = append([]member{{"$schema", json.RawMessage(`"` + draft2020 + `"`)}}, members...)
	}
	if out.IsObject && s.Properties == nil {
		// Clients of OpenAI-like APIs reject an object without properties.
		members = append(members, member{"properties", json.RawMessage("{}")})
	}
	out.JSON = noBooleans(members)
	if out.Headers, err = protocol.CompileParamHeaders(out.JSON); err != nil {
		return nil, err
	}
	return out, nil
}

// noBooleans replaces the schema true by {} wherever a sub-schema stands but
// in additionalProperties: some clients drop a server that lists one. Member
// order is kept, since it is the order of the Go fields.
func noBooleans(members []member) json.RawMessage {
	var out bytes.Buffer
	writeMembers(&out, members, rewriteMember)
	return out.Bytes()
}

func writeMembers(out *bytes.Buffer, members []member, write func(member, *bytes.Buffer)) {
	out.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			out.WriteByte(',')
		}
		key, _ := json.Marshal(m.name)
		out.Write(key)
		out.WriteByte(':')
		write(m, out)
	}
	out.WriteByte('}')
}

func rewriteMember(m member, out *bytes.Buffer) {
	switch m.name {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		if members, ok := orderedMembers(m.value); ok {
			writeMembers(out, members, func(m member, out *bytes.Buffer) { rewriteSub(m.value, out) })
			return
		}
	case "items", "contains", "not", "if", "then", "else", "propertyNames":
		rewriteSub(m.value, out)
		return
	case "additionalProperties":
		if b := string(m.value); b != "true" && b != "false" {
			rewriteSub(m.value, out)
			return
		}
	case "allOf", "anyOf", "oneOf", "prefixItems":
		rewriteSlice(m.value, out)
		return
	}
	out.Write(m.value)
}

func rewriteSub(raw json.RawMessage, out *bytes.Buffer) {
	switch string(raw) {
	case "true":
		out.WriteString("{}")
	case "false":
		out.WriteString(`{"not":{}}`)
	default:
		if members, ok := orderedMembers(raw); ok {
			writeMembers(out, members, rewriteMember)
			return
		}
		out.Write(raw)
	}
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
	if s.optional && string(raw) == "{}" {
		return raw, nil
	}
	if !s.defaults && !longNumbers(raw) {
		var v any
		if json.Unmarshal(raw, &v) == nil && s.resolved.Validate(v) == nil {
			return raw, nil
		}
	}
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return raw, []protocol.Violation{{Reason: "must be valid JSON"}}
	}
	if exact, ok := numbers(v); !ok || s.resolved.Validate(exact) != nil {
		return raw, s.explain(v)
	}
	if !s.defaults {
		return raw, nil
	}
	return s.filled(raw, v), nil
}

// Fill returns raw with the schema's defaults filled in, unchecked but for
// what no handler can read: it must be an object.
func (s *Schema) Fill(raw json.RawMessage) (json.RawMessage, []protocol.Violation) {
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	var v map[string]any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if dec.Decode(&v) != nil || v == nil {
		return raw, []protocol.Violation{{Reason: "must be an object"}}
	}
	if !s.defaults {
		return raw, nil
	}
	return s.filled(raw, v), nil
}

// filled returns raw, which v was decoded from, with the defaults; raw itself
// where they cannot be applied.
func (s *Schema) filled(raw json.RawMessage, v any) json.RawMessage {
	m, ok := v.(map[string]any)
	if !ok || s.resolved.ApplyDefaults(&m) != nil {
		return raw
	}
	filled, err := json.Marshal(m)
	if err != nil {
		return raw
	}
	return filled
}

// longNumbers reports whether raw may have a number that a float64 does not
// hold exactly.
func longNumbers(raw []byte) bool {
	digits := 0
	for _, c := range raw {
		if c < '0' || c > '9' {
			digits = 0
		} else if digits++; digits > 15 {
			return true
		}
	}
	return false
}

// numbers copies v with each json.Number as the Go number that the validator
// knows, and reports whether there is one for each. The exact text stays in the
// original, which handlers decode.
func numbers(v any) (_ any, ok bool) {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i, true
		}
		f, err := v.Float64()
		return f, err == nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			if out[k], ok = numbers(x); !ok {
				return nil, false
			}
		}
		return out, true
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			if out[i], ok = numbers(x); !ok {
				return nil, false
			}
		}
		return out, true
	default:
		return v, true
	}
}

// PlainIntegers returns raw with its whole numbers written without fraction
// and exponent. Numbers too large to write out stay as they are.
func PlainIntegers(raw json.RawMessage) json.RawMessage {
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return raw
	}
	out, err := json.Marshal(plain(v))
	if err != nil {
		return raw
	}
	return out
}

func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 || !strings.ContainsAny(v.String(), ".eE") {
			return v
		}
		return int64(f)
	case map[string]any:
		for k, x := range v {
			v[k] = plain(x)
		}
	case []any:
		for i, x := range v {
			v[i] = plain(x)
		}
	}
	return v
}

// infer is the library's inference with what it lacks.
func infer(t reflect.Type) (*jsonschema.Schema, error) {
	known := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[[]byte]():          {Types: []string{"null", "string"}, ContentEncoding: "base64"},
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[json.Number]():     {Type: "number"},
	}
	options := &jsonschema.ForOptions{TypeSchemas: known}
	var fault error
	parts(t, "", func(part reflect.Type, _ string) bool {
		if part.Kind() != reflect.Map || part.Key().Kind() == reflect.String || !isKey(part.Key()) || known[part] != nil {
			return true
		}
		// Inner maps first: the elements of this one may have such keys too.
		elem, err := infer(part.Elem())
		if err != nil {
			fault = err
			return false
		}
		known[part] = &jsonschema.Schema{Types: []string{"null", "object"}, AdditionalProperties: elem}
		return true
	})
	if fault != nil {
		return nil, fault
	}
	return jsonschema.ForType(t, options)
}

// isKey reports whether encoding/json writes the keys of a map of this type.
func isKey(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return true
	}
	return t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) && reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// findFault names the first part of t that encoding/json cannot write; "" is
// none.
func findFault(t reflect.Type, path string) (where string) {
	parts(t, path, func(part reflect.Type, path string) bool {
		switch part.Kind() {
		case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		case reflect.Map:
			if isKey(part.Key()) {
				return true
			}
		default:
			return true
		}
		if where = part.String(); path != "" {
			where = "field " + path + " (" + where + ")"
		}
		return false
	})
	return where
}

// parts visits t and the types in it, each with the path of its field, until
// visit returns false. There must be no cycle.
func parts(t reflect.Type, path string, visit func(reflect.Type, string) bool) bool {
	if !visit(t, path) {
		return false
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return parts(t.Elem(), path, visit)
	case reflect.Struct:
		for f := range t.Fields() {
			if skipped(f) {
				continue
			}
			if !parts(f.Type, strings.TrimPrefix(path+"."+f.Name, "."), visit) {
				return false
			}
		}
	}
	return true
}

// skipped reports the fields that encoding/json leaves out.
func skipped(f reflect.StructField) bool {
	return (!f.IsExported() && !f.Anonymous) || f.Tag.Get("json") == "-"
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
			if skipped(f) {
				continue
			}
			if c := findCycle(f.Type, path); c != nil {
				return c
			}
		}
	}
	return nil
}

// Form is the schema as elicitation takes it: without $schema and
// additionalProperties, which the form subset of the specification has not.
func (s *Schema) Form() json.RawMessage {
	members, _ := orderedMembers(s.JSON)
	members = slices.DeleteFunc(members, func(m member) bool {
		return m.name == "$schema" || m.name == "additionalProperties"
	})
	return noBooleans(members)
}

// Field is one property of an object schema.
type Field struct {
	Name, Type, Description string
	Required                bool
}

// Fields returns the properties in the order of the Go fields.
func (s *Schema) Fields() []Field {
	fields := make([]Field, 0, len(s.schema.PropertyOrder))
	for _, name := range s.schema.PropertyOrder {
		p := s.schema.Properties[name]
		if p == nil {
			continue
		}
		fields = append(fields, Field{
			Name: name, Type: p.Type, Description: p.Description,
			Required: slices.Contains(s.schema.Required, name),
		})
	}
	return fields
}
