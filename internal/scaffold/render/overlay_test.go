package render_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp/internal/scaffold/render"
)

var overlayData = render.Data{Name: "demo", Module: "example.com/demo", Title: `The "demo" [x]`, Port: 3000, HTTP: true}

func TestOverlay(t *testing.T) {
	ours := []render.File{
		{Path: ".gitignore", Mode: 0o644, Owner: render.Managed, Data: []byte("ours\n")},
		{Path: "README.md", Mode: 0o644, Owner: render.Seeded, Data: []byte("ours\n")},
		{Path: "main.go", Mode: 0o644, Owner: render.Managed, Data: []byte("package main\n")},
	}
	team := []render.File{
		{Path: ".github/workflows/team.yml", Mode: 0o644, Data: []byte("x\n")}, // no project of GitHub
		{Path: "README.md.tmpl", Mode: 0o644, Data: []byte("# [[ mdtext .Title ]]\r\n[[ if .HTTP ]]port [[ .Port ]][[ end ]]\n")},
		{Path: "dot_gitignore", Mode: 0o644, Data: []byte("theirs\n")},
		{Path: "image.png", Mode: 0o644, Data: []byte("\x00\r\n[[")},
		{Path: "internal/audit/audit.go", Mode: 0o644, Data: []byte("package audit\nimport _ \"github.com/famcp/famcp/templates/project/internal/app\"\n")},
		{Path: "tools/gen", Mode: 0o755, Data: []byte("#!/bin/sh\n")},
	}
	got, err := render.Overlay(ours, team, overlayData)
	if err != nil {
		t.Fatal(err)
	}
	want := []render.File{
		{Path: ".gitignore", Mode: 0o644, Owner: render.Managed, Data: []byte("theirs\n"), Overlay: true},
		{Path: "README.md", Mode: 0o644, Owner: render.Seeded, Data: []byte("# The \"demo\" \\[x\\]\nport 3000\n"), Overlay: true},
		{Path: "image.png", Mode: 0o644, Owner: render.Managed, Data: []byte("\x00\r\n[["), Overlay: true},
		{
			Path: "internal/audit/audit.go", Mode: 0o644, Owner: render.Managed, Overlay: true,
			Data: []byte("package audit\n\nimport _ \"example.com/demo/internal/app\"\n"),
		},
		{Path: "main.go", Mode: 0o644, Owner: render.Managed, Data: []byte("package main\n")},
		{Path: "tools/gen", Mode: 0o755, Owner: render.Managed, Data: []byte("#!/bin/sh\n"), Overlay: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestOverlayRefuses(t *testing.T) {
	ours := []render.File{{Path: "main.go", Mode: 0o644, Owner: render.Managed, Data: []byte("package main\n")}}
	tmpl := func(text string) map[string]string { return map[string]string{"x.tmpl": text} }
	nested := func(f string, depth int) string {
		return "[[ " + strings.Repeat(f+" (", depth) + ".Title" + strings.Repeat(")", depth) + " ]]"
	}
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"out of the project":     {map[string]string{"../x": ""}, "leads out of it"},
		"git by our rule":        {map[string]string{"dot_git/config": ""}, "git's own"},
		"our record by our rule": {map[string]string{"dot_famcp/manifest.yaml": ""}, "famcp's record"},
		"go.mod by our rule":     {map[string]string{"go.mod.tmpl": ""}, "made by famcp"},
		"two for one":            {map[string]string{".x": "", "dot_x": ""}, "are both .x"},
		"case":                   {map[string]string{"Main.go": "package main\n"}, "differ in case only"},
		"a file for a directory": {map[string]string{"main.go/x": ""}, "needs a directory"},
		"no Go":                  {map[string]string{"x.go": "func x\n"}, "template file x.go"},
		"unknown field":          {tmpl("[[ .Nam ]]"), "can't evaluate field Nam"},
		"unknown function":       {tmpl("[[ env \"HOME\" ]]"), "env"},
		"a loop":                 {tmpl("[[ range 1000000000 ]][[ end ]]"), "is not allowed"},
		"a loop inside":          {tmpl("[[ if .HTTP ]][[ with .Port ]][[ range . ]][[ end ]][[ end ]][[ end ]]"), "is not allowed"},
		"a loop otherwise":       {tmpl("[[ if .HTTP ]][[ else ]][[ range 9 ]][[ end ]][[ end ]]"), "is not allowed"},
		"a variable":             {tmpl("[[ $x := .Title ]]"), "declares a variable"},
		"a definition":           {tmpl("[[ define \"y\" ]][[ end ]]"), "defines templates"},
		"recursion":              {tmpl("[[ template \"x.tmpl\" . ]]"), "is not allowed"},
		"quoting without end":    {tmpl(nested("json", 60)), "longer than"},
		"replacing without end":  {tmpl(nested(`replace "e" "eeeeeeeeee"`, 60)), "longer than"},
		"replacing nothing":      {tmpl(nested(`replace "" "eeeeeeeeee"`, 60)), "longer than"},
		"formatting without end": {tmpl(nested(`printf "%[1]s%[1]s"`, 60)), "is not there"},
		"padding":                {tmpl(`[[ printf "%999999s" .Title ]]`), "is not there"},
		"escaping without end":   {tmpl(nested("js", 60)), "is not there"},
		"a large template":       {tmpl(strings.Repeat("x", 256<<10+1)), "remove .tmpl"},
		"a large result":         {tmpl(strings.Repeat(`[[ replace "e" "`+strings.Repeat("e", 900)+`" "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee" ]]`, 100)), "makes more than"},
	} {
		t.Run(name, func(t *testing.T) {
			var team []render.File
			for path, text := range tt.files {
				team = append(team, render.File{Path: path, Mode: 0o644, Data: []byte(text)})
			}
			start := time.Now()
			_, err := render.Overlay(ours, team, overlayData)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %.200v, want %q in it", err, tt.want)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func FuzzOverlay(f *testing.F) {
	f.Add("README.md.tmpl", "# [[ .Title | mdtext ]] [[ if eq .Port 3000 ]]x[[ else ]]y[[ end ]]")
	f.Add("dot_git/x.go.tmpl", "package x\nimport \"fmt\"\n")
	f.Add("a/../../x", "[[ json (json .Name) ]]")
	f.Fuzz(func(t *testing.T, path, text string) {
		files, err := render.Overlay(nil, []render.File{{Path: path, Mode: 0o644, Data: []byte(text)}}, overlayData)
		if err != nil {
			return
		}
		for _, file := range files {
			if !fs.ValidPath(file.Path) || strings.Contains(fmt.Sprintf("/%s/", strings.ToLower(file.Path)), "/.git/") || len(file.Data) > 2<<20 {
				t.Errorf("%q became %q with %d bytes", path, file.Path, len(file.Data))
			}
		}
	})
}
