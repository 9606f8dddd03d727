package scaffold

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"path"

	"github.com/famcp/famcp/internal/migrate"
	"github.com/famcp/famcp/internal/scaffold/journal"
	"github.com/famcp/famcp/internal/scaffold/merge"
	"github.com/famcp/famcp/internal/scaffold/patch"
	"github.com/famcp/famcp/internal/scaffold/render"
)

// files plans the managed and the seeded files.
func (u *upgrade) files(fresh []render.File) error {
	renames, err := render.Renames(u.opts.Templates)
	if err != nil {
		return err
	}
	here := map[string]bool{}
	for _, f := range fresh {
		here[f.Path] = true
	}
	moved := map[string]bool{}
	for _, f := range fresh {
		if secret(f.Path) {
			continue
		}
		switch f.Owner {
		case render.Managed:
			from := f.Path
			if _, known := u.recorded.base[f.Path]; !known {
				if old := renames[f.Path]; old != "" && !here[old] {
					if _, known := u.recorded.base[old]; known {
						from, moved[old] = old, true
					}
				}
			}
			err = u.managed(f, from)
		case render.Seeded:
			u.seeded(f)
		}
		if err != nil {
			return err
		}
	}
	for name, f := range u.recorded.base {
		if !here[name] && !moved[name] && !secret(name) {
			if err := u.removed(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// readManaged is the file at name. What is no regular file is kept and nil, with ok false.
func (u *upgrade) readManaged(name string, owner render.Owner) (c *journal.Content, ok bool) {
	c, err := u.Found.read(name)
	if err != nil {
		u.Files = append(u.Files, UpgradeFile{Path: name, Owner: owner, Action: Keep, Why: err.Error()})
		return nil, false
	}
	return c, true
}

// managed merges what the template made of the file at from, now f, with what the team made of it.
func (u *upgrade) managed(f render.File, from string) error {
	base, known := u.recorded.base[from]
	ours, ok := u.readManaged(from, f.Owner)
	if !ok {
		return nil
	}
	at := from
	if from != f.Path {
		there, ok := u.readManaged(f.Path, f.Owner)
		switch {
		case !ok:
			return nil
		case there != nil && ours != nil: // the old one is the team's from now on
			u.Files = append(u.Files, UpgradeFile{
				Path: from, Owner: f.Owner, Action: Keep,
				Why: "the template renamed it to " + f.Path + ", which the project has as well",
			})
			base, ours, at = render.File{}, there, f.Path
		case there != nil: // the team renamed it, too
			ours, at = there, f.Path
		}
	}
	templateChanged := !known || !bytes.Equal(base.Data, f.Data) || base.Mode != f.Mode || from != f.Path
	file := UpgradeFile{Path: f.Path, Owner: f.Owner}
	switch {
	case ours == nil && known:
		if templateChanged {
			file.Action, file.Why = Keep, "the team deleted it, so it stays deleted"
			u.Files = append(u.Files, file)
		}
		return nil
	case ours == nil:
		file.Action = Add
		u.change(f.Path, nil, &journal.Content{Data: f.Data, Mode: f.Mode})
		u.Files = append(u.Files, file)
		return nil
	}
	baseText, theirs := base.Data, f.Data
	if f.Path == agentsFile {
		baseText, theirs = withTeamsPart(baseText, ours.Data), withTeamsPart(theirs, ours.Data)
	}
	r := merge.Merge(baseText, ours.Data, theirs, mergeLabels)
	now := &journal.Content{Data: r.Text, Mode: mergeMode(base.Mode, ours.Mode, f.Mode)}
	edited := !sameText(baseText, ours.Data)
	if edited {
		ledger, err := merge.Account(baseText, ours.Data, theirs, r)
		if err != nil {
			return fmt.Errorf("merging %s: %w; this is a fault of famcp, nothing was written", f.Path, err)
		}
		file.Ledger = &ledger
	}
	if !templateChanged {
		if edited {
			file.Action = Keep
			u.Files = append(u.Files, file)
		}
		return nil
	}
	var changed bool
	if at != f.Path {
		file.From = at
		u.change(at, ours, nil)
		changed = u.change(f.Path, nil, now)
	} else {
		changed = u.change(f.Path, ours, now)
	}
	switch {
	case r.Outcome == merge.Undecided:
		file.Action = Conflict
		file.Why = fmt.Sprintf("both sides changed it and it has no lines; yours is there, take the template's with: unzip -p %s %s > %[2]s", basePath, f.Path)
	case r.Outcome == merge.Conflicted:
		file.Action = Conflict
		for _, c := range r.Conflicts() {
			file.Conflicts = append(file.Conflicts, c.Text)
		}
	case !changed && !edited:
		return nil
	case edited:
		file.Action = Merge
	default:
		file.Action = Update
	}
	if file.Action == Conflict {
		u.Unresolved = append(u.Unresolved, f.Path)
	}
	u.Files = append(u.Files, file)
	return nil
}

const (
	basePath   = recordDir + "base.zip"
	agentsFile = "AGENTS.md"
	// teamsHeading begins the part of agentsFile that is the team's.
	teamsHeading = "## This project"
)

// withTeamsPart is the template's text of agentsFile with the team's part instead of its own.
func withTeamsPart(template, ours []byte) []byte {
	head, _, _ := cutAtHeading(template)
	_, tail, ok := cutAtHeading(ours)
	if !ok {
		return template
	}
	return append(bytes.Clone(head), tail...)
}

// cutAtHeading divides a text before the line that is teamsHeading.
func cutAtHeading(text []byte) (head, tail []byte, ok bool) {
	at := 0
	for line := range bytes.Lines(text) {
		if string(bytes.TrimRight(line, "\r\n \t")) == teamsHeading {
			return text[:at], text[at:], true
		}
		at += len(line)
	}
	return text, nil, false
}

// mergeMode changes the executable bits of ours when the template changed them.
func mergeMode(base, ours, theirs fs.FileMode) fs.FileMode {
	const executable = 0o111
	if base&0o100 == theirs&0o100 {
		return ours
	}
	if theirs&0o100 == 0 {
		return ours &^ executable
	}
	return ours | ours>>2&executable // for those who may read it
}

// seeded leaves the file to the team and says what the template changed in it.
func (u *upgrade) seeded(f render.File) {
	base, known := u.recorded.base[f.Path]
	if known && bytes.Equal(base.Data, f.Data) {
		return
	}
	ours, ok := u.readManaged(f.Path, f.Owner)
	switch {
	case !ok, known && ours == nil, ours != nil && sameText(ours.Data, f.Data):
		return // not the team's, deleted, or there already
	case known:
		u.Advice = append(u.Advice, patch.File{Path: f.Path, Old: base.Data, New: f.Data, Mode: f.Mode})
	case ours != nil || path.Ext(f.Path) == ".go" && u.knownPackage(path.Dir(f.Path)):
		// The team has its own, or a package of its own that might not compile with it.
		u.Advice = append(u.Advice, patch.File{Path: f.Path, New: f.Data, Mode: f.Mode})
	default:
		u.change(f.Path, nil, &journal.Content{Data: f.Data, Mode: f.Mode})
		u.Files = append(u.Files, UpgradeFile{Path: f.Path, Owner: f.Owner, Action: Add})
	}
}

// knownPackage reports whether the template had a Go package in dir before.
func (u *upgrade) knownPackage(dir string) bool {
	for name := range u.recorded.base {
		if path.Dir(name) == dir && path.Ext(name) == ".go" {
			return true
		}
	}
	return false
}

// removed removes a file that the template no longer has, unless the team made it its own.
func (u *upgrade) removed(f render.File) error {
	ours, ok := u.readManaged(f.Path, f.Owner)
	if !ok || ours == nil {
		return nil
	}
	file := UpgradeFile{Path: f.Path, Owner: f.Owner, Action: Keep, Why: "the template no longer has it; yours is edited, so it is the team's now"}
	switch {
	case f.Owner == render.Seeded:
		file.Why = "the template no longer has it; it is the team's"
	case sameText(ours.Data, f.Data):
		file.Action, file.Why = Remove, ""
		u.change(f.Path, ours, nil)
	}
	u.Files = append(u.Files, file)
	return nil
}

// migrate applies the migrations to what the project will be.
func (u *upgrade) migrate(ctx context.Context) error {
	after := &planned{FS: u.Found.root.FS(), files: map[string]*journal.Content{}}
	for name, c := range u.changes {
		after.files[name] = c.Now
	}
	for _, name := range u.Unresolved {
		after.files[name] = nil // with markers in it, it is no code
	}
	from := migrate.Version{Famcp: u.From.Famcp, SDK: u.From.SDK}
	to := migrate.Version{Famcp: u.To.Famcp, SDK: u.To.SDK}
	result, err := migrate.Plan(ctx, migrate.Project{FS: after, Module: u.Answers.Module, Runtime: u.opts.Runtime}, from, to)
	if err != nil {
		return err
	}
	u.Migrations = result
	for name, data := range result.Files {
		was, err := u.Found.read(name)
		if err != nil {
			return err
		}
		now := after.files[name]
		mode := modeOf(now, modeOf(was, 0o644))
		planned := u.changes[name] != nil
		if u.change(name, was, &journal.Content{Data: data, Mode: mode}) && !planned {
			u.Files = append(u.Files, UpgradeFile{Path: name, Owner: u.recorded.manifest.Files[name].Owner, Action: Migrate})
		}
	}
	return nil
}
