package telemetry

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// TestFileIsBounded: however much is written, the files hold the newest lines,
// whole, and no more than their bound.
func TestFileIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "x.log")
	f, err := openFile(path, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 250 {
				if _, err := fmt.Fprintf(f, "writer %d line %03d\n", w, i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if _, err := f.Write([]byte("the last\n")); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) != keptFiles+1 {
		t.Fatalf("files %v, want %d", files, keptFiles+1)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil || len(data) == 0 || len(data) > 1000 {
			t.Errorf("%s has %d bytes: %v", file, len(data), err)
		}
		for line := range strings.Lines(string(data)) {
			if !strings.HasPrefix(line, "writer ") && line != "the last\n" || !strings.HasSuffix(line, "\n") {
				t.Errorf("broken line %q", line)
			}
		}
		if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", file, info.Mode(), err)
		}
	}
	if data, _ := os.ReadFile(path); !bytes.HasSuffix(data, []byte("the last\n")) {
		t.Errorf("the last line is not in the newest file: %q", data)
	}
}

func TestFileIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes on this system")
	}
	path := filepath.Join(t.TempDir(), "x.log")
	if err := os.WriteFile(path, []byte("old\n"), 0o644); err != nil { //nolint:gosec // it is what is put right
		t.Fatal(err)
	}
	f, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.Write([]byte("new\n"))
	_ = f.Close()
	info, err := os.Stat(path)
	data, _ := os.ReadFile(path)
	if err != nil || info.Mode().Perm() != 0o600 || string(data) != "old\nnew\n" {
		t.Errorf("%v %q %v", info.Mode(), data, err)
	}
	if _, err := OpenFile(t.TempDir()); err == nil {
		t.Error("a directory was opened")
	}
	if _, err := OpenFile(os.DevNull); err == nil {
		t.Error("a device was opened")
	}
}
