package render

import (
	"bytes"
	"go/format"
	"go/parser"
	"go/token"
	"strconv"
	"strings"

	"github.com/famcp/famcp/internal/scaffold/gomod"
)

// templateModule is the import path of the template trees, which are packages of this module.
const templateModule = gomod.Runtime + "/templates"

// rewriteImports replaces the import path of a template tree by the project's module path in a Go file, and formats
// it. It works on the import declarations: the same text in strings and comments stays.
func rewriteImports(name string, src []byte, modulePath string) ([]byte, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	done := 0
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		renamed, ok := projectImport(path, modulePath)
		if !ok {
			continue
		}
		start := fset.Position(spec.Path.Pos()).Offset
		out.Write(src[done:start])
		out.WriteString(strconv.Quote(renamed))
		done = start + len(spec.Path.Value)
	}
	out.Write(src[done:])
	return format.Source(out.Bytes())
}

func projectImport(path, modulePath string) (string, bool) {
	for _, tree := range []string{projectTree, bareTree} {
		if rest, ok := strings.CutPrefix(path, templateModule+"/"+tree); ok && (rest == "" || rest[0] == '/') {
			return modulePath + rest, true
		}
	}
	return "", false
}
