package telemetry

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Files that a server writes to say what it does are cut and kept so that they
// never take more than (keptFiles+1) * maxFile.
const (
	maxFile   = 10 << 20
	keptFiles = 4
)

// File is a file of whole lines that only its owner reads and whose size is
// bounded: at 10 MiB it becomes NAME.1, and what was NAME.4 is removed. It is
// safe for concurrent use, by one process.
type File struct {
	path string
	most int64

	mu   sync.Mutex
	f    *os.File
	size int64
}

// OpenFile opens a file to append to. It makes the directory.
func OpenFile(path string) (*File, error) { return openFile(path, maxFile) }

func openFile(path string, most int64) (*File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	w := &File{path: path, most: most}
	return w, w.open()
}

func (w *File) open() error {
	f, err := os.OpenFile(w.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) // #nosec G304 -- the operator's own path
	if err != nil {
		return err
	}
	info, err := f.Stat()
	switch {
	case err == nil && !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file", w.path)
	case err == nil && info.Mode().Perm()&0o077 != 0:
		err = f.Chmod(0o600) // it may be from before
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	w.f, w.size = f, info.Size()
	return nil
}

// Write appends lines. After a failure the next write tries again.
func (w *File) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.f != nil && w.size > 0 && w.size+int64(len(b)) > w.most {
		w.turn()
	}
	if w.f == nil {
		if err := w.open(); err != nil {
			return 0, err
		}
	}
	n, err := w.f.Write(b)
	w.size += int64(n)
	return n, err
}

// turn makes room. Where a file cannot be renamed the oldest lines are lost
// rather than the bound.
func (w *File) turn() {
	_ = w.f.Close()
	w.f = nil
	for i := keptFiles - 1; i > 0; i-- {
		_ = os.Rename(w.kept(i), w.kept(i+1)) // the first times there is none
	}
	if os.Rename(w.path, w.kept(1)) != nil {
		_ = os.Truncate(w.path, 0)
	}
}

func (w *File) kept(i int) string { return fmt.Sprintf("%s.%d", w.path, i) }

// Close closes the file. A later write opens it again.
func (w *File) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.f == nil {
		return nil
	}
	err := w.f.Close()
	w.f = nil
	return err
}
