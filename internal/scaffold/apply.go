package scaffold

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/famcp/famcp/internal/scaffold/render"
)

// Progress is told how far Apply is: done counts up to total. It is called from the goroutine of Apply. A nil
// Progress is silent.
type Progress func(done, total int)

// Result is what [Plan.Apply] did.
type Result struct {
	Dir    string // absolute
	Commit string // hash of the first commit; empty when there is none
	Branch string // of that commit
	Hint   string // why there is no commit and what to do about it; empty with one, and when none was wanted
}

// Apply writes the project. When it fails or ctx ends before the last step, nothing is left behind.
func (p *Plan) Apply(ctx context.Context, progress Progress) (*Result, error) {
	return p.apply(ctx, progress, realDisk{})
}

func (p *Plan) apply(ctx context.Context, progress Progress, d disk) (_ *Result, err error) {
	parent := p.Target.Dir
	if p.Target.State == Absent {
		parent = filepath.Dir(parent)
	}
	staging, err := d.MkdirTemp(parent, stagingPrefix)
	if err != nil {
		return nil, fmt.Errorf("writing to %q: %w", parent, errors.Join(err, os.RemoveAll(staging)))
	}
	defer func() {
		if p.Target.State != Absent || err != nil {
			err = errors.Join(err, os.RemoveAll(staging))
		}
	}()
	if err := stage(ctx, d, staging, p.Files, progress); err != nil {
		return nil, err
	}
	if p.Target.State == Absent {
		err = d.Rename(staging, p.Target.Dir)
	} else {
		err = moveEntries(ctx, d, staging, p.Target.Dir)
	}
	if err != nil {
		return nil, err
	}
	return &Result{Dir: p.Target.Dir}, nil
}

// stage writes files below dir, which exists.
func stage(ctx context.Context, d disk, dir string, files []render.File, progress Progress) error {
	made := map[string]bool{".": true}
	for i, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, parent := range parents(f.Path) {
			if !made[parent] {
				if err := d.Mkdir(filepath.Join(dir, filepath.FromSlash(parent))); err != nil {
					return err
				}
				made[parent] = true
			}
		}
		if err := d.WriteFile(filepath.Join(dir, filepath.FromSlash(f.Path)), f.Data, f.Mode); err != nil {
			return err
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

// moveEntries moves all that is in from to the directory to, and back again when one cannot be moved.
func moveEntries(ctx context.Context, d disk, from, to string) (err error) {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	var moved []string
	defer func() {
		if err == nil {
			return
		}
		for _, name := range slices.Backward(moved) {
			err = errors.Join(err, os.Rename(filepath.Join(to, name), filepath.Join(from, name)))
		}
	}()
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		target := filepath.Join(to, entry.Name())
		if _, err := os.Lstat(target); err == nil {
			return fmt.Errorf("%q appeared while the project was being written; nothing was changed", target)
		}
		if err := d.Rename(filepath.Join(from, entry.Name()), target); err != nil {
			return err
		}
		moved = append(moved, entry.Name())
	}
	return nil
}
