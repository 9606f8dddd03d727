package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxItems bounds a list, so that aliases cannot multiply a file.
const maxItems = 1000

// file applies one YAML document as a layer. The walk follows the struct, so a
// self-referring alias ends where the struct ends.
func (l *loader) file(name string, data []byte) {
	if len(data) > maxFileBytes {
		l.fail(name, "", "larger than %d bytes", maxFileBytes)
		return
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return
	} else if err != nil {
		l.syntax(name, err)
		return
	}
	if err := dec.Decode(&more); err == nil {
		l.fail(at(name, &more), "", "a second document; keep one document in a file")
		return
	} else if !errors.Is(err, io.EOF) {
		l.syntax(name, err)
		return
	}
	if len(doc.Content) == 1 {
		l.section(name, l.schema.root, doc.Content[0])
	}
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// syntax reports an error of the YAML library with the line in our form. An
// unknown anchor is named in it, which may be a secret that begins with "*".
func (l *loader) syntax(name string, err error) {
	line, problem := "", err.Error()
	if m := yamlLine.FindStringSubmatch(problem); m != nil {
		line, problem = m[1], m[2]
	}
	if line != "" {
		name += ":" + line
	}
	if strings.HasPrefix(problem, "unknown anchor") {
		problem = "a value begins with * but names no anchor; quote it"
	}
	l.fail(name, "", "not valid YAML: %s", problem)
}

func (l *loader) section(file string, sec *section, n *yaml.Node) {
	where := at(file, n)
	n = resolve(n)
	if isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		l.fail(where, sec.path, "want a mapping of keys, got %s", kind(n))
		return
	}
	lines := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		where := at(file, key)
		switch {
		case key.Kind != yaml.ScalarNode:
			l.fail(where, sec.path, "a key must be a plain name, got %s", kind(key))
			continue
		case key.Tag == "!!merge":
			l.fail(where, sec.path, "merge keys (<<) are not supported; write the keys out")
			continue
		case lines[key.Value] != 0:
			l.fail(where, join(sec.path, shorten(key.Value)), "set twice; the first time in line %d", lines[key.Value])
			continue
		}
		lines[key.Value] = key.Line
		if sub := sec.sections[key.Value]; sub != nil {
			l.section(file, sub, value)
		} else if f := sec.fields[key.Value]; f != nil {
			l.value(file, where, f, value)
		} else if !l.partial || sec != l.schema.root {
			l.fail(where, join(sec.path, shorten(key.Value)), "%s", l.unknown(sec, key.Value))
		}
	}
}

func (l *loader) value(file, where string, f *field, n *yaml.Node) {
	if isNull(resolve(n)) {
		return // keeps the lower layer
	}
	v := reflect.New(f.typ).Elem()
	if err := f.setNode(v, n); err != nil {
		l.fail(at(file, n), f.Path, "%v", err)
		return
	}
	f.in(l.dst).Set(v)
	l.sources[f] = where
}

// setNode is setText for a value of a file, where types are written down.
func (f *field) setNode(v reflect.Value, n *yaml.Node) error {
	n = resolve(n)
	if f.typ.Kind() != reflect.Slice {
		if err := f.setScalar(v, n); err != nil {
			return err
		}
		return f.check(v)
	}
	if n.Kind != yaml.SequenceNode {
		return fmt.Errorf("want a %s, got %s", f.Type, kind(n))
	}
	if len(n.Content) > maxItems {
		return fmt.Errorf("a list has at most %d items", maxItems)
	}
	v.Set(reflect.MakeSlice(f.typ, len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		if err := f.setScalar(v.Index(i), resolve(item)); err != nil {
			return fmt.Errorf("item %d: %w", i+1, err)
		}
	}
	return f.check(v)
}

// setScalar takes the text as written for strings, whatever YAML would make of
// it: digits stay digits and zeros stay in front.
func (f *field) setScalar(v reflect.Value, n *yaml.Node) error {
	want := typeName(v.Type())
	switch {
	case n.Kind != yaml.ScalarNode || isNull(n):
		return fmt.Errorf("want %s, got %s", article(want), kind(n))
	case n.Style&yaml.TaggedStyle != 0:
		return errors.New("YAML tags such as !!str are not supported; quote a text instead")
	case want == "string":
		v.SetString(n.Value)
		return nil
	case n.Tag == "!!str" && n.Style != 0:
		return fmt.Errorf("want %s, got a quoted text; remove the quotes", article(want))
	case want == "boolean" && n.Tag != "!!bool":
		return f.wrong("true or false", n.Value)
	default:
		return f.parse(v, n.Value)
	}
}

// unknown explains a key that does not exist.
func (l *loader) unknown(sec *section, name string) string {
	if guess := nearest(name, sec.names); guess != "" {
		return fmt.Sprintf("unknown key; did you mean %s?", join(sec.path, guess))
	}
	var elsewhere []string
	for _, f := range l.schema.fields {
		if f.Path == name || strings.HasSuffix(f.Path, "."+name) {
			elsewhere = append(elsewhere, f.Path)
		}
	}
	switch {
	case len(elsewhere) == 1 && elsewhere[0] == name:
		return "unknown key; write its parts as nested mappings instead of with dots"
	case len(elsewhere) > 0:
		return "unknown key; did you mean " + strings.Join(elsewhere, " or ") + "?"
	default:
		return "unknown key; known here: " + strings.Join(sec.names, ", ")
	}
}

func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Tag == "!!null" && n.Style&yaml.TaggedStyle == 0
}

func at(file string, n *yaml.Node) string {
	if n.Line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, n.Line)
}

func kind(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "nothing"
	default:
		return "a single value"
	}
}

func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}
