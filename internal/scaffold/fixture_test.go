package scaffold

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

var testRelease = Release{
	Version: "v1.2.3",
	GoSum: []string{
		"github.com/famcp/famcp v1.2.3 h1:00000000000000000000000000000000000000000000",
		"github.com/famcp/famcp v1.2.3/go.mod h1:11111111111111111111111111111111111111111111",
	},
}

// ada knows who she is and nothing else.
var ada = map[string]string{
	"GIT_CONFIG_NOSYSTEM": "1",
	"GIT_AUTHOR_NAME":     "Ada", "GIT_AUTHOR_EMAIL": "ada@example.com",
	"GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.com",
}

func environment(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

// testOptions make a small project of testdata/templates in dir.
func testOptions(dir string) NewOptions {
	return NewOptions{
		Dir:       dir,
		Answers:   Defaults("demo", Release{}),
		Templates: os.DirFS("testdata/templates"),
		Runtime: fstest.MapFS{
			"famcp.go":                       {Data: []byte("package famcp\n")},
			"famcp_test.go":                  {Data: []byte("package famcp\n")},
			"source.go":                      {Data: []byte("package famcp\n")},
			"go.mod":                         {Data: []byte("module x\n")},
			"testdata/x.txt":                 {Data: []byte("x\n")},
			"LICENSE":                        {Data: []byte("MIT\r\n")},
			"famcptest/famcptest.go":         {Data: []byte("package famcptest\n")},
			"internal/runtime/call/call.go":  {Data: []byte("package call\n")},
			"internal/runtime/config/doc.go": {Data: []byte("package config\n")},
		},
		Release: Release{Version: testRelease.Version},
		Git:     true,
		Env:     environment(ada),
		Now:     func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
	}
}

// tree is every path below dir with its content; directories end in a slash.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		switch {
		case entry.IsDir():
			got[rel+"/"] = ""
		case entry.Type()&os.ModeSymlink != 0:
			got[rel], err = os.Readlink(name)
		default:
			var data []byte
			data, err = os.ReadFile(name)
			got[rel] = string(data)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// git runs the real git without the configuration of the person who tests.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git to compare with")
	}
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C.UTF-8"}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

// realTempDir is a temporary directory without links above it.
func realTempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
