// Package manifest keeps a project's record of how it was made, which is what makes upgrades possible: who owns each
// file, what it was when famcp wrote it, and from which answers and versions.
package manifest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"regexp"

	"go.yaml.in/yaml/v3"

	"github.com/famcp/famcp/internal/scaffold/render"
)

// The record's files, relative to the project.
const (
	Path     = ".famcp/manifest.yaml"
	BasePath = ".famcp/base.zip"
	// OverlayPath is the archive of the team's own template, as [Overlay] has it; only projects made with one have it.
	OverlayPath = ".famcp/overlay.zip"
	ignorePath  = ".famcp/.gitignore"
)

// schema is the format of the manifest; a famcp refuses a newer one.
const schema = 1

// Manifest is the content of .famcp/manifest.yaml.
type Manifest struct {
	Schema      int              `yaml:"schema"`
	Famcp       string           `yaml:"famcp"`             // version that wrote the project last; devel for a development build
	Commit      string           `yaml:"commit,omitempty"`  // of that famcp's source
	Template    string           `yaml:"template"`          // version of the template
	TemplateSum string           `yaml:"templateSum"`       // hash of the template's files, which tells development builds apart
	Runtime     string           `yaml:"runtime"`           // version of the runtime; Files and go.sum have its hashes
	Answers     map[string]any   `yaml:"answers"`           // by the keys of the questions
	Overlay     *Overlay         `yaml:"overlay,omitempty"` // the team's own template; nil without one
	Files       map[string]Entry `yaml:"files"`             // by path; not the record itself

	// Unresolved are the files in which the last upgrade left a conflict, sorted. Any clone can go on from there.
	Unresolved []string `yaml:"unresolved,omitempty"`
}

// Overlay is what is recorded of a team's own template, which lies over the one of famcp. Its files are in an archive of
// their own, so that an upgrade can render them again, with a newer template of famcp below them, wherever they came
// from and without a network.
type Overlay struct {
	Source string `yaml:"source"`           // directory or URL, without credentials
	Ref    string `yaml:"ref,omitempty"`    // as asked for
	Commit string `yaml:"commit,omitempty"` // in full; empty of a directory
	Sum    string `yaml:"sum"`              // hash of its files and their modes, as go.sum hashes modules

	Files []render.File `yaml:"-"` // not yet rendered; [ReadOverlay] reads them
}

// Entry is what is recorded of one file.
type Entry struct {
	Owner  render.Owner `yaml:"owner"`
	SHA256 string       `yaml:"sha256"` // of what famcp wrote, in hexadecimal
	// Overlay is set for a file that comes from the team's own template.
	Overlay bool `yaml:"overlay,omitempty"`
}

// MarshalYAML puts an entry on one line, so that a change of a file is a change of a line.
func (e Entry) MarshalYAML() (any, error) {
	type plain Entry
	var n yaml.Node
	err := n.Encode(plain(e))
	n.Style = yaml.FlowStyle
	return &n, err
}

// Entries are the entries of files.
func Entries(files []render.File) map[string]Entry {
	entries := make(map[string]Entry, len(files))
	for _, f := range files {
		entries[f.Path] = Entry{Owner: f.Owner, SHA256: Sum(f.Data), Overlay: f.Overlay}
	}
	return entries
}

const header = `# The record of what famcp wrote, and from which answers. famcp upgrade needs it: keep it in git, do not edit it.
`

// Record returns the files that record m, whose Schema and Files it fills in, and the rendered files.
func Record(m Manifest, files []render.File) ([]render.File, error) {
	m.Files = Entries(files)
	text, err := m.Text()
	if err != nil {
		return nil, err
	}
	base, err := Base(files)
	if err != nil {
		return nil, err
	}
	record := []render.File{
		{Path: ignorePath, Mode: 0o644, Owner: render.Record, Data: []byte("tmp/\n")},
		{Path: BasePath, Mode: 0o644, Owner: render.Record, Data: base},
		{Path: Path, Mode: 0o644, Owner: render.Record, Data: text},
	}
	if m.Overlay != nil {
		overlay, err := archive(OverlayPath, m.Overlay.Files)
		if err != nil {
			return nil, err
		}
		record = append(record, render.File{Path: OverlayPath, Mode: 0o644, Owner: render.Record, Data: overlay})
	}
	return record, nil
}

// Text is the content of [Path], in the current schema.
func (m Manifest) Text() ([]byte, error) {
	m.Schema = schema
	var text bytes.Buffer
	text.WriteString(header)
	enc := yaml.NewEncoder(&text)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(m), enc.Close()); err != nil {
		return nil, fmt.Errorf("writing %s: %w", Path, err)
	}
	return text.Bytes(), nil
}

var hexSHA256 = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Parse reads a manifest and checks all of it.
func Parse(data []byte) (*Manifest, error) {
	var m Manifest
	if err := yaml.Unmarshal(data, &m); err != nil {
		return nil, damaged(err)
	}
	switch {
	case m.Schema > schema:
		return nil, &NewerError{m.Schema}
	case m.Schema != schema:
		return nil, damaged(errors.New("it has no schema"))
	case len(m.Answers) == 0:
		return nil, damaged(errors.New("it has no answers"))
	}
	for _, name := range m.Unresolved {
		if !fs.ValidPath(name) || name == "." {
			return nil, damaged(fmt.Errorf("%q is not a path inside the project", name))
		}
	}
	for name, e := range m.Files {
		if !fs.ValidPath(name) || name == "." {
			return nil, damaged(fmt.Errorf("%q is not a path inside the project", name))
		}
		if !e.Owner.Valid() {
			return nil, damaged(fmt.Errorf("file %s has the unknown owner %q", name, e.Owner))
		}
		if !hexSHA256.MatchString(e.SHA256) {
			return nil, damaged(fmt.Errorf("file %s has no SHA-256", name))
		}
	}
	return &m, nil
}

// NewerError means that a record has a format that this famcp does not know.
type NewerError struct{ Schema int }

func (e *NewerError) Error() string {
	return fmt.Sprintf("%s has schema %d, and this famcp knows %d; use the newer famcp that wrote it", Path, e.Schema, schema)
}

// Read reads a whole record, text of [Path] and archive of [BasePath], and checks that they belong together. The files
// of the archive are returned by path, with their owners.
func Read(text, archive []byte) (*Manifest, map[string]render.File, error) {
	m, err := Parse(text)
	if err != nil {
		return nil, nil, err
	}
	files, err := ReadBase(archive)
	if err != nil {
		return nil, nil, err
	}
	base := make(map[string]render.File, len(files))
	for _, f := range files {
		e, ok := m.Files[f.Path]
		if !ok || e.SHA256 != Sum(f.Data) {
			return nil, nil, fmt.Errorf("%s is damaged: its %s is not the one in %s; restore both from git", BasePath, f.Path, Path)
		}
		f.Owner = e.Owner
		base[f.Path] = f
	}
	for name, e := range m.Files {
		if _, ok := base[name]; !ok && (e.Owner == render.Managed || e.Owner == render.Seeded) {
			return nil, nil, fmt.Errorf("%s is damaged: it has no %s; restore it from git", BasePath, name)
		}
	}
	return m, base, nil
}

func damaged(err error) error {
	return fmt.Errorf("%s is damaged: %w; restore it from git", Path, err)
}

// Sum is the SHA-256 of data as [Entry] has it.
func Sum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
