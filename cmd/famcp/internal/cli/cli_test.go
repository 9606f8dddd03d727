package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/cmd/famcp/internal/iostreams"
	"github.com/famcp/famcp/internal/scaffold"
)

func TestExitCode(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want int
	}{
		{name: "done", err: nil, want: 0},
		{name: "failed", err: errors.New("disk full"), want: 1},
		{name: "usage", err: fmt.Errorf("wrapped: %w", usagef("no")), want: 2},
		{name: "person broke off", err: errInterrupted, want: 130},
		{name: "signal", err: fmt.Errorf("writing: %w", context.Canceled), want: 130},
		{name: "signal during a report", err: errors.Join(nil, context.Canceled), want: 130},
		{name: "deadline is a failure", err: context.DeadlineExceeded, want: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := exitCode(tt.err); got != tt.want {
				t.Errorf("exitCode(%v) = %d, want %d", tt.err, got, tt.want)
			}
		})
	}
}

func TestReadBuild(t *testing.T) {
	tests := []struct {
		name            string
		version, commit string
		info            *debug.BuildInfo
		want            Build
	}{
		{name: "no information", want: Build{Version: "devel"}},
		{name: "linker", version: "v1.2.3", commit: "abc", want: Build{Version: "v1.2.3", Commit: "abc"}},
		{
			name: "go install",
			info: &debug.BuildInfo{Main: debug.Module{Version: "v1.4.0"}},
			want: Build{Version: "v1.4.0"},
		},
		{
			name: "checkout",
			info: &debug.BuildInfo{
				Main:     debug.Module{Version: "(devel)"},
				Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}},
			},
			want: Build{Version: "devel", Commit: "0123456789abcdef"},
		},
		{
			name:    "linker wins",
			version: "v2.0.0", commit: "abc",
			info: &debug.BuildInfo{
				Main:     debug.Module{Version: "v1.0.0"},
				Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "def"}},
			},
			want: Build{Version: "v2.0.0", Commit: "abc"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, ReadBuild(tt.version, tt.commit, tt.info)); diff != "" {
				t.Errorf("ReadBuild (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadRelease(t *testing.T) {
	lines := func(version string) []string {
		return []string{
			"github.com/famcp/famcp " + version + " h1:zip=",
			"github.com/famcp/famcp " + version + "/go.mod h1:aQn/rVwaVOh4wS4u8rUpNmGrspPbfunHTIKtOvxF2uI=",
		}
	}
	source := fstest.MapFS{"go.mod": {Data: []byte("module github.com/famcp/famcp\n")}}
	installed := &debug.BuildInfo{Main: debug.Module{Path: "github.com/famcp/famcp", Version: "v1.4.0", Sum: "h1:zip="}}
	fork := &debug.BuildInfo{Main: debug.Module{Path: "example.com/fork", Version: "v1.4.0", Sum: "h1:zip="}}
	checkout := &debug.BuildInfo{Main: debug.Module{Version: "v1.4.1-0.20261130000000-0123456789ab+dirty"}}
	tests := []struct {
		name         string
		version, sum string
		info         *debug.BuildInfo
		want         scaffold.Release
	}{
		{name: "release", version: "v1.2.3", sum: "h1:zip=", info: checkout, want: scaffold.Release{Version: "v1.2.3", GoSum: lines("v1.2.3")}},
		{name: "release without its checksum", version: "v1.2.3", want: scaffold.Release{Version: "v1.2.3"}},
		{name: "go install", info: installed, want: scaffold.Release{Version: "v1.4.0", GoSum: lines("v1.4.0")}},
		{name: "go install of a fork", info: fork, want: scaffold.Release{}},
		{name: "checkout", info: checkout, want: scaffold.Release{}},
		{name: "no information", want: scaffold.Release{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ReadRelease(tt.version, tt.sum, source, tt.info)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("ReadRelease (-want +got):\n%s", diff)
			}
		})
	}
}

// The hash of go.mod needs the one of this module.
func TestSourceMakesARelease(t *testing.T) {
	if r := ReadRelease("v1.2.3", "h1:zip=", famcp.Source(), nil); !r.Published() {
		t.Errorf("ReadRelease = %+v, want it published", r)
	}
}

func TestNewFlags(t *testing.T) {
	tests := []struct {
		name    string
		args    string
		dir     string
		given   map[string]string
		yes     bool
		wantErr string
	}{
		{name: "nothing", given: map[string]string{}},
		{name: "directory", args: "demo -y", dir: "demo", yes: true, given: map[string]string{}},
		{name: "directory that looks like a flag", args: "-- -demo", dir: "-demo", given: map[string]string{}},
		{
			name: "every answer",
			args: "demo --name n --module m --title t --description d --port 1 --auth none --ci both --transport http --examples --license none --author a --runtime module",
			dir:  "demo",
			given: map[string]string{
				"name": "n", "module": "m", "title": "t", "description": "d", "port": "1", "auth": "none", "ci": "both",
				"transport": "http", "examples": "true", "license": "none", "author": "a", "runtime": "module",
			},
		},
		{name: "no examples", args: "--no-examples", given: map[string]string{"examples": "false"}},
		{name: "examples=false", args: "--examples=false", given: map[string]string{"examples": "false"}},
		{name: "both ways", args: "--examples --no-examples", wantErr: "exclude each other"},
		{name: "no bool", args: "--examples=maybe", wantErr: "want true or false"},
		{name: "empty answer is an answer", args: "--author=", given: map[string]string{"author": ""}},
		{name: "two directories", args: "a b", wantErr: "accepts at most 1 arg"},
		{name: "misspelt", args: "--naem x", wantErr: "unknown flag: --naem; did you mean --name?"},
		{name: "short and unlike", args: "--dir x", wantErr: "unknown flag: --dir$"},
		{name: "dashed directory", args: "-x", wantErr: "in -x; for a directory called -x write ./-x"},
		{name: "unlike any", args: "--frobnicate", wantErr: "unknown flag: --frobnicate$"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			io, _, _ := iostreams.Test("")
			var got *newOptions
			cmd := newNewCmd(&App{IO: io}, func(_ context.Context, o *newOptions) error { got = o; return nil })
			cmd.SetFlagErrorFunc(suggestFlag)
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs(strings.Fields(tt.args))
			err := cmd.Execute()
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error()+"$", tt.wantErr) {
					t.Errorf("error = %v, want %q in it", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Dir != tt.dir || got.Yes != tt.yes {
				t.Errorf("Dir, Yes = %q, %v, want %q, %v", got.Dir, got.Yes, tt.dir, tt.yes)
			}
			if diff := cmp.Diff(tt.given, got.Given); diff != "" {
				t.Errorf("given (-want +got):\n%s", diff)
			}
		})
	}
}

// Every question must be a flag, or a run without a terminal could not answer it.
func TestEveryQuestionHasAFlag(t *testing.T) {
	io, _, _ := iostreams.Test("")
	cmd := newNewCmd(&App{IO: io}, newRun)
	for _, q := range scaffold.Questions() {
		if cmd.Flags().Lookup(q.Flag) == nil {
			t.Errorf("question %q has no flag --%s", q.Key, q.Flag)
		}
	}
}

func TestUnknownCommandSuggests(t *testing.T) {
	io, out, errOut := iostreams.Test("")
	code := Main([]string{"nwe", "demo"}, &App{IO: io})
	if code != 2 {
		t.Errorf("code = %d, want 2", code)
	}
	for _, want := range []string{`unknown command "nwe"`, "Did you mean", "new", "Usage: famcp"} {
		if !strings.Contains(errOut.String(), want) {
			t.Errorf("stderr = %q, want %q in it", errOut, want)
		}
	}
	if out.Len() > 0 {
		t.Errorf("stdout = %q, want nothing", out)
	}
}

func TestMainPrintsErrors(t *testing.T) {
	tests := []struct {
		name string
		args []string
		code int
		want string // all of stderr
	}{
		{
			name: "the command line was not understood", args: []string{"version", "now"}, code: 2,
			want: "famcp: unknown command \"now\" for \"famcp version\"\n\nUsage: famcp version [flags]\nRun \"famcp version --help\" for more.\n",
		},
		{
			name: "an answer is missing", args: []string{"new"}, code: 2,
			want: "famcp: no directory given, and nobody to ask; pass DIR or --name, as in: famcp new my-server --yes\n",
		},
		{
			name: "empty directory name", args: []string{"new", ""}, code: 2,
			want: "famcp: DIR is empty; name a directory, or use . for this one\n",
		},
		{
			name: "control character", args: []string{"new", "a\x1b[2J"}, code: 2,
			want: "famcp: directory \"a\\x1b[2J\" contains a control or undecodable character; choose another\n",
		},
		{
			name: "authentication", args: []string{"new", "demo", "--auth", "jwt"}, code: 2,
			want: "famcp: auth (--auth) must be one of none, hs256, embedded, localKey, remoteJwks, not \"jwt\"\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			io, out, errOut := iostreams.Test("")
			if code := Main(tt.args, &App{IO: io}); code != tt.code {
				t.Errorf("code = %d, want %d", code, tt.code)
			}
			if diff := cmp.Diff(tt.want, errOut.String()); diff != "" {
				t.Errorf("stderr (-want +got):\n%s", diff)
			}
			if out.Len() > 0 {
				t.Errorf("stdout = %q, want nothing", out)
			}
		})
	}
}

func TestAnswersFileIsBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "answers.yaml")
	if err := os.WriteFile(file, make([]byte, maxAnswersBytes+1), 0o644); err != nil {
		t.Fatal(err)
	}
	io, _, errOut := iostreams.Test("")
	if code := Main([]string{"new", "demo", "--answers", file}, &App{IO: io}); code != 2 {
		t.Errorf("code = %d, want 2", code)
	}
	if want := "is larger than 65536 bytes"; !strings.Contains(errOut.String(), want) {
		t.Errorf("stderr = %q, want %q in it", errOut, want)
	}
}

func TestShellQuote(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no POSIX shell to ask")
	}
	for _, text := range []string{
		"plain", "", "two words", "it's", `"double"`, "`id`", "$HOME", "$(id)", "a;b", "a&&b", "!!", "*", "~", "#c", `back\slash`,
		"{{.}}", "[[.]]", "\t", "line\nbreak", "=ls", "ünïcode", "-flag", "a=b", "{a,b}",
	} {
		got, err := exec.Command(sh, "-c", "printf %s "+shellQuote(text)).Output()
		if err != nil || string(got) != text {
			t.Errorf("sh reads %s as %q (%v), want %q", shellQuote(text), got, err, text)
		}
	}
}

func TestEditDistance(t *testing.T) {
	tests := []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"name", "name", 0}, {"naem", "name", 2}, {"", "ci", 2}, {"port", "", 4}, {"licence", "license", 1},
	}
	for _, tt := range tests {
		if got := editDistance(tt.a, tt.b); got != tt.want {
			t.Errorf("editDistance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

// The equivalent command line, given back to famcp, must mean the same answers.
func TestEquivalentMeansTheSame(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no POSIX shell to take the command line apart")
	}
	tests := []struct {
		name  string
		dir   string
		given map[string]string
		want  string // the whole line, where it is worth reading
	}{
		{name: "defaults", dir: "demo", want: "famcp new demo --yes"},
		{name: "name differs", dir: "x/demo", given: map[string]string{"name": "other"}, want: "famcp new x/demo --yes --name other"},
		{name: "dashed directory", dir: "-demo", given: map[string]string{"name": "demo"}, want: "famcp new ./-demo --yes --name demo"},
		{name: "switch", dir: "demo", given: map[string]string{"examples": "false"}, want: "famcp new demo --yes --no-examples"},
		{
			name: "hostile texts", dir: "demo",
			given: map[string]string{
				"title": "it's `id` $HOME {{.}} [[.]]", "description": "--yes", "author": `"O'Neil" <o@example.com> \n`,
				"port": "8080", "license": "none", "ci": "both", "transport": "stdio",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			given := map[string]string{"name": "demo"}
			for k, v := range tt.given {
				given[k] = v
			}
			want, err := scaffold.Resolve(given, scaffold.Release{})
			if err != nil {
				t.Fatal(err)
			}
			line := equivalent(&newOptions{Dir: tt.dir}, &scaffold.Plan{Answers: want})
			if tt.want != "" && line != tt.want {
				t.Errorf("line = %s\nwant   %s", line, tt.want)
			}

			out, err := exec.Command(sh, "-c", `printf '%s\0' `+strings.TrimPrefix(line, "famcp new ")).Output()
			if err != nil {
				t.Fatal(err)
			}
			got := parseNew(t, strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"))
			if got.Given["name"] == "" {
				if got.Given["name"], err = scaffold.NameFromDir(got.Dir); err != nil {
					t.Fatal(err)
				}
			}
			answers, err := scaffold.Resolve(got.Given, scaffold.Release{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, answers); diff != "" {
				t.Errorf("%s means (-want +got):\n%s", line, diff)
			}
			if !got.Yes {
				t.Errorf("%s would ask", line)
			}
		})
	}
}

func parseNew(t *testing.T, args []string) *newOptions {
	t.Helper()
	io, _, _ := iostreams.Test("")
	var got *newOptions
	cmd := newNewCmd(&App{IO: io}, func(_ context.Context, o *newOptions) error { got = o; return nil })
	cmd.SetArgs(args)
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	return got
}
