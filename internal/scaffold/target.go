package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/famcp/famcp/internal/scaffold/vcs"
)

// State is what was found at the target.
type State string

// The states in which a target can be written.
const (
	Absent  State = "absent"  // does not exist; its parent does
	Empty   State = "empty"   // an existing directory without entries
	OnlyGit State = "onlyGit" // an existing directory that holds nothing but .git
)

// Target is where a project goes.
type Target struct {
	Dir        string // absolute
	State      State
	Repository string // root of the git repository that Dir lies in, or is; empty outside of one
}

// staging is the directory in which the project is put together: on the file system of the target.
func (t Target) staging() string {
	if t.State == Absent {
		return filepath.Dir(t.Dir)
	}
	return t.Dir
}

// stagingPrefix begins the name of the temporary directory in which a project is put together.
const stagingPrefix = ".famcp-new-"

// CheckTarget finds out whether a project can be written to dir. It writes nothing.
func CheckTarget(dir string) (Target, error) {
	if dir == "" {
		return Target{}, errors.New("no target directory given")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Target{}, fmt.Errorf("target directory %q: %w", dir, err)
	}
	t := Target{Dir: abs}
	if t.State, err = stateOf(abs); err != nil {
		return Target{}, err
	}
	if err := writable(t.staging()); err != nil {
		return Target{}, fmt.Errorf("directory %q cannot be written to: %w; choose another target", t.staging(), err)
	}
	if t.State != Absent {
		// A link is followed once, so that staging and renames stay on one file system.
		if t.Dir, err = filepath.EvalSymlinks(abs); err != nil {
			return Target{}, fmt.Errorf("target directory %q: %w", abs, err)
		}
	}
	t.Repository = vcs.Root(physical(t.Dir))
	return t, nil
}

// physical is dir, which may not exist yet, as git sees it: without links above it.
func physical(dir string) string {
	if parent, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
		return filepath.Join(parent, filepath.Base(dir))
	}
	return dir
}

func stateOf(dir string) (State, error) {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if link, err := os.Readlink(dir); err == nil {
			return "", fmt.Errorf("target %q is a link to %q, which does not exist; remove it or choose another target", dir, link)
		}
		return Absent, checkParent(dir)
	}
	if err != nil {
		return "", fmt.Errorf("target directory: %w", err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("target %q is a file, not a directory; choose another target", dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("target directory: %w", err)
	}
	switch {
	case len(entries) == 0:
		return Empty, nil
	case len(entries) == 1 && entries[0].Name() == ".git":
		return OnlyGit, nil
	}
	return "", notEmptyError(dir, entries)
}

func checkParent(dir string) error {
	parent := filepath.Dir(dir)
	info, err := os.Stat(parent)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the parent %q of the target does not exist; create it first", parent)
	case err != nil:
		return fmt.Errorf("parent of the target: %w", err)
	case !info.IsDir():
		return fmt.Errorf("the parent %q of the target is not a directory; choose another target", parent)
	}
	return nil
}

// NotEmptyError says that there are files where the project should go.
type NotEmptyError struct {
	Dir   string
	Files []string // names of the entries in the way, sorted; not .git
}

func notEmptyError(dir string, entries []fs.DirEntry) error {
	e := &NotEmptyError{Dir: dir}
	for _, entry := range entries {
		if entry.Name() != ".git" {
			e.Files = append(e.Files, entry.Name())
		}
	}
	return e
}

func (e *NotEmptyError) Error() string {
	const most = 10
	shown := e.Files[:min(most, len(e.Files))]
	quoted := make([]string, len(shown))
	for i, name := range shown {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	list := strings.Join(quoted, ", ")
	if more := len(e.Files) - len(shown); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	next := "choose another directory"
	if len(e.Files) == 1 && strings.HasPrefix(e.Files[0], stagingPrefix) {
		next = "another famcp is writing here, or was killed: if none runs, remove it"
	}
	return fmt.Sprintf("target directory %q is not empty: it holds %s; %s", e.Dir, list, next)
}
