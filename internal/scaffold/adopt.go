package scaffold

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/mod/modfile"

	"github.com/famcp/famcp/internal/migrate"
	"github.com/famcp/famcp/internal/scaffold/gomod"
	"github.com/famcp/famcp/internal/scaffold/journal"
	"github.com/famcp/famcp/internal/scaffold/patch"
	"github.com/famcp/famcp/internal/scaffold/render"
	"github.com/famcp/famcp/internal/scaffold/vcs"
)

// PlanAdopt begins a new record for a project whose old one is lost for good. Without it nobody knows what the template
// had written, so nothing else is changed: the plan's advice says how each file differs from what this famcp would
// write. The record is that of this famcp, as if the project had been upgraded to it by hand.
func PlanAdopt(p *Found, o UpgradeOptions) (*UpgradePlan, error) {
	if o.Env == nil {
		o.Env = func(string) string { return "" }
	}
	if journal.Look(p.root) == journal.Interrupted {
		return nil, &InterruptedError{}
	}
	rec, err := p.readRecord()
	var lost *RecordError
	switch {
	case err == nil && rec.commit != "":
		return nil, fmt.Errorf("the record need not be made anew: commit %.7s has a good one, which famcp upgrade finds by itself", rec.commit)
	case err == nil:
		return nil, errors.New("the record is in order; run famcp upgrade without --adopt")
	case !errors.As(err, &lost):
		return nil, err
	}
	if p.Repository != "" && !o.AllowDirty {
		dirty, err := vcs.Dirty(o.Env, p.Repository, p.Dir, func(name string) bool { return secret(name) || strings.HasPrefix(name, recordDir) })
		if err != nil {
			return nil, err
		}
		if len(dirty) > 0 {
			return nil, &DirtyError{dirty}
		}
	}
	given, err := p.guess()
	if err != nil {
		return nil, err
	}
	maps.Copy(given, o.Given)
	answers, err := Resolve(given, o.Release)
	if err != nil {
		return nil, err
	}
	u := &upgrade{
		UpgradePlan: &UpgradePlan{Found: p, Answers: answers, Migrations: &migrate.Result{}},
		opts:        o,
		changes:     map[string]*journal.Change{},
	}
	fresh, err := rendering(u.newOptions())
	if err != nil {
		return nil, err
	}
	m, err := record(u.newOptions())
	if err != nil {
		return nil, err
	}
	u.To = Versions{Famcp: m.Famcp, Runtime: m.Runtime}
	different := 0
	for _, f := range fresh {
		ours, err := p.read(f.Path)
		switch {
		case err != nil:
			u.note("%v", err)
			continue
		case ours != nil && sameText(ours.Data, f.Data):
			continue
		case f.Owner == render.Locked:
			different++
			continue
		case f.Owner == render.Structural:
			continue
		}
		advice := patch.File{Path: f.Path, New: f.Data, Mode: f.Mode}
		if ours != nil {
			advice.Old = notNil(render.LF(ours.Data))
		}
		u.Advice = append(u.Advice, advice)
	}
	if different > 0 {
		u.note("%d files of %s are not those of this famcp; the next upgrade asks for --discard-runtime-edits", different, gomod.VendorDir)
	}
	if err := u.writeRecord(*m, fresh); err != nil {
		return nil, err
	}
	return u.UpgradePlan, u.finish()
}

// guess finds out from the project's files what it was made from; what they do not say is left to the defaults.
func (p *Found) guess() (map[string]string, error) {
	mod, err := p.read("go.mod")
	if err != nil {
		return nil, err
	}
	if mod == nil {
		return nil, errors.New("the project has no go.mod; restore it from git")
	}
	f, err := modfile.ParseLax("go.mod", mod.Data, nil)
	if err != nil || f.Module == nil {
		return nil, errors.New("the go.mod of the project cannot be read; correct it")
	}
	given := map[string]string{"module": f.Module.Mod.Path, "name": path.Base(f.Module.Mod.Path)}
	if text, err := p.read("internal/project/project.go"); err == nil && text != nil {
		maps.Copy(given, projectConstants(text.Data))
	}
	var settings struct {
		WebServer struct {
			Port int `yaml:"port"`
		} `yaml:"webServer"`
	}
	if text, err := p.read("config/default.yaml"); err == nil && text != nil && yaml.Unmarshal(text.Data, &settings) == nil {
		if port := settings.WebServer.Port; port != 0 {
			given["port"] = strconv.Itoa(port)
		}
	}
	given["runtime"] = "module"
	if p.exists(gomod.VendorDir) {
		given["runtime"] = "vendored"
	}
	given["ci"] = map[[2]bool]string{{true, true}: "both", {true, false}: "github", {false, true}: "gitlab", {false, false}: "none"}[[2]bool{
		p.exists(".github/workflows/ci.yml"), p.exists(".gitlab-ci.yml"),
	}]
	given["examples"] = strconv.FormatBool(p.exists("internal/notes"))
	if !p.exists("Dockerfile") {
		given["transport"] = "stdio"
	}
	given["license"] = "none"
	if text, err := p.read("LICENSE"); err == nil && text != nil {
		given["license"] = "mit"
		if strings.Contains(string(text.Data), "Apache License") {
			given["license"] = "apache-2.0"
		}
	}
	return given, nil
}

// projectConstants are the answers that the file of constants in internal/project has.
func projectConstants(src []byte) map[string]string {
	found := map[string]string{}
	file, err := parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution)
	if err != nil {
		return found
	}
	for _, decl := range file.Decls {
		constants, ok := decl.(*ast.GenDecl)
		if !ok || constants.Tok != token.CONST {
			continue
		}
		for _, spec := range constants.Specs {
			value, ok := spec.(*ast.ValueSpec)
			if !ok || len(value.Names) != 1 || len(value.Values) != 1 {
				continue
			}
			literal, ok := value.Values[0].(*ast.BasicLit)
			key, known := map[string]string{"Name": "name", "Title": "title", "Description": "description"}[value.Names[0].Name]
			if !ok || !known {
				continue
			}
			if text, err := strconv.Unquote(literal.Value); err == nil {
				found[key] = text
			}
		}
	}
	return found
}
