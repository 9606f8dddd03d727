//go:build darwin || freebsd || linux || netbsd || openbsd

package scaffold

import "syscall"

// writable asks the system whether entries can be made in dir, which is also the answer for a read-only file system.
func writable(dir string) error {
	const writeAndSearch = 0x2 | 0x1
	return syscall.Access(dir, writeAndSearch)
}
