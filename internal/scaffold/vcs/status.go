package vcs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Dirty lists what git status would show of the directory dir, which lies in the repository at root: files changed,
// added or removed since the last commit, and files git does not know and does not ignore. Paths are slash-separated and
// relative to dir, sorted. Nothing outside of dir is looked at, nor is a file that skip is true for. Line ends alone are no
// change.
func Dirty(env func(string) string, root, dir string, skip func(name string) bool) ([]string, error) {
	repository, prefix, err := open(root, dir)
	if err != nil {
		return nil, err
	}
	staged, err := repository.Storer.Index()
	if err != nil {
		return nil, fmt.Errorf("reading git's index: %w", err)
	}
	committed, err := headFiles(repository, prefix)
	if err != nil {
		return nil, err
	}
	dirty := map[string]bool{}
	known := map[string]bool{}
	for _, e := range staged.Entries {
		name, ok := below(prefix, e.Name)
		if !ok || name == "" {
			continue
		}
		known[name] = true
		if skip(name) {
			delete(committed, name)
			continue
		}
		before, ok := committed[name]
		delete(committed, name)
		if !ok || e.Stage != 0 || before.Hash != e.Hash || before.Mode != e.Mode || e.IntentToAdd {
			dirty[name] = true
			continue
		}
		if e.SkipWorktree || e.Mode == filemode.Submodule {
			continue
		}
		same, err := unchanged(filepath.Join(dir, filepath.FromSlash(name)), e)
		if err != nil {
			return nil, err
		}
		if !same {
			dirty[name] = true
		}
	}
	for name := range committed {
		dirty[name] = true
	}
	for name := range dirty {
		known[name] = true
	}
	if err := untracked(env, repository, root, prefix, func(name string) bool { return known[name] || skip(name) }, dirty); err != nil {
		return nil, err
	}
	names := make([]string, 0, len(dirty))
	for name := range dirty {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// open opens the repository at root; prefix is dir in it, slash-separated, empty for root itself.
func open(root, dir string) (repository *git.Repository, prefix string, err error) {
	rel, err := filepath.Rel(root, dir)
	if err != nil {
		return nil, "", err
	}
	if prefix = filepath.ToSlash(rel); prefix == "." {
		prefix = ""
	}
	repository, err = git.PlainOpenWithOptions(root, &git.PlainOpenOptions{EnableDotGitCommonDir: true})
	if err != nil {
		return nil, "", fmt.Errorf("opening the git repository %q: %w", root, err)
	}
	return repository, prefix, nil
}

// below is the path of name relative to prefix, and whether it lies there.
func below(prefix, name string) (string, bool) {
	if prefix == "" {
		return name, true
	}
	return strings.CutPrefix(name, prefix+"/")
}

// headFiles are the files of the last commit below prefix.
func headFiles(repository *git.Repository, prefix string) (map[string]object.TreeEntry, error) {
	files := map[string]object.TreeEntry{}
	head, err := repository.Head()
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return files, nil // nothing is committed yet
	}
	if err != nil {
		return nil, err
	}
	commit, err := repository.CommitObject(head.Hash())
	if err != nil {
		return nil, err
	}
	tree, err := treeAt(commit, prefix)
	if err != nil || tree == nil {
		return files, err
	}
	walker := object.NewTreeWalker(tree, true, nil)
	defer walker.Close()
	for {
		name, entry, err := walker.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if entry.Mode != filemode.Dir {
			files[name] = entry
		}
	}
}

// treeAt is the tree at prefix of a commit; nil when it has none.
func treeAt(commit *object.Commit, prefix string) (*object.Tree, error) {
	tree, err := commit.Tree()
	if err != nil || prefix == "" {
		return tree, err
	}
	tree, err = tree.Tree(prefix)
	if errors.Is(err, object.ErrDirectoryNotFound) {
		return nil, nil
	}
	return tree, err
}

// unchanged reports whether the file at name is the one in the index.
func unchanged(name string, e *index.Entry) (bool, error) {
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var data []byte
	switch {
	case info.IsDir():
		return false, nil
	case info.Mode()&fs.ModeSymlink != 0:
		if e.Mode != filemode.Symlink {
			return false, nil
		}
		target, err := os.Readlink(name)
		if err != nil {
			return false, err
		}
		return plumbing.ComputeHash(plumbing.BlobObject, []byte(target)) == e.Hash, nil
	case e.Mode == filemode.Symlink:
		return false, nil
	}
	if executableBits && (info.Mode()&0o100 != 0) != (e.Mode == filemode.Executable) {
		return false, nil
	}
	// As in git: what has the time and size of the index is not read, unless it was written in that very second.
	if uint32(info.Size()) == e.Size && info.ModTime().Equal(e.ModifiedAt) && time.Since(e.ModifiedAt) > 2*time.Second {
		return true, nil
	}
	if data, err = os.ReadFile(name); err != nil {
		return false, err
	}
	if plumbing.ComputeHash(plumbing.BlobObject, data) == e.Hash {
		return true, nil
	}
	lf := bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	return plumbing.ComputeHash(plumbing.BlobObject, lf) == e.Hash, nil
}

// untracked adds the files below prefix to dirty that are neither known nor ignored.
func untracked(env func(string) string, repository *git.Repository, root, prefix string, known func(string) bool, dirty map[string]bool) error {
	patterns := commonIgnores(env, root)
	elements := strings.FieldsFunc(prefix, func(r rune) bool { return r == '/' })
	for i := range elements { // of the directories above
		patterns = append(patterns, ignoreFile(filepath.Join(root, filepath.Join(elements[:i]...), ".gitignore"), elements[:i])...)
	}
	submodules, err := modules(repository)
	if err != nil {
		return err
	}
	var walk func(elements []string, patterns []gitignore.Pattern) error
	walk = func(elements []string, patterns []gitignore.Pattern) error {
		dir := filepath.Join(root, filepath.Join(elements...))
		patterns = append(slices.Clip(patterns), ignoreFile(filepath.Join(dir, ".gitignore"), elements)...)
		matcher := gitignore.NewMatcher(patterns)
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			child := append(slices.Clip(elements), entry.Name())
			name, _ := below(prefix, path.Join(child...))
			switch {
			case entry.Name() == ".git", known(name), submodules[path.Join(child...)]:
				continue
			case matcher.Match(child, entry.IsDir()):
				continue // git has nothing to say about files below it, unless it knows them
			case entry.IsDir() && isRepository(filepath.Join(dir, entry.Name(), ".git")):
				dirty[name+"/"] = true
			case entry.IsDir():
				if err := walk(child, patterns); err != nil {
					return err
				}
			default:
				dirty[name] = true
			}
		}
		return nil
	}
	return walk(elements, patterns)
}

// modules are the paths of submodules.
func modules(repository *git.Repository) (map[string]bool, error) {
	staged, err := repository.Storer.Index()
	if err != nil {
		return nil, err
	}
	paths := map[string]bool{}
	for _, e := range staged.Entries {
		if e.Mode == filemode.Submodule {
			paths[e.Name] = true
		}
	}
	return paths, nil
}

// commonIgnores are the patterns of the person and of the repository.
func commonIgnores(env func(string) string, root string) []gitignore.Pattern {
	s := settings{env: env, home: home(env), dotGit: filepath.Join(root, ".git")}
	for _, file := range s.files() {
		s.read(file)
	}
	s.readEnv()
	personal := s.values["core.excludesfile"]
	if personal == "" {
		config := env("XDG_CONFIG_HOME")
		if config == "" && s.home != "" {
			config = filepath.Join(s.home, ".config")
		}
		personal = filepath.Join(cmp.Or(config, "/nonexistent"), "git", "ignore")
	}
	return append(ignoreFile(s.expand(personal), nil), ignoreFile(filepath.Join(root, ".git", "info", "exclude"), nil)...)
}

// ignoreFile are the patterns of a file, which may be missing, for the directory at elements.
func ignoreFile(name string, elements []string) []gitignore.Pattern {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	var patterns []gitignore.Pattern
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\r\n")
		if line != "" && line[0] != '#' {
			patterns = append(patterns, gitignore.ParsePattern(line, elements))
		}
	}
	return patterns
}

// maxHistory bounds how many commits [History] looks at.
const maxHistory = 20_000

// History calls visit with the contents of the named files, relative to dir, in the commits before and including the
// last one, newest first, until it returns true; only where one of them differs from the commit looked at before. A
// missing file is nil. It returns the commit at which visit did, or an empty string.
func History(root, dir string, names []string, visit func(files [][]byte) bool) (string, error) {
	repository, prefix, err := open(root, dir)
	if err != nil {
		return "", err
	}
	head, err := repository.Head()
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	commits, err := repository.Log(&git.LogOptions{From: head.Hash(), Order: git.LogOrderCommitterTime})
	if err != nil {
		return "", err
	}
	defer commits.Close()
	seen := map[string]bool{}
	for range maxHistory {
		commit, err := commits.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, plumbing.ErrObjectNotFound) { // the end, or that of a shallow clone
			return "", nil
		}
		if err != nil {
			return "", err
		}
		tree, err := treeAt(commit, prefix)
		if err != nil {
			return "", err
		}
		if tree == nil {
			continue
		}
		hashes := make([]string, len(names)) // empty for a missing file
		files := make([]*object.File, len(names))
		for i, name := range names {
			if f, err := tree.File(name); err == nil {
				files[i], hashes[i] = f, f.Hash.String()
			}
		}
		key := strings.Join(hashes, ",")
		if seen[key] {
			continue
		}
		seen[key] = true
		contents := make([][]byte, len(names))
		for i, f := range files {
			if f == nil {
				continue
			}
			text, err := f.Contents()
			if err != nil {
				return "", err
			}
			contents[i] = []byte(text)
		}
		if visit(contents) {
			return commit.Hash.String(), nil
		}
	}
	return "", nil
}

// executableBits says whether this system's files have them.
const executableBits = runtime.GOOS != "windows"
