package verify

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var all = []string{
	"go build ./...", "go vet ./...", "go test ./...",
	"start server http", "call over HTTP, 2025-11-25", "call over HTTP, 2026-07-28",
	"call over stdio, 2025-11-25", "call over stdio, 2026-07-28",
}

var protected = []string{all[3], "call over HTTP without a token", all[4], all[5]}

func TestRun(t *testing.T) {
	dir := toy(t)
	options := Options{Dir: dir, Name: "server", HTTP: true, Stdio: true, Begin: func(string) {}, End: func(Step) {}}
	steps, err := Run(t.Context(), options)
	if err != nil {
		t.Errorf("error = %v, want none", err)
	}
	var names []string
	for _, s := range steps {
		names = append(names, s.Name)
		if !s.OK || s.Error != "" {
			t.Errorf("step %+v, want it OK", s)
		}
	}
	if diff := cmp.Diff(all, names); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}

	t.Setenv("FAULT", "test")
	steps, err = Run(t.Context(), options)
	if want := "run there: go test ./..."; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir) {
		t.Errorf("error = %v, want %q and %q in it", err, want, dir)
	}
	if last := steps[len(steps)-1]; len(steps) != 3 || last.OK || !strings.Contains(last.Error, "out of order") {
		t.Errorf("steps = %+v, want the third to fail with the output of the test", steps)
	}
}

func TestCalls(t *testing.T) {
	p := &project{dir: toy(t), goCommand: "go", binary: filepath.Join(t.TempDir(), "server")}
	if err := p.runGo(t.Context(), "build", "-o", p.binary, "."); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		fault string
		http  bool
		stdio bool
		token string   // of a protected server; "none" when nobody here can make one
		steps []string // taken; with wantErr the last one failed
		// in the error of the last step
		wantErr string
	}{
		{name: "HTTP alone", http: true, steps: all[3:6]},
		{name: "stdio alone", stdio: true, steps: all[6:]},
		{name: "no tools", fault: "bare", http: true, stdio: true, steps: all[3:]},
		{name: "the server does not start", fault: "exit", http: true, steps: all[3:4], wantErr: "no configuration"},
		{name: "another revision", fault: "old", http: true, steps: all[3:5], wantErr: `chose revision "2024-11-05"`},
		{name: "one era only", fault: "legacy only", http: true, steps: all[3:6], wantErr: "error -32022"},
		{name: "the tool fails", fault: "tool", http: true, steps: all[3:5], wantErr: "tool search failed: out of order"},
		{name: "a token", fault: "protected", http: true, token: "good", steps: protected},
		{name: "nobody here makes a token", fault: "protected", http: true, token: "none", steps: protected[:2]},
		{name: "the token is refused", fault: "protected", http: true, token: "bad", steps: protected[:3], wantErr: "HTTP 401"},
		{name: "refused for another reason", fault: "sick", http: true, token: "good", steps: protected[:2], wantErr: "want HTTP 401, got tools/list: HTTP 503"},
		{name: "the token is not made", fault: "protected", http: true, token: "fails", steps: protected[:3], wantErr: "making a token: no key"},
		{name: "no token is asked for", http: true, token: "good", steps: protected[:2], wantErr: "does not ask for a token: want HTTP 401, got an answer"},
		{name: "chatter on standard output", fault: "chatter", stdio: true, steps: all[6:7], wantErr: "something else than messages"},
		{name: "does not end with its input", fault: "stays", stdio: true, steps: all[6:7], wantErr: "did not end"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("FAULT", tt.fault)
			p.grace = stopTimeout
			if tt.fault == "stays" {
				p.grace = 50 * time.Millisecond
			}
			defer p.close()
			o := Options{Dir: p.dir, Name: "server", HTTP: tt.http, Stdio: tt.stdio, Begin: func(string) {}, End: func(Step) {}}
			o.Protected = tt.token != ""
			if o.Protected && tt.token != "none" {
				o.Token = func() (string, error) {
					if tt.token == "fails" {
						return "", errors.New("no key")
					}
					return tt.token, nil
				}
			}
			steps, err := o.take(t.Context(), p.calls(o))
			var names []string
			for _, s := range steps {
				names = append(names, s.Name)
			}
			if diff := cmp.Diff(tt.steps, names); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			last := steps[len(steps)-1]
			if tt.wantErr == "" {
				if err != nil {
					t.Errorf("error = %v: %s, want none", err, last.Error)
				}
				return
			}
			if err == nil || last.OK || !strings.Contains(last.Error, tt.wantErr) {
				t.Errorf("error = %v, last step = %+v, want %q in its error", err, last, tt.wantErr)
			}
		})
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	dir := toy(t)
	ctx, cancel := context.WithCancel(t.Context())
	var ended []Step
	_, err := Run(ctx, Options{
		Dir: dir, Name: "server", HTTP: true, Stdio: true,
		Begin: func(string) { cancel() },
		End:   func(s Step) { ended = append(ended, s) },
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want %v", err, context.Canceled)
	}
	if len(ended) != 1 || ended[0].OK {
		t.Errorf("steps = %+v, want the one that was cut off", ended)
	}
}

func TestRunWithoutGo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Run(t.Context(), Options{Dir: "/project"})
	if err == nil || !strings.Contains(err.Error(), "no go command on PATH") || !strings.Contains(err.Error(), "/project") {
		t.Errorf("error = %v, want what is missing, and where the project is", err)
	}
}

func TestLastData(t *testing.T) {
	tests := []struct {
		name, stream, want string
	}{
		{name: "one event", stream: "event: message\ndata: {\"id\":1}\n\n", want: `{"id":1}`},
		{name: "the last of many", stream: "data: {}\r\n\r\n: comment\r\n\r\ndata: {\"id\":2}\r\n\r\n", want: `{"id":2}`},
		{name: "priming event first", stream: "id: 1\ndata: \n\ndata: {\"id\":3}\n\n", want: `{"id":3}`},
		{name: "none", stream: ": comment\n\n", want: ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := lastData([]byte(tt.stream))
			if string(got) != tt.want || (err != nil) != (tt.want == "") {
				t.Errorf("lastData = %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestOutputIsCutToItsEnd(t *testing.T) {
	long := strings.Repeat("line\n", 100) + "the end"
	got := withOutput(os.ErrInvalid, long).Error()
	if n := strings.Count(got, "\n"); n > maxOutputLines+1 || !strings.HasSuffix(got, "the end") {
		t.Errorf("%d lines, ending in %q", n, got[len(got)-10:])
	}
}

// toy copies the project in testdata out of this module.
func toy(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "server")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "server"))); err != nil {
		t.Fatal(err)
	}
	return dir
}
