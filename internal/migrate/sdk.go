package migrate

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/famcp/famcp/internal/gocode"
)

// Packages of go-sdk that project code imports.
const (
	mcpPackage     = sdkModule + "/mcp"
	jsonrpcPackage = sdkModule + "/jsonrpc"
)

// sdkMigrations are what changed between go-sdk 1.6 and 1.8 for code that uses it directly. Their facts are from
// go-sdk's docs/mcpgodebug.md and the deprecations in its source.
func sdkMigrations() []Migration {
	return []Migration{
		{ID: "sdk-switches", Module: sdkModule, Since: "v1.8.0", run: dropSwitches},
		{ID: "sdk-cross-origin", Module: sdkModule, Since: "v1.8.0", run: wrapCrossOrigin},
		{ID: "sdk-capabilities", Module: sdkModule, Since: "v1.8.0", run: listCapabilities},
		{ID: "sdk-not-found", Module: sdkModule, Since: "v1.8.0", run: replaceNotFoundCode},
	}
}

// syntax is one file with the way from each node to the root.
type syntax struct {
	*gocode.Package
	file    *ast.File
	name    string
	src     []byte
	parents map[ast.Node]ast.Node
}

// eachFile visits the files of the project that import the package at importPath and mention one of the names.
func (t *tree) eachFile(importPath string, names []string, visit func(*syntax) error) error {
	if !t.mentions(names...) {
		return nil
	}
	for _, p := range t.packages(importPath, names...) {
		for _, file := range p.Files {
			name := p.Name(file.Pos())
			imports := slices.ContainsFunc(file.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == `"`+importPath+`"` })
			if !imports || ast.IsGenerated(file) || mentioned(t.now[name], names) == "" {
				continue
			}
			s := &syntax{Package: p, file: file, name: name, src: t.now[name], parents: map[ast.Node]ast.Node{}}
			var stack []ast.Node
			ast.Inspect(file, func(n ast.Node) bool {
				if n == nil {
					stack = stack[:len(stack)-1]
					return true
				}
				if len(stack) > 0 {
					s.parents[n] = stack[len(stack)-1]
				}
				stack = append(stack, n)
				return true
			})
			if err := visit(s); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *syntax) text(n ast.Node) string { return string(s.src[s.Offset(n.Pos()):s.Offset(n.End())]) }

// replace is the edit that puts text in the place of n.
func (s *syntax) replace(n ast.Node, text string) edit {
	return edit{s.Offset(n.Pos()), s.Offset(n.End()), text}
}

// cut removes an element of a composite literal with its comma, and its line when that held nothing else.
func (s *syntax) cut(lit *ast.CompositeLit, i int) edit {
	start, end := s.Offset(lit.Elts[i].Pos()), s.Offset(lit.Elts[i].End())
	if rest := strings.TrimLeft(string(s.src[end:]), " \t"); strings.HasPrefix(rest, ",") {
		end = len(s.src) - len(rest) + 1
	}
	if e := wholeLine(s.src, start, end); e != (edit{start, end, ""}) {
		return e
	}
	if i+1 < len(lit.Elts) {
		if next := s.Offset(lit.Elts[i+1].Pos()); !strings.Contains(string(s.src[end:next]), "\n") {
			end = next
		}
	} else if i > 0 && strings.TrimSpace(string(s.src[s.Offset(lit.Elts[i-1].End()):start])) == "," {
		if s.Line(lit.Elts[i-1].End()) == s.Line(lit.Elts[i].Pos()) {
			start = s.Offset(lit.Elts[i-1].End())
		}
	}
	return edit{start, end, ""}
}

// field is the element of a composite literal with that key, or -1.
func field(lit *ast.CompositeLit, key string) (int, ast.Expr) {
	for i, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if id, ok := kv.Key.(*ast.Ident); ok && id.Name == key {
				return i, kv.Value
			}
		}
	}
	return -1, nil
}

func oneLine(s *syntax, n ast.Node) bool { return s.Line(n.Pos()) == s.Line(n.End()) }

// loose are uses of the fields outside of the literals that were dealt with: x.Field of a type that is not known to be
// another, and elements of literals without a type.
func (s *syntax) loose(done map[*ast.CompositeLit]bool, names []string, use func(ast.Node, string)) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if n.Type != nil || done[n] {
				return true
			}
			for _, name := range names {
				if i, _ := field(n, name); i >= 0 {
					if key := n.Elts[i].(*ast.KeyValueExpr).Key.(*ast.Ident); s.Info.Uses[key] == nil {
						use(n.Elts[i], name)
					}
				}
			}
		case *ast.SelectorExpr:
			if slices.Contains(names, n.Sel.Name) && s.Info.Selections[n] == nil && s.Info.Uses[n.Sel] == nil && s.Imported(n.X) == "" {
				use(n, n.Sel.Name)
			}
		}
		return true
	})
}

var capabilityFields = []struct{ has, field, kind string }{
	{"HasTools", "Tools", "ToolCapabilities"},
	{"HasPrompts", "Prompts", "PromptCapabilities"},
	{"HasResources", "Resources", "ResourceCapabilities"},
}

// listCapabilities replaces HasTools, HasPrompts and HasResources of mcp.ServerOptions, which are deprecated, by
// Capabilities that say the same.
func listCapabilities(t *tree) error {
	names := []string{"HasTools", "HasPrompts", "HasResources"}
	return t.eachFile(mcpPackage, names, func(s *syntax) error {
		var edits []edit
		var changes []Change
		done := map[*ast.CompositeLit]bool{}
		ast.Inspect(s.file, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok || !s.Selects(lit.Type, mcpPackage, "ServerOptions") {
				return true
			}
			done[lit] = true
			more, which, why := s.capabilities(lit)
			if why != "" {
				t.note(s.name, s.Line(lit.Pos()), why)
			}
			if len(more) > 0 {
				edits = append(edits, more...)
				changes = append(changes, Change{Line: s.Line(lit.Pos()), Text: strings.Join(which, ", ") + ", deprecated, became Capabilities"})
			}
			return true
		})
		s.loose(done, names, func(n ast.Node, name string) {
			t.note(s.name, s.Line(n.Pos()), name+" of mcp.ServerOptions is deprecated; set Capabilities instead")
		})
		if len(edits) == 0 {
			return nil
		}
		return t.apply(s.name, edits, changes...)
	})
}

// capabilities are the edits of one literal of ServerOptions, the fields they replace, and why there are none.
func (s *syntax) capabilities(lit *ast.CompositeLit) (edits []edit, which []string, why string) {
	mcp := s.text(lit.Type.(*ast.SelectorExpr).X)
	subscribe := ""
	if i, _ := field(lit, "SubscribeHandler"); i >= 0 {
		subscribe = ", Subscribe: true"
	}
	var entries []string
	var at []int
	at0, set := field(lit, "Capabilities")
	var given *ast.CompositeLit
	if at0 >= 0 {
		if u, ok := set.(*ast.UnaryExpr); ok && u.Op == token.AND {
			if c, ok := u.X.(*ast.CompositeLit); ok && s.Selects(c.Type, mcpPackage, "ServerCapabilities") {
				given = c
			}
		}
	}
	for _, f := range capabilityFields {
		i, value := field(lit, f.has)
		if i < 0 {
			continue
		}
		id, ok := value.(*ast.Ident)
		if !ok || s.Info.Uses[id] != types.Universe.Lookup(id.Name) || id.Name != "true" && id.Name != "false" {
			return nil, nil, f.has + " of mcp.ServerOptions is deprecated and depends on a value here; set Capabilities instead"
		}
		at, which = append(at, i), append(which, f.has)
		if id.Name == "false" {
			continue
		}
		if given != nil {
			if j, _ := field(given, f.field); j >= 0 {
				continue // said already, and more exactly
			}
		}
		options := "ListChanged: true"
		if f.has == "HasResources" {
			options += subscribe
		}
		entries = append(entries, fmt.Sprintf("%s: &%s.%s{%s}", f.field, mcp, f.kind, options))
	}
	if len(at) == 0 {
		return nil, nil, ""
	}
	if len(entries) > 0 && at0 >= 0 && given == nil {
		return nil, nil, strings.Join(which, ", ") + " of mcp.ServerOptions is deprecated, and Capabilities is set by a value here; add to that value instead"
	}
	if len(entries) > 0 && given == nil {
		// Without Capabilities go-sdk offers logging.
		entries = slices.Insert(entries, 0, fmt.Sprintf("Logging: &%s.LoggingCapabilities{}", mcp))
		text := fmt.Sprintf("Capabilities: &%s.ServerCapabilities{%s}", mcp, strings.Join(entries, ", "))
		if !oneLine(s, lit) {
			text = fmt.Sprintf("Capabilities: &%s.ServerCapabilities{\n%s,\n}", mcp, strings.Join(entries, ",\n"))
		}
		edits = append(edits, s.replace(lit.Elts[at[0]], text))
		at = at[1:]
	} else if len(entries) > 0 {
		brace := s.Offset(given.Lbrace) + 1
		text := strings.Join(entries, ", ")
		switch {
		case !oneLine(s, given):
			text = "\n" + strings.Join(entries, ",\n") + ","
		case len(given.Elts) > 0:
			text += ", "
		}
		edits = append(edits, edit{brace, brace, text})
	}
	for _, i := range at {
		edits = append(edits, s.cut(lit, i))
	}
	return edits, which, ""
}

// replaceNotFoundCode replaces mcp.CodeResourceNotFound, deprecated since its value became that of invalid parameters.
func replaceNotFoundCode(t *tree) error {
	const text = "go-sdk answers a resource that is not there with -32602 since 1.7; the runtime does so for clients of 2026-07-28 and keeps -32002 for older ones"
	return t.eachFile(mcpPackage, []string{"CodeResourceNotFound", "32002"}, func(s *syntax) error {
		var edits []edit
		var changes []Change
		jsonrpc := ""
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if !s.Selects(n, mcpPackage, "CodeResourceNotFound") {
					return true
				}
				if !s.onlyRead(n) {
					t.note(s.name, s.Line(n.Pos()), "mcp.CodeResourceNotFound is deprecated and written to or pointed at here; "+text)
					return true
				}
				if jsonrpc == "" {
					var more []edit
					if jsonrpc, more = s.use(jsonrpcPackage, "jsonrpc", n.Pos()); jsonrpc == "" {
						t.note(s.name, s.Line(n.Pos()), "mcp.CodeResourceNotFound is deprecated; use jsonrpc.CodeInvalidParams of go-sdk")
						return true
					}
					edits = append(edits, more...)
				}
				code := jsonrpc + ".CodeInvalidParams"
				if !s.typed(n) {
					code = "int64(" + code + ")" // the variable was one
				}
				edits = append(edits, s.replace(n, code))
				changes = append(changes, Change{Line: s.Line(n.Pos()), Text: "mcp.CodeResourceNotFound, deprecated, became jsonrpc.CodeInvalidParams"})
			case *ast.UnaryExpr:
				lit, ok := n.X.(*ast.BasicLit)
				if _, set := s.parents[n].(*ast.AssignStmt); ok && !set && n.Op == token.SUB && lit.Value == "32002" {
					t.note(s.name, s.Line(n.Pos()), text)
				}
			}
			return true
		})
		if len(edits) == 0 {
			return nil
		}
		edits = s.dropUnused(mcpPackage, jsonrpcPackage, edits, len(changes))
		return t.apply(s.name, edits, changes...)
	})
}

// dropUnused removes the import of a package that loses so many uses when those are all it has. An import of another
// package that edits add takes its place.
func (s *syntax) dropUnused(importPath, added string, edits []edit, lost int) []edit {
	for _, spec := range s.file.Imports {
		if spec.Path.Value != `"`+importPath+`"` {
			continue
		}
		obj := s.Info.Implicits[spec]
		if spec.Name != nil {
			obj = s.Info.Defs[spec.Name]
		}
		for _, used := range s.Info.Uses {
			if used == obj {
				lost--
			}
		}
		if lost < 0 {
			return edits
		}
		adds := func(e edit) bool { return strings.Contains(e.text, `"`+added+`"`) || e.text == "\n)" }
		if slices.ContainsFunc(edits, adds) {
			edits = slices.DeleteFunc(edits, adds)
			return append(edits, s.replace(spec, `"`+added+`"`))
		}
		var gone ast.Node = spec
		if decl := s.parents[spec].(*ast.GenDecl); !decl.Lparen.IsValid() {
			gone = decl
		}
		return append(edits, wholeLine(s.src, s.Offset(gone.Pos()), s.Offset(gone.End())))
	}
	return edits
}

// onlyRead reports whether an expression is a value, neither assigned to nor pointed at.
func (s *syntax) onlyRead(x ast.Expr) bool {
	switch p := s.parents[x].(type) {
	case *ast.AssignStmt:
		return !slices.Contains(p.Lhs, x)
	case *ast.UnaryExpr:
		return p.Op != token.AND
	case *ast.IncDecStmt, *ast.ParenExpr:
		return false
	}
	return true
}

// typed reports whether an untyped constant gets the type that a variable had in the place of x: in a comparison, and
// as the field Code.
func (s *syntax) typed(x ast.Expr) bool {
	switch p := s.parents[x].(type) {
	case *ast.BinaryExpr:
		return true
	case *ast.CaseClause:
		return true
	case *ast.KeyValueExpr:
		id, ok := p.Key.(*ast.Ident)
		return ok && p.Value == x && id.Name == "Code"
	}
	return false
}

// use is what a package is called at pos, with the edits that import it; or empty when its name is taken.
func (s *syntax) use(importPath, name string, pos token.Pos) (string, []edit) {
	for _, spec := range s.file.Imports {
		if spec.Path.Value != `"`+importPath+`"` {
			continue
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == "_" || name == "." || !s.free(name, importPath, pos) {
			return "", nil
		}
		return name, nil
	}
	if !s.free(name, importPath, pos) {
		return "", nil
	}
	for _, spec := range s.file.Imports { // beside an import of the same module
		if !strings.HasPrefix(spec.Path.Value, `"`+sdkModule+"/") {
			continue
		}
		decl := s.parents[spec].(*ast.GenDecl)
		if !decl.Lparen.IsValid() {
			return name, []edit{
				{s.Offset(spec.Pos()), s.Offset(spec.Pos()), fmt.Sprintf("(\n\t%q\n\t", importPath)},
				{s.Offset(spec.End()), s.Offset(spec.End()), "\n)"},
			}
		}
		start := s.Offset(spec.Pos())
		return name, []edit{{start, start, fmt.Sprintf("%q\n\t", importPath)}}
	}
	return "", nil
}

// free reports whether name means nothing else than the package at importPath: at pos and in the whole file.
func (s *syntax) free(name, importPath string, pos token.Pos) bool {
	if s.Types.Scope().Lookup(name) != nil {
		return false
	}
	scope := s.Types.Scope().Innermost(pos)
	if scope == nil {
		return false
	}
	_, obj := scope.LookupParent(name, pos)
	if imported, ok := obj.(*types.PkgName); ok {
		return imported.Imported().Path() == importPath
	}
	return obj == nil
}

// wrapCrossOrigin replaces the option CrossOriginProtection of go-sdk's HTTP handler, deprecated, by a handler around it.
func wrapCrossOrigin(t *tree) error {
	const name = "CrossOriginProtection"
	const advice = "the option CrossOriginProtection of go-sdk is deprecated; remove it and serve protection.Handler(handler)"
	return t.eachFile(mcpPackage, []string{name}, func(s *syntax) error {
		var edits []edit
		var changes []Change
		done := map[*ast.CompositeLit]bool{}
		ast.Inspect(s.file, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok || !s.Selects(lit.Type, mcpPackage, "StreamableHTTPOptions") {
				return true
			}
			done[lit] = true
			i, value := field(lit, name)
			if i < 0 {
				return true
			}
			if id, ok := value.(*ast.Ident); ok && id.Name == "nil" && s.Info.Uses[id] == types.Universe.Lookup("nil") {
				edits = append(edits, s.cut(lit, i))
				changes = append(changes, Change{Line: s.Line(lit.Elts[i].Pos()), Text: "CrossOriginProtection, deprecated, was nil and is gone"})
				return true
			}
			call := s.handlerCall(lit)
			if call == nil || !s.neverNil(value) || !s.asHandler(call) {
				t.note(s.name, s.Line(lit.Elts[i].Pos()), advice)
				return true
			}
			protection := s.text(value)
			if _, ok := value.(*ast.UnaryExpr); ok {
				protection = "(" + protection + ")"
			}
			start, end := s.Offset(call.Pos()), s.Offset(call.End())
			edits = append(edits, s.cut(lit, i), edit{start, start, protection + ".Handler("}, edit{end, end, ")"})
			changes = append(changes, Change{Line: s.Line(lit.Elts[i].Pos()), Text: "CrossOriginProtection, deprecated, became a handler around the SDK's"})
			if strings.Contains(string(s.src), "SetDenyHandler") {
				t.note(s.name, s.Line(lit.Elts[i].Pos()), "the deny handler of the CrossOriginProtection was ignored so far and answers now; look whether it does so as you like")
			}
			return true
		})
		s.loose(done, []string{name}, func(n ast.Node, _ string) { t.note(s.name, s.Line(n.Pos()), advice) })
		if len(edits) == 0 {
			return nil
		}
		return t.apply(s.name, edits, changes...)
	})
}

// handlerCall is the call of NewStreamableHTTPHandler that lit is the options of, or nil.
func (s *syntax) handlerCall(lit *ast.CompositeLit) *ast.CallExpr {
	u, ok := s.parents[lit].(*ast.UnaryExpr)
	if !ok {
		return nil
	}
	call, ok := s.parents[u].(*ast.CallExpr)
	if !ok || !s.Selects(call.Fun, mcpPackage, "NewStreamableHTTPHandler") {
		return nil
	}
	return call
}

// neverNil reports whether a protection is certainly there: made in place, or in a variable that is set once.
func (s *syntax) neverNil(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.CallExpr:
		return s.Selects(x.Fun, "net/http", "NewCrossOriginProtection")
	case *ast.UnaryExpr:
		lit, ok := x.X.(*ast.CompositeLit)
		return ok && x.Op == token.AND && s.Selects(lit.Type, "net/http", "CrossOriginProtection")
	case *ast.Ident:
		obj := s.Info.Uses[x]
		var set ast.Expr
		n := 0
		for id, def := range s.Info.Defs {
			if def == obj && obj != nil {
				if a, ok := s.parents[id].(*ast.AssignStmt); ok && len(a.Lhs) == 1 && len(a.Rhs) == 1 {
					set = a.Rhs[0]
				}
			}
		}
		for id, used := range s.Info.Uses {
			if used == obj {
				if a, ok := s.parents[id].(*ast.AssignStmt); ok && slices.Contains(a.Lhs, ast.Expr(id)) {
					n++
				}
				if u, ok := s.parents[id].(*ast.UnaryExpr); ok && u.Op == token.AND {
					n++
				}
			}
		}
		if _, again := set.(*ast.Ident); set == nil || again || n > 0 {
			return false
		}
		return s.neverNil(set)
	}
	return false
}

// asHandler reports whether x may be any http.Handler where it is: as an argument or a field that takes one, as a
// result, or in a variable whose uses all are such places.
func (s *syntax) asHandler(x ast.Expr) bool {
	switch p := s.parents[x].(type) {
	case *ast.CallExpr:
		sel, ok := p.Fun.(*ast.SelectorExpr)
		if !ok || !slices.Contains(p.Args, x) {
			return false
		}
		switch s.Imported(sel.X) {
		case "net/http", "net/http/httptest":
			return true // none of them takes a concrete handler
		case "":
			return sel.Sel.Name == "Handle" && len(p.Args) == 2
		}
		return false
	case *ast.KeyValueExpr:
		lit, ok := s.parents[p].(*ast.CompositeLit)
		return ok && s.Selects(lit.Type, "net/http", "Server")
	case *ast.SelectorExpr:
		return p.Sel.Name == "ServeHTTP"
	case *ast.ReturnStmt:
		return s.returnsHandler(p, x)
	case *ast.AssignStmt:
		if p.Tok != token.DEFINE || len(p.Lhs) != 1 {
			return false
		}
		id, ok := p.Lhs[0].(*ast.Ident)
		if !ok || s.Info.Defs[id] == nil {
			return false
		}
		for use, obj := range s.Info.Uses {
			if obj == s.Info.Defs[id] {
				if _, again := s.parents[use].(*ast.AssignStmt); again || !s.asHandler(use) {
					return false
				}
			}
		}
		return true
	}
	return false
}

// returnsHandler reports whether the result that x is, is declared to be an http.Handler.
func (s *syntax) returnsHandler(ret *ast.ReturnStmt, x ast.Expr) bool {
	var n ast.Node = ret
	for n != nil {
		n = s.parents[n]
		var results *ast.FieldList
		switch fn := n.(type) {
		case *ast.FuncDecl:
			results = fn.Type.Results
		case *ast.FuncLit:
			results = fn.Type.Results
		default:
			continue
		}
		if results == nil || len(results.List) != len(ret.Results) { // named results of one type share a field
			return false
		}
		return s.Selects(results.List[slices.Index(ret.Results, x)].Type, "net/http", "Handler")
	}
	return false
}
