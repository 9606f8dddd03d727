package gocode_test

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp/internal/gocode"
)

func TestExcluded(t *testing.T) {
	tests := []struct {
		name, text string
		want       bool
	}{
		{"x.go", "package x", false},
		{"windows.go", "package x", false},
		{"x_windows.go", "package x", true},
		{"x_windows_test.go", "package x", true},
		{"x_windows_tool.go", "package x", false},
		{"x_linux.go", "package x", false},
		{"x_amd64.go", "package x", false},
		{"x_windows_amd64.go", "package x", true},
		{"x_linux_arm64.go", "package x", true},
		{"d_windows/x.go", "package x", false},
		{"x.go", "// About x.\n\n//go:build windows\n\npackage x", true},
		{"x.go", "//go:build linux && !cgo\n\npackage x", false},
		{"x.go", "//go:build integration\npackage x", true},
		{"x.go", "package x\n\n//go:build windows", false},
	}
	for _, tt := range tests {
		if got := gocode.Excluded(tt.name, []byte(tt.text)); got != tt.want {
			t.Errorf("Excluded(%q, %q) = %t, want %t", tt.name, tt.text, got, tt.want)
		}
	}
}

// What is imported from elsewhere is unknown, and is no error; what is wrong in the code at hand is one.
func TestLoad(t *testing.T) {
	program := gocode.Load(gocode.Source{
		Module: "example.com/p",
		Files: map[string][]byte{
			"a/a.go": []byte(`package a

import (
	"fmt"

	other "example.com/other"
	"example.com/lib"
	"example.com/p/b"
)

var X = fmt.Sprint(other.Y, b.Z, lib.Known(1), lib.Unknown)

var wrong int = b.Z

func shadow(fmt struct{ Sprint int }) int { return fmt.Sprint }
`),
			"b/b.go":       []byte("package b\n\nconst Z = \"z\"\n"),
			"b/b_test.go":  []byte("package b_test\n\nimport \"example.com/p/b\"\n\nvar Z = b.Z\n"),
			"c/broken.go":  []byte("package c\n\nfunc {"),
			"d/cycle.go":   []byte("package d\n\nimport _ \"example.com/p/e\"\n"),
			"e/cycle.go":   []byte("package e\n\nimport _ \"example.com/p/d\"\n"),
			"f/missing.go": []byte("package f\n\nimport _ \"example.com/p/absent\"\n"),
		},
		Dependencies: map[string]fs.FS{"example.com/lib": fstest.MapFS{
			"lib.go":      {Data: []byte("package lib\n\nimport \"example.com/elsewhere\"\n\nfunc Known(n int) string { return elsewhere.X(undefined) }\n")},
			"lib_test.go": {Data: []byte("package lib\n\nvar Unknown int\n")},
		}},
	})
	got := map[string]int{}
	for _, p := range program.Packages {
		got[p.Path] = len(p.Errors)
	}
	want := map[string]int{
		"example.com/p/a": 2, // wrong, and lib.Unknown
		"example.com/p/b": 0, "example.com/p/b_test": 0, "example.com/p/f": 1,
		"example.com/p/d": 0, "example.com/p/e": 0, // what matters is that loading ends
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors by package (-want +got):\n%s", diff)
	}
	if libs := program.Module("example.com/lib"); len(libs) != 1 || len(libs[0].Errors) != 0 {
		t.Errorf("the dependency: %v", libs)
	}
}
