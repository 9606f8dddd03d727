package feature

import (
	"bytes"
	"context"
	"fmt"
	"go/format"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/famcp/famcp/internal/gocode"
	"github.com/famcp/famcp/internal/scaffold/gomod"
)

// Project is what a feature is added to.
type Project struct {
	Module  string            // path of its module
	Files   map[string][]byte // its Go files, and CHANGELOG.md, by slash-separated path
	Runtime fs.FS             // source of the runtime it uses
}

// Result is what adding a feature changes.
type Result struct {
	Files map[string][]byte // new contents of the files that are new or change
	// Registration is the statement that registers the feature. Registered is the file it went to; empty when a person
	// has to put it somewhere, for the reason in Why.
	Registration, Registered, Why string
	// Notes are other things that a person has to do, one sentence each.
	Notes []string
}

// Add adds a completed and checked feature. What the project has already is a [Fault], of which there may be several.
func Add(ctx context.Context, p Project, spec Spec) (*Result, []Fault, error) {
	program := p.load(p.Files)
	where, why := findRegistration(program, spec.Kind)
	dir, packageName := directories[spec.Kind], path.Base(directories[spec.Kind])
	shadowed := func(string) bool { return false }
	if where != nil {
		dir, packageName, shadowed = path.Dir(where.path()), where.pkg.Types.Name(), where.shadowed
	} else if name := packageIn(program, dir); name != "" {
		packageName = name
	}
	n := identsOf(spec, shadowed)
	code, test := fileNames(dir, spec.Name, spec.Kind)
	if faults := p.duplicates(program, spec, dir, n, code, test); len(faults) > 0 {
		return nil, faults, nil
	}

	r := &Result{Files: map[string][]byte{}, Why: why}
	var err error
	if r.Files[code], r.Files[test], err = generate(spec, n, packageName); err != nil {
		return nil, nil, err
	}
	if where != nil {
		if err := p.register(r, where, spec, n); err != nil {
			return nil, nil, err
		}
	}
	if r.Registered == "" {
		if r.Registration == "" {
			r.Registration = defaultLine(spec, n)
		}
	} else if err := p.lists(r, program, spec); err != nil {
		return nil, nil, err
	}
	p.changelog(r, spec)
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	return r, nil, p.compiles(program, r.Files)
}

func (p Project) load(files map[string][]byte) *gocode.Program {
	code := map[string][]byte{}
	for name, data := range files {
		if path.Ext(name) == ".go" {
			code[name] = data
		}
	}
	return gocode.Load(gocode.Source{Module: p.Module, Files: code, Dependencies: map[string]fs.FS{gomod.Runtime: p.Runtime}})
}

func packageIn(program *gocode.Program, dir string) string {
	for _, p := range program.Packages {
		if path.Dir(p.Name(p.Files[0].FileStart)) == dir && !strings.HasSuffix(p.Types.Name(), "_test") {
			return p.Types.Name()
		}
	}
	return ""
}

// duplicates are the names, files and Go identifiers that are taken.
func (p Project) duplicates(program *gocode.Program, spec Spec, dir string, n idents, files ...string) []Fault {
	var faults []Fault
	if place := entryNamed(program, spec.Kind, "Name", spec.Name); place != "" {
		return []Fault{{"name", fmt.Sprintf("must not be %q, the name of the %s at %s", spec.Name, spec.Kind, place)}}
	}
	if spec.Kind == Resource {
		for _, key := range []string{"URI", "URITemplate"} {
			if place := entryNamed(program, spec.Kind, key, spec.URI); place != "" {
				faults = append(faults, Fault{"uri", fmt.Sprintf("must not be %q, which is at %s", spec.URI, place)})
			}
		}
	}
	for _, name := range files {
		if there := p.there(name); there != "" {
			faults = append(faults, Fault{"name", fmt.Sprintf("must not be %q, because there is a file %s", spec.Name, there)})
		}
	}
	if name, place := taken(program, dir, []string{n.Base, n.In, n.Out, n.Var, n.Handler, n.Test}); name != "" {
		faults = append(faults, Fault{"name", fmt.Sprintf("must not be %q, because the Go name %s is taken at %s", spec.Name, name, place)})
	}
	return faults
}

// there is a file of that name in a file system that may not know upper case from lower case.
func (p Project) there(name string) string {
	for other := range p.Files {
		if strings.EqualFold(other, name) {
			return other
		}
	}
	return ""
}

func (p Project) register(r *Result, where *registration, spec Spec, n idents) error {
	name := where.path()
	src := p.Files[name]
	line, edits, why := where.line(src, spec, n)
	if why != "" {
		r.Why = why
		return nil
	}
	out, err := rewrite(src, append(edits, where.insert(src, line)))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	r.Registration, r.Files[name] = line, out
	r.Registered = name
	return nil
}

// defaultLine registers a feature where everything is called as in the template.
func defaultLine(spec Spec, n idents) string {
	switch {
	case spec.Kind == Resource && !strings.Contains(spec.URI, "{"):
		return fmt.Sprintf("s.AddResource(%s, %s)", n.Var, n.Handler)
	case spec.Kind == Resource:
		return fmt.Sprintf("famcp.AddResourceTemplate(s, %s, %s)", n.Var, n.Handler)
	}
	return fmt.Sprintf("famcp.Add%s(s, %s, %s)", upperFirst(string(spec.Kind)), n.Var, n.Handler)
}

// lists adds the feature to the entries that the contract tests expect.
func (p Project) lists(r *Result, program *gocode.Program, spec Spec) error {
	key, value := spec.Name, ""
	switch spec.Kind {
	case Tool:
		value = hints(spec)
	case Resource:
		key = spec.URI
	}
	name := listName(spec)
	l := findList(program, name)
	if l == nil {
		r.Notes = append(r.Notes, fmt.Sprintf("no test has a list called %s; if a test counts the %s of the server, add %q to it", name, name, key))
		return nil
	}
	e, ok := l.add(key, value)
	if !ok {
		return nil
	}
	out, err := rewrite(p.Files[l.path()], []edit{e})
	if err != nil {
		return fmt.Errorf("%s: %w", l.path(), err)
	}
	r.Files[l.path()] = out
	return nil
}

func (p Project) changelog(r *Result, spec Spec) {
	const name = "CHANGELOG.md"
	text, ok := p.Files[name]
	if !ok {
		return
	}
	crlf := bytes.Contains(text, []byte("\r\n"))
	out := changelog(string(lf(text)), spec)
	switch {
	case out == nil:
		r.Notes = append(r.Notes, name+" has no part called Unreleased; say there what is new")
	case crlf:
		r.Files[name] = bytes.ReplaceAll(out, []byte("\n"), []byte("\r\n"))
	default:
		r.Files[name] = out
	}
}

func lf(data []byte) []byte { return bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")) }

// rewrite edits Go code. What was formatted stays so, and lines end as before.
func rewrite(src []byte, edits []edit) ([]byte, error) {
	out := lf(splice(src, edits))
	formatted, err := format.Source(out)
	if err != nil {
		return nil, err
	}
	if before, err := format.Source(lf(src)); err == nil && bytes.Equal(before, lf(src)) {
		out = formatted
	}
	if bytes.Contains(src, []byte("\r\n")) {
		out = bytes.ReplaceAll(out, []byte("\n"), []byte("\r\n"))
	}
	return out, nil
}

// compiles makes sure that changed code has no fault that it did not have.
func (p Project) compiles(before *gocode.Program, changed map[string][]byte) error {
	files := map[string][]byte{}
	for name, data := range p.Files {
		files[name] = data
	}
	for name, data := range changed {
		files[name] = data
	}
	known := map[string]int{}
	for _, pkg := range before.Packages {
		known[pkg.Path] += len(pkg.Errors)
	}
	for _, pkg := range p.load(files).Packages {
		if len(pkg.Errors) > known[pkg.Path] {
			last := slices.IndexFunc(pkg.Errors, func(err error) bool {
				return slices.ContainsFunc(sortedKeys(changed), func(name string) bool { return strings.HasPrefix(err.Error(), name+":") })
			})
			return fmt.Errorf("the project would not compile with it: %w; nothing was written", pkg.Errors[max(last, 0)])
		}
	}
	return nil
}

func sortedKeys(m map[string][]byte) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
