package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"

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

// A checkout on Windows with core.autocrlf makes the same projects (#C20).
func TestTemplatesCheckedOutWithCRLF(t *testing.T) {
	windows := fstest.MapFS{}
	err := fs.WalkDir(templates(t), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(templates(t), name)
		windows[name] = &fstest.MapFile{Data: bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n")), Mode: 0o644}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range combinations() {
		want, err := Project(templates(t), d)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Project(windows, d)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Fatalf("%d files, want the %d of a checkout with LF", len(got), len(want))
		}
		for i, f := range got {
			if f.Path != want[i].Path || !bytes.Equal(f.Data, want[i].Data) {
				t.Errorf("%s is not the %s of a checkout with LF", f.Path, want[i].Path)
			}
		}
	}
}

// Any text that an answer may be must arrive as itself in Go, and leave every other file well formed.
func TestTemplatesTakeHostileAnswers(t *testing.T) {
	const evil = "\"'`\\n $HOME ${HOME} $(id) {{ .Name }} [[ .Name ]] ${{ secrets.X }} %s a: b # c - &a *b !c \"\"\" ''' */ <script> [x](y) 日本 😀 \ufeff"
	for _, d := range combinations() {
		d.Title, d.Description, d.Author = "- T "+evil, "# D "+evil, evil
		files, err := Project(templates(t), d)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if err := wellFormed(f); err != nil {
				t.Errorf("%s: %v\n%s", f.Path, err, f.Data)
			}
			if f.Path != "internal/project/project.go" {
				continue
			}
			for _, want := range []string{d.Name, d.Title, d.Description, d.DefaultCommand} {
				if !bytes.Contains(f.Data, []byte("= "+strconv.Quote(want)+"\n")) {
					t.Errorf("%s has no constant %q:\n%s", f.Path, want, f.Data)
				}
			}
		}
	}
}

func wellFormed(f File) error {
	var v any
	switch path.Ext(f.Path) {
	case ".yaml", ".yml":
		return yaml.Unmarshal(f.Data, &v)
	case ".json":
		return json.Unmarshal(f.Data, &v)
	case ".toml":
		return toml.Unmarshal(f.Data, &v)
	case ".go":
		formatted, err := format.Source(f.Data)
		if err == nil && !bytes.Equal(formatted, f.Data) {
			err = errors.New("not formatted")
		}
		return err
	}
	return nil
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
