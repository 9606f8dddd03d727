package gomod_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"github.com/famcp/famcp/internal/scaffold/gomod"
	"github.com/famcp/famcp/internal/testkit"
)

const theirMod = `module example.com/demo

go 1.26.0

require (
	example.com/direct v1.2.0
	github.com/famcp/famcp v0.2.0
)

require example.com/indirect v1.5.0 // indirect

replace github.com/famcp/famcp => ./third_party/famcp
`

func TestMergeMod(t *testing.T) {
	const head = "module example.com/demo\n\n"
	tests := []struct {
		name, ours, want string
		changes          []gomod.Change
	}{
		{name: "nothing to do", ours: theirMod, want: theirMod},
		{
			name: "unformatted, and nothing to do",
			ours: strings.ReplaceAll(theirMod, "v1.2.0", "v1.2.0  // pinned\n\n\n\texample.com/own   v0.1.0"),
			want: strings.ReplaceAll(theirMod, "v1.2.0", "v1.2.0  // pinned\n\n\n\texample.com/own   v0.1.0"),
		},
		{
			name: "older, with the team's lines",
			ours: `// What we sell.
module example.com/demo // the module

go 1.25.0

toolchain go1.25.3

godebug default=go1.25

// Ours.
require (
	example.com/direct v1.1.0 // the lowest that works
	// for the ledger
	example.com/own v0.1.0
	github.com/famcp/famcp v0.1.0
)

require (
	example.com/indirect v1.9.0 // indirect
	example.com/other v1.0.0 // indirect
)

replace github.com/famcp/famcp => ./third_party/famcp

replace example.com/own => ../own // until it is published

exclude example.com/direct v1.0.0

retract v0.3.0 // broke everything

tool example.com/own/cmd/gen
`,
			want: `// What we sell.
module example.com/demo // the module

go 1.26.0

godebug default=go1.25

// Ours.
require (
	example.com/direct v1.2.0 // the lowest that works
	// for the ledger
	example.com/own v0.1.0
	github.com/famcp/famcp v0.2.0
)

require (
	example.com/indirect v1.9.0 // indirect
	example.com/other v1.0.0 // indirect
)

replace github.com/famcp/famcp => ./third_party/famcp

replace example.com/own => ../own // until it is published

exclude example.com/direct v1.0.0

retract v0.3.0 // broke everything

tool example.com/own/cmd/gen
`,
			changes: []gomod.Change{
				{Line: "go", From: "1.25.0", To: "1.26.0"},
				{Line: "toolchain", From: "go1.25.3"},
				{Line: "require", Path: "example.com/direct", From: "v1.1.0", To: "v1.2.0"},
				{Line: "require", Path: gomod.Runtime, From: "v0.1.0", To: "v0.2.0"},
			},
		},
		{
			name: "newer everywhere",
			ours: strings.NewReplacer("1.26.0", "1.27.1", "v1.2.0", "v1.3.0", "v1.5.0", "v2.0.0+incompatible").Replace(theirMod),
			want: strings.NewReplacer("1.26.0", "1.27.1", "v1.2.0", "v1.3.0", "v1.5.0", "v2.0.0+incompatible").Replace(theirMod),
		},
		{
			name: "nothing but a module", ours: head, want: theirMod,
			changes: []gomod.Change{
				{Line: "go", To: "1.26.0"},
				{Line: "require", Path: "example.com/direct", To: "v1.2.0"},
				{Line: "require", Path: gomod.Runtime, To: "v0.2.0"},
				{Line: "require", Path: "example.com/indirect", To: "v1.5.0"},
				{Line: "replace", Path: gomod.Runtime, To: "./third_party/famcp"},
			},
		},
		{
			name:    "a vendored runtime is the one that is there",
			ours:    strings.ReplaceAll(theirMod, "v0.2.0", "v0.9.0"),
			want:    theirMod,
			changes: []gomod.Change{{Line: "require", Path: gomod.Runtime, From: "v0.9.0", To: "v0.2.0"}},
		},
		{
			name: "a replacement of the team's stays",
			ours: strings.ReplaceAll(theirMod, "./third_party/famcp", "../fork"),
			want: strings.ReplaceAll(theirMod, "./third_party/famcp", "../fork"),
		},
		{
			name: "no longer indirect",
			ours: strings.ReplaceAll(theirMod, "direct v1.2.0\n", "direct v1.2.0 // indirect\n"),
			want: theirMod,
		},
		{
			name:    "CRLF",
			ours:    strings.ReplaceAll(strings.ReplaceAll(theirMod, "1.26.0", "1.25.0"), "\n", "\r\n"),
			want:    strings.ReplaceAll(theirMod, "\n", "\r\n"),
			changes: []gomod.Change{{Line: "go", From: "1.25.0", To: "1.26.0"}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, changes, err := gomod.Merge(gomod.Files{Mod: []byte(tt.ours)}, gomod.Files{Mod: []byte(theirMod)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got.Mod)); diff != "" {
				t.Errorf("go.mod (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.changes, changes); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			again, changes, err := gomod.Merge(got, gomod.Files{Mod: []byte(theirMod)})
			if err != nil || len(changes) > 0 || string(again.Mod) != string(got.Mod) {
				t.Errorf("merged once more: %v, changes %v\n%s", err, changes, again.Mod)
			}
		})
	}
}

func TestMergeRuntimeMode(t *testing.T) {
	module := gomod.Files{Mod: []byte(strings.ReplaceAll(theirMod, "\nreplace github.com/famcp/famcp => ./third_party/famcp\n", ""))}
	vendored := gomod.Files{Mod: []byte(theirMod)}
	got, changes, err := gomod.Merge(vendored, module)
	if err != nil || string(got.Mod) != string(module.Mod) || len(changes) != 1 || changes[0].To != "" {
		t.Errorf("to a module: %v, changes %v\n%s", err, changes, got.Mod)
	}
	got, changes, err = gomod.Merge(module, vendored)
	if err != nil || string(got.Mod) != theirMod || len(changes) != 1 || changes[0].From != "" {
		t.Errorf("to vendored: %v, changes %v\n%s", err, changes, got.Mod)
	}
	newer := gomod.Files{Mod: []byte(strings.ReplaceAll(string(module.Mod), "famcp v0.2.0", "famcp v0.3.0"))}
	if got, changes, err = gomod.Merge(newer, module); err != nil || len(changes) > 0 || string(got.Mod) != string(newer.Mod) {
		t.Errorf("a newer module: %v, changes %v\n%s", err, changes, got.Mod)
	}
}

func TestMergeSum(t *testing.T) {
	const theirs = "example.com/a v1.10.0 h1:a10\nexample.com/a v1.10.0/go.mod h1:a10m\nexample.com/c v1.0.0/go.mod h1:cm\n"
	for name, tt := range map[string]struct{ ours, want string }{
		"none":  {"", theirs},
		"all":   {"example.com/z v1.0.0 h1:z\n\n" + theirs, "example.com/z v1.0.0 h1:z\n\n" + theirs},
		"union": {"example.com/a v1.9.0 h1:a9\nexample.com/b v1.0.0/go.mod h1:bm\nexample.com/a v1.9.0 h1:a9\n", "example.com/a v1.9.0 h1:a9\n" + strings.Replace(theirs, "example.com/c", "example.com/b v1.0.0/go.mod h1:bm\nexample.com/c", 1)},
		"CRLF":  {"example.com/z v1.0.0 h1:z\r\n", strings.ReplaceAll(theirs+"example.com/z v1.0.0 h1:z\n", "\n", "\r\n")},
	} {
		got, _, err := gomod.Merge(gomod.Files{Mod: []byte(theirMod), Sum: []byte(tt.ours)}, gomod.Files{Mod: []byte(theirMod), Sum: []byte(theirs)})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tt.want, string(got.Sum)); diff != "" {
			t.Errorf("%s: go.sum (-want +got):\n%s", name, diff)
		}
	}
}

func TestMergeRefuses(t *testing.T) {
	const sum = "example.com/a v1.0.0 h1:a\n"
	for name, tt := range map[string]struct{ mod, sum, want string }{
		"conflict markers":   {"<<<<<<< HEAD\n" + theirMod, "", "go.mod:1"},
		"unknown directive":  {theirMod + "\nrequires example.com/x v1.0.0\n", "", "unknown directive: requires"},
		"no version":         {theirMod + "\nrequire example.com/x\n", "", "go.mod:14"},
		"empty":              {"", "", "names no module"},
		"half a line":        {theirMod, "example.com/a v1.0.0\n", "line 1 is not a module"},
		"markers in go.sum":  {theirMod, sum + "=======\n", "line 2 is not a module"},
		"another checksum":   {theirMod, "example.com/a v1.0.0 h1:other\n", "another checksum for example.com/a v1.0.0"},
		"two checksums":      {theirMod, sum + "example.com/a v1.0.0 h1:b\n", "line 2 has another checksum"},
		"not a version":      {theirMod, "example.com/a 1.0.0 h1:a\n", "line 1 is not a module"},
		"a project replaced": {"\x00\x01", "", "go.mod"},
	} {
		_, _, err := gomod.Merge(gomod.Files{Mod: []byte(tt.mod), Sum: []byte(tt.sum)}, gomod.Files{Mod: []byte(theirMod), Sum: []byte(sum)})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, tt.want)
		}
	}
}

// A project of the older famcp, with requirements of its own, gets exactly what the current one writes, and keeps them.
func TestMergeProject(t *testing.T) {
	current, err := gomod.Vendored("example.com/demo", "v0.2.0")
	if err != nil {
		t.Fatal(err)
	}
	vendored, err := gomod.Vendored("example.com/demo", "v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	mod, sum := testkit.OlderFamcp(t).Modules(t, vendored.Mod, vendored.Sum)
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		f, err := modfile.Parse("go.mod", mod, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, req := range f.Require {
			if r.IntN(4) == 0 { // the team moved ahead
				if err := f.AddRequire(req.Mod.Path, fmt.Sprintf("%s.%d.0", semver.Major(req.Mod.Version), r.IntN(100))); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i := range r.IntN(5) {
			f.AddNewRequire(fmt.Sprintf("example.com/own%d", i), fmt.Sprintf("v0.%d.0", r.IntN(9)), r.IntN(2) == 0)
		}
		f.Cleanup()
		ours, err := f.Format()
		if err != nil {
			t.Fatal(err)
		}
		merged, changes, err := gomod.Merge(gomod.Files{Mod: ours, Sum: sum}, current)
		if err != nil {
			t.Fatal(err)
		}
		got, before, want := versions(t, merged.Mod), versions(t, ours), versions(t, current.Mod)
		for _, side := range []map[string]string{before, want} {
			for path, version := range side {
				if path != gomod.Runtime && semver.Compare(got[path], version) < 0 {
					t.Errorf("%s is %s, and a side has %s", path, got[path], version)
				}
			}
		}
		for path, version := range got {
			if version != before[path] && version != want[path] {
				t.Errorf("%s is %s, which nobody asked for", path, version)
			}
			changed := slices.ContainsFunc(changes, func(c gomod.Change) bool { return c.Path == path && c.To == version })
			if (version != before[path]) != changed {
				t.Errorf("%s went from %s to %s, and the changes are %v", path, before[path], version, changes)
			}
		}
		if got[gomod.Runtime] != "v0.2.0" {
			t.Errorf("the runtime is %s", got[gomod.Runtime])
		}
		for line := range strings.Lines(string(sum) + string(current.Sum)) {
			if !strings.Contains(string(merged.Sum), line) {
				t.Errorf("go.sum lacks %q", line)
			}
		}
	}
}

func versions(t *testing.T, mod []byte) map[string]string {
	t.Helper()
	f, err := modfile.Parse("go.mod", mod, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, r := range f.Require {
		all[r.Mod.Path] = r.Mod.Version
	}
	return all
}
