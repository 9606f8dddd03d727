//go:build !unix

package scaffold

// umask does nothing where there is none.
func umask(int) (restore func()) { return func() {} }
