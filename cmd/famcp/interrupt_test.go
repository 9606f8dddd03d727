//go:build unix

package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A signal at any moment leaves either nothing or the whole project.
func TestInterrupts(t *testing.T) {
	calm := t.TempDir()
	start := time.Now()
	if c := newDemo(calm); c.Run() != nil {
		t.Fatalf("%s: %s", c.ProcessState, c.Stderr)
	}
	whole := time.Since(start)
	complete := list(t, filepath.Join(calm, "demo"))

	const moments = 12
	codes := map[int]int{}
	for i := range moments {
		existing := i%2 == 1 // an empty directory is filled another way
		sig := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}[i/2%3]
		t.Run(fmt.Sprintf("%d of %d, %s, existing=%v", i+1, moments, sig, existing), func(t *testing.T) {
			dir := t.TempDir()
			target := filepath.Join(dir, "demo")
			if existing {
				if err := os.Mkdir(target, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			c := newDemo(dir)
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			timer := time.AfterFunc(whole*time.Duration(i+1)/(moments+1), func() { _ = c.Process.Signal(sig) })
			defer timer.Stop()
			_ = c.Wait()
			out := c.Stderr.(*bytes.Buffer).String()

			code := c.ProcessState.ExitCode()
			codes[code]++
			got := list(t, target)
			switch {
			case len(got) == 0 && code == 0:
				t.Errorf("code = 0 without a project")
			case len(got) > 0 && strings.Join(got, "\n") != strings.Join(complete, "\n"):
				t.Errorf("left %d entries behind, want 0 or %d:\n%s", len(got), len(complete), strings.Join(got, "\n"))
			}
			// -1 is a signal before famcp could listen for it, or after it was done.
			if code != 0 && code != 130 && code != -1 {
				t.Errorf("code = %d, want 0 or 130; stderr: %s", code, out)
			}
			if code == 130 && strings.Contains(out, "famcp:") {
				t.Errorf("stderr = %q, want no error", out)
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if e.Name() != "demo" {
					t.Errorf("left %s behind", e.Name())
				}
			}
			if _, err := os.Stat(target); err != nil && existing {
				t.Errorf("the directory that was there before is gone: %v", err)
			}
		})
	}
	if codes[130] == 0 {
		t.Errorf("an undisturbed run took %s, and no signal met one; exit codes: %v", whole, codes)
	}
}

// Signals that hit while files are being written, however fast that is.
func TestInterruptWhileWriting(t *testing.T) {
	for files, sig := range map[int]syscall.Signal{1: syscall.SIGINT, 20: syscall.SIGTERM, 60: syscall.SIGHUP} {
		t.Run(fmt.Sprintf("%s at file %d", sig, files), func(t *testing.T) {
			if signal.Ignored(sig) {
				t.Skip("ignored here, as under nohup, and so by the famcp that is started")
			}
			const attempts = 20
			for range attempts {
				if interruptAt(t, files, sig) == 130 {
					return
				}
			}
			t.Errorf("famcp was done before the signal in each of %d attempts", attempts)
		})
	}
}

// interruptAt sends sig to a famcp once it has written as many files, checks
// what it leaves, and returns its exit code.
func interruptAt(t *testing.T, files int, sig syscall.Signal) int {
	t.Helper()
	dir := t.TempDir()
	c := newDemo(dir)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Wait()
	}()
	// famcp stands still while it is looked at, so that it cannot be done
	// before the signal is sent, and goes on a step of a millisecond at a time.
	step := time.NewTicker(time.Millisecond)
	defer step.Stop()
	for running := true; running; {
		_ = c.Process.Signal(syscall.SIGSTOP)
		if len(list(t, dir)) >= files {
			_ = c.Process.Signal(sig)
			running = false
		}
		_ = c.Process.Signal(syscall.SIGCONT)
		select {
		case <-ended:
			running = false
		case <-step.C:
		}
	}
	<-ended
	code, got := c.ProcessState.ExitCode(), list(t, dir)
	if code == 130 && len(got) > 0 {
		t.Errorf("code = 130 and left behind:\n%s", strings.Join(got, "\n"))
	}
	for _, name := range got {
		if !strings.HasPrefix(name, "demo") {
			t.Errorf("code = %d and left %s behind", code, name)
		}
	}
	return code
}

func newDemo(dir string) *exec.Cmd {
	c := exec.Command("famcp", "new", "demo", "--yes")
	c.Dir = dir
	c.Env = append(environ(), "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=G", "GIT_AUTHOR_EMAIL=g@example.com")
	c.Stdout, c.Stderr = new(bytes.Buffer), new(bytes.Buffer)
	return c
}

// list names everything below dir but the objects of git, which differ from
// commit to commit; it is empty when dir does not exist or is empty.
func list(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	_ = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fs.SkipDir // it may be on its way out
		}
		if name == dir {
			return nil
		}
		rel, _ := filepath.Rel(dir, name)
		names = append(names, rel)
		if entry.IsDir() && entry.Name() == "objects" {
			return fs.SkipDir
		}
		return nil
	})
	return names
}
