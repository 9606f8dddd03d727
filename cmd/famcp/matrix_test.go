package main

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp/internal/scaffold/gomod"
	"github.com/famcp/famcp/internal/testkit"
)

// matrix has what each question of `famcp new` can be answered with. Names,
// modules and ports are those at the edge of what is allowed.
var matrix = [][]string{
	{
		"--name a --module github.com/famcp --port 1",
		"--name x--y --module github.com/Team/Repo/v2 --port 65535",
		"--name " + strings.Repeat("a-", 31) + "9 --module example.com/internal/cmd/main --port 80",
		"--name config2 --module gopkg.in/yaml.v9 --port 3000",
		"--name mcp --module example.com/test/x_~-.y --port 443",
	},
	{
		"--auth none", "--auth hs256", "--auth embedded", "--auth localKey",
		"--auth remoteJwks --issuer https://login.invalid/ --jwks-uri https://login.invalid/keys",
	},
	{"--ci github", "--ci gitlab", "--ci both", "--ci none"},
	{"--transport both", "--transport http", "--transport stdio"},
	{"--license mit", "--license apache-2.0", "--license none"},
	{"--runtime vendored", "--runtime module"},
	{"--examples", "--no-examples"},
	{"--author=", "--author O'Neil"},
}

// TestMatrix makes projects in which any two answers meet, and checks, builds,
// vets and tests each: as a release of famcp makes them, with the runtime in
// the project or published as a module.
func TestMatrix(t *testing.T) {
	long(t)
	published := testkit.Publish(t)
	famcp := buildRelease(t, published)
	env := append(offline(t), "GOPROXY="+testkit.GoEnv(t, "GOPROXY")) // go mod tidy wants more than a build
	envs := map[string][]string{"vendored": env, "module": slices.Concat(env, published.Env)}
	root := t.TempDir()
	var first project // with the runtime in it; the others use that copy, since compiling another takes longest
	for i, row := range pairwise(matrix) {
		answers := strings.Join(row, " ")
		t.Run(answers, func(t *testing.T) {
			args := strings.Fields(answers)
			kind := args[slices.Index(args, "--runtime")+1]
			p := project{dir: filepath.Join(root, strconv.Itoa(i)), env: envs[kind]}
			p.make(t, famcp, append(args, "--no-git")...)
			checkFiles(t, p.files(t))
			t.Run("tidy", p.testTidy)
			switch {
			case kind == "module":
			case first.dir == "":
				first = p
			default:
				if diff := cmp.Diff(first.runtime(t), p.runtime(t)); diff != "" {
					t.Fatalf("the runtimes differ (-first +this):\n%s", diff)
				}
				p.run(t, "go", "mod", "edit", "-replace", gomod.Runtime+"="+first.runtimeDir())
			}
			p.run(t, "go", "vet", "./...")
			p.run(t, "go", "test", "./...")
			p.build(t, "server")
			if got, want := p.run(t, p.binary, "version"), args[slices.Index(args, "--name")+1]+" "; !strings.HasPrefix(got, want) {
				t.Errorf("version = %q, want it to begin with %q", got, want)
			}
			want := http.StatusUnauthorized
			if args[slices.Index(args, "--auth")+1] == "none" {
				want = http.StatusOK
			}
			if got := listTools(t, p.serve(t)+"/mcp", ""); got != want {
				t.Errorf("without a token: HTTP %d, want %d", got, want)
			}
		})
	}
}

// buildRelease builds famcp as a release is built, so that it knows how the
// runtime is published.
func buildRelease(t *testing.T, published testkit.Published) string {
	t.Helper()
	_, sum, _ := strings.Cut(published.GoSum[0], published.Version+" ")
	flags := "-X main.version=" + published.Version + " -X main.sum=" + sum
	famcp := filepath.Join(t.TempDir(), "famcp.exe")
	here := project{dir: ".", env: os.Environ()}
	here.run(t, "go", "build", "-ldflags", flags, "-o", famcp, ".")
	return famcp
}

// testTidy holds go.mod and go.sum to what the go command would make of them.
func (p project) testTidy(t *testing.T) {
	out, err := p.command(t.Context(), "go", "mod", "tidy", "-diff").CombinedOutput()
	if err == nil {
		return
	}
	for _, offline := range []string{"module lookup disabled by GOPROXY=off", "dial tcp", "no such host"} {
		if strings.Contains(string(out), offline) {
			t.Skipf("needs the network here: %s", out)
		}
	}
	t.Errorf("%v\n%s", err, out)
}

func (p project) runtimeDir() string {
	return filepath.Join(p.dir, filepath.FromSlash(gomod.VendorDir))
}

func (p project) runtime(t *testing.T) map[string]string {
	t.Helper()
	return project{dir: p.runtimeDir()}.files(t)
}

// pairwise picks one value of each dimension a row, so that any two values of
// two dimensions meet in a row. Each row begins with a pair that has not met
// and goes on with the values that meet the most of the others for the first time.
func pairwise(dimensions [][]string) [][]string {
	type value struct{ dimension, index int }
	type pair struct{ a, b value } // a is of the earlier dimension
	var open []pair
	for b := range dimensions {
		for a := range b {
			for i := range dimensions[a] {
				for j := range dimensions[b] {
					open = append(open, pair{value{a, i}, value{b, j}})
				}
			}
		}
	}
	var rows [][]string
	for len(open) > 0 {
		row := map[int]int{
			open[0].a.dimension: open[0].a.index,
			open[0].b.dimension: open[0].b.index,
		}
		has := func(v value) bool { i, ok := row[v.dimension]; return ok && i == v.index }
		met := func(p pair) bool { return has(p.a) && has(p.b) }
		for d := range dimensions {
			if _, ok := row[d]; ok {
				continue
			}
			best, most := 0, -1
			for i := range dimensions[d] {
				row[d] = i
				n := 0
				for _, p := range open {
					if met(p) {
						n++
					}
				}
				if n > most {
					best, most = i, n
				}
			}
			row[d] = best
		}
		open = slices.DeleteFunc(open, met)
		texts := make([]string, len(dimensions))
		for d, i := range row {
			texts[d] = dimensions[d][i]
		}
		rows = append(rows, texts)
	}
	return rows
}

func TestPairwise(t *testing.T) {
	rows := pairwise(matrix)
	meet := func(x, y string) bool {
		return slices.ContainsFunc(rows, func(row []string) bool { return slices.Contains(row, x) && slices.Contains(row, y) })
	}
	for a := range matrix {
		for _, b := range matrix[a+1:] {
			for _, x := range matrix[a] {
				for _, y := range b {
					if !meet(x, y) {
						t.Errorf("%q and %q never meet", x, y)
					}
				}
			}
		}
	}
	if len(rows) > 25 {
		t.Errorf("%d rows, want at most 25: each is a project to build", len(rows))
	}
}

// long skips what takes minutes where nobody asked for it: go test ./... must
// stay short. .ci/run matrix asks.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("FAMCP_MATRIX") != "1" {
		t.Skip("takes minutes; FAMCP_MATRIX=1 runs it")
	}
}
