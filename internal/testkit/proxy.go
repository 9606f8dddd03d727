package testkit

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// Published is the runtime as a published module, for tests of projects in module mode.
type Published struct {
	Version string
	GoSum   []string // the lines of the module in go.sum
	Env     []string // lets the go command find it, and everything else in the module cache it had
}

// Publish puts the runtime of the checkout into a module proxy of files. The go command gets a module cache of its
// own: the version's content changes with the checkout, and a cache never forgets one.
func Publish(t testing.TB) Published {
	t.Helper()
	m := module.Version{Path: "github.com/famcp/famcp", Version: "v0.0.0-test"}
	goMod, err := os.ReadFile(filepath.Join(Checkout(t), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(t.TempDir(), "source")
	if err := os.CopyFS(source, Runtime(t)); err != nil {
		t.Fatal(err)
	}
	proxy := t.TempDir()
	dir := filepath.Join(proxy, filepath.FromSlash(m.Path), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	info, err := json.Marshal(map[string]any{"Version": m.Version, "Time": time.Unix(0, 0).UTC()})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		filepath.Join(source, "go.mod"):       goMod,
		filepath.Join(dir, m.Version+".mod"):  goMod,
		filepath.Join(dir, m.Version+".info"): info,
		filepath.Join(dir, "list"):            []byte(m.Version + "\n"),
	} {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	archive := filepath.Join(dir, m.Version+".zip")
	out, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	if err := zip.CreateFromDir(out, m, source); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	zipSum, err := dirhash.HashZip(archive, dirhash.Hash1)
	if err != nil {
		t.Fatal(err)
	}
	modSum, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return os.Open(filepath.Join(source, "go.mod"))
	})
	if err != nil {
		t.Fatal(err)
	}
	cache := GoEnv(t, "GOMODCACHE")
	return Published{
		Version: m.Version,
		GoSum: []string{
			fmt.Sprintf("%s %s %s", m.Path, m.Version, zipSum),
			fmt.Sprintf("%s %s/go.mod %s", m.Path, m.Version, modSum),
		},
		Env: []string{
			"GOPROXY=" + strings.Join([]string{fileURL(proxy), fileURL(filepath.Join(cache, "cache", "download")), GoEnv(t, "GOPROXY")}, ","),
			"GONOSUMDB=" + m.Path,
			"GOMODCACHE=" + t.TempDir(),
			"GOFLAGS=-modcacherw",
		},
	}
}

func fileURL(dir string) string {
	dir = filepath.ToSlash(dir)
	if !strings.HasPrefix(dir, "/") { // C:/…
		dir = "/" + dir
	}
	return "file://" + dir
}

// GoEnv is the value of a setting of the go command.
func GoEnv(t testing.TB, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatalf("go env %s: %v", name, err)
	}
	return strings.TrimSpace(string(out))
}
