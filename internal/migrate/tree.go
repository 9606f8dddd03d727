package migrate

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/format"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/famcp/famcp/internal/gocode"
)

// What is read of a project at most. Source files and settings are far smaller; the rest is data.
const (
	maxTotalBytes = 128 << 20
	maxFiles      = 50_000
)

// Kinds of files that migrations know.
type kind int

const (
	other      kind = iota // not read
	goFile                 // Go source
	yamlFile               // settings, compose, workflows
	dockerFile             // a Dockerfile
	shellFile              // assignments as in a shell: Makefiles, scripts, samples of .env
	textFile               // looked through, never changed
)

// tree is the project in the middle of being migrated.
type tree struct {
	project   Project
	migration string // identifier of the one that runs

	before map[string][]byte    // files as they were read
	now    map[string][]byte    // the same with the edits so far
	shifts map[string][][]shift // by file, one list for each time it was edited

	changes, notes []Change
	code           *gocode.Program // of now; nil when it has to be loaded again
}

// shift says that the lines from line on were moved down by lines, which may be negative.
type shift struct{ line, lines int }

// readTree reads what migrations may look at.
func readTree(ctx context.Context, p Project) (*tree, error) {
	t := &tree{project: p, before: map[string][]byte{}, shifts: map[string][][]shift{}}
	total, skipped := 0, 0
	err := gocode.Walk(ctx, p.FS, func(name string) error {
		if kindOf(name) == other {
			return nil
		}
		if len(t.before) >= maxFiles || total >= maxTotalBytes {
			skipped++
			return nil
		}
		data, err := gocode.ReadText(p.FS, name)
		if err != nil {
			return err
		}
		if data != nil {
			t.before[name] = data
			total += len(data)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if skipped > 0 {
		t.migration = "project"
		t.note("", 0, fmt.Sprintf("the project is so large that %d files were not looked at", skipped))
	}
	t.now = maps.Clone(t.before)
	return t, nil
}

// kindOf decides by the name alone what a file is. Files with secrets are other.
func kindOf(name string) kind {
	base := path.Base(name)
	switch {
	case name == "config/local.yaml":
		return other
	case path.Ext(base) == ".go":
		return goFile
	case path.Ext(base) == ".yaml", path.Ext(base) == ".yml":
		return yamlFile
	case base == "Dockerfile", base == "Containerfile", strings.HasPrefix(base, "Dockerfile."), path.Ext(base) == ".Dockerfile":
		return dockerFile
	case base == "Makefile", base == "makefile", base == "GNUmakefile", path.Ext(base) == ".mk", path.Ext(base) == ".sh",
		strings.HasPrefix(base, ".env") && strings.HasSuffix(base, ".example"):
		return shellFile
	case base == "Procfile", base == "justfile":
		return textFile
	}
	switch path.Ext(base) {
	case ".json", ".toml", ".service", ".ps1", ".bat", ".cmd", ".tf":
		return textFile
	}
	return other
}

// files are the names of the files of some kinds, sorted.
func (t *tree) files(kinds ...kind) []string {
	var names []string
	for name := range t.now {
		if slices.Contains(kinds, kindOf(name)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// mentions reports whether any Go file contains one of the texts. Without one, nothing needs to be parsed.
func (t *tree) mentions(texts ...string) bool {
	for _, name := range t.files(goFile) {
		for _, text := range texts {
			if bytes.Contains(t.now[name], []byte(text)) {
				return true
			}
		}
	}
	return false
}

// edit replaces the bytes from start to end.
type edit struct {
	start, end int
	text       string
}

// apply edits a file and reports each change, whose lines are those of the file as it is now. Go that was formatted
// stays so. Line ends stay those of the file. Edits must not overlap.
func (t *tree) apply(name string, edits []edit, changes ...Change) error {
	src := t.now[name]
	for i := range changes {
		changes[i].Line = t.lineBefore(name, changes[i].Line)
	}
	out, err := splice(src, edits)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if kindOf(name) == goFile {
		if formatted, err := format.Source(src); err == nil && bytes.Equal(formatted, lf(src)) {
			if out, err = format.Source(lf(out)); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	if out = lf(out); bytes.Contains(src, []byte("\r\n")) {
		out = bytes.ReplaceAll(out, []byte("\n"), []byte("\r\n"))
	}
	if bytes.Equal(out, src) {
		return nil
	}
	t.shifts[name] = append(t.shifts[name], shiftsOf(src, edits))
	t.now[name] = out
	t.code = nil
	for _, c := range changes {
		c.Migration, c.Path = t.migration, name
		t.changes = append(t.changes, c)
	}
	return nil
}

func sorted(edits []edit) []edit {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) })
	return edits
}

// splice applies edits.
func splice(src []byte, edits []edit) ([]byte, error) {
	var out bytes.Buffer
	done := 0
	for _, e := range sorted(edits) {
		if e.start < done || e.end < e.start || e.end > len(src) {
			return nil, errors.New("edits overlap")
		}
		out.Write(src[done:e.start])
		out.WriteString(e.text)
		done = e.end
	}
	out.Write(src[done:])
	return out.Bytes(), nil
}

// lf ends lines in LF.
func lf(data []byte) []byte { return bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")) }

// shiftsOf says where the lines of src are after edits.
func shiftsOf(src []byte, edits []edit) []shift {
	var shifts []shift
	total := 0
	for _, e := range sorted(edits) {
		total += strings.Count(e.text, "\n") - bytes.Count(src[e.start:e.end], []byte("\n"))
		shifts = append(shifts, shift{bytes.Count(src[:e.end], []byte("\n")) + 1 + total, total})
	}
	return shifts
}

// lineBefore is where a line of a file, as it is now, was at the beginning.
func (t *tree) lineBefore(name string, line int) int {
	for _, shifts := range slices.Backward(t.shifts[name]) {
		for _, s := range slices.Backward(shifts) {
			if line >= s.line {
				line -= s.lines
				break
			}
		}
	}
	return line
}

// note leaves something to a person; line is one of the file as it is now.
func (t *tree) note(name string, line int, text string) {
	t.notes = append(t.notes, Change{Migration: t.migration, Path: name, Line: t.lineBefore(name, line), Text: text})
}

// result compares what there is now with what was read.
func (t *tree) result() (*Result, error) {
	r := &Result{Files: map[string][]byte{}, Changes: t.changes, Notes: t.notes}
	for name, data := range t.now {
		if !bytes.Equal(data, t.before[name]) {
			r.Files[name] = data
		}
	}
	slices.SortFunc(r.Changes, byPlace)
	slices.SortFunc(r.Notes, byPlace)
	r.Notes = slices.Compact(r.Notes)
	return r, addNoteFile(t.project.FS, r)
}
