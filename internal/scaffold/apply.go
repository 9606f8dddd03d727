package scaffold

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/famcp/famcp/internal/scaffold/render"
)

// Progress is told how many of the files are written. It is called from the goroutine of [Plan.Apply]; a nil one is
// silent.
type Progress func(done, total int)

// Result is what [Plan.Apply] did.
type Result struct {
	Dir    string // absolute
	Commit string // hash of the first commit; empty when there is none
	Branch string // that it is on, or will be; empty when no repository was made or committed to
	Hint   string // why there is no commit and what to do about it; empty with one, and when none was wanted
}

// Apply writes the project and makes its first commit. Everything is put together in a temporary directory and moved
// to the target when it is complete: when Apply fails or ctx ends, nothing is left behind. A plan is applied once.
func (p *Plan) Apply(ctx context.Context, progress Progress) (*Result, error) {
	return p.apply(ctx, progress, realDisk{})
}

func (p *Plan) apply(ctx context.Context, progress Progress, d disk) (_ *Result, err error) {
	result := &Result{Dir: p.Target.Dir}
	files := p.Files
	if p.opts.Git {
		repository, err := p.firstCommit(result)
		if err != nil {
			return nil, err
		}
		files = slices.Concat(files, repository)
	}
	staging, err := d.MkdirTemp(p.Target.staging(), stagingPrefix)
	if err != nil {
		return nil, fmt.Errorf("writing the project: %w", err)
	}
	// A rename onto a directory fails on most systems, so an existing target gets the entries one by one.
	if err = stage(ctx, d, staging, files, progress); err == nil {
		if p.Target.State == Absent {
			err = moveDir(d, staging, p.Target.Dir)
		} else {
			err = moveEntries(ctx, d, staging, p.Target.Dir)
		}
	}
	if err != nil || p.Target.State != Absent {
		err = errors.Join(err, os.RemoveAll(staging))
	}
	if err != nil {
		return nil, fmt.Errorf("writing the project: %w", err)
	}
	return result, nil
}

// stage writes files below dir, which exists.
func stage(ctx context.Context, d disk, dir string, files []render.File, progress Progress) error {
	made := map[string]bool{".": true}
	for i, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		dirs := parents(f.Path)
		if f.Mode.IsDir() {
			dirs = append(dirs, f.Path)
		}
		for _, name := range dirs {
			if made[name] {
				continue
			}
			if err := d.Mkdir(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
				return err
			}
			made[name] = true
		}
		if !f.Mode.IsDir() {
			if err := d.WriteFile(filepath.Join(dir, filepath.FromSlash(f.Path)), f.Data, f.Mode); err != nil {
				return err
			}
		}
		if progress != nil {
			progress(i+1, len(files))
		}
	}
	return nil
}

// parents are the directories above the file at name, outermost first.
func parents(name string) []string {
	var dirs []string
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs
}

// moveDir renames the directory from to the path to, which did not exist a moment ago.
func moveDir(d disk, from, to string) error {
	err := d.Rename(from, to)
	if err == nil {
		return nil
	}
	if _, e := os.Lstat(to); e == nil {
		return appeared(to)
	}
	return err
}

func appeared(path string) error {
	return fmt.Errorf("%q appeared meanwhile; choose another target", path)
}

// moveEntries moves all that is in the directory from to the directory to, or nothing. Of a directory that is in both
// it moves the entries.
func moveEntries(ctx context.Context, d disk, from, to string) error {
	var moved [][2]string
	err := walkMoves(from, to, func(source, target string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := d.Rename(source, target); err != nil {
			return err
		}
		moved = append(moved, [2]string{source, target})
		return nil
	})
	if err == nil {
		return nil
	}
	for _, m := range slices.Backward(moved) {
		err = errors.Join(err, os.Rename(m[1], m[0]))
	}
	return err
}

func walkMoves(from, to string, move func(source, target string) error) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		source, target := filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())
		info, err := os.Lstat(target)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = move(source, target)
		case err == nil && info.IsDir() && entry.IsDir():
			err = walkMoves(source, target, move)
		case err == nil:
			err = appeared(target)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
