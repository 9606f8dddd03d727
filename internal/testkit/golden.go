// Package testkit holds what tests of several packages need. Only tests import it.
package testkit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// updateEnv is the environment variable that makes tests write what they would compare with.
const updateEnv = "FAMCP_UPDATE"

// Updating reports whether tests write golden files and generated data instead of comparing with them: when
// FAMCP_UPDATE is 1. It fails the test when CI is set, where nobody would review them.
func Updating(t testing.TB) bool {
	t.Helper()
	if os.Getenv(updateEnv) != "1" {
		return false
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is set on CI", updateEnv)
	}
	return true
}

// Golden compares got with the file name, or writes it there when [Updating]. A relative name is one below the
// directory of the test's package.
func Golden(t testing.TB, name string, got []byte) {
	t.Helper()
	if Updating(t) {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not what the test made (-file +made); look at the difference, then %s=1 go test -run '^%s$'\n%s",
			name, updateEnv, t.Name(), diff)
	}
}
