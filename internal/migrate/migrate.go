// Package migrate changes the files of a project that a newer runtime, a newer go-sdk or a newer template asks to be
// changed: names in Go code, keys in YAML, settings that nothing reads any more.
//
// It is pure. It reads a file system and returns new contents with a report; it writes nothing, opens no connection and
// runs nothing of the project. What it cannot do safely it leaves alone and says in a note, which [Plan] also collects
// in the file [NotePath].
//
// Go code is rewritten by its syntax and its types, never by its text. Types come from the project and from the
// runtime's source; packages of others are taken for unknown, which go/types is made for, so that neither a Go
// installation nor a module cache is needed.
package migrate

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// Module paths whose versions decide which migrations a project needs.
const (
	runtimeModule = "github.com/famcp/famcp"
	sdkModule     = "github.com/modelcontextprotocol/go-sdk"
)

// Project is what migrations work on.
type Project struct {
	// FS holds the files, at the root of the project. Only what a migration could change is read: no secrets, nothing
	// vendored or generated.
	FS fs.FS
	// Module is the module path of the project.
	Module string
	// Runtime is the source of the runtime that the project will use, at the root of its module. With nil, or where
	// nothing in it is marked //go:fix inline, no name of the runtime is replaced.
	Runtime fs.FS
}

// Version is what a project was made for, or is brought to: semantic versions with their v. An empty one, and one that
// is none, such as devel, is unknown; every migration may then be due, which does no harm, because they are idempotent.
type Version struct {
	Famcp string // the runtime and the template
	SDK   string // go-sdk; [SDKVersion] reads it from a go.mod
}

// SDKVersion is the version of go-sdk that a go.mod requires, or empty.
func SDKVersion(mod []byte) string {
	file, err := modfile.ParseLax("go.mod", mod, nil)
	if err != nil {
		return ""
	}
	for _, r := range file.Require {
		if r.Mod.Path == sdkModule {
			return r.Mod.Version
		}
	}
	return ""
}

// Result is what migrations would do.
type Result struct {
	// Files are the new contents by path, of the files that change only. A file keeps its mode; [NotePath] may be new.
	Files map[string][]byte `json:"-"`
	// Changes are the edits in Files, sorted by path and line.
	Changes []Change `json:"changes"`
	// Notes are left to a person, sorted by path and line.
	Notes []Change `json:"notes"`
}

// Change is one edit, or one place that a person has to look at.
type Change struct {
	Migration string `json:"migration"`      // identifier of the migration
	Path      string `json:"path,omitempty"` // slash-separated; empty for a note about the whole project
	Line      int    `json:"line,omitempty"` // in the file as it was before all migrations; 0 for a whole file
	Text      string `json:"text"`           // one sentence without its full stop
}

// String is "path:line: text", without what is not known.
func (c Change) String() string {
	if c.Path == "" {
		return c.Text
	}
	return c.place() + ": " + c.Text
}

func (c Change) place() string {
	if c.Line == 0 {
		return c.Path
	}
	return fmt.Sprintf("%s:%d", c.Path, c.Line)
}

// Migration is one step. Applying it twice does what applying it once does.
type Migration struct {
	// ID names it in reports.
	ID string
	// Module is the path of the module that it follows, the runtime's or go-sdk's, and Since the first version of it
	// that needs the step. An empty Since is always due.
	Module, Since string

	run func(*tree) error
}

// due reports whether going from one version of m.Module to another passes m.Since.
func (m Migration) due(from, to Version) bool {
	if m.Since == "" {
		return true
	}
	before, after := from.Famcp, to.Famcp
	if m.Module == sdkModule {
		before, after = from.SDK, to.SDK
	}
	return (!semver.IsValid(before) || semver.Compare(before, m.Since) < 0) &&
		(!semver.IsValid(after) || semver.Compare(after, m.Since) >= 0)
}

// All are the migrations there are, in the order in which they apply.
func All() []Migration {
	return slices.Concat([]Migration{RuntimeNames()}, sdkMigrations())
}

// Plan finds out what the migrations between two versions change in p. The notes of earlier plans in [NotePath] stay,
// and none is added twice. A file that cannot be parsed is left alone with a note; an error is one of reading p.FS, or
// of ctx.
func Plan(ctx context.Context, p Project, from, to Version) (*Result, error) {
	return Apply(ctx, p, from, to, All())
}

// Apply is [Plan] with other migrations than [All].
func Apply(ctx context.Context, p Project, from, to Version, migrations []Migration) (*Result, error) {
	t, err := readTree(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("reading the project: %w", err)
	}
	for _, m := range migrations {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !m.due(from, to) {
			continue
		}
		t.migration = m.ID
		if err := m.run(t); err != nil {
			return nil, fmt.Errorf("migration %s: %w", m.ID, err)
		}
	}
	return t.result()
}

// Notice is a migration that changes nothing and tells people what they should know, once: the file of notes is not
// told the same twice.
func Notice(id, module, since, text string) Migration {
	return Migration{ID: id, Module: module, Since: since, run: func(t *tree) error {
		t.note("", 0, text)
		return nil
	}}
}

func byPlace(a, b Change) int {
	return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Text, b.Text))
}
