package feature

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/famcp/famcp/internal/gocode"
)

func unquote(s string) (string, error) { return strconv.Unquote(s) }

// list is a list of entries in the contract tests of a project.
type list struct {
	pkg *gocode.Package
	lit *ast.CompositeLit
}

// listNames are what the template calls the lists.
func listName(spec Spec) string {
	switch {
	case spec.Kind == Tool:
		return "tools"
	case spec.Kind == Prompt:
		return "prompts"
	case strings.Contains(spec.URI, "{"):
		return "templates"
	}
	return "resources"
}

// findList finds the variable of a test with the entries of the kind: a map from names to hints, or a list of texts.
func findList(program *gocode.Program, name string) *list {
	var found []*list
	for _, p := range program.Packages {
		for _, file := range p.Files {
			if !strings.HasSuffix(p.Name(file.FileStart), "_test.go") {
				continue
			}
			for _, decl := range file.Decls {
				gen, ok := decl.(*ast.GenDecl)
				if !ok {
					continue
				}
				for _, spec := range gen.Specs {
					value, ok := spec.(*ast.ValueSpec)
					if !ok || len(value.Names) != 1 || len(value.Values) != 1 || value.Names[0].Name != name {
						continue
					}
					if lit, ok := value.Values[0].(*ast.CompositeLit); ok && isList(lit, name) {
						found = append(found, &list{p, lit})
					}
				}
			}
		}
	}
	if len(found) != 1 { // none, or nobody knows which
		found = slices.DeleteFunc(found, func(l *list) bool { return path.Dir(l.path()) != "tests" })
	}
	if len(found) != 1 {
		return nil
	}
	return found[0]
}

func isList(lit *ast.CompositeLit, name string) bool {
	isString := func(x ast.Expr) bool { id, ok := x.(*ast.Ident); return ok && id.Name == "string" }
	switch t := lit.Type.(type) {
	case *ast.MapType:
		return name == "tools" && isString(t.Key) && isString(t.Value)
	case *ast.ArrayType:
		return name != "tools" && t.Len == nil && isString(t.Elt)
	}
	return false
}

func (l *list) path() string { return l.pkg.Name(l.lit.Pos()) }

// add is the edit that adds an entry, before the first one that comes after it; ok is false when it is there.
func (l *list) add(key, value string) (e edit, ok bool) {
	text := strconv.Quote(key)
	if value != "" {
		text += ": " + strconv.Quote(value)
	}
	line := l.pkg.Line
	many := line(l.lit.Lbrace) != line(l.lit.Rbrace)
	var before ast.Expr
	for _, elt := range l.lit.Elts {
		at := elt
		if kv, ok := elt.(*ast.KeyValueExpr); ok {
			at = kv.Key
		}
		switch there := stringValue(l.pkg, at); {
		case there == key:
			return edit{}, false
		case there > key && before == nil:
			before = elt
		}
	}
	switch n := len(l.lit.Elts); {
	case before != nil:
		at := l.pkg.Offset(before.Pos())
		separator := ", "
		if many && value != "" {
			separator = ",\n\t\t"
		}
		return edit{at, at, text + separator}, true
	case n > 0 && many:
		at := l.pkg.Offset(l.lit.Elts[n-1].End())
		return edit{at, at, ",\n\t\t" + text}, true
	case n > 0:
		at := l.pkg.Offset(l.lit.Elts[n-1].End())
		return edit{at, at, ", " + text}, true
	}
	at := l.pkg.Offset(l.lit.Lbrace) + 1
	if value != "" {
		text = "\n\t\t" + text + ",\n\t"
	}
	return edit{at, at, text}, true
}

var (
	unreleased = regexp.MustCompile(`(?im)^## +\[?unreleased\]?.*\n`)
	nextPart   = regexp.MustCompile(`(?m)^## `)
	added      = regexp.MustCompile(`(?im)^### +added *\n`)
	item       = regexp.MustCompile(`^( *[-*+] | +\S)`) // or the end of one
	nextGroup  = regexp.MustCompile(`(?m)^### `)
)

// changelog is a changelog with an entry under what is added in the next version, or nil when it has no such part.
func changelog(text string, spec Spec) []byte {
	entry := fmt.Sprintf("- %s `%s`.\n", titleOf(string(spec.Kind)), spec.Name)
	at := unreleased.FindStringIndex(text)
	if at == nil {
		return nil
	}
	start, end := at[1], len(text)
	if next := nextPart.FindStringIndex(text[start:]); next != nil {
		end = start + next[0]
	}
	from, to := start, end
	if group := added.FindStringIndex(text[start:end]); group != nil {
		from = start + group[1]
	}
	if next := nextGroup.FindStringIndex(text[from:end]); next != nil {
		to = from + next[0]
	}
	body := strings.TrimRight(text[from:to], "\n")
	if last := body[strings.LastIndexByte(body, '\n')+1:]; from > start || item.MatchString(last) {
		if strings.TrimSpace(body) == "" {
			return []byte(text[:from] + "\n" + entry + "\n" + strings.TrimLeft(text[to:], "\n"))
		}
		return []byte(text[:from] + body + "\n" + entry + strings.TrimPrefix(text[from+len(body):], "\n"))
	}
	return []byte(text[:start] + "\n### Added\n\n" + entry + text[start:])
}
