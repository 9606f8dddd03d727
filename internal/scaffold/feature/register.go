package feature

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/types"
	"path"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"

	"github.com/famcp/famcp/internal/gocode"
	"github.com/famcp/famcp/internal/scaffold/gomod"
)

// registration is the function of a project that registers features of a kind.
type registration struct {
	pkg    *gocode.Package
	file   *ast.File
	fn     *ast.FuncDecl
	server *ast.Ident // the parameter, nil or _ when it has no name
	param  *ast.Field // of the server; nil when the function has none
	calls  int        // registrations of the kind anywhere in it
	last   ast.Stmt   // the last statement of its body with one
	call   *ast.CallExpr
}

func (r registration) path() string { return r.pkg.Name(r.fn.Pos()) }

// place is where a person finds it.
func (r registration) place() string {
	return fmt.Sprintf("%s:%d", r.path(), r.pkg.Line(r.fn.Pos()))
}

// registrars are the functions and methods of the runtime that register a kind. Those that belong to an entry registered
// before them come with it.
var registrars = map[Kind][]string{
	Tool:     {"AddTool"},
	Prompt:   {"AddPrompt"},
	Resource: {"AddResource", "AddResourceTemplate"},
}

// directories are where the template has the kinds.
var directories = map[Kind]string{Tool: "internal/tools", Prompt: "internal/prompts", Resource: "internal/resources"}

// findRegistration finds the one function that registers a kind, or says why there is none.
func findRegistration(program *gocode.Program, kind Kind) (*registration, string) {
	var found []registration
	for _, p := range program.Packages {
		for _, file := range p.Files {
			if strings.HasSuffix(p.Name(file.FileStart), "_test.go") || ast.IsGenerated(file) {
				continue
			}
			for _, decl := range file.Decls {
				fn, ok := decl.(*ast.FuncDecl)
				if !ok || fn.Body == nil {
					continue
				}
				if r := registrationIn(p, file, fn, kind); r != nil {
					found = append(found, *r)
				}
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Sprintf("no function of the project registers a %s, and none in %s is called Register and takes a *famcp.Server",
			kind, directories[kind])
	}
	rank := func(r registration) int {
		n := 0
		if path.Dir(r.path()) == directories[kind] {
			n += 2
		}
		if r.calls > 0 {
			n++
		}
		return n
	}
	slices.SortStableFunc(found, func(a, b registration) int {
		return cmp.Or(cmp.Compare(rank(b), rank(a)), cmp.Compare(b.calls, a.calls))
	})
	if len(found) > 1 && rank(found[0]) == rank(found[1]) && (rank(found[0]) < 2 || found[0].calls == found[1].calls) {
		return nil, fmt.Sprintf("both %s and %s register a %s", found[0].place(), found[1].place(), kind)
	}
	return &found[0], ""
}

// registrationIn is fn when it registers entries of the kind, or could.
func registrationIn(p *gocode.Package, file *ast.File, fn *ast.FuncDecl, kind Kind) *registration {
	r := &registration{pkg: p, file: file, fn: fn}
	for _, field := range fn.Type.Params.List {
		if isServer(p.Info.TypeOf(field.Type)) {
			r.param = field
			if len(field.Names) == 1 {
				r.server = field.Names[0]
			}
			break
		}
	}
	for _, stmt := range fn.Body.List {
		ast.Inspect(stmt, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			switch name := registrar(p, call); {
			case slices.Contains(registrars[kind], name):
				r.calls++
				r.last, r.call = stmt, call
			case name == "Complete" && r.last != nil:
				r.last = stmt
			}
			return true
		})
	}
	isRegister := fn.Name.Name == "Register" && r.param != nil && path.Dir(r.path()) == directories[kind]
	if r.calls == 0 && !isRegister {
		return nil
	}
	return r
}

// registrar is the name of the runtime's function or method that a call calls, or empty.
func registrar(p *gocode.Package, call *ast.CallExpr) string {
	fn, ok := typeutil.Callee(p.Info, call).(*types.Func)
	if !ok || fn.Pkg() == nil || fn.Pkg().Path() != gomod.Runtime {
		return ""
	}
	return fn.Name()
}

func isServer(t types.Type) bool {
	pointer, ok := types.Unalias(t).(*types.Pointer)
	if !ok {
		return false
	}
	named, ok := types.Unalias(pointer.Elem()).(*types.Named)
	return ok && named.Obj().Name() == "Server" && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == gomod.Runtime
}

// edit replaces the bytes from start to end.
type edit struct {
	start, end int
	text       string
}

func splice(src []byte, edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.start, b.start) })
	var out bytes.Buffer
	done := 0
	for _, e := range edits {
		out.Write(src[done:e.start])
		out.WriteString(e.text)
		done = e.end
	}
	out.Write(src[done:])
	return out.Bytes()
}

// shadowed reports whether a name means something inside of the function.
func (r *registration) shadowed(name string) bool {
	at := r.fn.Body.Rbrace
	if r.last != nil {
		at = r.last.End()
	}
	scope := r.pkg.Types.Scope().Innermost(at)
	for file := r.pkg.Info.Scopes[r.file]; scope != nil && scope != file; scope = scope.Parent() {
		if _, obj := scope.LookupParent(name, at); obj != nil && obj.Parent() == scope {
			return true
		}
	}
	return false
}

// line is the statement that registers a feature, with the edits that give the server a name where it has none; or why
// there is none.
func (r *registration) line(src []byte, spec Spec, n idents) (line string, edits []edit, why string) {
	text := func(node ast.Node) string { return string(src[r.pkg.Offset(node.Pos()):r.pkg.Offset(node.End())]) }
	var server, qualifier string
	switch {
	case r.call != nil:
		server = serverOf(r.call, text)
		qualifier = qualifierOf(r.call, text)
	case r.server != nil && r.server.Name != "_":
		server = r.server.Name
	default:
		server = r.freeName()
		edits = r.nameParams(server)
	}
	if qualifier == "" {
		for _, spec := range r.file.Imports {
			if spec.Path.Value == `"`+gomod.Runtime+`"` {
				qualifier = "famcp."
				if spec.Name != nil {
					qualifier = map[bool]string{true: "", false: spec.Name.Name + "."}[spec.Name.Name == "."]
				}
			}
		}
	}
	if q := strings.TrimSuffix(qualifier, "."); q != "" && r.shadowed(q) {
		return "", nil, fmt.Sprintf("%s means something else in %s", q, r.place())
	}
	switch {
	case spec.Kind == Tool:
		return fmt.Sprintf("%sAddTool(%s, %s, %s)", qualifier, server, n.Var, n.Handler), edits, ""
	case spec.Kind == Prompt:
		return fmt.Sprintf("%sAddPrompt(%s, %s, %s)", qualifier, server, n.Var, n.Handler), edits, ""
	case strings.Contains(spec.URI, "{"):
		return fmt.Sprintf("%sAddResourceTemplate(%s, %s, %s)", qualifier, server, n.Var, n.Handler), edits, ""
	}
	return fmt.Sprintf("%s.AddResource(%s, %s)", server, n.Var, n.Handler), edits, ""
}

// serverOf is what an existing registration registers on.
func serverOf(call *ast.CallExpr, text func(ast.Node) string) string {
	if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "AddResource" {
		return text(sel.X)
	}
	return text(call.Args[0])
}

// qualifierOf is what the runtime is called in an existing registration, with its dot; empty for a method and where the
// runtime is imported with a dot.
func qualifierOf(call *ast.CallExpr, text func(ast.Node) string) string {
	fun := call.Fun
	switch f := fun.(type) {
	case *ast.IndexExpr:
		fun = f.X
	case *ast.IndexListExpr:
		fun = f.X
	}
	if sel, ok := fun.(*ast.SelectorExpr); ok && sel.Sel.Name != "AddResource" {
		return text(sel.X) + "."
	}
	return ""
}

func (r *registration) freeName() string {
	for _, name := range []string{"s", "srv", "server"} {
		if !r.shadowed(name) && r.pkg.Types.Scope().Lookup(name) == nil {
			return name
		}
	}
	return "mcpServer"
}

// nameParams gives the server its name, and when no parameter has one, the others the blank one.
func (r *registration) nameParams(name string) []edit {
	if r.server != nil {
		return []edit{{r.pkg.Offset(r.server.Pos()), r.pkg.Offset(r.server.End()), name}}
	}
	var edits []edit
	for _, field := range r.fn.Type.Params.List {
		as := "_ "
		if field == r.param {
			as = name + " "
		}
		at := r.pkg.Offset(field.Pos())
		edits = append(edits, edit{at, at, as})
	}
	return edits
}

// insert puts a statement after the last registration, or at the end of the function.
func (r *registration) insert(src []byte, line string) edit {
	if r.last != nil {
		end := r.pkg.Offset(r.last.End())
		if r.pkg.Line(r.last.End()) == r.pkg.Line(r.fn.Body.Rbrace) {
			return edit{end, end, "\n" + line + "\n"}
		}
		if i := bytes.IndexByte(src[end:], '\n'); i >= 0 && isComment(src[end:end+i]) {
			end += i // after the comment beside it
		}
		return edit{end, end, "\n\t" + line}
	}
	at := r.fn.Body.Rbrace
	if n := len(r.fn.Body.List); n > 0 {
		if ret, ok := r.fn.Body.List[n-1].(*ast.ReturnStmt); ok {
			start := r.pkg.Offset(ret.Pos())
			return edit{start, start, line + "\n\t"}
		}
	}
	start := r.pkg.Offset(at)
	if newline := bytes.LastIndexByte(src[:start], '\n'); len(bytes.TrimSpace(src[newline+1:start])) == 0 {
		return edit{start, start, "\t" + line + "\n"}
	}
	return edit{start, start, "\n\t" + line + "\n"}
}

func isComment(rest []byte) bool {
	rest = bytes.TrimSpace(rest)
	return len(rest) == 0 || bytes.HasPrefix(rest, []byte("//")) || bytes.HasPrefix(rest, []byte("/*")) && bytes.HasSuffix(rest, []byte("*/"))
}

// taken is where the package at dir declares or imports a name that a feature needs; or empty.
func taken(program *gocode.Program, dir string, names []string) (name, place string) {
	for _, p := range program.Packages {
		for _, file := range p.Files {
			if path.Dir(p.Name(file.FileStart)) != dir || strings.HasSuffix(p.Types.Name(), "_test") {
				continue
			}
			for _, id := range declared(file) {
				if slices.Contains(names, id.Name) {
					return id.Name, fmt.Sprintf("%s:%d", p.Name(id.Pos()), p.Line(id.Pos()))
				}
			}
			for _, spec := range file.Imports {
				obj := p.Info.Implicits[spec]
				if spec.Name != nil {
					obj = p.Info.Defs[spec.Name]
				}
				if obj != nil && slices.Contains(names, obj.Name()) {
					return obj.Name(), fmt.Sprintf("%s:%d", p.Name(spec.Pos()), p.Line(spec.Pos()))
				}
			}
		}
	}
	return "", ""
}

func declared(file *ast.File) []*ast.Ident {
	var ids []*ast.Ident
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				ids = append(ids, decl.Name)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					ids = append(ids, spec.Name)
				case *ast.ValueSpec:
					ids = append(ids, spec.Names...)
				}
			}
		}
	}
	return ids
}

// entryNamed is where the project has an entry with that value of a key already, such as a tool with that Name; or empty.
func entryNamed(program *gocode.Program, kind Kind, key, value string) string {
	kinds := map[Kind][]string{Tool: {"Tool"}, Prompt: {"Prompt"}, Resource: {"Resource", "ResourceTemplate"}}[kind]
	for _, p := range program.Packages {
		for _, file := range p.Files {
			if strings.HasSuffix(p.Name(file.FileStart), "_test.go") {
				continue
			}
			place := ""
			ast.Inspect(file, func(n ast.Node) bool {
				lit, ok := n.(*ast.CompositeLit)
				if !ok || place != "" {
					return place == ""
				}
				named, ok := types.Unalias(p.Info.TypeOf(lit)).(*types.Named)
				if !ok || named.Obj().Pkg() == nil || named.Obj().Pkg().Path() != gomod.Runtime || !slices.Contains(kinds, named.Obj().Name()) {
					return true
				}
				for _, e := range lit.Elts {
					kv, ok := e.(*ast.KeyValueExpr)
					if !ok {
						continue
					}
					id, ok := kv.Key.(*ast.Ident)
					if ok && id.Name == key && stringValue(p, kv.Value) == value {
						place = fmt.Sprintf("%s:%d", p.Name(kv.Pos()), p.Line(kv.Pos()))
					}
				}
				return true
			})
			if place != "" {
				return place
			}
		}
	}
	return ""
}

// stringValue is the value of a constant text, or empty.
func stringValue(p *gocode.Package, x ast.Expr) string {
	tv, ok := p.Info.Types[x]
	if !ok || tv.Value == nil {
		return ""
	}
	s, _ := unquote(tv.Value.ExactString())
	return s
}
