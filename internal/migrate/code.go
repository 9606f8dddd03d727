package migrate

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"strings"

	"github.com/famcp/famcp/internal/gocode"
)

// program is the code of the project as it is now.
func (t *tree) program() *gocode.Program {
	if t.code == nil {
		files := map[string][]byte{}
		for _, name := range t.files(goFile) {
			files[name] = t.now[name]
		}
		t.code = gocode.Load(gocode.Source{
			Module: t.project.Module, Files: files, Dependencies: map[string]fs.FS{runtimeModule: t.project.Runtime}, Deep: true,
		})
	}
	return t.code
}

// packages are the packages of the project as they are now. Of a file that imports a package below importPath and is in
// none of them, because it does not parse, is generated or belongs to other builds, it notes the first of the names it
// mentions.
func (t *tree) packages(importPath string, names ...string) []*gocode.Package {
	for _, name := range t.files(goFile) {
		src := t.now[name]
		word := mentioned(src, names)
		if word == "" || !bytes.Contains(src, []byte(`"`+importPath)) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments|parser.SkipObjectResolution)
		var why string
		switch {
		case err != nil:
			why = "has a syntax error"
		case ast.IsGenerated(file):
			why = "is generated"
		case gocode.Excluded(name, src):
			why = "is not part of every build"
		default:
			continue
		}
		t.note(name, lineOf(src, word), fmt.Sprintf("this file %s and was left alone; see whether %s has to be replaced", why, word))
	}
	return t.program().Packages
}

func mentioned(src []byte, texts []string) string {
	for _, text := range texts {
		if strings.Contains(string(src), text) {
			return text
		}
	}
	return ""
}

// lineOf is the first line of src with text.
func lineOf(src []byte, text string) int {
	before, _, _ := strings.Cut(string(src), text)
	return strings.Count(before, "\n") + 1
}
