package iostreams

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestPaint(t *testing.T) {
	tests := []struct {
		name         string
		color, errIs bool
		want         string
	}{
		{name: "terminal", color: true, errIs: true, want: "\x1b[32mok\x1b[0m"},
		{name: "NO_COLOR", color: false, errIs: true, want: "ok"},
		{name: "pipe", color: true, errIs: false, want: "ok"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &IOStreams{Color: tt.color, ErrTTY: tt.errIs}
			if got := s.Good("ok"); got != tt.want {
				t.Errorf("Good = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestSystemReadsEnvironment(t *testing.T) {
	tests := []struct {
		name              string
		env               map[string]string
		color, accessible bool
	}{
		{name: "nothing set", color: true},
		{name: "NO_COLOR", env: map[string]string{"NO_COLOR": "1"}},
		{name: "empty NO_COLOR is unset", env: map[string]string{"NO_COLOR": ""}, color: true},
		{name: "dumb terminal", env: map[string]string{"TERM": "dumb"}, accessible: true},
		{name: "screen reader", env: map[string]string{"ACCESSIBLE": "1", "TERM": "xterm"}, color: true, accessible: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := System(func(k string) string { return tt.env[k] })
			if s.Color != tt.color || s.Accessible != tt.accessible {
				t.Errorf("Color, Accessible = %v, %v, want %v, %v", s.Color, s.Accessible, tt.color, tt.accessible)
			}
		})
	}
}

func TestUnattended(t *testing.T) {
	for ci, want := range map[string]bool{"": false, "0": false, "false": false, "1": true, "true": true, "woodpecker": true} {
		if s := System(func(k string) string { return map[string]string{"CI": ci}[k] }); s.Unattended != want {
			t.Errorf("with CI=%q Unattended = %v, want %v", ci, s.Unattended, want)
		}
	}
}

func TestCanPromptNeedsThreeTerminals(t *testing.T) {
	for mask := range 8 {
		s := &IOStreams{InTTY: mask&1 != 0, OutTTY: mask&2 != 0, ErrTTY: mask&4 != 0}
		if got, want := s.CanPrompt(), mask == 7; got != want {
			t.Errorf("CanPrompt with %+v = %v, want %v", s, got, want)
		}
		if s.Unattended = true; s.CanPrompt() {
			t.Errorf("CanPrompt with %+v = true, want false", s)
		}
	}
}

func TestProgress(t *testing.T) {
	tests := []struct {
		name  string
		tty   bool
		color bool
		work  time.Duration
		want  []string // in this order
	}{
		{name: "quick work is silent", tty: true, color: true, work: 200 * time.Millisecond},
		{name: "slow work shows the running phase", tty: true, color: true, work: time.Second, want: []string{"first", "second", eraseLine}},
		{name: "a pipe gets nothing", tty: false, color: true, work: time.Second},
		{name: "without colour there are no escape sequences", tty: true, work: time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, out, errOut := Test("")
				s.OutTTY, s.ErrTTY, s.Color = tt.tty, tt.tty, tt.color
				p := s.StartProgress("first")
				time.Sleep(tt.work / 2)
				p.Phase("second")
				time.Sleep(tt.work / 2)
				p.Stop()
				p.Stop()

				rest := errOut.String()
				if len(tt.want) == 0 && rest != "" {
					t.Errorf("stderr = %q, want nothing", rest)
				}
				for _, w := range tt.want {
					_, after, ok := strings.Cut(rest, w)
					if !ok {
						t.Fatalf("stderr = %q, want %q in %q", errOut, w, rest)
					}
					rest = after
				}
				if !strings.HasSuffix(errOut.String(), eraseLine) && len(tt.want) > 0 {
					t.Errorf("stderr = %q, want the line erased at the end", errOut)
				}
				if out.Len() > 0 {
					t.Errorf("stdout = %q, want nothing", out)
				}
			})
		})
	}
}
