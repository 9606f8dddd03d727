package render

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"
)

// Data is what templates see. Conditions are fields, so that templates hold no logic.
type Data struct {
	Name, Module, Title, Description     string
	Port                                 int
	Auth, CI, Transport, License, Author string // as answered
	Runtime                              string // vendored or module
	Examples                             bool
	GoVersion                            string // language version without patch, such as "1.26"
	HTTP, Stdio                          bool   // transports to document and deploy
	GitHub, GitLab                       bool   // continuous integration to set up
	Issuer, JWKSURI                      string // of tokens; the latter of RemoteJWKS
	Protected                            bool   // any authentication; one of the next four is set with it
	HS256, Embedded, LocalKey            bool
	RemoteJWKS                           bool
	Issues                               bool   // famcp token can make tokens: Protected, and not RemoteJWKS
	TokenVariable                        string // where clients look for a token, such as MY_SERVER_TOKEN
	DefaultCommand                       string // what the binary does without arguments: http or stdio
	Command                              string // name of the binary
}

// The trees of a template file system.
const (
	projectTree = "project"
	bareTree    = "bare"
)

// Project renders the files of a project, sorted by path.
//
// The tree project is the whole project, with examples. Without them, the tree bare is laid over it: a package in bare
// takes the place of the package in project, any other file that of the file.
//
// A template's path names its file: an element dot_x becomes .x, and x.tmpl is a [text/template] with [[ ]] around
// its actions that becomes x, preferred over an x beside it. Imports of Go files are rewritten to d.Module.
// Everything else is copied. The table of options leaves files out, lines end in LF.
func Project(templates fs.FS, d Data) ([]File, error) {
	files, err := renderTree(templates, projectTree, d)
	if err != nil {
		return nil, err
	}
	if !d.Examples {
		bare, err := renderTree(templates, bareTree, d)
		if err != nil {
			return nil, err
		}
		overlay(files, bare)
	}
	return slices.SortedFunc(maps.Values(files), func(a, b File) int { return cmp.Compare(a.Path, b.Path) }), nil
}

func overlay(files, over map[string]File) {
	packages := map[string]bool{}
	for name := range over {
		if path.Ext(name) == ".go" {
			packages[path.Dir(name)] = true
		}
	}
	maps.DeleteFunc(files, func(name string, _ File) bool {
		return path.Ext(name) == ".go" && packages[path.Dir(name)]
	})
	maps.Copy(files, over)
}

func renderTree(templates fs.FS, tree string, d Data) (map[string]File, error) {
	files := map[string]File{}
	err := fs.WalkDir(templates, tree, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		source := strings.TrimPrefix(name, tree+"/")
		target, ok := choose(Destination(source), d)
		if !ok {
			return nil
		}
		file := File{Path: target, Mode: 0o644}
		if executable(target) {
			file.Mode = 0o755
		}
		if file.Owner, err = ownerOf(target); err != nil {
			return fmt.Errorf("template %s: %w", name, err)
		}
		if file.Data, err = renderFile(templates, name, target, d); err != nil {
			return err
		}
		files[target] = file // x comes before x.tmpl, which replaces it
		return nil
	})
	return files, err
}

const tmplExt = ".tmpl"

// Destination is the path of the file that the template at source, relative to its tree, becomes.
func Destination(source string) string {
	elements := strings.Split(strings.TrimSuffix(source, tmplExt), "/")
	for i, e := range elements {
		if rest, ok := strings.CutPrefix(e, "dot_"); ok {
			elements[i] = "." + rest
		}
	}
	return strings.Join(elements, "/")
}

func renderFile(templates fs.FS, name, target string, d Data) ([]byte, error) {
	data, err := fs.ReadFile(templates, name)
	if err != nil {
		return nil, err
	}
	data = LF(data)
	if path.Ext(name) == tmplExt {
		if data, err = execute(name, data, d); err != nil {
			return nil, err
		}
	}
	if path.Ext(target) == ".go" {
		if data, err = rewriteImports(target, data, d.Module); err != nil {
			return nil, fmt.Errorf("template %s: %w", name, err)
		}
	}
	return data, nil
}

// LF ends the lines of a text in LF, which a checkout on Windows may have turned into CRLF. Other data stays.
func LF(data []byte) []byte {
	if bytes.IndexByte(data, 0) >= 0 {
		return data
	}
	return bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
}

func execute(name string, text []byte, d Data) ([]byte, error) {
	t, err := template.New(name).Delims("[[", "]]").Option("missingkey=error").Funcs(functions()).Parse(string(text))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, d); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
