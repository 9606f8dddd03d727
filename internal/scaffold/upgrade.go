package scaffold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/famcp/famcp/internal/migrate"
	"github.com/famcp/famcp/internal/scaffold/gomod"
	"github.com/famcp/famcp/internal/scaffold/journal"
	"github.com/famcp/famcp/internal/scaffold/manifest"
	"github.com/famcp/famcp/internal/scaffold/merge"
	"github.com/famcp/famcp/internal/scaffold/patch"
	"github.com/famcp/famcp/internal/scaffold/render"
	"github.com/famcp/famcp/internal/scaffold/vcs"
)

// UpgradeOptions are the input of [PlanUpgrade].
type UpgradeOptions struct {
	Given     map[string]string // answers to questions that are new since the project was made, and to runtime
	Defaults  bool              // take the defaults of new questions that are not in Given
	Templates fs.FS             // holds the trees project and bare
	Runtime   fs.FS             // source of the runtime, for the vendored one
	Release   Release
	Env       func(string) string // environment for git's configuration; nil is an empty one

	AllowDirty          bool // files that are not committed are no reason to refuse
	DiscardRuntimeEdits bool // replace a vendored runtime that somebody has edited
}

// Action is what an upgrade does with a file.
type Action string

// The actions.
const (
	Add      Action = "add"
	Update   Action = "update" // the team has not edited it
	Merge    Action = "merge"  // with the team's edits
	Conflict Action = "conflict"
	Remove   Action = "remove"
	Migrate  Action = "migrate" // changed by nothing but migrations
	Keep     Action = "keep"    // the team's; where the template does something else, UpgradeFile.Why says why
)

// UpgradeFile is what an upgrade does with one file, and why. Files that nobody changed have none.
type UpgradeFile struct {
	Path      string        `json:"path"`
	From      string        `json:"from,omitempty"` // where it was, when it is renamed
	Owner     render.Owner  `json:"owner,omitempty"`
	Action    Action        `json:"action"`
	Why       string        `json:"why,omitempty"`
	Conflicts []merge.Span  `json:"conflicts,omitempty"` // in the new text, with their markers; none of data without lines
	Ledger    *merge.Ledger `json:"ledger,omitempty"`    // of each line of a file that the team had edited
}

// Versions are what a project is made of.
type Versions struct {
	Famcp   string `json:"famcp"`
	Runtime string `json:"runtime"`
	SDK     string `json:"sdk"`
}

// UpgradePlan is a checked upgrade, ready to be applied once.
type UpgradePlan struct {
	Found      *Found
	From, To   Versions
	Answers    Answers
	Files      []UpgradeFile // sorted by path; not the record, nor the single files of the runtime
	Runtime    int           // files of the vendored runtime that are written or removed
	Modules    []gomod.Change
	Migrations *migrate.Result
	Advice     []patch.File // what the template changed in files that are the team's
	Notes      []string     // sentences for the person
	Unresolved []string     // files with conflicts, sorted

	changes []journal.Change
}

// Due reports whether the upgrade changes anything.
func (p *UpgradePlan) Due() bool { return len(p.changes) > 0 }

// Diff is what the upgrade changes, without the record, for people and for git apply.
func (p *UpgradePlan) Diff() string {
	var files []patch.File
	for _, c := range p.changes {
		if strings.HasPrefix(c.Path, recordDir) {
			continue
		}
		f := patch.File{Path: c.Path}
		if c.Was != nil {
			f.Old, f.Mode = notNil(c.Was.Data), c.Was.Mode
		}
		if c.Now != nil {
			f.New, f.Mode = notNil(c.Now.Data), c.Now.Mode
		}
		if c.Was != nil && c.Now != nil {
			f.OldMode = c.Was.Mode
		}
		files = append(files, f)
	}
	return patch.Unified(files)
}

func notNil(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

// recordDir begins the paths of the record.
const recordDir = ".famcp/"

// mergeLabels name the sides in conflict markers. They are the same in every version, so that any famcp finds them.
var mergeLabels = merge.Labels{Ours: "yours", Base: "old template", Theirs: "new template"}

// Errors of the preflight checks. Nothing was written.
type (
	// NewerTemplateError means that the project was made by a famcp newer than this one.
	NewerTemplateError struct{ Project, Famcp string }
	// UnfinishedError means that an earlier upgrade left conflicts.
	UnfinishedError struct{ Paths []string }
	// InterruptedError means that an earlier upgrade was killed.
	InterruptedError struct{}
	// DirtyError means that files of the project are not committed.
	DirtyError struct{ Paths []string }
	// RuntimeEditedError means that somebody edited the vendored runtime.
	RuntimeEditedError struct{ Paths []string }
	// OpenQuestionsError means that the template asks what it did not ask before.
	OpenQuestionsError struct {
		Questions []Question
		Known     map[string]string // the other answers, by key
	}
)

func (e *NewerTemplateError) Error() string {
	return fmt.Sprintf("the project was written by famcp %s, which is newer than this famcp %s; install %[1]s or a later one", e.Project, e.Famcp)
}

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("the last upgrade left conflicts in %s; resolve them and run famcp upgrade --continue, or undo it with famcp upgrade --abort",
		listed(e.Paths))
}

func (e *InterruptedError) Error() string {
	return "an upgrade was interrupted; run famcp upgrade to start it again, or famcp upgrade --abort to put everything back"
}

func (e *DirtyError) Error() string {
	return fmt.Sprintf("not committed: %s; commit or stash that first, or pass --allow-dirty", listed(e.Paths))
}

func (e *RuntimeEditedError) Error() string {
	return fmt.Sprintf("%s was edited by hand and has to be replaced: %s; move the edits elsewhere, or pass --discard-runtime-edits to lose them",
		gomod.VendorDir, listed(e.Paths))
}

func (e *OpenQuestionsError) Error() string {
	flags := make([]string, len(e.Questions))
	for i, q := range e.Questions {
		flags[i] = "--" + q.Flag
	}
	return fmt.Sprintf("the newer template has new questions: pass %s, or --yes for the defaults", strings.Join(flags, ", "))
}

// listed is a list for one line.
func listed(paths []string) string {
	const most = 5
	if len(paths) <= most {
		return strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(paths[:most], ", "), len(paths)-most)
}

// PlanUpgrade finds out what an upgrade of p to this famcp does. It writes nothing. The errors of checks that come first
// are the types above.
func PlanUpgrade(ctx context.Context, p *Found, o UpgradeOptions) (*UpgradePlan, error) {
	if o.Env == nil {
		o.Env = func(string) string { return "" }
	}
	if journal.Look(p.root) == journal.Interrupted {
		return nil, &InterruptedError{}
	}
	rec, err := p.readRecord()
	if err != nil {
		return nil, err
	}
	m := rec.manifest
	switch {
	case len(m.Unresolved) > 0:
		return nil, &UnfinishedError{m.Unresolved}
	case semver.IsValid(m.Template) && semver.IsValid(o.Release.Version) && semver.Compare(m.Template, o.Release.Version) > 0:
		return nil, &NewerTemplateError{m.Template, o.Release.Version}
	}
	if p.Repository != "" && !o.AllowDirty {
		dirty, err := vcs.Dirty(o.Env, p.Repository, p.Dir, secret)
		if err != nil {
			return nil, fmt.Errorf("asking git what is not committed: %w; pass --allow-dirty to go on without", err)
		}
		if len(dirty) > 0 {
			return nil, &DirtyError{dirty}
		}
	}
	answers, err := upgradeAnswers(m, o)
	if err != nil {
		return nil, err
	}
	u := &upgrade{
		UpgradePlan: &UpgradePlan{Found: p, Answers: answers, Migrations: &migrate.Result{}},
		opts:        o,
		recorded:    rec,
		changes:     map[string]*journal.Change{},
	}
	if rec.commit != "" {
		u.note("%v; the record of commit %.7s was used", rec.reason, rec.commit)
	}
	if p.Repository == "" {
		u.note("the project is in no git repository, which would show what an upgrade changed and bring it back")
	}
	if err := u.plan(ctx); err != nil {
		return nil, err
	}
	return u.UpgradePlan, ctx.Err()
}

// upgradeAnswers are the recorded answers, with those to new questions.
func upgradeAnswers(m *manifest.Manifest, o UpgradeOptions) (Answers, error) {
	given := map[string]string{}
	var open []Question
	for _, q := range questions {
		recorded, known := m.Answers[q.Key]
		if known {
			given[q.Key] = fmt.Sprint(recorded)
		}
		text, ok := o.Given[q.Key]
		switch {
		case ok && known && q.Key != "runtime" && text != given[q.Key]:
			return Answers{}, Violations{{Key: q.Key, Flag: q.Flag, Rule: fmt.Sprintf(
				"was answered by %q when the project was made; an upgrade does not change that", given[q.Key],
			)}}
		case ok:
			given[q.Key] = text
		case !known:
			open = append(open, q)
		}
	}
	a, err := Resolve(given, o.Release)
	open = slices.DeleteFunc(open, func(q Question) bool { return !q.Applies(a) })
	if len(open) > 0 && !o.Defaults {
		return Answers{}, &OpenQuestionsError{open, given}
	}
	if err == nil && a.Runtime == "module" && !o.Release.Published() {
		err = Violations{errUnpublished}
	}
	return a, err
}

// upgrade is a plan in the making.
type upgrade struct {
	*UpgradePlan
	opts     UpgradeOptions
	recorded *recorded                  // nil when it is lost for good
	changes  map[string]*journal.Change // by path
}

func (u *upgrade) note(format string, args ...any) {
	u.Notes = append(u.Notes, fmt.Sprintf(format, args...))
}

func (u *upgrade) newOptions() NewOptions {
	o := NewOptions{Answers: u.Answers, Templates: u.opts.Templates, Runtime: u.opts.Runtime, Release: u.opts.Release}
	if u.recorded != nil {
		o.Overlay = u.recorded.overlay
	}
	return o
}

func (u *upgrade) plan(ctx context.Context) error {
	fresh, err := rendering(u.newOptions())
	if err != nil {
		return err
	}
	rec, err := record(u.newOptions())
	if err != nil {
		return err
	}
	old := u.recorded.manifest
	u.From = Versions{Famcp: old.Famcp, Runtime: old.Runtime}
	u.To = Versions{Famcp: rec.Famcp, Runtime: rec.Runtime}
	if err := u.modules(fresh); err != nil {
		return err
	}
	if err := u.locked(fresh); err != nil {
		return err
	}
	if err := u.files(fresh); err != nil {
		return err
	}
	if !u.upToDate(rec, fresh) {
		if err := u.migrate(ctx); err != nil {
			return err
		}
	}
	if err := u.writeRecord(*rec, fresh); err != nil {
		return err
	}
	return u.finish()
}

// upToDate reports whether the record already is that of the template and the runtime of this famcp.
func (u *upgrade) upToDate(rec *manifest.Manifest, fresh []render.File) bool {
	old := u.recorded.manifest
	return u.recorded.commit == "" && old.Template == rec.Template && old.TemplateSum == rec.TemplateSum && old.Runtime == rec.Runtime &&
		maps.Equal(lockedEntries(manifest.Entries(fresh)), lockedEntries(old.Files))
}

func lockedEntries(entries map[string]manifest.Entry) map[string]manifest.Entry {
	locked := maps.Clone(entries)
	maps.DeleteFunc(locked, func(_ string, e manifest.Entry) bool { return e.Owner != render.Locked })
	return locked
}

// modules merges go.mod and go.sum, and puts the results into fresh, which the record is made from.
func (u *upgrade) modules(fresh []render.File) error {
	at := map[string]*render.File{}
	for i := range fresh {
		at[fresh[i].Path] = &fresh[i]
	}
	var ours gomod.Files
	contents := map[string]*journal.Content{}
	for name, data := range map[string]*[]byte{"go.mod": &ours.Mod, "go.sum": &ours.Sum} {
		c, err := u.Found.read(name)
		if err != nil {
			return err
		}
		if c == nil && name == "go.mod" {
			return errors.New("the project has no go.mod; restore it from git")
		}
		if c != nil {
			contents[name], *data = c, c.Data
		}
	}
	u.From.SDK = migrate.SDKVersion(ours.Mod)
	merged, changes, err := gomod.Merge(ours, gomod.Files{Mod: at["go.mod"].Data, Sum: at["go.sum"].Data})
	if err != nil {
		return err
	}
	u.To.SDK = migrate.SDKVersion(merged.Mod)
	u.Modules = changes
	for name, data := range map[string][]byte{"go.mod": merged.Mod, "go.sum": merged.Sum} {
		at[name].Data = data
		if u.change(name, contents[name], &journal.Content{Data: data, Mode: modeOf(contents[name], 0o644)}) {
			u.Files = append(u.Files, UpgradeFile{Path: name, Owner: render.Structural, Action: Merge})
		}
	}
	return nil
}

func modeOf(c *journal.Content, fallback fs.FileMode) fs.FileMode {
	if c == nil {
		return fallback
	}
	return c.Mode
}

// change plans a change of the file at name; a nil content is a missing file. It reports whether there is one.
func (u *upgrade) change(name string, was, now *journal.Content) bool {
	if c := u.changes[name]; c != nil {
		was = c.Was
	}
	if was == nil && now == nil || was != nil && now != nil && string(was.Data) == string(now.Data) && was.Mode == now.Mode {
		delete(u.changes, name)
		return false
	}
	u.changes[name] = &journal.Change{Path: name, Was: was, Now: now}
	return true
}

// locked replaces the vendored runtime when it has to be and nobody has edited it.
func (u *upgrade) locked(fresh []render.File) error {
	before := lockedEntries(u.recorded.manifest.Files)
	after := map[string]render.File{}
	for _, f := range fresh {
		if f.Owner == render.Locked {
			after[f.Path] = f
		}
	}
	found, err := u.vendored()
	if err != nil {
		return err
	}
	var edited []string
	for name, c := range found {
		if e, ok := before[name]; !ok || manifest.Sum(render.LF(c.Data)) != e.SHA256 {
			edited = append(edited, name)
		}
	}
	for name := range before {
		if found[name] == nil {
			edited = append(edited, name)
		}
	}
	// What is there already needs no replacing, whoever put it there.
	arrived := len(found) == len(after)
	for name, f := range after {
		arrived = arrived && found[name] != nil && sameText(found[name].Data, f.Data)
	}
	if arrived {
		return nil
	}
	if len(edited) > 0 && !u.opts.DiscardRuntimeEdits {
		slices.Sort(edited)
		if maps.Equal(before, lockedEntries(manifest.Entries(fresh))) {
			u.note("%s was edited by hand: %s; the next change of the runtime asks for --discard-runtime-edits", gomod.VendorDir, listed(edited))
			return nil
		}
		return &RuntimeEditedError{edited}
	}
	for name, f := range after {
		c := found[name]
		if c != nil && sameText(c.Data, f.Data) {
			continue
		}
		if u.change(name, c, &journal.Content{Data: f.Data, Mode: modeOf(c, f.Mode)}) {
			u.Runtime++
		}
	}
	for name, c := range found {
		if _, ok := after[name]; !ok && u.change(name, c, nil) {
			u.Runtime++
		}
	}
	return nil
}

// vendored is what lies in the directory of the vendored runtime.
func (u *upgrade) vendored() (map[string]*journal.Content, error) {
	found := map[string]*journal.Content{}
	if !u.Found.exists(gomod.VendorDir) {
		return found, nil
	}
	err := fs.WalkDir(u.Found.root.FS(), gomod.VendorDir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == ".DS_Store" {
			return err
		}
		found[name], err = u.Found.read(name)
		return err
	})
	return found, err
}

// writeRecord plans the new record.
func (u *upgrade) writeRecord(m manifest.Manifest, fresh []render.File) error {
	slices.Sort(u.Unresolved)
	m.Unresolved = u.Unresolved
	files, err := manifest.Record(m, fresh)
	if err != nil {
		return err
	}
	for _, f := range files {
		was, err := u.Found.read(f.Path)
		if err != nil {
			return err
		}
		now := &journal.Content{Data: f.Data, Mode: modeOf(was, f.Mode)}
		if was != nil && f.Path != manifest.BasePath && sameText(was.Data, f.Data) {
			now = was
		}
		u.change(f.Path, was, now)
	}
	return nil
}

// finish sorts the plan and checks that it can be applied.
func (u *upgrade) finish() error {
	slices.SortFunc(u.Files, func(a, b UpgradeFile) int { return cmp.Compare(a.Path, b.Path) })
	slices.SortFunc(u.Advice, func(a, b patch.File) int { return cmp.Compare(a.Path, b.Path) })
	for _, name := range slices.Sorted(maps.Keys(u.changes)) {
		c := u.changes[name]
		if c.Was != nil && c.Was.Mode&0o200 == 0 {
			return fmt.Errorf("%s is read-only and has to change; make it writable", name)
		}
		if err := u.writableAbove(name); err != nil {
			return err
		}
		u.UpgradePlan.changes = append(u.UpgradePlan.changes, *c)
	}
	return nil
}

// writableAbove checks the nearest directory above name that exists.
func (u *upgrade) writableAbove(name string) error {
	dir := filepath.Dir(filepath.Join(u.Found.Dir, filepath.FromSlash(name)))
	for {
		if _, err := os.Stat(dir); err == nil || dir == u.Found.Dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	if err := writable(dir); err != nil {
		return fmt.Errorf("directory %q cannot be written to: %w", dir, err)
	}
	return nil
}
