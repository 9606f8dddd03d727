package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// KeyMove is a key of the configuration that is found elsewhere from a version on. The steps of a path are separated
// by dots.
type KeyMove struct {
	ID, Since      string
	From, To       string
	OldEnv, NewEnv string // names of its environment variable; the old one is only looked for
}

// MoveKey moves a key in the files of config. Comments above and beside it, its value and everything else stay as
// they are, byte for byte but for the key's indentation. Secrets are not read: of config/local.yaml it only says that it
// may have the key.
func MoveKey(m KeyMove) Migration {
	return Migration{ID: m.ID, Module: runtimeModule, Since: m.Since, run: func(t *tree) error {
		return t.moveKey(m)
	}}
}

func (t *tree) moveKey(m KeyMove) error {
	for _, name := range t.files(yamlFile) {
		if path.Dir(name) != "config" {
			continue
		}
		edits, line, err := moveEdits(t.now[name], strings.Split(m.From, "."), strings.Split(m.To, "."))
		if err != nil {
			t.note(name, line, fmt.Sprintf("the key %s is called %s now; move it by hand, because %v", m.From, m.To, err))
			continue
		}
		if edits == nil {
			continue
		}
		if err := t.apply(name, edits, Change{Line: line, Text: fmt.Sprintf("the key %s became %s", m.From, m.To)}); err != nil {
			return err
		}
	}
	if _, err := fs.Stat(t.project.FS, "config/local.yaml"); err == nil {
		t.note("config/local.yaml", 0, fmt.Sprintf("this file is never read by famcp; if it sets %s, call that %s", m.From, m.To))
	}
	if m.OldEnv == "" {
		return nil
	}
	word := regexp.MustCompile(`\b` + regexp.QuoteMeta(m.OldEnv) + `\b`)
	for _, name := range t.files(goFile, yamlFile, dockerFile, shellFile, textFile) {
		n := 0
		for line := range strings.Lines(string(t.now[name])) {
			if n++; word.MatchString(line) {
				t.note(name, n, fmt.Sprintf("the environment variable %s is called %s now", m.OldEnv, m.NewEnv))
			}
		}
	}
	return nil
}

// moveEdits are the edits that move a key, and its line; no edits where the key is not.
func moveEdits(src []byte, from, to []string) ([]edit, int, error) {
	dec := yaml.NewDecoder(bytes.NewReader(src))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, 0, nil
	} else if err != nil {
		if !bytes.Contains(src, []byte(from[len(from)-1])) {
			return nil, 0, nil
		}
		return nil, 0, errors.New("the file is not YAML")
	}
	at := followKeys(doc.Content[0], from)
	if at == nil {
		return nil, 0, nil
	}
	line := at.key.Line
	if dec.Decode(new(yaml.Node)) == nil {
		return nil, line, errors.New("the file has more than one document")
	}
	if followKeys(doc.Content[0], to) != nil {
		return nil, line, errors.New("both are set")
	}
	y := yamlText{src: src}
	start, ok := y.keyAt(at.key)
	if !ok {
		return nil, line, errors.New("it is written in an unusual way")
	}
	last := len(from) - 1
	rename := edit{start, start + len(at.raw(src, start)), to[len(to)-1]}
	edits := []edit{rename}
	if !slices.Equal(from[:last], to[:len(to)-1]) {
		var err error
		if edits, err = y.relocate(doc.Content[0], at, rename, to); err != nil {
			return nil, line, err
		}
	}
	out, err := splice(src, edits)
	if err != nil {
		return nil, line, err
	}
	if !moved(src, out, from, to) {
		return nil, line, errors.New("the rest of the file would change its meaning")
	}
	return edits, line, nil
}

// place is an entry of a mapping.
type place struct{ parent, key, value *yaml.Node }

// raw is the key as the text has it at start, quotes included.
func (p place) raw(src []byte, start int) string {
	n := len(p.key.Value)
	if p.key.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		n += 2
	}
	return string(src[start : start+n])
}

// followKeys is the entry at the end of a way of keys, or nil.
func followKeys(n *yaml.Node, keys []string) *place {
	var at *place
	for _, key := range keys {
		if n.Kind != yaml.MappingNode {
			return nil
		}
		at = nil
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				at = &place{n, n.Content[i], n.Content[i+1]}
			}
		}
		if at == nil {
			return nil
		}
		n = at.value
	}
	return at
}

// keyAt is where the text of a key begins, when it stands there as it is.
func (y yamlText) keyAt(key *yaml.Node) (int, bool) {
	line := y.src[y.start(key.Line):]
	start := y.start(key.Line) + runeOffset(line, key.Column-1)
	text := key.Value
	switch {
	case key.Style&yaml.DoubleQuotedStyle != 0:
		text = `"` + text + `"`
	case key.Style&yaml.SingleQuotedStyle != 0:
		text = `'` + text + `'`
	}
	return start, bytes.HasPrefix(y.src[start:], []byte(text)) && key.Anchor == "" && key.Tag == "!!str"
}

// relocate cuts the lines of an entry and puts them at the end of the mapping they belong to now.
func (y yamlText) relocate(root *yaml.Node, at *place, rename edit, to []string) ([]edit, error) {
	first, last, ok := y.lines(at)
	if !ok {
		return nil, errors.New("it does not stand on lines of its own")
	}
	target, indent, missing := root, 0, to[:len(to)-1]
	var insertAfter int
	for len(missing) > 0 {
		next := followKeys(target, missing[:1])
		if next == nil {
			break
		}
		_, end, ok := y.lines(next)
		switch {
		case !ok:
			return nil, fmt.Errorf("%s does not stand on lines of its own", missing[0])
		case next.value.Kind == yaml.MappingNode && next.value.Style&yaml.FlowStyle == 0:
			indent = next.value.Content[0].Column - 1
		case next.value.Tag == "!!null" && next.value.Value == "":
			indent = next.key.Column + 1
		default:
			return nil, fmt.Errorf("%s is not a mapping of lines", missing[0])
		}
		target, missing, insertAfter = next.value, missing[1:], end
	}
	if target == root {
		if root.Style&yaml.FlowStyle != 0 {
			return nil, errors.New("the file is one flow mapping")
		}
		_, insertAfter, _ = y.lines(&place{root, root.Content[len(root.Content)-2], root.Content[len(root.Content)-1]})
	}

	var out strings.Builder
	insert := y.start(insertAfter + 1)
	if insert > 0 && y.src[insert-1] != '\n' {
		out.WriteByte('\n')
	}
	for _, key := range missing {
		fmt.Fprintf(&out, "%s%s:\n", strings.Repeat(" ", indent), key)
		indent += 2
	}
	shift := indent - (at.key.Column - 1)
	begin, end := y.start(first), y.start(last+1)
	block, err := splice(y.src[begin:end], []edit{{rename.start - begin, rename.end - begin, rename.text}})
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(block)) {
		switch {
		case strings.TrimSpace(line) == "":
		case shift >= 0:
			line = strings.Repeat(" ", shift) + line
		default:
			line = line[min(-shift, len(line)-len(strings.TrimLeft(line, " "))):]
		}
		out.WriteString(line)
	}
	text := out.String()
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if first <= insertAfter && insertAfter <= last { // it was the last entry there
		return []edit{{begin, end, text}}, nil
	}
	return []edit{{begin, end, ""}, {insert, insert, text}}, nil
}

// lines are the first line of an entry in block style, or of the comments right above it, and its last one.
func (y yamlText) lines(at *place) (first, last int, ok bool) {
	column := at.key.Column - 1
	text := strings.Split(string(y.src), "\n")
	indent := func(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
	if at.parent.Style&yaml.FlowStyle != 0 || indent(text[at.key.Line-1]) != column || strings.Contains(text[at.key.Line-1][:column], "\t") {
		return 0, 0, false
	}
	first, last = at.key.Line, at.key.Line
	for first > 1 && indent(text[first-2]) == column && strings.HasPrefix(text[first-2][column:], "#") {
		first--
	}
	for n := last + 1; n <= len(text); n++ {
		line := strings.TrimRight(text[n-1], " \r")
		if line == "" {
			continue // it belongs to the entry only when something of it follows
		}
		item := at.value.Kind == yaml.SequenceNode && indent(line) == column && strings.HasPrefix(line[column:], "-")
		if indent(line) <= column && !item {
			break
		}
		last = n
	}
	return first, last, true
}

// moved reports whether out means what src means, but for the key.
func moved(src, out []byte, from, to []string) bool {
	var want, got map[string]any
	if yaml.Unmarshal(src, &want) != nil || yaml.Unmarshal(out, &got) != nil {
		return false
	}
	value := take(want, from)
	put(want, to, value)
	return reflect.DeepEqual(want, got)
}

// take removes a key. A mapping that is left without any is null, as YAML has it.
func take(m map[string]any, keys []string) any {
	if len(keys) == 1 {
		value := m[keys[0]]
		delete(m, keys[0])
		return value
	}
	inner, ok := m[keys[0]].(map[string]any)
	if !ok {
		return nil
	}
	value := take(inner, keys[1:])
	if len(inner) == 0 {
		m[keys[0]] = nil
	}
	return value
}

func put(m map[string]any, keys []string, value any) {
	if len(keys) == 1 {
		m[keys[0]] = value
		return
	}
	inner, ok := m[keys[0]].(map[string]any)
	if !ok {
		inner = map[string]any{}
		m[keys[0]] = inner
	}
	put(inner, keys[1:], value)
}
