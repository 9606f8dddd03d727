package overlay_test

import (
	"context"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp/internal/scaffold/overlay"
)

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// listing is what is in tree, by path; executables have a star.
func listing(tree *overlay.Tree) map[string]string {
	got := map[string]string{}
	for _, f := range tree.Files {
		name := f.Path
		if f.Mode == 0o755 {
			name += "*"
		}
		got[name] = string(f.Data)
	}
	return got
}

func TestFetchDir(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"README.md.tmpl": "# [[ .Title ]]\n", "docs/house rules.md": "Be kind.\n", "run.sh": "#!/bin/sh\n", ".git/config": "[core]\n",
	})
	if err := os.Chmod(filepath.Join(dir, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	tree, err := overlay.Fetch(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	script := "run.sh*"
	if runtime.GOOS == "windows" {
		script = "run.sh"
	}
	want := map[string]string{"README.md.tmpl": "# [[ .Title ]]\n", "docs/house rules.md": "Be kind.\n", script: "#!/bin/sh\n"}
	if diff := cmp.Diff(want, listing(tree)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if tree.Commit != "" || tree.Ref != "" {
		t.Errorf("commit %q, ref %q of a directory", tree.Commit, tree.Ref)
	}
}

func TestFetchDirRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		link  string
		want  string
	}{
		"empty":               {want: "has no files"},
		"link to a file":      {link: "secret", want: "is a link"},
		"git inside":          {files: map[string]string{"a/.git/config": "x"}, want: "is git's own"},
		"git inside, capital": {files: map[string]string{"a/.GIT/config": "x"}, want: "is git's own"},
		"our record":          {files: map[string]string{".famcp/manifest.yaml": "x"}, want: "famcp's record"},
		"our record, capital": {files: map[string]string{".Famcp/manifest.yaml": "x"}, want: "famcp's record"},
		"the runtime":         {files: map[string]string{"third_party/famcp/famcp.go": "x"}, want: "is the runtime's"},
		"go.mod":              {files: map[string]string{"go.mod": "module x\n"}, want: "is made by famcp"},
		"go.work":             {files: map[string]string{"go.work": "go 1.26\n"}, want: "would change which modules"},
		"vendor":              {files: map[string]string{"vendor/modules.txt": "x"}, want: "would change which modules"},
		"secrets":             {files: map[string]string{"config/local.yaml": "x"}, want: "may hold secrets"},
		"a name of Windows":   {files: map[string]string{"docs/nul.txt": "x"}, want: "not every system"},
		"too large":           {files: map[string]string{"big": strings.Repeat("x", 4<<20+1)}, want: "at most 4194304 are allowed"},
		"too long":            {files: map[string]string{strings.Repeat("d/", 99) + "file": "x"}, want: "longer than 200"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, tt.files)
			if tt.link != "" {
				if err := os.Symlink(os.Args[0], filepath.Join(dir, tt.link)); err != nil {
					t.Skipf("this system has no links: %v", err)
				}
			}
			_, err := overlay.Fetch(t.Context(), dir)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
	if _, err := overlay.Fetch(t.Context(), filepath.Join(t.TempDir(), "absent")); err == nil || !strings.Contains(err.Error(), "absent") {
		t.Errorf("no directory: %v", err)
	}
	many := t.TempDir()
	for i := range 2001 {
		if err := os.WriteFile(filepath.Join(many, strconv.Itoa(i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := overlay.Fetch(t.Context(), many); err == nil || !strings.Contains(err.Error(), "more than 2000 files") {
		t.Errorf("many files: %v", err)
	}
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git to make a repository")
	}
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// teamRepository is a repository with two versions of a template: the tag v1, and after it what the branches have.
func teamRepository(t *testing.T) (dir, v1, tip string) {
	t.Helper()
	dir = t.TempDir()
	git(t, dir, "init", "-q", "-b", "main")
	write(t, dir, map[string]string{"note.md": "one\n", "run.sh": "#!/bin/sh\n"})
	git(t, dir, "add", ".")
	git(t, dir, "update-index", "--chmod=+x", "run.sh")
	git(t, dir, "config", "core.fileMode", "false")
	git(t, dir, "commit", "-q", "-m", "one")
	git(t, dir, "tag", "-a", "-m", "first", "v1")
	v1 = git(t, dir, "rev-parse", "HEAD")
	write(t, dir, map[string]string{"note.md": "two\n"})
	git(t, dir, "commit", "-q", "-a", "-m", "two")
	git(t, dir, "branch", "feature/x")
	// What a checkout would run: fetching must not.
	hook := "#!/bin/sh\ntouch '" + filepath.Join(dir, "ran") + "'\n"
	write(t, dir, map[string]string{".git/hooks/post-checkout": hook, ".git/hooks/pre-upload-pack": hook})
	return dir, v1, git(t, dir, "rev-parse", "HEAD")
}

func TestFetchRepository(t *testing.T) {
	dir, v1, tip := teamRepository(t)
	path := filepath.ToSlash(dir)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	sources := map[string]string{"on disk": "file://" + path, "over HTTP": serveGit(t, dir, "", "")}
	for name, url := range sources {
		t.Run(name, func(t *testing.T) {
			for ref, want := range map[string]struct{ commit, text string }{
				"": {tip, "two\n"}, "@main": {tip, "two\n"}, "@feature/x": {tip, "two\n"}, "@v1": {v1, "one\n"}, "@" + v1: {v1, "one\n"},
			} {
				tree, err := overlay.Fetch(t.Context(), url+ref)
				if err != nil {
					t.Errorf("%s: %v", ref, err)
					continue
				}
				if diff := cmp.Diff(map[string]string{"note.md": want.text, "run.sh*": "#!/bin/sh\n"}, listing(tree)); diff != "" {
					t.Errorf("%s: files (-want +got):\n%s", ref, diff)
				}
				if tree.Commit != want.commit || "@"+tree.Ref != "@"+strings.TrimPrefix(ref, "@") || tree.Source != url {
					t.Errorf("%s: source %s, ref %s, commit %s, want %s", ref, tree.Source, tree.Ref, tree.Commit, want.commit)
				}
			}
			if _, err := overlay.Fetch(t.Context(), url+"@v9"); err == nil || !strings.Contains(err.Error(), `no branch, tag or commit "v9"`) {
				t.Errorf("an unknown ref: %v", err)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("a hook was run")
	}
}

// serveGit serves the repository in dir by git's own program, to one user only if there is one.
func serveGit(t *testing.T, dir, user, password string) string {
	t.Helper()
	backend := filepath.Join(git(t, dir, "--exec-path"), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		t.Skip("needs git-http-backend to serve a repository")
	}
	handler := &cgi.Handler{
		Path:   backend,
		Stderr: t.Output(),
		Env: []string{
			"GIT_PROJECT_ROOT=" + filepath.Dir(dir), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=2",
			"GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
			"GIT_CONFIG_KEY_1=uploadpack.allowAnySHA1InWant", "GIT_CONFIG_VALUE_1=true",
		},
	}
	server := httptest.NewServer(guard(handler, user, password))
	t.Cleanup(server.Close)
	return server.URL + "/" + filepath.Base(dir) + "/.git"
}

func TestCredentials(t *testing.T) {
	dir, _, _ := teamRepository(t)
	url := serveGit(t, dir, "ada", "s3cret-Pass")
	host := strings.TrimPrefix(url, "http://")
	tree, err := overlay.Fetch(t.Context(), "http://ada:s3cret-Pass@"+host+"@v1")
	if err != nil {
		t.Fatal(err)
	}
	if tree.Source != url || tree.Ref != "v1" {
		t.Errorf("source %s, ref %s", tree.Source, tree.Ref)
	}
	for _, spec := range []string{
		"http://ada:wrong-Pass@" + host, "http://t0ken-wrong@" + host, "http://ada:wrong-Pass@" + host + "/absent@v1",
		"https://ada:wrong-Pass@127.0.0.1:1/x", "https://ada:wrong-Pass@exa mple.com/x", "https://ada:wrong-Pass@example.com",
		"gopher://ada:wrong-Pass@example.com/x", "http://ada:wrong-Pass@example.com/x", "ssh://git:wrong-Pass@example.com/x",
		"https://ada:wrong-Pass@example.com/x?y=z", "https://ada:wrong-Pass@example.com/x@", "file://ada:wrong-Pass@example.com/x",
	} {
		_, err := overlay.Fetch(t.Context(), spec)
		if err == nil {
			t.Errorf("%s: no error", spec)
			continue
		}
		if strings.Contains(err.Error(), "wrong") || strings.Contains(err.Error(), "ada:") {
			t.Errorf("the error tells the credentials: %v", err)
		}
	}
}

// A hostile repository has trees that git would not make.
func TestHostileTrees(t *testing.T) {
	for name, tt := range map[string]struct {
		entry object.TreeEntry
		want  string
	}{
		"out of the project":    {object.TreeEntry{Name: "..", Mode: filemode.Dir}, "leads out of it"},
		"a slash":               {object.TreeEntry{Name: "../x", Mode: filemode.Regular}, "leads out of it"},
		"absolute":              {object.TreeEntry{Name: "/etc", Mode: filemode.Dir}, "leads out of it"},
		"a backslash":           {object.TreeEntry{Name: `..\x`, Mode: filemode.Regular}, "invalid path"},
		"git":                   {object.TreeEntry{Name: ".git", Mode: filemode.Dir}, "git's own"},
		"git by its short name": {object.TreeEntry{Name: "GIT~1", Mode: filemode.Dir}, "git's own"},
		"a link":                {object.TreeEntry{Name: "link", Mode: filemode.Symlink}, "is a link"},
		"a submodule":           {object.TreeEntry{Name: "sub", Mode: filemode.Submodule}, "submodule"},
		"a device":              {object.TreeEntry{Name: "docs/con", Mode: filemode.Regular}, "leads out of it"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			store := filesystem.NewStorage(osfs.New(filepath.Join(dir, ".git")), cache.NewObjectLRUDefault())
			if err := store.Init(); err != nil {
				t.Fatal(err)
			}
			put := func(o interface {
				Encode(plumbing.EncodedObject) error
			},
			) plumbing.Hash {
				obj := store.NewEncodedObject()
				if err := o.Encode(obj); err != nil {
					t.Fatal(err)
				}
				hash, err := store.SetEncodedObject(obj)
				if err != nil {
					t.Fatal(err)
				}
				return hash
			}
			blob := store.NewEncodedObject()
			blob.SetType(plumbing.BlobObject)
			w, err := blob.Writer()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write([]byte("x\n")); err != nil {
				t.Fatal(err)
			}
			hash, err := store.SetEncodedObject(blob)
			if err != nil {
				t.Fatal(err)
			}
			tt.entry.Hash = hash
			if tt.entry.Mode == filemode.Dir {
				tt.entry.Hash = put(&object.Tree{Entries: []object.TreeEntry{{Name: "file", Mode: filemode.Regular, Hash: hash}}})
			}
			who := object.Signature{Name: "Mallory", Email: "m@example.com", When: time.Unix(0, 0)}
			commit := put(&object.Commit{Author: who, Committer: who, TreeHash: put(&object.Tree{Entries: []object.TreeEntry{tt.entry}})})
			for _, ref := range []*plumbing.Reference{
				plumbing.NewHashReference("refs/heads/main", commit), plumbing.NewSymbolicReference(plumbing.HEAD, "refs/heads/main"),
			} {
				if err := store.SetReference(ref); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := overlay.Fetch(t.Context(), "file:///"+strings.TrimPrefix(filepath.ToSlash(dir), "/")); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}

// What is small to send can be large: zeros by the megabyte are refused before they are unpacked.
func TestLargeRepositories(t *testing.T) {
	dir, _, _ := teamRepository(t)
	write(t, dir, map[string]string{"zeros": strings.Repeat("\x00", 40<<20)})
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "large")
	if _, err := overlay.Fetch(t.Context(), serveGit(t, dir, "", "")); err == nil || !strings.Contains(err.Error(), "unpacks to more") {
		t.Errorf("over HTTP: %v", err)
	}
	if _, err := overlay.Fetch(t.Context(), "file:///"+strings.TrimPrefix(filepath.ToSlash(dir), "/")); err == nil || !strings.Contains(err.Error(), "at most 4194304") {
		t.Errorf("on disk: %v", err)
	}
}

func TestFetchEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stop := make(chan struct{})
	server := httptest.NewServer(hang(stop, cancel))
	defer server.Close()
	defer close(stop)
	if _, err := overlay.Fetch(ctx, server.URL+"/x"); err == nil {
		t.Error("a server that never answers: no error")
	}
}
