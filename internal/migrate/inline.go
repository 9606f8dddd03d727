package migrate

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inline"

	"github.com/famcp/famcp/internal/gocode"
)

// maxRounds bounds how often a replacement may itself be replaced.
const maxRounds = 8

// RuntimeNames replaces the names of the runtime that its source marks //go:fix inline by what they stand for. The
// runtime that a project had needs no such marks, and neither does its Go know of them.
func RuntimeNames() Migration {
	return Migration{ID: "runtime-names", Module: runtimeModule, run: func(t *tree) error {
		marked, err := markedNames(t.project.Runtime)
		if err != nil {
			return fmt.Errorf("reading the runtime: %w", err)
		}
		if len(marked) == 0 || !t.mentions(marked...) {
			return nil
		}
		return t.inlineNames(marked)
	}}
}

// markedNames are the exported names that the public packages of the runtime mark, sorted.
func markedNames(source fs.FS) ([]string, error) {
	if source == nil {
		return nil, nil
	}
	names := map[string]bool{}
	err := fs.WalkDir(source, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "internal" || entry.Name() == "testdata"):
			return fs.SkipDir
		case entry.IsDir(), path.Ext(name) != ".go", strings.HasSuffix(name, "_test.go"):
			return nil
		}
		src, err := fs.ReadFile(source, name)
		if err != nil || !strings.Contains(string(src), "//go:fix inline") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			addMarked(names, decl)
		}
		return nil
	})
	return slices.Sorted(maps.Keys(names)), err
}

func addMarked(names map[string]bool, decl ast.Decl) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if marks(decl.Doc) {
			names[decl.Name.Name] = true
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if marks(decl.Doc) || marks(spec.Doc) {
					names[spec.Name.Name] = true
				}
			case *ast.ValueSpec:
				for _, id := range spec.Names {
					if marks(decl.Doc) || marks(spec.Doc) {
						names[id.Name] = true
					}
				}
			}
		}
	}
}

func marks(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return c.Text == "//go:fix inline" })
}

// inlineNames replaces until there is nothing to replace, and puts a package back that would break by it.
func (t *tree) inlineNames(marked []string) error {
	before := typeErrors(t.packages(runtimeModule, marked...))
	saved := t.save()
	var faults []fault
	for range maxRounds {
		var edited bool
		var err error
		if edited, faults, err = t.inlineRound(); err != nil {
			return err
		}
		if !edited {
			break
		}
	}
	for _, p := range t.program().Packages {
		if len(p.Errors) <= before[p.Path] {
			continue
		}
		// Nobody is helped by a name of today in code that does not compile.
		names := map[string]bool{}
		for _, file := range p.Files {
			names[p.Name(file.FileStart)] = true
		}
		if !t.restore(saved, names) {
			continue // it is broken by what changed elsewhere
		}
		faults = slices.DeleteFunc(faults, func(f fault) bool { return names[f.name] })
		faults = append(faults, fault{name: p.Name(p.Files[0].FileStart), text: "this package would not compile with the names that replace deprecated ones, and was left alone; " +
			"replace them by hand: " + strings.Join(marked, ", ")})
	}
	for _, f := range faults {
		t.note(f.name, f.line, f.text)
	}
	return nil
}

// typeErrors counts them by package.
func typeErrors(pkgs []*gocode.Package) map[string]int {
	n := map[string]int{}
	for _, p := range pkgs {
		n[p.Path] += len(p.Errors)
	}
	return n
}

// fault is a use of a marked name that stays.
type fault struct {
	name string
	line int
	text string
}

// inlineRound replaces every use that can be, once.
func (t *tree) inlineRound() (edited bool, faults []fault, err error) {
	program := t.program()
	facts, renamed, err := runtimeFacts(program)
	if err != nil {
		return false, nil, err
	}
	replaced := map[string]*replacement{}
	for _, p := range program.Packages {
		files, left := renamed.uses(p)
		maps.Copy(replaced, files)
		faults = append(faults, left...)
		found, err := facts.analyze(program, p)
		if err != nil {
			faults = append(faults, fault{text: fmt.Sprintf("package %s was left alone: %v", p.Path, err)})
			continue
		}
		at := map[token.Pos]bool{}
		for _, d := range found {
			name := p.Name(d.Pos)
			if generated(p, d.Pos) {
				continue
			}
			if replaced[name] == nil {
				replaced[name] = &replacement{}
			}
			if replaced[name].add(p, d) {
				at[d.Pos] = true
			}
		}
		faults = append(faults, facts.left(p, at)...)
	}
	for _, name := range slices.Sorted(maps.Keys(replaced)) {
		r := replaced[name]
		if len(r.edits) == 0 {
			continue
		}
		edited = true
		if err := t.apply(name, r.edits, r.changes...); err != nil {
			return false, nil, err
		}
	}
	if edited {
		err = t.dropUnusedImports(slices.Sorted(maps.Keys(replaced)))
	}
	return edited, faults, err
}

// runtimeFacts are the marked names of the runtime's packages that were loaded, and those among them that only got
// another name.
func runtimeFacts(program *gocode.Program) (facts, renames, error) {
	facts, renamed := facts{}, renames{}
	for _, p := range program.Module(runtimeModule) {
		if _, err := facts.analyze(program, p); err != nil {
			return nil, nil, err
		}
		for _, file := range p.Files {
			for _, decl := range file.Decls {
				fn, ok := decl.(*ast.FuncDecl)
				if !ok || !marks(fn.Doc) {
					continue
				}
				if target := renameOf(p, fn); target != nil {
					old := p.Info.Defs[fn.Name]
					renamed[old] = target
					delete(facts, old)
				}
			}
		}
	}
	return facts, renamed, nil
}

// renames are functions and methods that call another one with what they are given, and nothing else. The inliner
// cannot replace them where type arguments are inferred or where they are values, and only their names differ.
type renames map[types.Object]types.Object

// renameOf is the function that fn is another name of, or nil.
func renameOf(p *gocode.Package, fn *ast.FuncDecl) types.Object {
	if fn.Body == nil || len(fn.Body.List) != 1 {
		return nil
	}
	var call *ast.CallExpr
	switch stmt := fn.Body.List[0].(type) {
	case *ast.ExprStmt:
		call, _ = stmt.X.(*ast.CallExpr)
	case *ast.ReturnStmt:
		if len(stmt.Results) == 1 {
			call, _ = stmt.Results[0].(*ast.CallExpr)
		}
	}
	if call == nil {
		return nil
	}
	var target *ast.Ident
	switch f := call.Fun.(type) {
	case *ast.Ident:
		target = f
	case *ast.SelectorExpr: // of the receiver
		x, ok := f.X.(*ast.Ident)
		if !ok || fn.Recv == nil || len(fn.Recv.List[0].Names) != 1 || p.Info.Uses[x] != p.Info.Defs[fn.Recv.List[0].Names[0]] {
			return nil
		}
		target = f.Sel
	default:
		return nil
	}
	obj, _ := p.Info.Uses[target].(*types.Func)
	old, _ := p.Info.Defs[fn.Name].(*types.Func)
	if obj == nil || old == nil || obj.Origin().Pkg() != old.Pkg() || !types.Identical(obj.Origin().Type(), old.Type()) {
		return nil
	}
	i := 0
	for _, field := range fn.Type.Params.List {
		for _, name := range field.Names {
			if i >= len(call.Args) {
				return nil
			}
			arg, ok := call.Args[i].(*ast.Ident)
			if !ok || p.Info.Uses[arg] != p.Info.Defs[name] {
				return nil
			}
			i++
		}
	}
	if i != len(call.Args) || old.Signature().Variadic() != call.Ellipsis.IsValid() {
		return nil
	}
	return obj.Origin()
}

// uses are the replacements of old names in the files of p, and the uses that stay because the new name is another's there.
func (r renames) uses(p *gocode.Package) (found map[string]*replacement, left []fault) {
	found = map[string]*replacement{}
	for _, file := range p.Files {
		if ast.IsGenerated(file) {
			continue
		}
		var outer ast.Node
		ast.Inspect(file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				outer = sel
			}
			id, ok := n.(*ast.Ident)
			if !ok || p.Info.Uses[id] == nil {
				return true
			}
			old := origin(p.Info.Uses[id])
			target, name := r[old], p.Name(id.Pos())
			if target == nil {
				return true
			}
			if !means(p, file, outer, id, target) {
				left = append(left, fault{name, p.Line(id.Pos()), fmt.Sprintf("%s.%s is called %s now, which means something else here", old.Pkg().Name(), old.Name(), target.Name())})
				return true
			}
			if found[name] == nil {
				found[name] = &replacement{}
			}
			found[name].edits = append(found[name].edits, edit{p.Offset(id.Pos()), p.Offset(id.End()), target.Name()})
			found[name].changes = append(found[name].changes, Change{
				Line: p.Line(id.Pos()), Text: fmt.Sprintf("%s.%s became %s", old.Pkg().Name(), old.Name(), target.Name()),
			})
			return true
		})
	}
	return found, left
}

// means reports whether target's name, in the place of id, is target.
func means(p *gocode.Package, file *ast.File, outer ast.Node, id *ast.Ident, target types.Object) bool {
	if sel, ok := outer.(*ast.SelectorExpr); ok && sel.Sel == id {
		selection := p.Info.Selections[sel]
		if selection == nil {
			return true // of a package
		}
		obj, _, _ := types.LookupFieldOrMethod(selection.Recv(), true, p.Types, target.Name())
		return obj != nil && origin(obj) == target
	}
	scope := p.Info.Scopes[file].Innermost(id.Pos()) // imported with a dot
	if scope == nil {
		return false
	}
	_, obj := scope.LookupParent(target.Name(), id.Pos())
	return obj == target
}

// generated reports whether a tool made the file at pos.
func generated(p *gocode.Package, pos token.Pos) bool {
	return slices.ContainsFunc(p.Files, func(f *ast.File) bool { return f.FileStart <= pos && pos <= f.FileEnd && ast.IsGenerated(f) })
}

// replacement is the edits of one file.
type replacement struct {
	edits   []edit
	changes []Change
}

// add takes a diagnosis with a fix, unless it overlaps with one taken already; that one's turn is the next round.
func (r *replacement) add(p *gocode.Package, d analysis.Diagnostic) bool {
	if len(d.SuggestedFixes) == 0 {
		return false
	}
	var edits []edit
	for _, e := range d.SuggestedFixes[0].TextEdits {
		end := e.End
		if !end.IsValid() {
			end = e.Pos
		}
		next := edit{p.Offset(e.Pos), p.Offset(end), string(e.NewText)}
		if slices.Contains(r.edits, next) {
			continue // two replacements that add the same import
		}
		if slices.ContainsFunc(r.edits, func(other edit) bool { return next.start < other.end && other.start < next.end }) {
			return true
		}
		edits = append(edits, next)
	}
	r.edits = append(r.edits, edits...)
	r.changes = append(r.changes, Change{Line: p.Line(d.Pos), Text: strings.Replace(d.Message, "should be inlined", "is replaced by what it stands for", 1)})
	return true
}

// dropUnusedImports removes the imports of the runtime's packages that lost their last use.
func (t *tree) dropUnusedImports(names []string) error {
	drop := map[string][]edit{}
	for _, p := range t.program().Packages {
		used := map[types.Object]bool{}
		for _, obj := range p.Info.Uses {
			used[obj] = true
		}
		for _, file := range p.Files {
			name := p.Name(file.Pos())
			if !slices.Contains(names, name) {
				continue
			}
			for _, spec := range file.Imports {
				obj := p.Info.Implicits[spec]
				if spec.Name != nil {
					obj = p.Info.Defs[spec.Name]
				}
				imported, ok := obj.(*types.PkgName)
				if !ok || used[obj] {
					continue
				}
				if _, ok := gocode.Inside(imported.Imported().Path(), runtimeModule); ok && imported.Name() != "." {
					drop[name] = append(drop[name], wholeLine(t.now[name], p.Offset(spec.Pos()), p.Offset(spec.End())))
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(drop)) {
		if err := t.apply(name, drop[name]); err != nil {
			return err
		}
	}
	return nil
}

// wholeLine removes the bytes from start to end, and their line when nothing else is on it.
func wholeLine(src []byte, start, end int) edit {
	from, to := start, end
	for from > 0 && (src[from-1] == ' ' || src[from-1] == '\t') {
		from--
	}
	for to < len(src) && (src[to] == ' ' || src[to] == '\t' || src[to] == '\r') {
		to++
	}
	if (from == 0 || src[from-1] == '\n') && to < len(src) && src[to] == '\n' {
		return edit{from, to + 1, ""}
	}
	return edit{start, end, ""}
}

// facts are what analyzing one package tells those that import it.
type facts map[types.Object]analysis.Fact

// analyze runs the inline analyzer, of which the go command has its own only since 1.26.
func (f facts) analyze(program *gocode.Program, p *gocode.Package) (found []analysis.Diagnostic, err error) {
	defer func() {
		if r := recover(); r != nil { // it expects code without type errors
			err = fmt.Errorf("it cannot be analyzed: %v", r)
		}
	}()
	results := map[*analysis.Analyzer]any{}
	var run func(*analysis.Analyzer) error
	run = func(a *analysis.Analyzer) error {
		if _, done := results[a]; done {
			return nil
		}
		for _, needed := range a.Requires {
			if err := run(needed); err != nil {
				return err
			}
		}
		result, err := a.Run(&analysis.Pass{
			Analyzer: a, Fset: p.Fset, Files: p.Files, Pkg: p.Types, TypesInfo: p.Info, ResultOf: results,
			TypesSizes: types.SizesFor("gc", "amd64"),
			Report:     func(d analysis.Diagnostic) { found = append(found, d) },
			ReadFile: func(name string) ([]byte, error) {
				data, ok := program.Read(name)
				if !ok {
					return nil, fs.ErrNotExist
				}
				return data, nil
			},
			ImportObjectFact: func(obj types.Object, fact analysis.Fact) bool {
				known := f[origin(obj)]
				if known == nil || reflect.TypeOf(known) != reflect.TypeOf(fact) {
					return false
				}
				reflect.ValueOf(fact).Elem().Set(reflect.ValueOf(known).Elem())
				return true
			},
			ExportObjectFact: func(obj types.Object, fact analysis.Fact) { f[origin(obj)] = fact },
		})
		results[a] = result
		return err
	}
	err = run(inline.Analyzer)
	return found, err
}

// origin is a function without its type arguments.
func origin(obj types.Object) types.Object {
	if fn, ok := obj.(*types.Func); ok {
		return fn.Origin()
	}
	return obj
}

// left are the uses of marked names in p that are not at one of the positions of a replacement.
func (f facts) left(p *gocode.Package, replaced map[token.Pos]bool) []fault {
	var faults []fault
	for _, file := range p.Files {
		var stack []ast.Node
		ast.Inspect(file, func(n ast.Node) bool {
			if n == nil {
				stack = stack[:len(stack)-1]
				return true
			}
			stack = append(stack, n)
			id, ok := n.(*ast.Ident)
			if !ok || p.Info.Uses[id] == nil || f[origin(p.Info.Uses[id])] == nil || ast.IsGenerated(file) {
				return true
			}
			obj := p.Info.Uses[id]
			if _, ok := gocode.Inside(obj.Pkg().Path(), runtimeModule); !ok {
				return true
			}
			for _, outer := range stack {
				if replaced[outer.Pos()] {
					return true
				}
			}
			faults = append(faults, fault{p.Name(id.Pos()), p.Line(id.Pos()), fmt.Sprintf(
				"%s.%s is deprecated and cannot be replaced automatically here; its documentation says what takes its place",
				obj.Pkg().Name(), obj.Name())})
			return true
		})
	}
	return faults
}

// saved is the state of a tree to go back to.
type saved struct {
	now     map[string][]byte
	shifts  map[string][][]shift
	changes int
}

func (t *tree) save() saved {
	shifts := map[string][][]shift{}
	for name, s := range t.shifts {
		shifts[name] = slices.Clone(s)
	}
	return saved{maps.Clone(t.now), shifts, len(t.changes)}
}

// restore puts back some files, and reports whether any of them was different.
func (t *tree) restore(s saved, names map[string]bool) bool {
	changed := false
	for name := range names {
		changed = changed || !bytes.Equal(t.now[name], s.now[name])
		t.now[name], t.shifts[name] = s.now[name], s.shifts[name]
	}
	t.changes = append(t.changes[:s.changes:s.changes], slices.DeleteFunc(t.changes[s.changes:], func(c Change) bool { return names[c.Path] })...)
	t.code = nil
	return changed
}
