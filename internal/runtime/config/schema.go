package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Key describes one key of a configuration.
type Key struct {
	Path    string   `json:"path"`              // mcp.limits.toolTimeoutMs
	Env     string   `json:"env,omitempty"`     // its variable; empty when it has none
	Type    string   `json:"type"`              // string, boolean, integer, number, or "list of" one of these with an s
	Default any      `json:"default"`           // as in JSON: string, bool, int64, uint64, float64 or []any; masked when secret
	Doc     string   `json:"doc,omitempty"`     // what it does, for operators
	Secret  bool     `json:"secret,omitempty"`  // never shown
	Min     string   `json:"minimum,omitempty"` // see the package comment; empty for no bound
	Max     string   `json:"maximum,omitempty"`
	Enum    []string `json:"enum,omitempty"` // the allowed texts; nil for any
}

// Keys lists the keys of v, a tagged struct or a pointer to one, in the order of
// its fields. An error means that the struct's tags or types are at fault.
func Keys(v any) ([]Key, error) {
	t := reflect.TypeOf(v)
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	s, err := newSchema(t)
	if err != nil {
		return nil, err
	}
	keys := make([]Key, 0, len(s.fields))
	for _, f := range s.fields {
		keys = append(keys, f.Key)
	}
	return keys, nil
}

// ApplyDefaults gives every field of v, a pointer to a tagged struct, that holds
// its zero value the value of its default tag.
func ApplyDefaults(v any) error {
	s, dst, err := schemaOfPointer(v)
	if err != nil {
		return err
	}
	for _, f := range s.fields {
		if f.in(dst).IsZero() {
			f.reset(dst)
		}
	}
	return nil
}

// Check applies the bounds and enumerations of the tags to the values of v, a
// pointer to a tagged struct, joining the faults ([Error] each, without Where).
func Check(v any) error {
	s, dst, err := schemaOfPointer(v)
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range s.fields {
		if err := f.check(f.in(dst)); err != nil {
			errs = append(errs, &Error{Key: f.Path, Problem: err.Error()})
		}
	}
	return errors.Join(errs...)
}

// Changed lists the paths of the keys of v, a pointer to a tagged struct, whose
// values are not those of their default tags.
func Changed(v any) ([]string, error) {
	s, dst, err := schemaOfPointer(v)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, f := range s.fields {
		if got := f.in(dst); !reflect.DeepEqual(plain(got, f.unit), plain(f.initial, f.unit)) {
			paths = append(paths, f.Path)
		}
	}
	return paths, nil
}

// field is one key and its place in the struct.
type field struct {
	Key
	index    []int
	typ      reflect.Type
	unit     time.Duration // of a time.Duration, else 0
	min, max *float64
	initial  reflect.Value
}

func (f *field) in(dst reflect.Value) reflect.Value { return dst.FieldByIndex(f.index) }

// reset gives the field its default; a list is copied, the caller owns it.
func (f *field) reset(dst reflect.Value) {
	v := f.initial
	if v.Kind() == reflect.Slice && !v.IsNil() {
		v = reflect.AppendSlice(reflect.MakeSlice(f.typ, 0, v.Len()), v)
	}
	f.in(dst).Set(v)
}

// section is a mapping of the file: its keys lead to fields or sections.
type section struct {
	path     string
	names    []string // in struct order
	fields   map[string]*field
	sections map[string]*section
}

func newSection(path string) *section {
	return &section{path: path, fields: map[string]*field{}, sections: map[string]*section{}}
}

type schema struct {
	root   *section
	fields []*field
	envs   map[string]string // variable → path
	errs   []error
}

func schemaOfPointer(v any) (*schema, reflect.Value, error) {
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return nil, reflect.Value{}, fmt.Errorf("configuration is a %T, want a pointer to a struct", v)
	}
	s, err := newSchema(p.Type().Elem())
	return s, p.Elem(), err
}

func newSchema(t reflect.Type) (*schema, error) {
	if t == nil || t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("configuration is a %v, want a struct", t)
	}
	s := &schema{root: newSection(""), envs: map[string]string{}}
	s.walk(t, s.root, nil, above{})
	for _, f := range s.fields {
		if other, ok := s.envs[strings.TrimSuffix(f.Env, "_FILE")]; ok && strings.HasSuffix(f.Env, "_FILE") {
			s.fail("%s: variable %s would also name a file for %s; set another with an env tag", f.Path, f.Env, other)
		}
	}
	return s, errors.Join(s.errs...)
}

func (s *schema) fail(format string, args ...any) {
	s.errs = append(s.errs, fmt.Errorf(format, args...))
}

// above is what keys inherit from the sections they are in.
type above struct {
	prefix string // the start of their variables
	doc    string // said of each of them
}

// walk adds the fields of t to sec.
func (s *schema) walk(t reflect.Type, sec *section, index []int, up above) {
	for i := range t.NumField() {
		sf := t.Field(i)
		name, options, _ := strings.Cut(sf.Tag.Get("yaml"), ",")
		inline := options == "inline" || sf.Anonymous && name == "" && sf.Type.Kind() == reflect.Struct
		at := slices.Concat(index, []int{i})
		switch {
		case name == "-" || !sf.IsExported() && !sf.Anonymous:
			continue
		case inline && sf.Type.Kind() != reflect.Struct:
			s.fail("field %s.%s: inline needs a struct, not a %v", t, sf.Name, sf.Type)
		case inline:
			s.walk(sf.Type, sec, at, up)
		case name == "" || strings.ContainsAny(name, ". "):
			s.fail("field %s.%s: its yaml tag must name a key", t, sf.Name)
		case sec.fields[name] != nil || sec.sections[name] != nil:
			s.fail("field %s.%s: key %s is already taken", t, sf.Name, join(sec.path, name))
		case sf.Type.Kind() == reflect.Struct:
			sub := newSection(join(sec.path, name))
			sec.names = append(sec.names, name)
			sec.sections[name] = sub
			s.walk(sf.Type, sub, at, above{
				prefix: sectionPrefix(sec, name, up.prefix, sf.Tag.Get("env")),
				doc:    sentences(sf.Tag.Get("doc"), up.doc),
			})
		default:
			s.add(sf, sec, name, at, up)
		}
	}
}

func (s *schema) add(sf reflect.StructField, sec *section, name string, index []int, up above) {
	tag := sf.Tag
	f := &field{
		Key: Key{
			Path: join(sec.path, name), Env: up.prefix + upperSnake(name), Doc: sentences(tag.Get("doc"), up.doc),
			Min: tag.Get("min"), Max: tag.Get("max"),
		},
		index: index, typ: sf.Type, initial: reflect.Zero(sf.Type),
	}
	if env := tag.Get("env"); env == "-" {
		f.Env = ""
	} else if env != "" {
		f.Env = env
	}
	if list := tag.Get("enum"); list != "" {
		f.Enum = strings.Split(list, ",")
	}
	if err := f.describe(tag); err != nil {
		s.fail("%s: %v", f.Path, err)
		return
	}
	if text, ok := tag.Lookup("default"); ok && text != "" {
		v := reflect.New(f.typ).Elem()
		if err := f.setText(v, text); err != nil {
			s.fail("%s: its default: %v", f.Path, err)
			return
		}
		f.initial = v
	}
	f.Default = f.show(f.initial)
	if other, ok := s.envs[f.Env]; ok && f.Env != "" {
		s.fail("%s: variable %s already sets %s", f.Path, f.Env, other)
	}
	s.envs[f.Env] = f.Path
	sec.names = append(sec.names, name)
	sec.fields[name] = f
	s.fields = append(s.fields, f)
}

// describe derives from the type and the tags what the field accepts.
func (f *field) describe(tag reflect.StructTag) error {
	elem := f.typ
	if elem.Kind() == reflect.Slice {
		elem = elem.Elem()
	}
	name := typeName(elem)
	if name == "" {
		return fmt.Errorf("a configuration cannot hold a %v", f.typ)
	}
	f.Type = name
	if elem != f.typ {
		f.Type = "list of " + name + "s"
	}
	if elem == durationType {
		switch unit := tag.Get("unit"); unit {
		case "ms":
			f.unit = time.Millisecond
		case "s":
			f.unit = time.Second
		default:
			return errors.New(`a time.Duration needs the tag unit:"ms" or unit:"s"`)
		}
	}
	f.Secret = tag.Get("secret") == "true" || elem.Implements(revealerType)
	if f.Enum != nil && name != "string" {
		return fmt.Errorf("an enum needs texts, not a %v", f.typ)
	}
	var err error
	if f.min, err = bound(f.Min); err != nil {
		return fmt.Errorf("its min: %w", err)
	}
	if f.max, err = bound(f.Max); err != nil {
		return fmt.Errorf("its max: %w", err)
	}
	return nil
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	revealerType = reflect.TypeFor[interface{ Reveal() string }]()
)

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "integer"
	case reflect.Float32, reflect.Float64:
		return "number"
	default:
		return ""
	}
}

func bound(text string) (*float64, error) {
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is not a number", text)
	}
	return &n, nil
}

// sentences is the parts that are not empty as one text.
func sentences(parts ...string) string {
	var text []string
	for _, part := range parts {
		if part != "" {
			text = append(text, strings.TrimSuffix(part, ".")+".")
		}
	}
	return strings.Join(text, " ")
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// sectionPrefix is the start of the variables of the section name inside sec.
// The two large sections have short ones.
func sectionPrefix(sec *section, name, prefix, tag string) string {
	switch {
	case tag != "":
		return tag + "_"
	case sec.path == "" && name == "mcp":
		return "MCP_"
	case sec.path == "" && name == "webServer":
		return "WS_"
	default:
		return prefix + upperSnake(name) + "_"
	}
}

// upperSnake turns checkMCPName into CHECK_MCP_NAME.
func upperSnake(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			b.WriteByte('_')
			continue
		}
		if i > 0 && unicode.IsUpper(r) {
			afterLower := unicode.IsLower(runes[i-1]) || unicode.IsDigit(runes[i-1])
			endsAcronym := unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if afterLower || endsAcronym {
				b.WriteByte('_')
			}
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}
