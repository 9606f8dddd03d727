package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/famcp/famcp/cmd/famcp/internal/iostreams"
)

// A name must work as a directory, a binary, an image, a Kubernetes object and
// an MCP server. Any other is refused with the rule, before anything is written.
func TestBadNames(t *testing.T) {
	long := strings.Repeat("a", 100)
	for _, name := range []string{
		"", " ", "My-Server", "my server", "my_server", "my.server", "-my-server", "my-server-", "1server", "sérver", "сервер", "服务器",
		"my/server", `my\server`, "../server", "~", "$HOME", "`id`", "{{.}}", "[[.]]", "a\nb", "a\x00b", "a\xffb", "emoji🙂", long,
		"func", "string", "internal", "vendor", "test", "main", "con", "lpt1", "config", "famcp",
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			io, out, errOut := iostreams.Test("")
			code := Main([]string{"new", "target", "--yes", "--name", name}, &App{IO: io})
			if code != 2 {
				t.Errorf("code = %d, want 2", code)
			}
			if got := errOut.String(); !strings.Contains(got, "name (--name) ") || !strings.Contains(got, "must ") {
				t.Errorf("stderr = %q, want the rule and its flag in it", got)
			}
			if out.Len() > 0 {
				t.Errorf("stdout = %q, want nothing", out)
			}
			wantNothing(t)
		})
	}
}

// A directory that cannot be a name asks for one.
func TestBadDirectoryNames(t *testing.T) {
	for _, dir := range []string{"My Server", "sérver", "-dash", "con", "UPPER", strings.Repeat("d", 100), "a.b", "_x", "..x", "9lives"} {
		t.Run(dir, func(t *testing.T) {
			t.Chdir(t.TempDir())
			io, _, errOut := iostreams.Test("")
			if code := Main([]string{"new", "--yes", "--", dir}, &App{IO: io}); code != 2 {
				t.Errorf("code = %d, want 2", code)
			}
			if !strings.Contains(errOut.String(), "pass --name") {
				t.Errorf("stderr = %q, want the way out in it", errOut)
			}
			wantNothing(t)
		})
	}
}

func TestBadAnswers(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want []string
	}{
		{name: "module", args: []string{"--module", "not a module"}, want: []string{"module (--module) must be a Go module path"}},
		{name: "module with a scheme", args: []string{"--module", "https://github.com/a/b"}, want: []string{"module (--module)"}},
		{name: "module of the runtime", args: []string{"--module", "github.com/famcp/famcp/x"}, want: []string{"must not be inside"}},
		{name: "port 0", args: []string{"--port", "0"}, want: []string{"port (--port) must be a port from 1 to 65535"}},
		{name: "port too big", args: []string{"--port", "65536"}, want: []string{"port (--port)"}},
		{name: "port in words", args: []string{"--port", "http"}, want: []string{"port (--port) must be a whole number"}},
		{name: "port with a fraction", args: []string{"--port", "1.5"}, want: []string{"port (--port)"}},
		{name: "ci", args: []string{"--ci", "jenkins"}, want: []string{"must be one of github, gitlab, both, none"}},
		{name: "license", args: []string{"--license", "gpl"}, want: []string{"must be one of mit, apache-2.0, none"}},
		{name: "title over lines", args: []string{"--title", "a\nb"}, want: []string{"title (--title) must be one line"}},
		{name: "blank description", args: []string{"--description", " "}, want: []string{"description (--description) must not be blank"}},
		{name: "escape in the author", args: []string{"--author", "\x1b[31m"}, want: []string{"author (--author)"}},
		{name: "module without a release", args: []string{"--runtime", "module"}, want: []string{"runtime (--runtime)", "vendored"}},
		{name: "all at once", args: []string{"--port", "0", "--ci", "x"}, want: []string{"port (--port)", "ci (--ci)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			io, out, errOut := iostreams.Test("")
			if code := Main(append([]string{"new", "demo", "--yes"}, tt.args...), &App{IO: io}); code != 2 {
				t.Errorf("code = %d, want 2", code)
			}
			for _, want := range tt.want {
				if !strings.Contains(errOut.String(), want) {
					t.Errorf("stderr = %q, want %q in it", errOut, want)
				}
			}
			if out.Len() > 0 || strings.Contains(errOut.String(), "\x1b") {
				t.Errorf("stdout, stderr = %q, %q, want no answer and no raw escape sequence", out, errOut)
			}
			wantNothing(t)
		})
	}
}

// wantNothing fails when the working directory is not empty.
func wantNothing(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
