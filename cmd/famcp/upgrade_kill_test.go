//go:build unix

package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Killed at any moment, an upgrade has done nothing or everything, or the next
// command puts that right.
func TestUpgradeKilled(t *testing.T) {
	pristine := filepath.Join(t.TempDir(), "demo")
	if err := newOlderFamcp(t).project(pristine, "demo"); err != nil {
		t.Fatal(err)
	}
	before := contents(t, pristine)
	calm := copyOf(t, pristine)
	start := time.Now()
	if code, out := upgradeDemo(t, calm, "--yes", "--no-verify"); code != 0 {
		t.Fatalf("code %d: %s", code, out)
	}
	whole := time.Since(start)
	t.Logf("an undisturbed upgrade takes %v", whole)
	after := contents(t, calm)

	const kills = 16
	left := map[string]int{}
	for i := range kills {
		dir := copyOf(t, pristine)
		c := exec.Command("famcp", "upgrade", "--yes", "--no-verify")
		c.Dir, c.Env = dir, environ()
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = c.Wait()
		}()
		if i%2 == 0 {
			timer := time.AfterFunc(time.Duration(rand.Int64N(int64(whole))), func() { _ = c.Process.Kill() })
			<-ended
			timer.Stop()
		} else {
			killWhileWriting(c, dir, ended)
		}
		got := contents(t, dir)
		switch {
		case cmp.Equal(got, before):
			left["as before"]++
		case cmp.Equal(got, after):
			left["complete"]++
			continue // what an abort then restores is the next test's
		default:
			left["in between"]++
		}
		if i%4 < 2 {
			// Everything back, in one command; where nothing was changed there may be nothing to undo.
			code, out := upgradeDemo(t, dir, "--abort")
			if code != 0 && !strings.Contains(out, "there is no upgrade to undo") {
				t.Errorf("kill %d: --abort: code %d: %s", i, code, out)
			}
			if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
				t.Errorf("kill %d: after --abort (-before +after):\n%s", i, diff)
			}
			continue
		}
		if code, out := upgradeDemo(t, dir, "--yes", "--no-verify"); code != 0 {
			t.Errorf("kill %d: the next upgrade: code %d: %s", i, code, out)
		}
		if diff := cmp.Diff(after, contents(t, dir)); diff != "" {
			t.Errorf("kill %d: after the next upgrade (-want +got):\n%s", i, diff)
		}
		if _, err := os.Stat(filepath.Join(dir, ".famcp", "tmp")); err == nil {
			t.Errorf("kill %d: work files are left", i)
		}
	}
	t.Logf("after %d kills the project was: %v", kills, left)
}

// killWhileWriting kills c a few steps after it began to change the project. c
// stands still while it is looked at.
func killWhileWriting(c *exec.Cmd, dir string, ended <-chan struct{}) {
	step := time.NewTicker(time.Millisecond)
	defer step.Stop()
	more := rand.IntN(3)
	for {
		_ = c.Process.Signal(syscall.SIGSTOP)
		if _, err := os.Stat(filepath.Join(dir, ".famcp", "tmp", "applying")); err == nil {
			if more--; more < 0 {
				_ = c.Process.Kill()
			}
		}
		_ = c.Process.Signal(syscall.SIGCONT)
		select {
		case <-ended:
			return
		case <-step.C:
		}
	}
}

// upgradeDemo runs famcp upgrade in dir.
func upgradeDemo(t *testing.T, dir string, args ...string) (code int, out string) {
	t.Helper()
	c := exec.Command("famcp", append([]string{"upgrade"}, args...)...)
	c.Dir, c.Env = dir, environ()
	var both bytes.Buffer
	c.Stdout, c.Stderr = &both, &both
	_ = c.Run()
	return c.ProcessState.ExitCode(), both.String()
}

// contents is every file and directory of a project with its mode and text, but
// for what git keeps and what famcp works with.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		if rel == ".git" || rel == filepath.Join(".famcp", "tmp") {
			return fs.SkipDir
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		found[rel] = fmt.Sprint(info.Mode())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(name)
			found[rel] += " " + string(data)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "demo")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}
