//go:build unix

package scaffold

import "syscall"

// umask sets the mask of the process and returns what restores it.
func umask(mask int) (restore func()) {
	old := syscall.Umask(mask)
	return func() { syscall.Umask(old) }
}
