package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// pkg is one package of the project, its tests in it or beside it.
type pkg struct {
	path   string
	loader *loader
	fset   *token.FileSet
	files  []*ast.File
	types  *types.Package
	info   *types.Info
	errors int // of types; those that an unknown import could cause are not reported by go/types
}

// name is the path, in the project, of the file that pos lies in.
func (p *pkg) name(pos token.Pos) string { return p.fset.File(pos).Name() }

func (p *pkg) line(pos token.Pos) int { return p.fset.Position(pos).Line }

func (p *pkg) offset(pos token.Pos) int { return p.fset.Position(pos).Offset }

// imported is the import path of the package that an identifier names, here and not where another declaration shadows
// it; or empty.
func (p *pkg) imported(x ast.Expr) string {
	id, ok := x.(*ast.Ident)
	if !ok {
		return ""
	}
	name, ok := p.info.Uses[id].(*types.PkgName)
	if !ok {
		return ""
	}
	return name.Imported().Path()
}

// selects reports whether x is a name of the package at importPath, whatever that is called in this file.
func (p *pkg) selects(x ast.Expr, importPath, name string) bool {
	sel, ok := x.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == name && p.imported(sel.X) == importPath
}

// A loader type-checks packages from source: the project's, and the runtime's where a project imports it.
type loader struct {
	fset    *token.FileSet
	read    func(name string) ([]byte, bool) // by the name that parsed files have
	list    func(importPath string) (names []string, ok bool)
	loaded  map[string]*pkg
	loading map[string]bool
}

var errUnknown = errors.New("not read")

// Import implements [types.Importer]. Of what fails to be imported go/types knows nothing, and says nothing.
func (l *loader) Import(importPath string) (*types.Package, error) {
	if importPath == "unsafe" {
		return types.Unsafe, nil
	}
	p, err := l.load(importPath)
	if err != nil {
		return nil, err
	}
	return p.types, nil
}

// load type-checks the package at an import path, without its tests.
func (l *loader) load(importPath string) (*pkg, error) {
	if p := l.loaded[importPath]; p != nil {
		return p, nil
	}
	names, ok := l.list(importPath)
	if !ok || l.loading[importPath] {
		return nil, errUnknown
	}
	l.loading[importPath] = true
	defer delete(l.loading, importPath)
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if file := l.parse(name); file != nil {
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		return nil, errUnknown
	}
	p := l.check(importPath, files)
	l.loaded[importPath] = p
	return p, nil
}

// parse is the syntax of a file, or nil when it has none or is for other systems.
func (l *loader) parse(name string) *ast.File {
	src, ok := l.read(name)
	if !ok || excluded(name, src) {
		return nil
	}
	file, err := parser.ParseFile(l.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	return file
}

func (l *loader) check(importPath string, files []*ast.File) *pkg {
	p := &pkg{path: importPath, loader: l, fset: l.fset, files: files, info: &types.Info{
		Types:        map[ast.Expr]types.TypeAndValue{},
		Instances:    map[*ast.Ident]types.Instance{},
		Defs:         map[*ast.Ident]types.Object{},
		Uses:         map[*ast.Ident]types.Object{},
		Implicits:    map[ast.Node]types.Object{},
		Selections:   map[*ast.SelectorExpr]*types.Selection{},
		Scopes:       map[ast.Node]*types.Scope{},
		FileVersions: map[*ast.File]string{},
	}}
	config := types.Config{Importer: l, FakeImportC: true, Error: func(error) { p.errors++ }, Sizes: types.SizesFor("gc", "amd64")}
	p.types, _ = config.Check(importPath, l.fset, files, p.info) // its errors are counted
	return p
}

// load type-checks the packages of the project as they are now, without the files that do not parse or are for other
// systems.
func (t *tree) load() []*pkg {
	byDir := map[string][]string{}
	for _, name := range t.files(goFile) {
		byDir[path.Dir(name)] = append(byDir[path.Dir(name)], name)
	}
	l := newLoader(t.project, func(name string) ([]byte, bool) {
		data, ok := t.now[name]
		return data, ok
	}, byDir)
	var pkgs []*pkg
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		byClause := map[string][]*ast.File{}
		for _, name := range byDir[dir] {
			if file := l.parse(name); file != nil {
				byClause[file.Name.Name] = append(byClause[file.Name.Name], file)
			}
		}
		for _, clause := range slices.Sorted(maps.Keys(byClause)) {
			importPath := path.Join(t.project.Module, dir)
			if strings.HasSuffix(clause, "_test") {
				importPath += "_test"
			}
			pkgs = append(pkgs, l.check(importPath, byClause[clause]))
		}
	}
	return pkgs
}

func newLoader(p Project, read func(string) ([]byte, bool), byDir map[string][]string) *loader {
	l := &loader{fset: token.NewFileSet(), loaded: map[string]*pkg{}, loading: map[string]bool{}}
	l.read = func(name string) ([]byte, bool) {
		rest, ok := strings.CutPrefix(name, runtimeModule+"/")
		if !ok {
			return read(name)
		}
		data, err := fs.ReadFile(p.Runtime, rest)
		return data, err == nil
	}
	l.list = func(importPath string) ([]string, bool) {
		if dir, ok := inside(importPath, p.Module); ok {
			return byDir[dir], len(byDir[dir]) > 0
		}
		dir, ok := inside(importPath, runtimeModule)
		if !ok || p.Runtime == nil {
			return nil, false
		}
		entries, err := fs.ReadDir(p.Runtime, dir)
		if err != nil {
			return nil, false
		}
		var names []string
		for _, e := range entries {
			if path.Ext(e.Name()) == ".go" && !e.IsDir() {
				names = append(names, path.Join(runtimeModule, dir, e.Name()))
			}
		}
		return names, len(names) > 0
	}
	return l
}

// inside is the directory of a package in the module at root.
func inside(importPath, root string) (string, bool) {
	if importPath == root {
		return ".", true
	}
	return strings.CutPrefix(importPath, root+"/")
}

// excluded reports whether a file is left out of a build for linux on amd64 without tags of its own.
func excluded(name string, src []byte) bool {
	words := strings.Split(strings.TrimSuffix(strings.TrimSuffix(path.Base(name), ".go"), "_test"), "_")
	for _, w := range words[1:] {
		if otherSystems[w] {
			return true
		}
	}
	for line := range strings.Lines(string(src)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "package ") {
			break
		}
		if !constraint.IsGoBuild(line) {
			continue
		}
		expr, err := constraint.Parse(line)
		if err == nil && !expr.Eval(func(tag string) bool {
			return tag == "linux" || tag == "unix" || tag == "amd64" || tag == "gc" || strings.HasPrefix(tag, "go1.")
		}) {
			return true
		}
	}
	return false
}

var otherSystems = map[string]bool{
	"windows": true, "darwin": true, "freebsd": true, "netbsd": true, "openbsd": true, "dragonfly": true, "solaris": true,
	"illumos": true, "aix": true, "android": true, "ios": true, "plan9": true, "js": true, "wasip1": true, "wasm": true,
	"arm": true, "arm64": true, "386": true, "ppc64": true, "ppc64le": true, "s390x": true, "riscv64": true, "loong64": true,
	"mips": true, "mipsle": true, "mips64": true, "mips64le": true,
}

// program is the packages of the project as they are now. Of a file that imports a package below importPath and is in
// none of them, because it does not parse, is generated or belongs to other builds, it notes the first of the names it
// mentions.
func (t *tree) program(importPath string, names ...string) []*pkg {
	if t.packages == nil {
		t.packages = t.load()
	}
	for _, name := range t.files(goFile) {
		src := t.now[name]
		word := mentioned(src, names)
		if word == "" || !bytes.Contains(src, []byte(`"`+importPath)) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments|parser.SkipObjectResolution)
		why := ""
		switch {
		case err != nil:
			why = "has a syntax error"
		case ast.IsGenerated(file):
			why = "is generated"
		case excluded(name, src):
			why = "is not part of every build"
		default:
			continue
		}
		t.note(name, lineOf(src, word), fmt.Sprintf("this file %s and was left alone; see whether %s has to be replaced", why, word))
	}
	return t.packages
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
