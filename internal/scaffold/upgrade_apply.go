package scaffold

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/famcp/famcp/internal/migrate"
	"github.com/famcp/famcp/internal/scaffold/journal"
	"github.com/famcp/famcp/internal/scaffold/manifest"
	"github.com/famcp/famcp/internal/scaffold/merge"
)

// ErrNothingToAbort means that there is no upgrade to undo.
var ErrNothingToAbort = errors.New("there is no upgrade to undo here; undo a committed one with git")

// ErrNothingToContinue means that no upgrade waits for a person.
var ErrNothingToContinue = errors.New("there is no upgrade to continue")

// Apply changes the project: all of it or, when Apply fails or ctx ends, nothing. Until [Found.Finish] the upgrade can be
// undone by [Found.Abort]. A plan is applied once.
func (p *UpgradePlan) Apply(ctx context.Context) error {
	return p.apply(ctx, journal.Real(p.Found.root))
}

func (p *UpgradePlan) apply(ctx context.Context, disk journal.Disk) error {
	return p.Found.withJournal(disk, func(j *journal.Journal) error {
		if journal.Look(p.Found.root) == journal.Interrupted { // since the plan was made
			return &InterruptedError{}
		}
		// An earlier upgrade that nobody finished nor undid is the person's by now: the tree it left was the one to plan on.
		if err := j.Discard(); err != nil {
			return err
		}
		return j.Apply(ctx, p.changes)
	})
}

func (p *Found) withJournal(disk journal.Disk, do func(*journal.Journal) error) error {
	j, err := journal.Open(p.root, disk)
	if err == nil {
		err = errors.Join(do(j), j.Close())
	}
	if err != nil {
		return fmt.Errorf("writing the project: %w", err)
	}
	return nil
}

// Restored is what an upgrade that was undone leaves behind.
type Restored = journal.Restored

// Recover puts the project back to what it was before an upgrade that was killed. It returns nil when there is none.
func (p *Found) Recover() (*Restored, error) {
	if journal.Look(p.root) != journal.Interrupted {
		return nil, nil
	}
	return p.restore(false)
}

// Abort puts every file of the last upgrade back to what it was before, with its mode. What somebody made of these files
// since is kept aside.
func (p *Found) Abort() (*Restored, error) {
	if journal.Look(p.root) == journal.None {
		return nil, ErrNothingToAbort
	}
	return p.restore(true)
}

func (p *Found) restore(all bool) (*Restored, error) {
	var r *Restored
	err := p.withJournal(journal.Real(p.root), func(j *journal.Journal) (err error) {
		r, err = j.Restore(all)
		return err
	})
	return r, err
}

// Finish forgets how the project was before its last upgrade.
func (p *Found) Finish() error {
	if journal.Look(p.root) != journal.Applied {
		return nil
	}
	return p.withJournal(journal.Real(p.root), (*journal.Journal).Discard)
}

// Abortable reports whether [Found.Abort] has something to undo.
func (p *Found) Abortable() bool { return journal.Look(p.root) != journal.None }

// Marker is a line that a person has still to resolve.
type Marker struct {
	Path string `json:"path"`
	Line int    `json:"line"`
}

// UnresolvedError means that conflicts are left.
type UnresolvedError struct{ Markers []Marker }

func (e *UnresolvedError) Error() string {
	places := make([]string, len(e.Markers))
	for i, m := range e.Markers {
		places[i] = fmt.Sprintf("%s:%d", m.Path, m.Line)
	}
	return fmt.Sprintf("conflict markers are left at %s; resolve them, then run famcp upgrade --continue again", listed(places))
}

// PlanContinue finds out what is left to do after a person has resolved the conflicts of an upgrade: the migrations of
// those files, and the record. What has markers still is an [UnresolvedError]. Without conflicts the plan is empty;
// without an upgrade to continue the error is [ErrNothingToContinue].
func PlanContinue(ctx context.Context, p *Found, o UpgradeOptions) (*UpgradePlan, error) {
	state := journal.Look(p.root)
	if state == journal.Interrupted {
		return nil, &InterruptedError{}
	}
	rec, err := p.readRecord()
	if err != nil {
		return nil, err
	}
	m := rec.manifest
	if len(m.Unresolved) == 0 && state == journal.None {
		return nil, ErrNothingToContinue
	}
	var left []Marker
	for _, name := range m.Unresolved {
		c, err := p.read(name)
		if err != nil {
			return nil, err
		}
		if c == nil {
			continue // resolved by deleting it
		}
		for _, line := range merge.Markers(c.Data, mergeLabels) {
			left = append(left, Marker{name, line})
		}
	}
	if len(left) > 0 {
		return nil, &UnresolvedError{left}
	}
	answers, err := upgradeAnswers(m, UpgradeOptions{Defaults: true, Release: o.Release})
	if err != nil {
		return nil, err
	}
	u := &upgrade{
		UpgradePlan: &UpgradePlan{Found: p, Answers: answers},
		opts:        o,
		recorded:    rec,
		changes:     map[string]*journal.Change{},
	}
	u.To = Versions{Famcp: m.Famcp, Runtime: m.Runtime}
	if mod, err := p.read("go.mod"); err == nil && mod != nil {
		u.To.SDK = migrate.SDKVersion(mod.Data)
	}
	if len(m.Unresolved) > 0 {
		// Which version they come from is not known any more; migrations that were applied find nothing to do.
		if err := u.migrate(ctx); err != nil {
			return nil, err
		}
		if err := u.resolved(*m); err != nil {
			return nil, err
		}
	}
	return u.UpgradePlan, u.finish()
}

// resolved plans the record without its unresolved files.
func (u *upgrade) resolved(m manifest.Manifest) error {
	m.Unresolved = nil
	was, err := u.Found.read(manifest.Path)
	if err != nil {
		return err
	}
	text, err := m.Text()
	if err != nil {
		return err
	}
	u.change(manifest.Path, was, &journal.Content{Data: text, Mode: was.Mode})
	return nil
}

// ApplyContinue applies a plan of [PlanContinue], on top of the upgrade that it continues.
func (p *UpgradePlan) ApplyContinue(ctx context.Context) error {
	return p.Found.withJournal(journal.Real(p.Found.root), func(j *journal.Journal) error {
		return j.Apply(ctx, slices.Clone(p.changes))
	})
}
