package scaffold

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckTarget(t *testing.T) {
	base := realTempDir(t)
	mkdir := func(name string) string {
		dir := filepath.Join(base, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	touch := func(name string) string {
		file := filepath.Join(base, name)
		mkdir(filepath.Dir(name))
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	link := func(to, name string) string {
		file := filepath.Join(base, name)
		if err := os.Symlink(to, file); err != nil {
			t.Skip(err)
		}
		return file
	}
	for i := range 12 {
		touch(fmt.Sprintf("full/f%02d", i))
	}
	touch("left/.famcp-new-123/x")
	touch("with git/.git/HEAD")
	touch("with git/a b")
	tests := []struct {
		name, dir string
		state     State
		at        string // Target.Dir when it is not dir
		err       string
	}{
		{name: "absent", dir: filepath.Join(base, "new"), state: Absent},
		{name: "odd name", dir: filepath.Join(base, "-new dir ünï"), state: Absent},
		{name: "empty", dir: mkdir("empty"), state: Empty},
		{name: "only .git", dir: filepath.Dir(mkdir("repo/.git")), state: OnlyGit},
		{name: "link to an empty directory", dir: link("empty", "to-empty"), state: Empty, at: filepath.Join(base, "empty")},
		{
			name: "files in the way", dir: filepath.Join(base, "full"),
			err: `is not empty: it holds "f00", "f01", "f02", "f03", "f04", "f05", "f06", "f07", "f08", "f09" and 2 more; choose another directory`,
		},
		{name: "files beside .git", dir: filepath.Join(base, "with git"), err: `it holds "a b"; choose`},
		{name: "left behind", dir: filepath.Join(base, "left"), err: `it holds ".famcp-new-123"; another famcp is writing here, or was killed: if none runs, remove it`},
		{name: "a file", dir: touch("file"), err: "is a file, not a directory"},
		{name: "link to nowhere", dir: link("nowhere", "to-nowhere"), err: `is a link to "nowhere", which does not exist`},
		{name: "no parent", dir: filepath.Join(base, "no", "new"), err: "does not exist; create it first"},
		{name: "below a file", dir: filepath.Join(base, "file", "new"), err: "not a directory"},
		{name: "nothing given", dir: "", err: "no target directory given"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := CheckTarget(tt.dir)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if tt.at == "" {
				tt.at = tt.dir
			}
			if want := (Target{Dir: tt.at, State: tt.state}); got != want {
				t.Errorf("CheckTarget = %+v, want %+v", got, want)
			}
		})
	}
}
