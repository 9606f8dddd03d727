package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"go/format"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"

	"github.com/famcp/famcp/internal/scaffold/manifest"
	"github.com/famcp/famcp/internal/scaffold/render"
	"github.com/famcp/famcp/internal/testkit"
)

// TestProject makes one project with all that can be asked for, its runtime
// truly vendored, as a person would, and proves what `famcp new` promises of
// it. --verify builds, vets and tests it and calls its server; without a
// network, because the modules are in the cache once this test is built.
func TestProject(t *testing.T) {
	answers := []string{
		"--name", "weather-9", "--module", "github.com/Acme/Weather-9/v2", "--title", `"Weather" & more`, "--ci", "both",
		"--license", "apache-2.0", "--author", "Zoë O'Neil", "--runtime", "vendored", "--port", "65535",
	}
	dir := t.TempDir()
	p := project{dir: filepath.Join(dir, "weather"), env: offline(t)}
	doc := p.make(t, "famcp", append(answers, "--verify")...)
	var steps []string
	for _, s := range doc.Verify {
		if !s.OK {
			t.Errorf("%s: %s", s.Name, s.Error)
		}
		steps = append(steps, s.Name)
	}
	if diff := cmp.Diff([]string{
		"go build ./...", "go vet ./...", "go test ./...",
		"start weather-9 http", "call over HTTP, 2025-11-25", "call over HTTP, 2026-07-28",
		"call over stdio, 2025-11-25", "call over stdio, 2026-07-28",
	}, steps); diff != "" {
		t.Fatalf("steps of --verify (-want +got):\n%s", diff)
	}
	p.build(t, "weather-9")

	t.Run("files", func(t *testing.T) { checkFiles(t, p.files(t)) })
	t.Run("record", func(t *testing.T) {
		again := project{dir: filepath.Join(dir, "again"), env: p.env}
		again.make(t, "famcp", append(answers, "--no-git")...)
		checkRecord(t, p.files(t), again.files(t))
	})
	t.Run("HTTP", p.testHTTP)
	t.Run("stdio", p.testStdio)
	t.Run("go-sdk client", p.testClient)
	t.Run("commands", p.testCommands)
	t.Run("settings of authentication", p.testAuthSettings)
	// After everything above: what a build, a test or a run leaves behind is ignored.
	t.Run("git", func(t *testing.T) {
		if _, err := exec.LookPath("git"); err != nil {
			t.Skip("needs git to ask")
		}
		p.run(t, "git", "fsck", "--strict")
		if status := p.run(t, "git", "status", "--porcelain"); status != "" {
			t.Errorf("git status:\n%s", status)
		}
	})
}

// A project that famcp made.
type project struct {
	dir    string
	env    []string // of the programs that work on it
	binary string   // once it is built
}

// document is what these tests read of `famcp new --json`.
type document struct {
	Verify []struct {
		Name  string `json:"name"`
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	} `json:"verify"`
}

// make runs famcp.
func (p project) make(t *testing.T, famcp string, args ...string) document {
	t.Helper()
	parent := project{dir: filepath.Dir(p.dir), env: p.env}
	out := parent.run(t, famcp, append([]string{"new", filepath.Base(p.dir), "--json"}, args...)...)
	var doc document
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return doc
}

// build builds the server where the README says.
func (p *project) build(t *testing.T, name string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	p.run(t, "go", "build", "-o", name, ".")
	p.binary = filepath.Join(p.dir, name)
}

// run runs a program in the project and returns its standard output. It must succeed.
func (p project) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	c := p.command(t.Context(), name, args...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, &stderr)
	}
	return string(out)
}

func (p project) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env = p.dir, p.env
	return c
}

// files are the texts of the project by slash-separated path, without the
// repository and the binary.
func (p project) files(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir(p.dir, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == ".git":
			return fs.SkipDir
		case entry.IsDir(), name == p.binary:
			return nil
		}
		rel, err := filepath.Rel(p.dir, name)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(name)
		texts[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// offline is an environment in which git knows who commits, and the go command
// has the default settings, its caches and no network.
func offline(t *testing.T) []string {
	t.Helper()
	home := t.TempDir()
	return append(os.Environ(),
		"CI=", "HOME="+home, "USERPROFILE="+home, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Gopher", "GIT_AUTHOR_EMAIL=gopher@example.com", "GIT_COMMITTER_NAME=Gopher", "GIT_COMMITTER_EMAIL=gopher@example.com",
		"GOENV=off", "GOFLAGS=", "GOWORK=off", "GOPROXY=off", "GONOSUMDB=", "GOPRIVATE=", "GOTOOLCHAIN=local",
		"GOCACHE="+testkit.GoEnv(t, "GOCACHE"), "GOMODCACHE="+testkit.GoEnv(t, "GOMODCACHE"))
}

// checkFiles parses every file that has a parser here, and checks that Go is
// formatted and lines end alike.
func checkFiles(t *testing.T, files map[string]string) {
	t.Helper()
	kinds := map[string]int{}
	for name, text := range files {
		if name != manifest.BasePath && strings.Contains(text, "\r") {
			t.Errorf("%s has a carriage return", name)
		}
		if err := checkFile(name, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		kinds[path.Ext(name)]++
	}
	for _, kind := range []string{".go", ".yaml", ".yml"} {
		if kinds[kind] == 0 {
			t.Errorf("found no %s file", kind)
		}
	}
}

func checkFile(name, text string) error {
	var v any
	switch path.Ext(name) {
	case ".go":
		formatted, err := format.Source([]byte(text))
		if err == nil && string(formatted) != text && !strings.HasPrefix(name, "third_party/") {
			err = errors.New("not formatted")
		}
		return err
	case ".yaml", ".yml":
		dec := yaml.NewDecoder(strings.NewReader(text))
		for {
			if err := dec.Decode(&v); err != nil {
				if errors.Is(err, io.EOF) {
					return nil
				}
				return err
			}
		}
	case ".json":
		return json.Unmarshal([]byte(text), &v)
	case ".toml":
		return toml.Unmarshal([]byte(text), &v)
	}
	return nil
}

// checkRecord holds famcp's record of a project against its files, and both
// against another rendering from the same answers.
func checkRecord(t *testing.T, files, again map[string]string) {
	t.Helper()
	if diff := cmp.Diff(again, files); diff != "" {
		t.Errorf("two renderings differ (-second +first):\n%s", diff)
	}
	m, err := manifest.Parse([]byte(files[manifest.Path]))
	if err != nil {
		t.Fatal(err)
	}
	pristine := map[string]string{} // what upgrades need the old text of
	for name, text := range again {
		if strings.HasPrefix(name, ".famcp/") {
			continue
		}
		sum := sha256.Sum256([]byte(text))
		e, ok := m.Files[name]
		if got := hex.EncodeToString(sum[:]); !ok || e.SHA256 != got {
			t.Errorf("%s is recorded as %+v, and has the SHA-256 %s", name, e, got)
		}
		if e.Owner == render.Managed || e.Owner == render.Seeded {
			pristine[name] = text
		}
		delete(m.Files, name)
	}
	if len(m.Files) > 0 {
		t.Errorf("recorded without being there: %v", m.Files)
	}
	base, err := manifest.ReadBase([]byte(files[manifest.BasePath]))
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]string{}
	for _, f := range base {
		kept[f.Path] = string(f.Data)
	}
	if diff := cmp.Diff(pristine, kept); diff != "" {
		t.Errorf("%s (-fresh rendering +kept):\n%s", manifest.BasePath, diff)
	}
	if files[".famcp/.gitignore"] == "" {
		t.Error("there is no .famcp/.gitignore")
	}
}
