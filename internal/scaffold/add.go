package scaffold

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"golang.org/x/mod/modfile"

	"github.com/famcp/famcp/internal/gocode"
	"github.com/famcp/famcp/internal/scaffold/feature"
	"github.com/famcp/famcp/internal/scaffold/gomod"
	"github.com/famcp/famcp/internal/scaffold/journal"
	"github.com/famcp/famcp/internal/scaffold/patch"
)

// AddOptions are the input of [PlanAdd].
type AddOptions struct {
	Spec    feature.Spec
	Runtime fs.FS // source of the runtime, for projects that do not have it themselves
}

// AddPlan is a checked addition to a project, ready to be written once.
type AddPlan struct {
	Spec feature.Spec // with its defaults
	// Files are the new and the changed ones, in the order in which they are written.
	Files []patch.File
	// Registration is the statement that registers the feature, and Registered the file it goes to; empty when a person
	// has to put it somewhere, for the reason in Why.
	Registration, Registered, Why string
	Notes                         []string // what else a person has to do, one sentence each

	found *Found
}

// PlanAdd plans to add a feature to a project. It writes nothing. What is wrong with the feature, by itself or in this
// project, is [Violations].
func PlanAdd(ctx context.Context, p *Found, o AddOptions) (*AddPlan, error) {
	if err := unfinished(p); err != nil {
		return nil, err
	}
	module, err := p.module()
	if err != nil {
		return nil, err
	}
	spec := o.Spec
	spec.Complete()
	if err := violationsOf(spec.Check()); err != nil {
		return nil, err
	}
	project := feature.Project{Module: module, Files: map[string][]byte{}, Runtime: o.Runtime}
	fsys := p.root.FS()
	err = gocode.Walk(ctx, fsys, func(name string) error {
		if path.Ext(name) != ".go" && name != "CHANGELOG.md" {
			return nil
		}
		text, err := gocode.ReadText(fsys, name)
		if text != nil {
			project.Files[name] = text
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the project: %w", err)
	}
	if vendored, err := fs.Sub(fsys, gomod.VendorDir); err == nil {
		if _, err := fs.Stat(vendored, "famcp.go"); err == nil {
			project.Runtime = vendored
		}
	}
	r, faults, err := feature.Add(ctx, project, spec)
	if err != nil {
		return nil, err
	}
	if err := violationsOf(faults); err != nil {
		return nil, err
	}
	plan := &AddPlan{found: p, Spec: spec, Registration: r.Registration, Registered: r.Registered, Why: r.Why, Notes: r.Notes}
	for _, name := range slices.Sorted(maps.Keys(r.Files)) {
		f := patch.File{Path: name, Old: project.Files[name], New: r.Files[name], Mode: 0o644}
		info, err := p.root.Lstat(name)
		switch {
		case err == nil && f.Old == nil:
			return nil, Violations{{Key: "name", Flag: "name", Rule: fmt.Sprintf("must not be %q, because there is a %s", spec.Name, name)}}
		case err == nil:
			f.Mode = info.Mode().Perm()
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
		plan.Files = append(plan.Files, f)
	}
	return plan, ctx.Err()
}

// module is the module path of the project.
func (p *Found) module() (string, error) {
	text, err := p.root.ReadFile("go.mod")
	if err != nil {
		return "", fmt.Errorf("reading the project's module: %w", err)
	}
	mod, err := modfile.ParseLax("go.mod", text, nil)
	if err == nil && mod.Module == nil {
		err = errors.New("it names no module")
	}
	if err != nil {
		return "", fmt.Errorf("the project's go.mod cannot be read: %w", err)
	}
	return mod.Module.Mod.Path, nil
}

func violationsOf(faults []feature.Fault) error {
	var bad Violations
	for _, f := range faults {
		bad = append(bad, Violation{Key: f.Key, Flag: f.Key, Rule: f.Rule})
	}
	return bad.orNil()
}

// Patch is what the plan changes, for people and for git apply.
func (p *AddPlan) Patch() string { return patch.Unified(p.Files) }

// Apply writes the plan, all of it or nothing: when it fails or ctx ends, every file is what it was. A file that was
// changed since it was planned is not overwritten.
func (p *AddPlan) Apply(ctx context.Context) error { return p.apply(ctx, journal.Real(p.found.root)) }

func (p *AddPlan) apply(ctx context.Context, disk journal.Disk) error {
	var changes []journal.Change
	for _, f := range p.Files {
		c := journal.Change{Path: f.Path, Now: &journal.Content{Data: f.New, Mode: f.Mode}}
		if f.Old != nil {
			c.Was = &journal.Content{Data: f.Old, Mode: f.Mode}
		}
		changes = append(changes, c)
	}
	return p.found.withJournal(disk, func(j *journal.Journal) error {
		if err := unfinished(p.found); err != nil { // since the plan was made
			return err
		}
		if err := j.Apply(ctx, changes); err != nil {
			return err
		}
		err := j.Discard() // an addition is undone with git, as any other edit
		if err != nil {
			_, undo := j.Restore(true)
			err = errors.Join(err, undo)
		}
		return err
	})
}

// unfinished refuses a project with an upgrade that is interrupted, or could still be undone.
func unfinished(p *Found) error {
	switch journal.Look(p.root) {
	case journal.Interrupted:
		return errors.New("a change of this project was interrupted; run famcp upgrade --abort to put every file back")
	case journal.Applied:
		return errors.New("an upgrade is not finished here; end it with famcp upgrade --continue or --abort first")
	}
	return nil
}
