package invoke

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/famcp/famcp/internal/runtime/protocol"
)

// maxViolations bounds what one answer lists (contract §5).
const maxViolations = 8

// explain says why v breaks the schema. The validator's own text is not used:
// it stops at the first fault and repeats the values sent. Whether v is valid
// stays the validator's decision; what this walk does not know is reported as
// a violation of the whole.
func (s *Schema) explain(v any) []protocol.Violation {
	x := &explainer{root: s.schema}
	x.walk("", s.schema, v, 0)
	if len(x.found) == 0 {
		return []protocol.Violation{{Reason: "does not match the schema of the arguments"}}
	}
	return x.found
}

// describe joins violations into one line for a model.
func describe(violations []protocol.Violation) string {
	parts := make([]string, len(violations))
	for i, v := range violations {
		parts[i] = v.Reason
		if v.Field != "" {
			parts[i] = v.Field + ": " + v.Reason
		}
	}
	return strings.Join(parts, "; ")
}

type explainer struct {
	root   *jsonschema.Schema
	trying bool // one of several forms
	found  []protocol.Violation
}

func (x *explainer) add(path, format string, args ...any) {
	if len(x.found) < maxViolations {
		x.found = append(x.found, protocol.Violation{Field: path, Reason: fmt.Sprintf(format, args...)})
	}
}

const maxExplainDepth = 64

func (x *explainer) walk(path string, s *jsonschema.Schema, v any, depth int) {
	if s == nil || depth > maxExplainDepth || len(x.found) >= maxViolations {
		return
	}
	if def, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok {
		x.walk(path, x.root.Defs[def], v, depth+1)
	}
	types := s.Types
	if s.Type != "" {
		types = []string{s.Type}
	}
	if len(types) > 0 && !slices.ContainsFunc(types, func(t string) bool { return hasType(v, t) }) {
		x.add(path, "must be %s", article(types))
		return
	}
	if s.Enum != nil && !slices.ContainsFunc(s.Enum, func(e any) bool { return equalJSON(e, v) }) {
		x.add(path, "must be one of %s", list(s.Enum))
	}
	if s.Const != nil && !equalJSON(*s.Const, v) {
		x.add(path, "must be %s", list([]any{*s.Const}))
	}
	switch v := v.(type) {
	case string:
		x.text(path, s, v)
	case json.Number:
		x.number(path, s, v)
	case []any:
		x.array(path, s, v, depth)
	case map[string]any:
		x.object(path, s, v, depth)
	}
	for _, sub := range s.AllOf {
		x.walk(path, sub, v, depth+1)
	}
	x.forms(path, s.AnyOf, v, depth)
	x.forms(path, s.OneOf, v, depth)
}

// forms explains anyOf and oneOf when v breaks all of them. Forms within forms
// are taken to fit: the tries would multiply with each level.
func (x *explainer) forms(path string, forms []*jsonschema.Schema, v any, depth int) {
	if len(forms) == 0 || x.trying {
		return
	}
	for _, form := range forms {
		try := &explainer{root: x.root, trying: true}
		if try.walk(path, form, v, depth+1); len(try.found) == 0 {
			return
		}
	}
	x.add(path, "must have one of the forms in the schema")
}

func (x *explainer) text(path string, s *jsonschema.Schema, v string) {
	n := utf8.RuneCountInString(v)
	if s.MinLength != nil && n < *s.MinLength {
		x.add(path, "must have at least %d characters", *s.MinLength)
	}
	if s.MaxLength != nil && n > *s.MaxLength {
		x.add(path, "must have at most %d characters", *s.MaxLength)
	}
	if s.Pattern != "" {
		if re, err := regexp.Compile(s.Pattern); err == nil && !re.MatchString(v) {
			x.add(path, "must match the pattern %s", s.Pattern)
		}
	}
}

func (x *explainer) number(path string, s *jsonschema.Schema, v json.Number) {
	f, _, err := big.ParseFloat(v.String(), 10, 256, big.ToNearestEven)
	if _, tooLarge := v.Float64(); err != nil || tooLarge != nil {
		x.add(path, "is out of range")
		return
	}
	cmp := func(limit *float64) int { return f.Cmp(big.NewFloat(*limit)) }
	switch {
	case s.Minimum != nil && cmp(s.Minimum) < 0:
		x.add(path, "must be at least %v", *s.Minimum)
	case s.Maximum != nil && cmp(s.Maximum) > 0:
		x.add(path, "must be at most %v", *s.Maximum)
	case s.ExclusiveMinimum != nil && cmp(s.ExclusiveMinimum) <= 0:
		x.add(path, "must be greater than %v", *s.ExclusiveMinimum)
	case s.ExclusiveMaximum != nil && cmp(s.ExclusiveMaximum) >= 0:
		x.add(path, "must be less than %v", *s.ExclusiveMaximum)
	}
	if s.MultipleOf != nil {
		n, _ := f.Float64() // as the validator has it
		if _, rest := math.Modf(n / *s.MultipleOf); rest != 0 {
			x.add(path, "must be a multiple of %v", *s.MultipleOf)
		}
	}
}

func (x *explainer) array(path string, s *jsonschema.Schema, v []any, depth int) {
	if s.MinItems != nil && len(v) < *s.MinItems {
		x.add(path, "must have at least %d items", *s.MinItems)
	}
	if s.MaxItems != nil && len(v) > *s.MaxItems {
		x.add(path, "must have at most %d items", *s.MaxItems)
	}
	if s.UniqueItems {
		seen := map[string]bool{}
		for i, item := range v {
			raw, _ := json.Marshal(item) // was JSON before
			if seen[string(raw)] {
				x.add(fmt.Sprintf("%s[%d]", path, i), "must not repeat an item")
				break
			}
			seen[string(raw)] = true
		}
	}
	for i, item := range v {
		if s.Items == nil || len(x.found) >= maxViolations {
			return
		}
		x.walk(fmt.Sprintf("%s[%d]", path, i), s.Items, item, depth+1)
	}
}

func (x *explainer) object(path string, s *jsonschema.Schema, v map[string]any, depth int) {
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			x.add(join(path, name), "is required")
		}
	}
	if s.MinProperties != nil && len(v) < *s.MinProperties {
		x.add(path, "must have at least %d members", *s.MinProperties)
	}
	if s.MaxProperties != nil && len(v) > *s.MaxProperties {
		x.add(path, "must have at most %d members", *s.MaxProperties)
	}
	closed := s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil
	for _, name := range slices.Sorted(maps.Keys(v)) {
		prop, known := s.Properties[name]
		switch {
		case known:
			x.walk(join(path, name), prop, v[name], depth+1)
		case closed && len(s.PatternProperties) == 0:
			x.add(join(path, clip(name)), "is not an argument; the valid names are %s", names(s.Properties))
		case s.AdditionalProperties != nil && !closed:
			x.walk(join(path, clip(name)), s.AdditionalProperties, v[name], depth+1)
		}
	}
}

// clip bounds a name that a client made up.
func clip(name string) string {
	const most = 64
	if utf8.RuneCountInString(name) <= most {
		return name
	}
	return string([]rune(name)[:most]) + "…"
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func names(props map[string]*jsonschema.Schema) string {
	if len(props) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(props)), ", ")
}

func hasType(v any, t string) bool {
	switch t {
	case "null":
		return v == nil
	case "boolean":
		_, ok := v.(bool)
		return ok
	case "string":
		_, ok := v.(string)
		return ok
	case "number":
		_, ok := v.(json.Number)
		return ok
	case "integer":
		n, ok := v.(json.Number)
		if !ok {
			return false
		}
		f, _, err := big.ParseFloat(n.String(), 10, 256, big.ToNearestEven)
		return err == nil && f.IsInt()
	case "array":
		_, ok := v.([]any)
		return ok
	case "object":
		_, ok := v.(map[string]any)
		return ok
	}
	return true
}

func article(types []string) string {
	kept := slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == "null" && len(types) > 1 })
	for i, t := range kept {
		switch t {
		case "integer", "array", "object":
			kept[i] = "an " + t
		case "null":
		default:
			kept[i] = "a " + t
		}
	}
	return strings.Join(kept, " or ")
}

func list(values []any) string {
	parts := make([]string, len(values))
	for i, v := range values {
		raw, _ := json.Marshal(v)
		parts[i] = string(raw)
	}
	return strings.Join(parts, ", ")
}

func equalJSON(a, b any) bool {
	ra, errA := json.Marshal(a)
	rb, errB := json.Marshal(b)
	return errA == nil && errB == nil && (string(ra) == string(rb) || reflect.DeepEqual(a, b))
}
