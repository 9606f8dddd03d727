package testkit

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// Checkout is the root directory of this module's source.
func Checkout(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd() // the go command runs a test in the directory of its package
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("the test does not run inside the checkout")
		}
		dir = parent
	}
}

// Runtime is the source of the runtime in the checkout, tests included.
func Runtime(t testing.TB) fs.FS {
	t.Helper()
	checkout := os.DirFS(Checkout(t))
	files := fstest.MapFS{}
	err := fs.WalkDir(checkout, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if !holdsRuntime(name) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Dir(name) == "." && path.Ext(name) != ".go" && name != "LICENSE" {
			return nil
		}
		if name == path.Join("internal", path.Base(name)) {
			return nil
		}
		data, err := fs.ReadFile(checkout, name)
		files[name] = &fstest.MapFile{Data: data, Mode: 0o644}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func holdsRuntime(dir string) bool {
	if dir == "." || dir == "internal" {
		return true
	}
	for _, top := range []string{"famcptest", "redisstore", "internal/runtime"} {
		if dir == top || strings.HasPrefix(dir, top+"/") {
			return true
		}
	}
	return false
}
