package scaffold

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp/internal/scaffold/manifest"
	"github.com/famcp/famcp/internal/scaffold/overlay"
	"github.com/famcp/famcp/internal/scaffold/render"
)

// A project made with a team's template carries all that is needed to make its files again.
func TestOverlayIsRecorded(t *testing.T) {
	o := testOptions(filepath.Join(t.TempDir(), "demo"))
	o.Overlay = &overlay.Tree{
		Source: "https://example.com/team/template.git", Ref: "v1", Commit: strings.Repeat("0", 40),
		Files: []render.File{
			{Path: "docs/team.md.tmpl", Mode: 0o644, Data: []byte("[[ .Name ]]\n")},
			{Path: "run", Mode: 0o755, Data: []byte("#!/bin/sh\n")},
		},
	}
	plan, err := PlanNew(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]render.File{}
	for _, f := range plan.Files {
		files[f.Path] = f
	}
	if f := files["docs/team.md"]; string(f.Data) != "demo\n" || f.Owner != render.Managed || !f.Overlay {
		t.Errorf("docs/team.md: %+v", f)
	}
	m, err := manifest.Parse(files[manifest.Path].Data)
	if err != nil {
		t.Fatal(err)
	}
	if e := m.Files["run"]; !e.Overlay || e.Owner != render.Managed {
		t.Errorf("the entry of run is %+v", e)
	}
	if e := m.Files["go.mod"]; e.Overlay {
		t.Errorf("the entry of go.mod is %+v", e)
	}
	base, err := manifest.ReadBase(files[manifest.BasePath].Data)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(cmp.Diff(nil, base), "docs/team.md") {
		t.Error("the base has no docs/team.md")
	}
	archive := files[manifest.OverlayPath].Data
	tree, err := RecordedOverlay(m, archive)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(o.Overlay, tree); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	o.Overlay = tree
	again, err := PlanNew(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plan.Files, again.Files); diff != "" {
		t.Errorf("made again (-first +second):\n%s", diff)
	}

	for i := range archive {
		damaged := append([]byte(nil), archive...)
		damaged[i] ^= 0xff
		if tree, err := RecordedOverlay(m, damaged); err == nil && cmp.Diff(o.Overlay.Files, tree.Files) != "" {
			t.Errorf("byte %d is damaged, and nobody noticed", i)
		}
	}
	if tree, err := RecordedOverlay(&manifest.Manifest{}, nil); tree != nil || err != nil {
		t.Errorf("a project without a team's template: %v, %v", tree, err)
	}
}
