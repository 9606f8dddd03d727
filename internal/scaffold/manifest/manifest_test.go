package manifest_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp/internal/scaffold/manifest"
	"github.com/famcp/famcp/internal/scaffold/render"
	"github.com/famcp/famcp/internal/testkit"
)

var files = []render.File{
	{Path: "README.md", Mode: 0o644, Owner: render.Seeded, Data: []byte("# Demo\n")},
	{Path: "config/ünï code.yaml", Mode: 0o644, Owner: render.Managed, Data: nil},
	{Path: "go.mod", Mode: 0o644, Owner: render.Structural, Data: []byte("module x\n")},
	{Path: "run.sh", Mode: 0o755, Owner: render.Managed, Data: []byte("#!/bin/sh\n")},
	{Path: "third_party/famcp/famcp.go", Mode: 0o644, Owner: render.Locked, Data: []byte("package famcp\n")},
	{Path: strings.Repeat("long/", 40) + "path", Mode: 0o644, Owner: render.Seeded, Data: []byte("x")},
}

func testManifest() manifest.Manifest {
	return manifest.Manifest{
		Famcp: "v1.2.3", Commit: "0123abc", Template: "v1.2.3", TemplateSum: "h1:zip=", Runtime: "v1.2.0",
		Answers: map[string]any{"name": "demo", "port": 3000, "examples": true, "title": "a: \"b\" # c\u2028", "author": ""},
	}
}

func TestRecord(t *testing.T) {
	got, err := manifest.Record(testManifest(), files)
	if err != nil {
		t.Fatal(err)
	}
	again, err := manifest.Record(testManifest(), files)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("a second record differs:\n%s", diff)
	}
	content := map[string][]byte{}
	for _, f := range got {
		if f.Owner != render.Record || f.Mode != 0o644 {
			t.Errorf("%s: owner %s, mode %v", f.Path, f.Owner, f.Mode)
		}
		content[f.Path] = f.Data
	}
	if got := string(content[".famcp/.gitignore"]); got != "tmp/\n" {
		t.Errorf(".gitignore = %q", got)
	}
	testkit.Golden(t, "testdata/manifest.yaml", content[manifest.Path])

	m, err := manifest.Parse(content[manifest.Path])
	if err != nil {
		t.Fatal(err)
	}
	want := testManifest()
	want.Schema, want.Files = 1, manifest.Entries(files)
	if diff := cmp.Diff(&want, m); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}

	base, err := manifest.ReadBase(content[manifest.BasePath])
	if err != nil {
		t.Fatal(err)
	}
	var kept []render.File
	for _, f := range files {
		if f.Owner == render.Managed || f.Owner == render.Seeded {
			f.Owner = ""
			kept = append(kept, f)
		}
	}
	if diff := cmp.Diff(kept, base, cmp.Comparer(bytes.Equal)); diff != "" {
		t.Errorf("base read back (-want +got):\n%s", diff)
	}
}

func TestParseErrors(t *testing.T) {
	const head = "schema: 1\nanswers: {name: demo}\nfiles:\n"
	hash := strings.Repeat("0", 64)
	tests := []struct{ name, text, want string }{
		{"empty", "", "is damaged: it has no schema; restore it from git"},
		{"not YAML", "{", "is damaged: yaml: "},
		{"conflict markers", "<<<<<<< HEAD\nschema: 1\n=======\n", "is damaged: yaml: "},
		{"newer", "schema: 2\n", "has schema 2, and this famcp knows 1; use the newer famcp that wrote it"},
		{"no answers", "schema: 1\n", "it has no answers"},
		{"unknown owner", head + "  a: {owner: me, sha256: " + hash + "}\n", `file a has the unknown owner "me"`},
		{"no hash", head + "  a: {owner: seeded}\n", "file a has no SHA-256"},
		{"path outside", head + "  ../a: {owner: seeded, sha256: " + hash + "}\n", `"../a" is not a path inside the project`},
		{"absolute path", head + "  /a: {owner: seeded, sha256: " + hash + "}\n", `"/a" is not a path inside the project`},
		{"the project itself", head + "  .: {owner: seeded, sha256: " + hash + "}\n", `"." is not a path inside the project`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := manifest.Parse([]byte(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestReadBaseErrors(t *testing.T) {
	whole, err := manifest.Base(files)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Replace(whole, []byte("# Demo"), []byte("# Oops"), 1)
	for name, data := range map[string][]byte{"empty": nil, "cut": whole[:len(whole)-10], "changed": flipped} {
		t.Run(name, func(t *testing.T) {
			_, err := manifest.ReadBase(data)
			if err == nil || !strings.HasPrefix(err.Error(), ".famcp/base.zip is damaged: ") {
				t.Errorf("error %v", err)
			}
		})
	}
}
