// Package journal changes several files of a project as one: all of them or none, whatever interrupts it.
//
// Everything that needs room on the disk is written first, below [Dir], which git ignores: the new contents and copies
// of the old ones. Then each file is changed by one rename. What was renamed can be renamed back, so a change that
// fails is undone at once, and one that was killed by the next [Open] and [Journal.Restore]. The copies stay until they
// are discarded, for a person who wants everything back.
//
// It survives the end of the process at any moment. It does not try to survive the loss of power, which git is for.
package journal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Dir is where journals are kept, relative to the project.
const Dir = ".famcp/tmp"

// What is found in Dir.
const (
	lockName      = "lock"
	preparePrefix = "prepare-" // being written; the project is untouched
	applyingName  = "applying" // the project is being changed, or changed back
	appliedPrefix = "applied-" // done, in the order of their numbers
	discardPrefix = "discard-" // on its way out
	keptPrefix    = "kept-"    // a person's edits of files that were changed back
	indexName     = "journal.json"
)

// Content is a file: its bytes and permission bits.
type Content struct {
	Data []byte
	Mode fs.FileMode
}

// Change is what happens to one file.
type Change struct {
	Path string   // slash-separated, relative to the project
	Was  *Content // nil when there is no such file
	Now  *Content // nil to remove it
}

// Disk is what a journal does to a project. Paths are relative to the project.
type Disk interface {
	Mkdir(path string, mode fs.FileMode) error
	WriteFile(path string, data []byte, mode fs.FileMode) error // mode whatever the umask
	Rename(from, to string) error
	Remove(path string) error
}

// Real is the disk below root.
func Real(root *os.Root) Disk { return realDisk{root} }

type realDisk struct{ root *os.Root }

func (d realDisk) Mkdir(path string, mode fs.FileMode) error {
	if err := d.root.Mkdir(path, mode); err != nil {
		return err
	}
	return d.root.Chmod(path, mode)
}

func (d realDisk) WriteFile(path string, data []byte, mode fs.FileMode) error {
	if err := d.root.WriteFile(path, data, 0o600); err != nil {
		return err
	}
	return d.root.Chmod(path, mode)
}

func (d realDisk) Rename(from, to string) error { return d.root.Rename(from, to) }
func (d realDisk) Remove(path string) error     { return d.root.Remove(path) }

// index is the content of journal.json.
type index struct {
	Entries []entry           `json:"entries"`
	Made    []string          `json:"made"` // directories that did not exist, outermost first
	Dirs    map[string]uint32 `json:"dirs"` // permission bits of directories that a removal can leave empty
}

// entry is one change, whose old content is the file before/N and whose new one, until it is applied, after/N.
type entry struct {
	Path string `json:"path"`
	Was  *sum   `json:"was"`
	Now  *sum   `json:"now"`
}

// sum tells contents apart.
type sum struct {
	SHA256 string `json:"sha256"`
	Mode   uint32 `json:"mode"`
}

func sumOf(c *Content) *sum {
	if c == nil {
		return nil
	}
	h := sha256.Sum256(c.Data)
	return &sum{hex.EncodeToString(h[:]), uint32(c.Mode.Perm())}
}

func (s *sum) equal(o *sum) bool { return s == o || s != nil && o != nil && *s == *o }

// ErrBusy means that another process is changing the project.
var ErrBusy = errors.New("another famcp is at work in this project; wait for it to end")

// ChangedError means that a file is not what it was when the change was planned.
type ChangedError struct{ Path string }

func (e *ChangedError) Error() string {
	return e.Path + " was changed meanwhile; nothing was written, run the command again"
}

// Journal is the state of a project's changes. It belongs to one process at a time, from [Open] to [Journal.Close].
type Journal struct {
	root   *os.Root
	disk   Disk
	unlock func() error
}

// Open locks the journal of the project at root, and clears away what an earlier process left that never began to
// change the project. The error is [ErrBusy] while another process has it.
func Open(root *os.Root, disk Disk) (*Journal, error) {
	j := &Journal{root: root, disk: disk}
	for dir := range ancestors(path.Join(Dir, lockName)) {
		if err := disk.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	unlock, err := lock(root, path.Join(Dir, lockName))
	if err != nil {
		return nil, err
	}
	j.unlock = unlock
	for _, name := range j.names() {
		if strings.HasPrefix(name, preparePrefix) || strings.HasPrefix(name, discardPrefix) {
			if err := root.RemoveAll(path.Join(Dir, name)); err != nil {
				return nil, errors.Join(err, j.Close())
			}
		}
	}
	return j, nil
}

// Close unlocks the journal and leaves nothing in Dir that is not needed.
func (j *Journal) Close() error {
	err := j.root.Remove(path.Join(Dir, lockName))
	err = errors.Join(err, j.unlock())
	_ = j.root.Remove(Dir) // only when it is empty
	return err
}

// State is what a journal holds.
type State int

// The states.
const (
	None        State = iota
	Applied           // changes that can be changed back
	Interrupted       // a process was killed while it changed the project
)

// Look reads the state of the project at root and touches nothing.
func Look(root *os.Root) State {
	j := &Journal{root: root}
	names := j.names()
	switch {
	case slices.Contains(names, applyingName):
		return Interrupted
	case slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, appliedPrefix) }):
		return Applied
	}
	return None
}

// names are the entries of Dir; none when it cannot be read.
func (j *Journal) names() []string {
	dir, err := j.root.Open(Dir)
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	slices.Sort(names)
	return names
}

// applied are the finished journals, oldest first.
func (j *Journal) applied() []string {
	var numbers []int
	for _, name := range j.names() {
		if n, err := strconv.Atoi(strings.TrimPrefix(name, appliedPrefix)); err == nil && strings.HasPrefix(name, appliedPrefix) {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	names := make([]string, len(numbers))
	for i, n := range numbers {
		names[i] = path.Join(Dir, appliedPrefix+strconv.Itoa(n))
	}
	return names
}

// Apply changes the project. When it fails or ctx ends, the project is as it was. The journal must not be interrupted.
// The changes come on top of those applied before: [Journal.Restore] takes back all.
func (j *Journal) Apply(ctx context.Context, changes []Change) error {
	if len(changes) == 0 {
		return nil
	}
	prepared := path.Join(Dir, preparePrefix+strconv.Itoa(os.Getpid()))
	ix, err := j.prepare(ctx, prepared, changes)
	if err != nil {
		return errors.Join(err, j.root.RemoveAll(prepared))
	}
	applying := path.Join(Dir, applyingName)
	if err := j.disk.Rename(prepared, applying); err != nil {
		return errors.Join(err, j.root.RemoveAll(prepared))
	}
	if err := j.commit(ctx, ix); err != nil {
		if _, undo := j.undo(); undo != nil {
			return errors.Join(err, fmt.Errorf("changing everything back: %w", undo))
		}
		return err
	}
	next := 1
	if earlier := j.applied(); len(earlier) > 0 {
		last, _ := strconv.Atoi(strings.TrimPrefix(path.Base(earlier[len(earlier)-1]), appliedPrefix))
		next = last + 1
	}
	if err := j.disk.Rename(applying, path.Join(Dir, appliedPrefix+strconv.Itoa(next))); err != nil {
		_, undo := j.undo()
		return errors.Join(err, undo)
	}
	for _, e := range ix.Entries { // only now: to make them again would need room
		if e.Now == nil {
			j.prune(e.Path)
		}
	}
	return nil
}

// prepare writes everything below dir that applying and undoing need.
func (j *Journal) prepare(ctx context.Context, dir string, changes []Change) (*index, error) {
	for _, d := range []string{dir, path.Join(dir, "before"), path.Join(dir, "after")} {
		if err := j.disk.Mkdir(d, 0o755); err != nil {
			return nil, err
		}
	}
	ix := &index{Dirs: map[string]uint32{}}
	made := map[string]bool{}
	for i, c := range changes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		e := entry{Path: c.Path, Was: sumOf(c.Was), Now: sumOf(c.Now)}
		if found, err := j.read(c.Path); err != nil {
			return nil, err
		} else if !sumOf(found).equal(e.Was) {
			return nil, &ChangedError{c.Path}
		}
		ix.Entries = append(ix.Entries, e)
		if c.Was != nil {
			if err := j.disk.WriteFile(numbered(dir, "before", i), c.Was.Data, c.Was.Mode.Perm()); err != nil {
				return nil, err
			}
		}
		if c.Now != nil {
			if err := j.disk.WriteFile(numbered(dir, "after", i), c.Now.Data, c.Now.Mode.Perm()); err != nil {
				return nil, err
			}
		}
		for parent := range ancestors(c.Path) {
			info, err := j.root.Lstat(parent)
			switch {
			case err == nil && c.Now == nil:
				ix.Dirs[parent] = uint32(info.Mode().Perm())
			case errors.Is(err, fs.ErrNotExist) && !made[parent]:
				made[parent] = true
				ix.Made = append(ix.Made, parent)
			}
		}
	}
	text, err := json.MarshalIndent(ix, "", " ")
	if err != nil {
		return nil, err
	}
	return ix, j.disk.WriteFile(path.Join(dir, indexName), text, 0o644)
}

// commit changes the project; nothing here needs room on the disk but for directories.
func (j *Journal) commit(ctx context.Context, ix *index) error {
	for _, dir := range ix.Made {
		if err := j.disk.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	for i, e := range ix.Entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if e.Now == nil {
			if err := j.disk.Remove(e.Path); err != nil {
				return err
			}
			continue
		}
		if err := j.disk.Rename(numbered(path.Join(Dir, applyingName), "after", i), e.Path); err != nil {
			return err
		}
	}
	return nil
}

// prune removes the directories above a removed file that are empty now.
func (j *Journal) prune(name string) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if j.root.Remove(dir) != nil {
			return
		}
	}
}

// Restored is what [Journal.Restore] did.
type Restored struct {
	Paths []string // changed back, sorted
	// Kept is the directory, relative to the project, with what a person had made of these files since; empty when
	// nobody had.
	Kept string
}

// Restore changes back what was interrupted and, with all, also everything applied before. It can itself be
// interrupted and called again.
func (j *Journal) Restore(all bool) (*Restored, error) {
	restored := &Restored{}
	add := func(r *Restored, err error) error {
		restored.Paths = append(restored.Paths, r.Paths...)
		restored.Kept = r.Kept
		return err
	}
	if slices.Contains(j.names(), applyingName) {
		if err := add(j.undo()); err != nil {
			return restored, err
		}
	}
	if all {
		for _, name := range slices.Backward(j.applied()) {
			if err := j.disk.Rename(name, path.Join(Dir, applyingName)); err != nil {
				return restored, err
			}
			if err := add(j.undo()); err != nil {
				return restored, err
			}
		}
	}
	slices.Sort(restored.Paths)
	restored.Paths = slices.Compact(restored.Paths)
	return restored, nil
}

// undo changes back what the journal at applying changed, as far as that went.
func (j *Journal) undo() (*Restored, error) {
	r := &Restored{}
	applying := path.Join(Dir, applyingName)
	text, err := j.root.ReadFile(path.Join(applying, indexName))
	var ix index
	if err == nil {
		err = json.Unmarshal(text, &ix)
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w; restore the project with git, then remove %s", applying, err, Dir)
	}
	for i, e := range slices.Backward(ix.Entries) {
		found, err := j.read(e.Path)
		if err != nil {
			return r, err
		}
		now := sumOf(found)
		if now.equal(e.Was) {
			continue
		}
		before := numbered(applying, "before", i)
		if _, err := j.root.Lstat(before); e.Was != nil && errors.Is(err, fs.ErrNotExist) {
			continue // restored already, and edited since
		}
		if now != nil && !now.equal(e.Now) {
			if err := j.keep(r, e.Path); err != nil {
				return r, err
			}
			now = nil
		}
		if e.Was == nil {
			if now != nil {
				err = j.disk.Remove(e.Path)
			}
		} else {
			err = errors.Join(j.parents(e.Path, ix.Dirs), j.disk.Rename(before, e.Path))
		}
		if err != nil {
			return r, err
		}
		r.Paths = append(r.Paths, e.Path)
	}
	for _, dir := range slices.Backward(ix.Made) {
		_ = j.root.Remove(dir) // unless somebody put something there
	}
	return r, j.discard(applying)
}

// keep moves a person's version of a file out of the way.
func (j *Journal) keep(r *Restored, name string) error {
	if r.Kept == "" {
		n := 1
		for slices.Contains(j.names(), keptPrefix+strconv.Itoa(n)) {
			n++
		}
		r.Kept = path.Join(Dir, keptPrefix+strconv.Itoa(n))
	}
	to := path.Join(r.Kept, name)
	if err := j.parents(to, nil); err != nil {
		return err
	}
	return j.disk.Rename(name, to)
}

// parents makes the directories above name that are missing.
func (j *Journal) parents(name string, modes map[string]uint32) error {
	for dir := range ancestors(name) {
		if _, err := j.root.Lstat(dir); err == nil {
			continue
		}
		mode := fs.FileMode(0o755)
		if m, ok := modes[dir]; ok {
			mode = fs.FileMode(m)
		}
		if err := j.disk.Mkdir(dir, mode); err != nil {
			return err
		}
	}
	return nil
}

// Discard forgets what was applied: it cannot be restored any more.
func (j *Journal) Discard() error {
	for _, name := range j.applied() {
		if err := j.discard(name); err != nil {
			return err
		}
	}
	return nil
}

// discard removes a journal such that it is never seen in part.
func (j *Journal) discard(name string) error {
	gone := path.Join(Dir, discardPrefix+strconv.Itoa(os.Getpid())+"-"+path.Base(name))
	if err := j.disk.Rename(name, gone); err != nil {
		return err
	}
	return j.root.RemoveAll(gone)
}

// read is the file at name; nil when there is none.
func (j *Journal) read(name string) (*Content, error) { return Read(j.root, name) }

// Read is the file at name below root; nil when there is none. What is no regular file is an error.
func Read(root *os.Root, name string) (*Content, error) {
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	data, err := root.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return &Content{data, info.Mode().Perm()}, nil
}

func numbered(dir, side string, n int) string { return path.Join(dir, side, strconv.Itoa(n)) }

// ancestors are the directories above name, outermost first.
func ancestors(name string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i, r := range name {
			if r == '/' && !yield(name[:i]) {
				return
			}
		}
	}
}
