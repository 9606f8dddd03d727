package patch_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp/internal/scaffold/patch"
)

// What a patch says, git does: the reason to write one.
func TestGitAppliesIt(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git to apply patches")
	}
	long := strings.Repeat("line\n", 50)
	files := []patch.File{
		{Path: "changed.txt", Old: []byte("first\n" + long + "middle\n" + long + "last\n"), New: []byte("1st\n" + long + "Middle\n" + long + "last")},
		{Path: "no newline.txt", Old: []byte("a\nb"), New: []byte("a\nb\n")},
		{Path: "dir/new.txt", New: []byte("new\n")},
		{Path: "run.sh", New: []byte("#!/bin/sh\n"), Mode: 0o755},
		{Path: "gone.txt", Old: []byte("gone\n")},
		{Path: "emptied.txt", Old: []byte("text\n"), New: []byte{}},
		{Path: "filled.txt", Old: []byte{}, New: []byte("text\n")},
		{Path: "empty new.txt", New: []byte{}},
		{Path: "crlf.txt", Old: []byte("a\r\nb\r\n"), New: []byte("a\r\nc\r\n")},
		{Path: "ünï \"quoted\" \\ name.txt", Old: []byte("a\n"), New: []byte("b\n")},
		{Path: "same.txt", Old: []byte("same\n"), New: []byte("same\n")},
	}
	dir := t.TempDir()
	for _, f := range files {
		if f.Old == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, f.Path), f.Old, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	apply := exec.Command("git", "apply", "-")
	apply.Dir, apply.Stdin = dir, strings.NewReader(patch.Unified(files))
	apply.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("git apply: %v\n%s\n%s", err, out, patch.Unified(files))
	}
	for _, f := range files {
		got, err := os.ReadFile(filepath.Join(dir, f.Path))
		if f.New == nil {
			if !os.IsNotExist(err) {
				t.Errorf("%s is still there", f.Path)
			}
			continue
		}
		if diff := cmp.Diff(string(f.New), string(got)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", f.Path, err, diff)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "run.sh"))
	if err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("run.sh has the mode %v, %v, want an executable", info.Mode(), err)
	}
}
