package testkit

import (
	"errors"
	"io/fs"
	"os"
	"testing"
)

// ReadFile is the content of a file, or nil when there is none.
func ReadFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return data
}
