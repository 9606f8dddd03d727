//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// Keys as a terminal sends them.
const (
	enter = "\r"
	ctrlC = "\x03"
	ctrlD = "\x04"
	down  = "\x1b[B"
)

// patience is how long a test waits for something that takes milliseconds.
const patience = 20 * time.Second

// terminal is a famcp that runs on a terminal of its own.
type terminal struct {
	t   *testing.T
	tty *os.File // the side of the person
	cmd *exec.Cmd

	mu     sync.Mutex
	output bytes.Buffer
	more   chan struct{} // receives when output has grown
	seen   int           // bytes of the plain output that expect has passed
}

// onTerminal starts famcp with args in dir, on a terminal of 80 by 24.
func onTerminal(t *testing.T, dir string, env []string, args ...string) *terminal {
	t.Helper()
	cmd := exec.Command("famcp", args...)
	cmd.Dir = dir
	cmd.Env = append(append(environ(), "TERM=xterm-256color"), env...)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{t: t, tty: tty, cmd: cmd, more: make(chan struct{}, 1)}
	go term.read()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		tty.Close()
	})
	return term
}

// environ is the environment without what changes how famcp meets a terminal.
func environ() []string {
	return append(os.Environ(), "CI=", "NO_COLOR=", "ACCESSIBLE=")
}

func (m *terminal) read() {
	buf := make([]byte, 4096)
	for {
		n, err := m.tty.Read(buf)
		m.mu.Lock()
		m.output.Write(buf[:n])
		m.mu.Unlock()
		if err != nil { // EIO once the program is gone
			close(m.more)
			return
		}
		select {
		case m.more <- struct{}{}:
		default:
		}
	}
}

var escape = regexp.MustCompile(`\x1b(\[[0-9;?<=>]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[()][0-9A-B]|[=>78])`)

// raw is everything written so far.
func (m *terminal) raw() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.output.String()
}

// plain is everything written so far, without escape sequences.
func (m *terminal) plain() string { return escape.ReplaceAllString(m.raw(), "") }

// expect waits for text after the last text expected.
func (m *terminal) expect(text string) *terminal {
	m.t.Helper()
	deadline := time.After(patience)
	for {
		plain := m.plain()
		if i := strings.Index(plain[min(m.seen, len(plain)):], text); i >= 0 {
			m.seen += i + len(text)
			return m
		}
		select {
		case _, ok := <-m.more:
			if !ok && !strings.Contains(m.plain(), text) {
				m.t.Fatalf("famcp ended without %q; terminal:\n%s", text, m.plain())
			}
		case <-deadline:
			m.t.Fatalf("no %q; terminal:\n%s", text, m.plain())
		}
	}
}

// press sends keys.
func (m *terminal) press(keys string) *terminal {
	m.t.Helper()
	if _, err := m.tty.WriteString(keys); err != nil {
		m.t.Fatal(err)
	}
	return m
}

// wait returns the exit code, -1 for a death by signal.
func (m *terminal) wait() int {
	m.t.Helper()
	timer := time.AfterFunc(patience, func() {
		m.t.Errorf("famcp does not end; terminal:\n%s", m.plain())
		_ = m.cmd.Process.Signal(syscall.SIGKILL)
	})
	defer timer.Stop()
	_ = m.cmd.Wait()
	for range m.more { // the rest of the output
	}
	return m.cmd.ProcessState.ExitCode()
}
