//go:build darwin || freebsd || linux || netbsd || openbsd

package journal

import (
	"errors"
	"os"
	"syscall"
)

// lock takes the lock file at name for this process; the system gives it back when the process ends.
func lock(root *os.Root, name string) (unlock func() error, err error) {
	f, err := root.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(ErrBusy, f.Close())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// Whoever had it may have removed the file between the two calls above.
	mine, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if named, err := root.Lstat(name); err != nil || !os.SameFile(mine, named) {
		return nil, errors.Join(ErrBusy, f.Close())
	}
	return f.Close, nil
}
