// Package overlay fetches a team's own template, which is laid over famcp's: from a directory, from a local repository
// or from a remote one. What comes back is plain data. Nothing in it is run, no hook, filter or submodule takes part,
// and nothing is written to disk.
//
// A template is somebody else's input: paths that lead out of the project or into what is famcp's, links, and trees
// larger than the limits are refused.
package overlay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/famcp/famcp/internal/scaffold/render"
)

// Limits of a template.
const (
	maxFiles      = 2000
	maxFileBytes  = 4 << 20
	maxTotalBytes = 32 << 20
	maxPackBytes  = 64 << 20 // of a remote repository at one commit, compressed
	fetchTimeout  = 2 * time.Minute
)

// Tree is a team's template, as it was at one moment.
type Tree struct {
	Source string        // where it came from, without credentials
	Ref    string        // as asked for; empty for the default branch, and of a directory
	Commit string        // in full; empty of a directory
	Files  []render.File // as they are, not yet rendered, sorted by path; without owners
}

// Fetch reads the template that spec names: a directory, or the URL of a git repository with an optional @REF, which is
// a branch, a tag or a full commit hash. URLs are https://, ssh://, git@host:path or file://, and http:// on this
// machine. ctx bounds it, and two minutes do.
//
// Credentials in a URL are used and forgotten: they are neither in the tree nor in an error.
func Fetch(ctx context.Context, spec string) (*Tree, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, fetchTimeout, fmt.Errorf("it took longer than %v", fetchTimeout))
	defer cancel()
	if !isURL(spec) {
		tree, err := fromDir(ctx, spec)
		if err != nil {
			return nil, fmt.Errorf("reading the template in %q: %w", spec, err)
		}
		return tree, nil
	}
	repository, err := parseURL(spec)
	if err != nil {
		return nil, err
	}
	tree, err := repository.fetch(ctx)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.DeadlineExceeded) {
			err = cause
		}
		return nil, fmt.Errorf("fetching the template from %s: %w", repository.shown, repository.redact(err))
	}
	return tree, nil
}

// collector takes the files of a tree, within the limits.
type collector struct {
	files []render.File
	bytes int64
}

// expect checks a file before its data is read.
func (c *collector) expect(name string, size int64) error {
	if err := render.CheckPath(name); err != nil {
		return err
	}
	c.bytes += size
	switch {
	case size > maxFileBytes:
		return fmt.Errorf("file %s has %d bytes, and at most %d are allowed; leave it out of the template", name, size, maxFileBytes)
	case c.bytes > maxTotalBytes:
		return fmt.Errorf("the files have more than %d bytes together; make the template smaller", maxTotalBytes)
	case len(c.files) >= maxFiles:
		return fmt.Errorf("there are more than %d files; make the template smaller", maxFiles)
	}
	return nil
}

func (c *collector) add(name string, executable bool, data []byte) {
	mode := fs.FileMode(0o644)
	if executable {
		mode = 0o755
	}
	c.files = append(c.files, render.File{Path: name, Mode: mode, Data: data})
}

func (c *collector) sorted() ([]render.File, error) {
	if len(c.files) == 0 {
		return nil, errors.New("it has no files")
	}
	slices.SortFunc(c.files, func(a, b render.File) int { return strings.Compare(a.Path, b.Path) })
	return c.files, nil
}

// fromDir reads a directory; a .git directly in it is left out, so that a clone can be used.
func fromDir(ctx context.Context, dir string) (*Tree, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var c collector
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case name == ".git":
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case name == ".":
			return nil
		case entry.IsDir():
			if strings.EqualFold(path.Base(name), ".git") {
				return render.CheckPath(name)
			}
			return nil
		case !entry.Type().IsRegular():
			return fmt.Errorf("%q is a link or another special file; a template has files only", name)
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if err := c.expect(name, info.Size()); err != nil {
			return err
		}
		data, err := readFile(root, name)
		if err != nil {
			return err
		}
		c.add(name, info.Mode()&0o111 != 0, data)
		return nil
	})
	if err != nil {
		return nil, err
	}
	files, err := c.sorted()
	return &Tree{Source: filepath.ToSlash(dir), Files: files}, err
}
