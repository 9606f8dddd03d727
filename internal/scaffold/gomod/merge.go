package gomod

import (
	"bytes"
	"errors"
	"fmt"
	"go/version"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// Change is one line of a go.mod that a merge added, changed or removed.
type Change struct {
	Line string `json:"line"`           // require, replace, tool, go or toolchain
	Path string `json:"path,omitempty"` // of the module or tool
	From string `json:"from,omitempty"` // empty for an added line
	To   string `json:"to,omitempty"`   // empty for a removed one
}

// Merge brings the files of a project up to those that famcp writes now. It needs no base: whoever asks for the higher
// version of a module, or of Go, is right, and what only one side has stays. The team's lines keep their order, their
// comments and their line endings, and files that lack nothing come back as they are.
//
// The line that replaces the runtime by [VendorDir] is famcp's: it comes and goes with theirs. A replacement by anything
// else is the team's, and stays. A vendored runtime has the version of theirs, whatever ours says.
//
// Files that the go command would not read are refused, and so are two checksums for one version.
func Merge(ours, theirs Files) (Files, []Change, error) {
	mod, changes, err := mergeMod(ours.Mod, theirs.Mod)
	if err != nil {
		return Files{}, nil, err
	}
	sum, err := mergeSum(ours.Sum, theirs.Sum)
	if err != nil {
		return Files{}, nil, err
	}
	return Files{mod, sum}, changes, nil
}

func mergeMod(ours, theirs []byte) ([]byte, []Change, error) {
	text, restore := unixLines(ours)
	f, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the project's go.mod: %w; correct it, or restore it from git", err)
	}
	if f.Module == nil {
		return nil, nil, errors.New("the project's go.mod names no module; restore it from git")
	}
	t, err := modfile.Parse("go.mod", theirs, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the go.mod of the template: %w", err)
	}
	m := modMerge{f: f}
	for _, step := range []func(*modfile.File) error{m.goVersion, m.requirements, m.replacement, m.tools} {
		if err := step(t); err != nil {
			return nil, nil, fmt.Errorf("merging go.mod: %w", err)
		}
	}
	if len(m.changes) == 0 && !m.indirect {
		return ours, nil, nil
	}
	f.Cleanup()
	out, err := f.Format()
	if err != nil {
		return nil, nil, fmt.Errorf("merging go.mod: %w", err)
	}
	return restore(out), m.changes, nil
}

// modMerge changes the go.mod of a project, and notes what it changed.
type modMerge struct {
	f        *modfile.File
	changes  []Change
	indirect bool // an "// indirect" went
}

func (m *modMerge) note(line, path, from, to string) {
	m.changes = append(m.changes, Change{line, path, from, to})
}

func (m *modMerge) goVersion(theirs *modfile.File) error {
	ours := ""
	if m.f.Go != nil {
		ours = m.f.Go.Version
	}
	if theirs.Go != nil && version.Compare("go"+ours, "go"+theirs.Go.Version) < 0 {
		if err := m.f.AddGoStmt(theirs.Go.Version); err != nil {
			return err
		}
		m.note("go", "", ours, theirs.Go.Version)
	}
	// A toolchain that is older than the language would be refused.
	if tc := m.f.Toolchain; tc != nil && m.f.Go != nil && version.Compare(tc.Name, "go"+m.f.Go.Version) < 0 && version.IsValid(tc.Name) {
		m.note("toolchain", "", tc.Name, "")
		m.f.DropToolchainStmt()
	}
	return nil
}

func (m *modMerge) requirements(theirs *modfile.File) error {
	var required []*modfile.Require
	have := map[string]*modfile.Require{}
	for _, r := range m.f.Require {
		if first := have[r.Mod.Path]; first != nil { // twice: the go command takes the higher
			if semver.Compare(r.Mod.Version, first.Mod.Version) > 0 {
				first.Mod.Version = r.Mod.Version
			}
			first.Indirect = first.Indirect && r.Indirect
			continue
		}
		have[r.Mod.Path] = &modfile.Require{Mod: r.Mod, Indirect: r.Indirect}
		required = append(required, have[r.Mod.Path])
	}
	for _, r := range theirs.Require {
		ours := have[r.Mod.Path]
		switch {
		case ours == nil:
			m.note("require", r.Mod.Path, "", r.Mod.Version)
			required = append(required, &modfile.Require{Mod: r.Mod, Indirect: r.Indirect})
			continue
		case semver.Compare(ours.Mod.Version, r.Mod.Version) < 0, r.Mod.Path == Runtime && vendored(theirs) && ours.Mod.Version != r.Mod.Version:
			m.note("require", r.Mod.Path, ours.Mod.Version, r.Mod.Version)
			ours.Mod.Version = r.Mod.Version
		}
		if ours.Indirect && !r.Indirect {
			ours.Indirect, m.indirect = false, true
		}
	}
	if len(m.changes) > 0 || m.indirect {
		m.f.SetRequireSeparateIndirect(required)
	}
	return nil
}

func vendored(f *modfile.File) bool { return replacement(f) == "./"+VendorDir }

// replacement is what replaces every version of the runtime; empty without one.
func replacement(f *modfile.File) string {
	for _, r := range f.Replace {
		if r.Old.Path == Runtime {
			return strings.TrimSpace(r.New.Path + " " + r.New.Version)
		}
	}
	return ""
}

func (m *modMerge) replacement(theirs *modfile.File) error {
	ours, want := replacement(m.f), replacement(theirs)
	switch {
	case ours == want, ours != "" && ours != "./"+VendorDir:
		return nil
	case want == "":
		m.note("replace", Runtime, ours, "")
		return m.f.DropReplace(Runtime, "")
	}
	m.note("replace", Runtime, ours, want)
	return m.f.AddReplace(Runtime, "", want, "")
}

func (m *modMerge) tools(theirs *modfile.File) error {
	for _, tool := range theirs.Tool {
		if slices.ContainsFunc(m.f.Tool, func(t *modfile.Tool) bool { return t.Path == tool.Path }) {
			continue
		}
		m.note("tool", tool.Path, "", tool.Path)
		if err := m.f.AddTool(tool.Path); err != nil {
			return err
		}
	}
	return nil
}

// mergeSum is the union of two go.sum, in the order in which the go command writes it.
func mergeSum(ours, theirs []byte) ([]byte, error) {
	text, restore := unixLines(ours)
	sums := map[module.Version]string{}
	if err := readSum(sums, text); err != nil {
		return nil, fmt.Errorf("the project's go.sum: %w; correct it, or remove it and run go mod tidy", err)
	}
	had := len(sums)
	if err := readSum(sums, theirs); err != nil {
		return nil, fmt.Errorf("the project's go.sum and the one of famcp: %w; find out which is genuine before you upgrade", err)
	}
	if len(sums) == had {
		return ours, nil
	}
	var versions []module.Version
	for v := range sums {
		versions = append(versions, v)
	}
	module.Sort(versions)
	var out bytes.Buffer
	for _, v := range versions {
		fmt.Fprintf(&out, "%s %s %s\n", v.Path, v.Version, sums[v])
	}
	return restore(out.Bytes()), nil
}

// readSum adds the lines of a go.sum to sums.
func readSum(sums map[module.Version]string, text []byte) error {
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 3 || !strings.HasPrefix(fields[2], "h1:") || !semver.IsValid(strings.TrimSuffix(fields[1], "/go.mod")) {
			return fmt.Errorf("line %d is not a module, a version and a checksum: %q", n, strings.TrimSpace(line))
		}
		v := module.Version{Path: fields[0], Version: fields[1]}
		if sum, ok := sums[v]; ok && sum != fields[2] {
			return fmt.Errorf("line %d has another checksum for %s %s: %s, not %s", n, v.Path, v.Version, fields[2], sum)
		}
		sums[v] = fields[2]
	}
	return nil
}

// unixLines is text with LF, and what gives another text the line endings that most lines of text have.
func unixLines(text []byte) ([]byte, func([]byte) []byte) {
	crlf, lf := []byte("\r\n"), []byte("\n")
	unix := bytes.ReplaceAll(text, crlf, lf)
	if bytes.Count(text, crlf)*2 <= bytes.Count(text, lf) {
		return unix, func(out []byte) []byte { return out }
	}
	return unix, func(out []byte) []byte { return bytes.ReplaceAll(out, lf, crlf) }
}
