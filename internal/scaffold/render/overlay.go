package render

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/Masterminds/sprig/v3"
)

// Overlay lays a team's template over the rendered files of a project and returns all of them, sorted by path.
//
// Files of the template are treated like those of [Project]: their paths have the same two rules, the table of options
// leaves them out of the same projects, lines end in LF, and Go files import the project's packages by the path that
// famcp's own template has. A file takes the place of the one with its path, and its owner; a new one is managed.
//
// The template is data that somebody else wrote. Its x.tmpl see the same [Data], between the same [[ ]], but cannot
// loop or define anything and have few functions, so that rendering is quick and what it makes is bounded.
func Overlay(files, template []File, d Data) ([]File, error) {
	all := make(map[string]File, len(files))
	for _, f := range files {
		all[f.Path] = f
	}
	sources := map[string]string{}
	for _, source := range template {
		if err := CheckPath(source.Path); err != nil {
			return nil, err
		}
		name, ok := choose(Destination(source.Path), d)
		if err := CheckPath(name); err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if other := sources[name]; other != "" && other+tmplExt != source.Path {
			return nil, fmt.Errorf("template files %s and %s are both %s; remove one", other, source.Path, name)
		}
		sources[name] = source.Path
		file, err := overlaid(source, name, d)
		if err != nil {
			return nil, err
		}
		all[name] = file
	}
	if err := collisions(slices.Sorted(maps.Keys(all))); err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(all), func(a, b File) int { return cmp.Compare(a.Path, b.Path) }), nil
}

// overlaid renders a file of a team's template.
func overlaid(source File, name string, d Data) (File, error) {
	file := File{Path: name, Mode: 0o644, Owner: Managed, Data: LF(source.Data), Overlay: true}
	if source.Mode&0o111 != 0 || executable(name) {
		file.Mode = 0o755
	}
	if owner, err := ownerOf(name); err == nil {
		file.Owner = owner
	}
	var err error
	if path.Ext(source.Path) == tmplExt {
		if file.Data, err = executeForeign(source.Path, file.Data, d); err != nil {
			return File{}, fmt.Errorf("template file %s: %w", source.Path, err)
		}
	}
	if path.Ext(name) == ".go" {
		if file.Data, err = rewriteImports(name, file.Data, d.Module); err != nil {
			return File{}, fmt.Errorf("template file %s: %w", source.Path, err)
		}
	}
	return file, nil
}

// collisions finds two names that some file system takes for one, or a file where another needs a directory.
func collisions(names []string) error {
	seen := map[string]string{}
	for _, name := range names {
		lower := strings.ToLower(name)
		if other, ok := seen[lower]; ok {
			return fmt.Errorf("template files %s and %s differ in case only, which not every system can have; rename one", other, name)
		}
		seen[lower] = name
	}
	for _, name := range names {
		for dir := path.Dir(strings.ToLower(name)); dir != "."; dir = path.Dir(dir) {
			if other, ok := seen[dir]; ok {
				return fmt.Errorf("template file %s needs a directory where %s is a file; rename one", name, other)
			}
		}
	}
	return nil
}

// Limits of a x.tmpl that famcp did not write.
const (
	maxForeignTemplate = 256 << 10
	maxForeignOutput   = 1 << 20
	maxForeignText     = 64 << 10 // what goes into a function
)

func executeForeign(name string, text []byte, d Data) ([]byte, error) {
	if len(text) > maxForeignTemplate {
		return nil, fmt.Errorf("it has %d bytes, and a .tmpl may have %d; remove .tmpl where nothing is to be filled in", len(text), maxForeignTemplate)
	}
	t, err := template.New(name).Delims("[[", "]]").Option("missingkey=error").Funcs(foreignFunctions()).Parse(string(text))
	if err != nil {
		return nil, err
	}
	if len(t.Templates()) > 1 {
		return nil, errors.New("it defines templates; only fields, functions and if are allowed")
	}
	if t.Tree != nil {
		if err := plain(t.Root); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	if err := t.Execute(&boundedWriter{&out, maxForeignOutput}, d); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// plain refuses what can repeat itself or name a result, by which a short template could make a long text.
func plain(n parse.Node) error {
	var children []parse.Node
	switch n := n.(type) {
	case *parse.ListNode:
		if n != nil {
			children = n.Nodes
		}
	case *parse.ActionNode:
		children = []parse.Node{n.Pipe}
	case *parse.IfNode:
		children = []parse.Node{n.Pipe, n.List, n.ElseList}
	case *parse.WithNode:
		children = []parse.Node{n.Pipe, n.List, n.ElseList}
	case *parse.PipeNode:
		if len(n.Decl) > 0 {
			return fmt.Errorf("line %d declares a variable; only fields, functions and if are allowed", n.Line)
		}
	case *parse.TextNode, *parse.CommentNode:
	default:
		return fmt.Errorf("%.40q is not allowed; only fields, functions and if are", n)
	}
	for _, child := range children {
		if err := plain(child); err != nil {
			return err
		}
	}
	return nil
}

// foreignFunctions are the functions of a team's template. Each bounds what it takes, because nested calls
// multiply: that is also why those of text/template that make texts are not among them.
func foreignFunctions() template.FuncMap {
	funcs := template.FuncMap{}
	for name, f := range map[string]func(string) string{
		"json": quoteJSON, "yaml": quoteYAML, "toml": quoteYAML, "goquote": strconv.Quote,
		"mdtext": escapeMarkdown, "lower": strings.ToLower, "upper": strings.ToUpper, "trim": strings.TrimSpace,
	} {
		funcs[name] = func(text string) (string, error) { return bounded(f, text) }
	}
	funcs["replace"] = func(from, to, text string) (string, error) {
		if strings.Count(text, from)*max(len(to), 1) > maxForeignText {
			return "", errTooLong
		}
		return bounded(func(s string) string { return strings.ReplaceAll(s, from, to) }, text)
	}
	for _, name := range []string{"contains", "hasPrefix", "hasSuffix"} {
		funcs[name] = sprig.HermeticTxtFuncMap()[name]
	}
	for _, name := range []string{"print", "printf", "println", "html", "js", "urlquery", "call", "slice"} {
		funcs[name] = func(...any) (string, error) { return "", fmt.Errorf("the function %s is not there", name) }
	}
	return funcs
}

var errTooLong = fmt.Errorf("a text is longer than %d bytes", maxForeignText)

func bounded(f func(string) string, text string) (string, error) {
	if len(text) > maxForeignText {
		return "", errTooLong
	}
	return f(text), nil
}

// boundedWriter fails when more than left bytes are written.
type boundedWriter struct {
	out  *bytes.Buffer
	left int
}

func (w *boundedWriter) Write(data []byte) (int, error) {
	if len(data) > w.left {
		return 0, fmt.Errorf("it makes more than %d bytes", maxForeignOutput)
	}
	w.left -= len(data)
	return w.out.Write(data)
}
