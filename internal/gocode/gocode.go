// Package gocode reads the Go code of a project with its types, without a Go installation, a module cache or a network.
//
// Packages are type-checked from the source at hand: the project's, and that of some modules it depends on. Whatever
// else is imported is unknown, which go/types is made for: it says nothing about what it cannot know.
package gocode

import (
	"errors"
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

// Package is one package, its tests in it or beside it.
type Package struct {
	Path   string
	Fset   *token.FileSet
	Files  []*ast.File
	Types  *types.Package
	Info   *types.Info
	Errors []error // of types, without those that an unknown import could cause
}

// Name is the path, in the project, of the file that pos lies in.
func (p *Package) Name(pos token.Pos) string { return p.Fset.File(pos).Name() }

// Line is the line of pos, counted from 1.
func (p *Package) Line(pos token.Pos) int { return p.Fset.Position(pos).Line }

// Offset is the number of bytes before pos.
func (p *Package) Offset(pos token.Pos) int { return p.Fset.Position(pos).Offset }

// Imported is the import path of the package that an identifier names, here and not where another declaration shadows
// it; or empty.
func (p *Package) Imported(x ast.Expr) string {
	id, ok := x.(*ast.Ident)
	if !ok {
		return ""
	}
	name, ok := p.Info.Uses[id].(*types.PkgName)
	if !ok {
		return ""
	}
	return name.Imported().Path()
}

// Selects reports whether x is a name of the package at importPath, whatever that is called in this file.
func (p *Package) Selects(x ast.Expr, importPath, name string) bool {
	sel, ok := x.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == name && p.Imported(sel.X) == importPath
}

// A loader type-checks packages from source: the project's, and the runtime's where a project imports it.
type loader struct {
	fset    *token.FileSet
	read    func(name string) ([]byte, bool) // by the name that parsed files have
	list    func(importPath string) (names []string, ok bool)
	bodies  func(importPath string) bool // whether to look into functions
	loaded  map[string]*Package
	loading map[string]bool
}

var errUnknown = errors.New("its source is not at hand")

// Import implements [types.Importer]. Of what fails to be imported go/types knows nothing, and says nothing.
func (l *loader) Import(importPath string) (*types.Package, error) {
	if importPath == "unsafe" {
		return types.Unsafe, nil
	}
	p, err := l.load(importPath)
	if err != nil {
		return nil, err
	}
	return p.Types, nil
}

// load type-checks the package at an import path, without its tests.
func (l *loader) load(importPath string) (*Package, error) {
	if p := l.loaded[importPath]; p != nil {
		return p, nil
	}
	names, ok := l.list(importPath)
	switch {
	case l.loading[importPath]:
		return nil, errors.New("import cycle")
	case !ok:
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
		return nil, errors.New("no Go files")
	}
	p := l.check(importPath, files)
	l.loaded[importPath] = p
	return p, nil
}

// parse is the syntax of a file, or nil when it has none or is for other systems.
func (l *loader) parse(name string) *ast.File {
	src, ok := l.read(name)
	if !ok || Excluded(name, src) {
		return nil
	}
	file, err := parser.ParseFile(l.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	return file
}

func (l *loader) check(importPath string, files []*ast.File) *Package {
	p := &Package{Path: importPath, Fset: l.fset, Files: files, Info: &types.Info{
		Types:        map[ast.Expr]types.TypeAndValue{},
		Instances:    map[*ast.Ident]types.Instance{},
		Defs:         map[*ast.Ident]types.Object{},
		Uses:         map[*ast.Ident]types.Object{},
		Implicits:    map[ast.Node]types.Object{},
		Selections:   map[*ast.SelectorExpr]*types.Selection{},
		Scopes:       map[ast.Node]*types.Scope{},
		FileVersions: map[*ast.File]string{},
	}}
	config := types.Config{
		Importer: l, FakeImportC: true, Sizes: types.SizesFor("gc", "amd64"), IgnoreFuncBodies: !l.bodies(importPath),
		Error: func(err error) {
			if !strings.HasSuffix(err.Error(), "("+errUnknown.Error()+")") {
				p.Errors = append(p.Errors, err)
			}
		},
	}
	p.Types, _ = config.Check(importPath, l.fset, files, p.Info) // its errors are kept
	return p
}

// Source is the code of a project.
type Source struct {
	Module       string            // path of its module
	Files        map[string][]byte // Go files by slash-separated path
	Dependencies map[string]fs.FS  // source of modules that it uses, by their path
	// Deep looks into the functions and the internal packages of Dependencies as well. Without, what their public
	// packages declare is known, which is enough to check code that uses them.
	Deep bool
}

// Program is the code of a project with its types.
type Program struct {
	Packages []*Package // of the project, sorted by directory; external tests are packages of their own

	loader *loader
}

// Load type-checks the packages of a project, without the files that do not parse and those that are [Excluded].
func Load(source Source) *Program {
	byDir := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(source.Files)) {
		byDir[path.Dir(name)] = append(byDir[path.Dir(name)], name)
	}
	l := newLoader(source, byDir)
	p := &Program{loader: l}
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		byClause := map[string][]*ast.File{}
		for _, name := range byDir[dir] {
			if file := l.parse(name); file != nil {
				byClause[file.Name.Name] = append(byClause[file.Name.Name], file)
			}
		}
		for _, clause := range slices.Sorted(maps.Keys(byClause)) {
			importPath := path.Join(source.Module, dir)
			if strings.HasSuffix(clause, "_test") {
				importPath += "_test"
			}
			p.Packages = append(p.Packages, l.check(importPath, byClause[clause]))
		}
	}
	return p
}

// Module is the packages of one of the dependencies that the project imports, directly or not, sorted by path.
func (p *Program) Module(root string) []*Package {
	var found []*Package
	for _, importPath := range slices.Sorted(maps.Keys(p.loader.loaded)) {
		if _, ok := Inside(importPath, root); ok {
			found = append(found, p.loader.loaded[importPath])
		}
	}
	return found
}

// Read is the text of a file by the name that positions have.
func (p *Program) Read(name string) ([]byte, bool) { return p.loader.read(name) }

func newLoader(source Source, byDir map[string][]string) *loader {
	l := &loader{fset: token.NewFileSet(), loaded: map[string]*Package{}, loading: map[string]bool{}}
	dependency := func(importPath string) (root, dir string, ok bool) {
		for root := range source.Dependencies {
			if dir, ok := Inside(importPath, root); ok && source.Dependencies[root] != nil {
				return root, dir, true
			}
		}
		return "", "", false
	}
	l.bodies = func(importPath string) bool {
		_, _, ok := dependency(importPath)
		return !ok || source.Deep
	}
	l.read = func(name string) ([]byte, bool) {
		root, rest, ok := dependency(name)
		if !ok {
			data, ok := source.Files[name]
			return data, ok
		}
		data, err := fs.ReadFile(source.Dependencies[root], rest)
		return data, err == nil
	}
	l.list = func(importPath string) ([]string, bool) {
		if dir, ok := Inside(importPath, source.Module); ok {
			return byDir[dir], true
		}
		root, dir, ok := dependency(importPath)
		if !ok || !source.Deep && slices.Contains(strings.Split(dir, "/"), "internal") {
			return nil, false
		}
		entries, err := fs.ReadDir(source.Dependencies[root], dir)
		if err != nil {
			return nil, false
		}
		var names []string
		for _, e := range entries {
			if path.Ext(e.Name()) == ".go" && !e.IsDir() {
				names = append(names, path.Join(root, dir, e.Name()))
			}
		}
		return names, len(names) > 0
	}
	return l
}

// Inside is the directory of a package in the module at root.
func Inside(importPath, root string) (string, bool) {
	if importPath == root {
		return ".", true
	}
	return strings.CutPrefix(importPath, root+"/")
}

// Excluded reports whether a file is left out of a build for linux on amd64 without tags of its own.
func Excluded(name string, src []byte) bool {
	words := strings.Split(strings.TrimSuffix(strings.TrimSuffix(path.Base(name), ".go"), "_test"), "_")[1:]
	if n := len(words); n > 0 && (otherSystems[words[n-1]] || n > 1 && words[n-1] == "amd64" && otherSystems[words[n-2]]) {
		return true
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
