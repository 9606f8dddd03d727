package vcs

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Root is the root of the git repository that dir lies in, found the way git does it: by a .git that is a repository
// or points to one, in dir or above. It is empty outside of one. dir itself need not exist.
func Root(dir string) string {
	for {
		if isRepository(filepath.Join(dir, ".git")) {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

func isRepository(dotGit string) bool {
	info, err := os.Stat(dotGit)
	if err != nil {
		return false
	}
	if !info.IsDir() { // of a linked worktree or a submodule
		data, err := os.ReadFile(dotGit)
		return err == nil && strings.HasPrefix(string(data), "gitdir: ")
	}
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dotGit, name)); err != nil {
			return false
		}
	}
	return true
}

// Unborn is the branch that the first commit of the repository at dotGit goes to. Without one, reason says why no
// first commit can be made there.
func Unborn(dotGit string) (branch, reason string) {
	if info, err := os.Stat(dotGit); err != nil || !info.IsDir() {
		return "", "its .git belongs to another repository"
	}
	if !isRepository(dotGit) {
		return "", "its .git is not a repository that git recognises"
	}
	s := settings{}
	s.read(filepath.Join(dotGit, "config"))
	if format := s.values["extensions.objectformat"]; (format != "" && format != "sha1") || s.values["extensions.refstorage"] != "" {
		return "", "its repository has a newer format"
	}
	head, err := os.ReadFile(filepath.Join(dotGit, "HEAD"))
	branch, ok := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: refs/heads/")
	if err != nil || !ok || hasRefs(dotGit) {
		return "", "its repository already has commits"
	}
	if _, err := os.Lstat(filepath.Join(dotGit, "index")); err == nil {
		return "", "its repository has staged changes"
	}
	if plumbing.NewBranchReferenceName(branch).Validate() != nil {
		return "", "its repository has no usable branch"
	}
	return branch, ""
}

// hasRefs reports whether anything was ever committed to or fetched into the repository.
func hasRefs(dotGit string) bool {
	if _, err := os.Stat(filepath.Join(dotGit, "packed-refs")); err == nil {
		return true
	}
	found := false
	_ = filepath.WalkDir(filepath.Join(dotGit, "refs"), func(_ string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found = true
			return filepath.SkipAll
		}
		return nil
	})
	return found
}
