package merge_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp/internal/scaffold/gomod"
	"github.com/famcp/famcp/internal/scaffold/merge"
	"github.com/famcp/famcp/internal/scaffold/render"
	"github.com/famcp/famcp/internal/testkit"
)

func TestAccount(t *testing.T) {
	base := "a\nb\nc\nd\ne\nf\ng\nh\n"
	ours := "a\nteam 1\nc\nd\ne\nteam 2\nh\n"
	theirs := "a\nb\nc\nD\ne\nF\ng\nh\ni\n"
	got, err := merge.Account([]byte(base), []byte(ours), []byte(theirs), merge.Merge([]byte(base), []byte(ours), []byte(theirs), labels))
	if err != nil {
		t.Fatal(err)
	}
	want := merge.Ledger{
		Kept: 5, Conflict: 1, Replaced: 1, Dropped: 1,
		Lines: []merge.Entry{
			{Fate: merge.Kept, Line: 1, Lines: 3, At: 1},
			{Fate: merge.Replaced, Line: 4, Lines: 1},
			{Fate: merge.Kept, Line: 5, Lines: 1, At: 5},
			{Fate: merge.InConflict, Line: 6, Lines: 1, At: 7},
			{Fate: merge.Kept, Line: 7, Lines: 1, At: 15},
		},
		Removed: []merge.Entry{
			{Fate: merge.Dropped, Line: 2, Lines: 1},
			{Fate: merge.InConflict, Line: 6, Lines: 2},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	text, err := json.Marshal(got.Lines[1])
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"fate":"replaced","line":4,"lines":1}`; string(text) != want {
		t.Errorf("as JSON %s, want %s", text, want)
	}
}

// An account must notice whatever is wrong with a result.
func TestAccountRefuses(t *testing.T) {
	base, ours, theirs := []byte("a\nb\nc\nd\ne\n"), []byte("a\nB\nc\nX\ne\n"), []byte("a\nb\nc\nY\ne\nf\n")
	good := merge.Merge(base, ours, theirs, labels)
	if _, err := merge.Account(base, ours, theirs, good); err != nil {
		t.Fatal(err)
	}
	for i := range bytes.Count(good.Text, []byte("\n")) {
		bad := good
		lines := bytes.SplitAfter(good.Text, []byte("\n"))
		isMarker := bytes.HasPrefix(lines[i], []byte("=======")) || len(lines[i]) > 8
		bad.Text = bytes.Join(slices.Delete(slices.Clone(lines), i, i+1), nil)
		if _, err := merge.Account(base, ours, theirs, bad); err == nil {
			t.Errorf("line %d is missing, and nobody noticed", i+1)
		}
		lines[i] = []byte("something else\n")
		bad.Text = bytes.Join(lines, nil)
		if _, err := merge.Account(base, ours, theirs, bad); err == nil && !isMarker {
			t.Errorf("line %d is another, and nobody noticed", i+1)
		}
	}
	for i := range good.Regions {
		bad := good
		bad.Regions = slices.Delete(slices.Clone(good.Regions), i, i+1)
		if _, err := merge.Account(base, ours, theirs, bad); err == nil {
			t.Errorf("region %d is missing, and nobody noticed", i+1)
		}
		for _, kind := range []merge.Kind{merge.Same, merge.Ours, merge.Theirs, merge.Both, merge.Conflict, ""} {
			bad.Regions = slices.Clone(good.Regions)
			if bad.Regions[i].Kind == kind || bad.Regions[i].Kind == merge.Same && kind != merge.Conflict && kind != "" {
				continue // unchanged lines are also those of either side
			}
			bad.Regions[i].Kind = kind
			if _, err := merge.Account(base, ours, theirs, bad); err == nil {
				t.Errorf("region %d is called %s, and nobody noticed", i+1, kind)
			}
		}
	}
	// A side that is said to have changed nothing, and did.
	line := merge.Span{Line: 1, Lines: 1}
	for kind, text := range map[merge.Kind]string{merge.Ours: "ours\n", merge.Theirs: "theirs\n", merge.Both: "ours\n", merge.Same: "ours\n"} {
		lie := merge.Result{Text: []byte(text), Regions: []merge.Region{{Kind: kind, Base: line, Ours: line, Theirs: line, Text: line}}}
		if _, err := merge.Account([]byte("base\n"), []byte("ours\n"), []byte("theirs\n"), lie); err == nil {
			t.Errorf("a conflict is called %s, and nobody noticed", kind)
		}
	}
	for _, text := range []string{"", "a\x00"} {
		if _, err := merge.Account([]byte("x\x00"), []byte("y\x00"), []byte("z\x00"), merge.Result{Text: []byte(text)}); err == nil {
			t.Errorf("%q is nobody's data, and nobody noticed", text)
		}
	}
}

// TestProject merges random edits of a real project with the changes of a real template, and follows every line.
func TestProject(t *testing.T) {
	older, current := rendered(t, testkit.OlderFamcp(t).Templates), rendered(t, os.DirFS(filepath.Join(testkit.Checkout(t), "templates")))
	var names []string
	for name, file := range older {
		if theirs, ok := current[name]; ok && !bytes.Equal(file, theirs) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) < 8 {
		t.Fatalf("only %q differ between the templates", names)
	}
	_, err := exec.LookPath("git")
	git := err == nil
	const rounds, compared = 400, 25 // of each file
	total := map[merge.Outcome]int{}
	for _, name := range names {
		r := rand.New(rand.NewPCG(7, uint64(len(name))))
		dir := t.TempDir()
		base, theirs := strings.SplitAfter(string(older[name]), "\n"), strings.SplitAfter(string(current[name]), "\n")
		for round := range rounds {
			ours := develop(r, base, 1+r.IntN(8))
			o := []byte(strings.Join(ours, ""))
			got := merge.Merge(older[name], o, current[name], labels)
			total[got.Outcome]++
			ledger, err := merge.Account(older[name], o, current[name], got)
			if err != nil {
				t.Fatalf("%s: %v\nours\n%s\nmerged\n%s", name, err, o, got.Text)
			}
			if n := bytes.Count(o, []byte("\n")); ledger.Kept+ledger.Conflict+ledger.Replaced != n {
				t.Fatalf("%s: %d kept, %d in conflict, %d replaced of %d lines", name, ledger.Kept, ledger.Conflict, ledger.Replaced, n)
			}
			follow(t, ledger, ours, base, strings.SplitAfter(string(got.Text), "\n"))
			nothingLost(t, base, ours, theirs, got.Text)
			if git && round < compared {
				want, clean := gitMerge(t, dir, older[name], o, current[name])
				if got.Outcome == merge.Clean && (!clean || !bytes.Equal(got.Text, want)) {
					t.Errorf("%s\nours\n%s\ngit, clean %v\n%s\nhere\n%s", name, o, clean, want, got.Text)
				}
			}
			if t.Failed() {
				t.FailNow()
			}
		}
	}
	t.Logf("%d files: %v", len(names), total)
	if total[merge.Clean] < 1000 || total[merge.Conflicted] < 500 {
		t.Errorf("outcomes %v, want more of both", total)
	}
}

// follow checks that every line is where the ledger says, and that the team wrote none of those that are gone.
func follow(t *testing.T, l merge.Ledger, ours, base, text []string) {
	t.Helper()
	inBase := count(base)
	for _, e := range l.Lines {
		for i := range e.Lines {
			was := ours[e.Line-1+i]
			switch e.Fate {
			case merge.Kept, merge.InConflict:
				if is := text[e.At-1+i]; is != was {
					t.Errorf("line %d %q is said to be at %d, where %q is", e.Line+i, was, e.At+i, is)
				}
			case merge.Replaced:
				if inBase[was]--; inBase[was] < 0 {
					t.Errorf("line %d %q is said to be replaced, and is the team's", e.Line+i, was)
				}
			default:
				t.Errorf("line %d %q has the fate %q", e.Line+i, was, e.Fate)
			}
		}
	}
	removed := count(base)
	for line, n := range count(ours) {
		removed[line] -= n
	}
	for _, e := range l.Removed {
		for i := range e.Lines {
			removed[base[e.Line-1+i]]--
		}
	}
	for line, n := range removed {
		if n > 0 {
			t.Errorf("the team removed %q %d times more than the ledger says", line, n)
		}
	}
}

// develop is text after n edits as people make them: lines added, changed, removed, copied and moved.
func develop(r *rand.Rand, text []string, n int) []string {
	text = slices.Clone(text[:len(text)-1]) // what is behind the last newline
	for range n {
		at := r.IntN(len(text) + 1)
		until := min(len(text), at+1+r.IntN(4))
		block := slices.Clone(text[at:until])
		switch r.IntN(5) {
		case 0:
			text = slices.Insert(text, at, lines(r, 1<<30, 1+r.IntN(4))...)
		case 1:
			text = slices.Replace(text, at, until, lines(r, 1<<30, 1+r.IntN(2))...)
		case 2:
			text = slices.Delete(text, at, until)
		case 3:
			text = slices.Insert(text, r.IntN(len(text)+1), block...)
		case 4:
			text = slices.Delete(text, at, until)
			text = slices.Insert(text, r.IntN(len(text)+1), block...)
		}
	}
	return append(text, "")
}

func rendered(t *testing.T, templates fs.FS) map[string][]byte {
	t.Helper()
	files, err := render.Project(templates, render.Data{
		Name: "demo", Module: "example.com/demo", Title: "Demo", Description: "A demo.", Port: 3000, Auth: "none", CI: "both",
		Transport: "both", License: "mit", Runtime: "vendored", Examples: true, GoVersion: gomod.GoVersion, HTTP: true,
		Stdio: true, GitHub: true, GitLab: true, DefaultCommand: "http", Command: "demo",
	})
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string][]byte{}
	for _, f := range files {
		byName[f.Path] = f.Data
	}
	return byName
}
