//go:build !darwin && !freebsd && !linux && !netbsd && !openbsd

package scaffold

// writable leaves the answer to the first write, which leaves nothing behind when it fails.
func writable(string) error { return nil }
