package render

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/famcp/famcp/internal/testkit"
)

// The tables of this package against the template they are about.

func templates(t *testing.T) fs.FS {
	t.Helper()
	return os.DirFS(filepath.Join(testkit.Checkout(t), "templates"))
}

// combinations are data that together take every option both ways.
func combinations() []Data {
	var all []Data
	for i := range 1 << 5 {
		bit := func(n int) bool { return i>>n&1 == 1 }
		d := Data{
			Name: "demo", Command: "demo", Module: "example.com/demo", Title: "Demo", Description: "A demo.", Author: "Ada", Port: 3000, Auth: "none",
			GoVersion: "1.26", CI: "none", Transport: "both", DefaultCommand: "http", License: "mit", Runtime: "vendored",
			Examples: bit(0), GitHub: bit(1), GitLab: bit(2), HTTP: true, Stdio: true,
		}
		switch {
		case d.GitHub && d.GitLab:
			d.CI = "both"
		case d.GitHub:
			d.CI = "github"
		case d.GitLab:
			d.CI = "gitlab"
		}
		if bit(3) {
			d.Transport, d.DefaultCommand, d.HTTP, d.Runtime, d.License = "stdio", "stdio", false, "module", "none"
		}
		if bit(4) {
			d.License = "apache-2.0"
		}
		if bit(3) && bit(4) {
			d.Transport, d.DefaultCommand, d.HTTP, d.Stdio = "http", "http", true, false
		}
		all = append(all, d)
	}
	return all
}

func TestTemplates(t *testing.T) {
	fsys := templates(t)
	goTrees := map[string]bool{}
	for _, d := range combinations() {
		files, err := Project(fsys, d)
		if err != nil {
			t.Fatal(err)
		}
		var tree bytes.Buffer
		for _, f := range files {
			if path.Ext(f.Path) == ".go" && !strings.HasPrefix(f.Path, "internal/project/") {
				fmt.Fprintf(&tree, "%s\n%s\n", f.Path, f.Data)
			}
			if bytes.Contains(f.Data, []byte("\r")) {
				t.Errorf("%s has a carriage return", f.Path)
			}
			if bytes.Contains(f.Data, []byte(templateModule)) {
				t.Errorf("%s names %s", f.Path, templateModule)
			}
		}
		goTrees[tree.String()] = true
	}
	if len(goTrees) > 3 {
		t.Errorf("%d distinct trees of Go files, want at most 3", len(goTrees))
	}
}

// A row that no template uses is a typo or a leftover.
func TestEveryRowIsUsed(t *testing.T) {
	var names []string
	for _, tree := range []string{projectTree, bareTree} {
		err := fs.WalkDir(templates(t), tree, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				names = append(names, Destination(strings.TrimPrefix(name, tree+"/")))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range options {
		names = append(names, o.to)
	}
	used := func(pattern string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return covers(pattern, name) })
	}
	for _, o := range options {
		if !used(o.path) {
			t.Errorf("no template for the option %s", o.path)
		}
	}
	for _, o := range owners {
		if !used(o.pattern) {
			t.Errorf("no template for the owner of %s", o.pattern)
		}
	}
}
