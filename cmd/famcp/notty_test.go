//go:build unix

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
)

// Without a person at a terminal nothing is asked: what has no default is an
// error that names the flag, everything else takes its default.
func TestNobodyToAsk(t *testing.T) {
	tests := []struct {
		name string
		// set prepares the streams that are not terminals; a nil stdin is the
		// null device.
		set   func(c *exec.Cmd)
		piped bool // so nothing moves on standard error
	}{
		{name: "stdin is the null device", set: func(c *exec.Cmd) { c.Stdin = nil }},
		{name: "stdin is a pipe", set: func(c *exec.Cmd) { c.Stdin = strings.NewReader("demo\ny\n") }},
		{name: "stdout is a pipe", piped: true, set: func(c *exec.Cmd) { c.Stdout = new(bytes.Buffer) }},
		{name: "stderr is a pipe", piped: true, set: func(c *exec.Cmd) { c.Stderr = new(bytes.Buffer) }},
		{name: "no controlling terminal", piped: true, set: func(c *exec.Cmd) {
			c.Stdin, c.Stdout, c.Stderr = nil, new(bytes.Buffer), new(bytes.Buffer)
			c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		}},
		{name: "CI with a terminal", piped: true, set: func(c *exec.Cmd) { c.Env = append(c.Env, "CI=true") }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			out, code := withStreams(t, dir, tt.set, "new")
			if code != 2 {
				t.Errorf("famcp new: code = %d, want 2", code)
			}
			if !strings.Contains(out, "pass DIR or --name") {
				t.Errorf("famcp new said %q, want the missing flag in it", out)
			}
			if strings.Contains(out, "/dev/tty") {
				t.Errorf("famcp new said %q, want no word of terminals", out)
			}
			if entries, _ := os.ReadDir(dir); len(entries) > 0 {
				t.Errorf("left behind: %v", entries)
			}

			out, code = withStreams(t, dir, tt.set, "new", "demo", "--no-git")
			if code != 0 {
				t.Errorf("famcp new demo: code = %d, want 0; it said %q", code, out)
			}
			if _, err := os.Stat(filepath.Join(dir, "demo", "README.md")); err != nil {
				t.Error(err)
			}
			if tt.piped && strings.ContainsAny(out, "\x1b⠋") {
				t.Errorf("output = %q, want neither escape sequences nor a spinner", out)
			}
		})
	}
}

func TestReadOnlyParent(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write to read-only directories; new_unwritable_parent.txtar has cases for everybody")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o755) }) // or nobody could remove it
	c := exec.Command("famcp", "new", "demo", "--yes")
	c.Dir = dir
	out, err := c.CombinedOutput()
	if code := c.ProcessState.ExitCode(); code != 1 || !strings.Contains(string(out), "permission denied") {
		t.Errorf("%v, code = %d, output = %q, want code 1 and the reason", err, code, out)
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("left behind: %v", entries)
	}
}

// withStreams runs famcp with its three streams on a terminal but for what set
// changes, and returns all that it wrote.
func withStreams(t *testing.T, dir string, set func(*exec.Cmd), args ...string) (string, int) {
	t.Helper()
	person, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer person.Close()
	c := exec.Command("famcp", args...)
	c.Dir = dir
	c.Env = append(environ(), "TERM=xterm-256color", "NO_COLOR=1")
	c.Stdin, c.Stdout, c.Stderr = tty, tty, tty
	set(c)

	screen := make(chan string)
	go func() {
		data, _ := io.ReadAll(person) // ends with EIO when the last one closes the terminal
		screen <- string(data)
	}()
	err = c.Run()
	tty.Close()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	out := <-screen
	if b, ok := c.Stdout.(*bytes.Buffer); ok {
		out += b.String()
	}
	if b, ok := c.Stderr.(*bytes.Buffer); ok {
		out += b.String()
	}
	return out, c.ProcessState.ExitCode()
}
