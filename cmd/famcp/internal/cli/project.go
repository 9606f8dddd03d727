package cli

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/famcp/famcp/internal/scaffold/manifest"
)

// project is a project that famcp made.
type project struct {
	Dir  string // absolute
	Name string // of its server
}

// findProject returns the project that the directory dir is in, and nil when it
// is in none.
func findProject(dir string) (*project, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for {
		record, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(manifest.Path)))
		if err == nil {
			name, err := serverName(dir, record)
			return &project{Dir: dir, Name: name}, err
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return nil, nil
		}
		dir = parent
	}
}

// serverName is what the server in dir calls itself: the constant that the
// program is built with or, when the team has moved that, the recorded answer.
func serverName(dir string, record []byte) (string, error) {
	file := filepath.Join(dir, "internal", "project", "project.go")
	src, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reading the server's name: %w", err)
	}
	if name := textConstant(src, "Name"); name != "" {
		return name, nil
	}
	m, err := manifest.Parse(record)
	if err != nil {
		return "", err
	}
	if name, _ := m.Answers["name"].(string); name != "" {
		return name, nil
	}
	return "", fmt.Errorf("neither %s nor %s has the server's name", file, manifest.Path)
}

// textConstant is the value of a constant of a Go file, when it is a literal text.
func textConstant(src []byte, name string) string {
	file, err := parser.ParseFile(gotoken.NewFileSet(), "", src, parser.SkipObjectResolution)
	if err != nil {
		return ""
	}
	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != gotoken.CONST {
			continue
		}
		for _, spec := range group.Specs {
			constants := spec.(*ast.ValueSpec)
			for i, id := range constants.Names {
				if id.Name != name || i >= len(constants.Values) {
					continue
				}
				if literal, ok := constants.Values[i].(*ast.BasicLit); ok && literal.Kind == gotoken.STRING {
					text, _ := strconv.Unquote(literal.Value)
					return text
				}
			}
		}
	}
	return ""
}
