package scaffold

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp/internal/scaffold/manifest"
	"github.com/famcp/famcp/internal/scaffold/render"
)

func TestPlanNew(t *testing.T) {
	dir := filepath.Join(realTempDir(t), "demo")
	plan, err := PlanNew(t.Context(), testOptions(dir))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Target{Dir: dir, State: Absent}, plan.Target); diff != "" {
		t.Errorf("target (-want +got):\n%s", diff)
	}
	var got []string
	for _, f := range plan.Files {
		got = append(got, fmt.Sprintf("%v %-10s %s", f.Mode, f.Owner, f.Path))
	}
	want := []string{
		"-rw-r--r-- record     .famcp/.gitignore",
		"-rw-r--r-- record     .famcp/base.zip",
		"-rw-r--r-- record     .famcp/manifest.yaml",
		"-rw-r--r-- managed    .gitattributes",
		"-rw-r--r-- managed    .github/workflows/ci.yml",
		"-rw-r--r-- managed    .gitignore",
		"-rw-r--r-- seeded     LICENSE",
		"-rw-r--r-- seeded     README.md",
		"-rw-r--r-- seeded     config/default.yaml",
		"-rw-r--r-- managed    deploy/compose.yaml",
		"-rw-r--r-- managed    docs/contract.md",
		"-rw-r--r-- managed    docs/logo.png",
		"-rw-r--r-- structural go.mod",
		"-rw-r--r-- structural go.sum",
		"-rw-r--r-- managed    internal/project/project.go",
		"-rw-r--r-- seeded     internal/tools/search.go",
		"-rw-r--r-- seeded     internal/tools/tools.go",
		"-rw-r--r-- managed    main.go",
		"-rw-r--r-- locked     third_party/famcp/LICENSE",
		"-rw-r--r-- locked     third_party/famcp/famcp.go",
		"-rw-r--r-- locked     third_party/famcp/famcptest/famcptest.go",
		"-rw-r--r-- locked     third_party/famcp/go.mod",
		"-rw-r--r-- locked     third_party/famcp/go.sum",
		"-rw-r--r-- locked     third_party/famcp/internal/runtime/call/call.go",
		"-rw-r--r-- locked     third_party/famcp/internal/runtime/config/doc.go",
		"-rwxr-xr-x managed    docs/smoke.sh",
	}
	slices.SortFunc(want, func(a, b string) int { return strings.Compare(a[22:], b[22:]) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("planning wrote to the target: %v", err)
	}
}

func TestPlanRecordsWhatItRendered(t *testing.T) {
	o := testOptions(filepath.Join(t.TempDir(), "demo"))
	plan, err := PlanNew(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	content := map[string][]byte{}
	for _, f := range plan.Files {
		content[f.Path] = f.Data
	}
	m, err := manifest.Parse(content[manifest.Path])
	if err != nil {
		t.Fatal(err)
	}
	if m.Famcp != testRelease.Version || m.Template != testRelease.Version || m.Runtime != testRelease.Version {
		t.Errorf("versions = %q, %q, %q, want %s", m.Famcp, m.Template, m.Runtime, testRelease.Version)
	}
	var rendered, pristine []render.File
	for _, f := range plan.Files {
		if f.Owner == render.Record {
			continue
		}
		rendered = append(rendered, f)
		if f.Owner == render.Managed || f.Owner == render.Seeded {
			f.Owner = "" // the archive leaves owners to the manifest
			pristine = append(pristine, f)
		}
	}
	if diff := cmp.Diff(manifest.Entries(rendered), m.Files); diff != "" {
		t.Errorf("manifest (-files +recorded):\n%s", diff)
	}
	base, err := manifest.ReadBase(content[manifest.BasePath])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(pristine, base); diff != "" {
		t.Errorf("base (-files +recorded):\n%s", diff)
	}
	given := map[string]string{}
	for key, value := range m.Answers {
		given[key] = fmt.Sprint(value)
	}
	answers, err := Resolve(given, Release{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(o.Answers, answers); diff != "" {
		t.Errorf("answers (-given +recorded):\n%s", diff)
	}
	again, err := PlanNew(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plan.Files, again.Files); diff != "" {
		t.Errorf("a second plan differs:\n%s", diff)
	}
}

// The record of a development build says what it was made of.
func TestPlanRecordsADevelopmentBuild(t *testing.T) {
	templates := fstest.MapFS{}
	record := func() *manifest.Manifest {
		o := testOptions(filepath.Join(t.TempDir(), "demo"))
		o.Release = Release{Commit: "0123abc"}
		o.Templates = templates
		plan, err := PlanNew(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(plan.Files, func(f render.File) bool { return f.Path == manifest.Path })
		m, err := manifest.Parse(plan.Files[i].Data)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	templates["project/README.md"] = &fstest.MapFile{Data: []byte("one\n")}
	one := record()
	if one.Famcp != "devel" || one.Template != "devel" || one.Runtime != "devel" || one.Commit != "0123abc" {
		t.Errorf("famcp, template, runtime, commit = %q, %q, %q, %q", one.Famcp, one.Template, one.Runtime, one.Commit)
	}
	templates["project/README.md"].Data = []byte("one\r\n")
	if same := record(); same.TemplateSum != one.TemplateSum || !strings.HasPrefix(one.TemplateSum, "h1:") {
		t.Errorf("templateSum = %q, with other line ends %q, want one hash", one.TemplateSum, same.TemplateSum)
	}
	templates["project/README.md"].Data = []byte("two\n")
	if two := record(); two.TemplateSum == one.TemplateSum {
		t.Errorf("templateSum = %q for two templates", two.TemplateSum)
	}
}

func TestPlanNewRefuses(t *testing.T) {
	tests := []struct {
		name   string
		change func(*NewOptions)
		want   string
	}{
		{"bad answers", func(o *NewOptions) { o.Answers.Port = 0; o.Answers.CI = "x" }, "port (--port) must be"},
		{"module mode of an unpublished famcp", func(o *NewOptions) { o.Answers.Runtime = "module" }, "use vendored"},
		{"a dependency as module path", func(o *NewOptions) { o.Answers.Module = "github.com/modelcontextprotocol/go-sdk" }, "the module of a dependency"},
		{"no runtime", func(o *NewOptions) { o.Runtime = nil }, "no source of the runtime"},
		{"target taken", func(o *NewOptions) { o.Dir = "." }, "is not empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := testOptions(filepath.Join(t.TempDir(), "demo"))
			tt.change(&o)
			_, err := PlanNew(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestModuleModeNeedsNoRuntime(t *testing.T) {
	o := testOptions(filepath.Join(t.TempDir(), "demo"))
	o.Answers.Runtime, o.Release, o.Runtime = "module", testRelease, nil
	plan, err := PlanNew(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range plan.Files {
		if strings.HasPrefix(f.Path, "third_party/") {
			t.Errorf("%s in module mode", f.Path)
		}
		if f.Path == "go.mod" && (!bytes.Contains(f.Data, []byte("github.com/famcp/famcp v1.2.3\n")) || bytes.Contains(f.Data, []byte("replace"))) {
			t.Errorf("go.mod:\n%s", f.Data)
		}
		if f.Path == "go.sum" && !bytes.Contains(f.Data, []byte(strings.Join(testRelease.GoSum, "\n")+"\n")) {
			t.Errorf("go.sum lacks the sums of the release:\n%s", f.Data)
		}
	}
}

// targets are the states in which a project can be written, each in a directory of its own.
var targets = []struct {
	name string
	make func(t *testing.T, dir string)
	git  bool // a repository is there before
}{
	{"absent", func(*testing.T, string) {}, false},
	{"empty", func(t *testing.T, dir string) {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}, false},
	{"only .git", func(t *testing.T, dir string) {
		git(t, filepath.Dir(dir), "init", "-q", "--template=", "-b", "main", dir)
	}, true},
}

func TestApply(t *testing.T) {
	for _, target := range targets {
		t.Run(target.name, func(t *testing.T) {
			parent := realTempDir(t)
			dir := filepath.Join(parent, "-a dir ünï")
			target.make(t, dir)
			o := testOptions(dir)
			plan, err := PlanNew(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			var last [2]int
			got, err := plan.Apply(t.Context(), func(done, total int) { last = [2]int{done, total} })
			if err != nil {
				t.Fatal(err)
			}
			head := strings.TrimSpace(git(t, dir, "rev-parse", "HEAD"))
			if diff := cmp.Diff(&Result{Dir: dir, Commit: head, Branch: "main"}, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if last[0] != last[1] || last[0] < len(plan.Files) {
				t.Errorf("progress ended at %d of %d, want all of at least %d", last[0], last[1], len(plan.Files))
			}
			if status := git(t, dir, "status", "--porcelain", "--ignored"); status != "" {
				t.Errorf("git status:\n%s", status)
			}
			git(t, dir, "fsck", "--strict")
			var want strings.Builder
			for _, f := range plan.Files {
				fmt.Fprintf(&want, "100%o %s\n", f.Mode, f.Path)
				info, err := os.Stat(filepath.Join(dir, f.Path))
				if err != nil {
					t.Fatal(err)
				}
				if info.Mode() != f.Mode {
					t.Errorf("%s has mode %v, want %v", f.Path, info.Mode(), f.Mode)
				}
			}
			if diff := cmp.Diff(want.String(), git(t, dir, "ls-files", "--format=%(objectmode) %(path)")); diff != "" {
				t.Errorf("committed (-want +got):\n%s", diff)
			}
			if entries, err := os.ReadDir(parent); err != nil || len(entries) != 1 {
				t.Errorf("beside the target there is %v, %v", entries, err)
			}
		})
	}
}

func TestApplyWithoutCommit(t *testing.T) {
	commit := []string{"-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "x"}
	tests := []struct {
		name   string
		git    [][]string // run in the parent directory
		change func(*NewOptions)
		hint   string
		branch string
		status string // of git, for README.md; empty without a repository
	}{
		{"not wanted", nil, func(o *NewOptions) { o.Git = false }, "", "", ""},
		{
			"nobody known", nil, func(o *NewOptions) { o.Env = nil },
			"nothing was committed, because git does not know your name", "main", "A  README.md\n",
		},
		{
			"inside a repository",
			[][]string{{"init", "-q", "."}, commit},
			func(*NewOptions) {},
			"nothing was committed, because the project lies in the git repository", "", "?? README.md\n",
		},
		{
			"in place, with commits",
			[][]string{{"init", "-q", "demo"}, append([]string{"-C", "demo"}, commit...)},
			func(*NewOptions) {},
			"nothing was committed, because its repository already has commits", "", "?? README.md\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			parent := realTempDir(t)
			for _, args := range tt.git {
				git(t, parent, args...)
			}
			o := testOptions(filepath.Join(parent, "demo"))
			tt.change(&o)
			plan, err := PlanNew(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			got, err := plan.Apply(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got.Commit != "" || got.Branch != tt.branch || !strings.HasPrefix(got.Hint, tt.hint) || (tt.hint == "" && got.Hint != "") {
				t.Errorf("result %+v, want hint %q and branch %q", got, tt.hint, tt.branch)
			}
			_, err = os.Lstat(filepath.Join(o.Dir, ".git"))
			if own := tt.name != "inside a repository" && tt.status != ""; own != (err == nil) {
				t.Errorf("own repository: %v, want %v", err == nil, own)
			}
			if tt.status != "" {
				if status := git(t, o.Dir, "status", "--porcelain", "--untracked-files=all", "README.md"); !strings.HasSuffix(status, strings.TrimLeft(tt.status, "?A ")) || status[:2] != tt.status[:2] {
					t.Errorf("git status = %q, want %q", status, tt.status)
				}
			}
		})
	}
}

// What breaks a commit made by git itself (#C16): signing without a key, hooks that fail, commit templates, variables
// that point elsewhere, and no git at all.
func TestApplyIgnoresTheSetUpOfGit(t *testing.T) {
	home := realTempDir(t)
	hooks := filepath.Join(home, "hooks")
	if err := os.Mkdir(hooks, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"hooks/pre-commit": "#!/bin/sh\nexit 1\n",
		".gitconfig": "[user]\n\tname = Ada\n\temail = ada@example.com\n[commit]\n\tgpgsign = true\n\ttemplate = /nowhere\n" +
			"[core]\n\thooksPath = " + hooks + "\n\tautocrlf = true\n[gpg]\n\tprogram = /nowhere\n",
	} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := filepath.Join(home, "elsewhere")
	env := map[string]string{
		"HOME": home, "GIT_CONFIG_NOSYSTEM": "1", "GIT_DIR": elsewhere, "GIT_WORK_TREE": elsewhere, "GIT_INDEX_FILE": elsewhere,
	}
	dir := filepath.Join(realTempDir(t), "demo")
	o := testOptions(dir)
	o.Env = environment(env)
	var got *Result
	t.Run("apply", func(t *testing.T) {
		for k, v := range env {
			t.Setenv(k, v)
		}
		t.Setenv("PATH", "")
		plan, err := PlanNew(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if got, err = plan.Apply(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	})
	if got.Commit == "" || got.Hint != "" {
		t.Errorf("result %+v, want a commit", got)
	}
	if author := git(t, dir, "log", "--format=%an <%ae>"); author != "Ada <ada@example.com>\n" {
		t.Errorf("author %q", author)
	}
	if status := git(t, dir, "-c", "core.autocrlf=true", "status", "--porcelain"); status != "" {
		t.Errorf("git status:\n%s", status)
	}
	if _, err := os.Lstat(elsewhere); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("GIT_DIR was written to: %v", err)
	}
}

// breaking is a disk on which the operation number at breaks, a write with half of its data written, as on a full disk.
type breaking struct {
	realDisk
	at, done int
	broke    func() error // its error is the operation's; without one the operation goes on
}

func (b *breaking) step() error {
	b.done++
	if b.done == b.at {
		return b.broke()
	}
	return nil
}

func (b *breaking) MkdirTemp(dir, pattern string) (string, error) {
	if err := b.step(); err != nil {
		return "", err
	}
	return b.realDisk.MkdirTemp(dir, pattern)
}

func (b *breaking) Mkdir(path string) error {
	if err := b.step(); err != nil {
		return err
	}
	return b.realDisk.Mkdir(path)
}

func (b *breaking) WriteFile(path string, data []byte, mode fs.FileMode) error {
	if err := b.step(); err != nil {
		return errors.Join(err, b.realDisk.WriteFile(path, data[:len(data)/2], mode))
	}
	return b.realDisk.WriteFile(path, data, mode)
}

func (b *breaking) Rename(from, to string) error {
	if err := b.step(); err != nil {
		return err
	}
	return b.realDisk.Rename(from, to)
}

func TestApplyLeavesNothingBehind(t *testing.T) {
	errFull := errors.New("disk full")
	ways := []struct {
		name   string
		want   error
		stride int // between the steps that are tried
		broke  func(cancel func()) error
	}{
		{"failing", errFull, 1, func(func()) error { return errFull }},
		{"cancelled", context.Canceled, 3, func(cancel func()) error { cancel(); return nil }},
	}
	var interruptions atomic.Int32
	t.Run("at", func(t *testing.T) {
		for _, target := range targets {
			for _, way := range ways {
				t.Run(target.name+" "+way.name, func(t *testing.T) {
					t.Parallel()
					parent := realTempDir(t)
					dir := filepath.Join(parent, "demo")
					target.make(t, dir)
					plan, err := PlanNew(t.Context(), testOptions(dir))
					if err != nil {
						t.Fatal(err)
					}
					before := tree(t, parent)
					for at := 1; ; at += way.stride {
						ctx, cancel := context.WithCancel(t.Context())
						d := &breaking{at: at, broke: func() error { return way.broke(cancel) }}
						_, err := plan.apply(ctx, nil, d)
						cancel()
						if err == nil { // it was too late to break anything
							if at <= len(plan.Files) {
								t.Errorf("complete in spite of the interruption of step %d", at)
							}
							return
						}
						interruptions.Add(1)
						if !errors.Is(err, way.want) {
							t.Errorf("step %d: error %v, want %v", at, err, way.want)
						}
						if diff := cmp.Diff(before, tree(t, parent)); diff != "" {
							t.Fatalf("step %d left behind (-before +after):\n%s", at, diff)
						}
					}
				})
			}
		}
	})
	if n := interruptions.Load(); n < 200 {
		t.Errorf("%d interruptions, want at least 200", n)
	}
}

func TestApplyIgnoresTheUmask(t *testing.T) {
	for _, mask := range []int{0o077, 0} {
		t.Run(fmt.Sprintf("%03o", mask), func(t *testing.T) {
			dir := filepath.Join(realTempDir(t), "demo")
			plan, err := PlanNew(t.Context(), testOptions(dir))
			if err != nil {
				t.Fatal(err)
			}
			restore := umask(mask)
			_, err = plan.Apply(t.Context(), nil)
			restore()
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]fs.FileMode{
				".": fs.ModeDir | 0o755, "docs": fs.ModeDir | 0o755, "README.md": 0o644, "docs/smoke.sh": 0o755, ".git/index": 0o644,
			} {
				info, err := os.Stat(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				if info.Mode() != want {
					t.Errorf("%s has mode %v, want %v", name, info.Mode(), want)
				}
			}
		})
	}
}

func TestApplyDoesNotOverwriteWhatAppeared(t *testing.T) {
	for _, before := range []State{Absent, Empty} {
		t.Run(string(before), func(t *testing.T) {
			base := realTempDir(t)
			dir := filepath.Join(base, "demo")
			mkdir := func() {
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if before == Empty {
				mkdir()
			}
			plan, err := PlanNew(t.Context(), testOptions(dir))
			if err != nil {
				t.Fatal(err)
			}
			if before == Absent {
				mkdir()
			}
			if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte("mine\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err = plan.Apply(t.Context(), nil)
			if err == nil || !strings.Contains(err.Error(), "appeared meanwhile; choose another target") {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(map[string]string{"demo/": "", "demo/main.go": "mine\n"}, tree(t, base)); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
}

// Secrets are written for their owner alone, and into nothing that travels.
func TestSecretsStayHere(t *testing.T) {
	const text = "the-secret-of-this-machine"
	dir := filepath.Join(realTempDir(t), "demo")
	o := testOptions(dir)
	o.Answers.Auth = AuthHS256
	o.Secrets = []render.File{{Path: "config/local.yaml", Mode: 0o600, Owner: render.Secret, Data: []byte(text)}}
	plan, err := PlanNew(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	result, err := plan.Apply(t.Context(), nil)
	if err != nil || result.Commit == "" {
		t.Fatalf("Apply = %+v, %v, want a commit", result, err)
	}
	info, err := os.Stat(filepath.Join(dir, "config", "local.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 && filepath.Separator == '/' {
		t.Errorf("mode = %o, want 600", mode)
	}
	if list := git(t, dir, "ls-tree", "-r", "--name-only", "HEAD"); strings.Contains(list, "local.yaml") || !strings.Contains(list, "config/default.yaml") {
		t.Errorf("committed:\n%s", list)
	}
	record, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(manifest.Path)))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(record, []byte("local.yaml")) || !bytes.Contains(record, []byte("auth: hs256")) {
		t.Errorf("the record:\n%s", record)
	}
	base, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(manifest.BasePath)))
	if err != nil {
		t.Fatal(err)
	}
	files, err := manifest.ReadBase(base)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Path == "config/local.yaml" || bytes.Contains(f.Data, []byte(text)) {
			t.Errorf("%s has the secret", f.Path)
		}
	}
}
