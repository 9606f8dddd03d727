package scaffold

import (
	"bytes"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/famcp/famcp/internal/scaffold/journal"
)

// planned is a project as it will be: its files with changes on top. A nil content is a file that goes.
type planned struct {
	fs.FS
	files map[string]*journal.Content
}

// Open implements [fs.FS].
func (p *planned) Open(name string) (fs.File, error) {
	c, ok := p.files[name]
	if !ok {
		return p.FS.Open(name)
	}
	if c == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &plannedFile{Reader: bytes.NewReader(c.Data), name: path.Base(name), content: c}, nil
}

// ReadDir implements [fs.ReadDirFS].
func (p *planned) ReadDir(name string) ([]fs.DirEntry, error) {
	entries := map[string]fs.DirEntry{}
	under, err := fs.ReadDir(p.FS, name)
	for _, e := range under {
		entries[e.Name()] = e
	}
	found := err == nil
	for at, c := range p.files {
		rest, ok := at, true
		if name != "." {
			rest, ok = strings.CutPrefix(at, name+"/")
		}
		if !ok {
			continue
		}
		child, _, deep := strings.Cut(rest, "/")
		switch {
		case c == nil && !deep:
			delete(entries, child)
		case c == nil:
		case deep:
			found = true
			if entries[child] == nil {
				entries[child] = fs.FileInfoToDirEntry(plannedDir(child))
			}
		default:
			found = true
			entries[child] = fs.FileInfoToDirEntry(&plannedFile{name: child, content: c})
		}
	}
	if !found {
		return nil, err
	}
	sorted := slices.Collect(maps.Values(entries))
	slices.SortFunc(sorted, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return sorted, nil
}

// plannedFile is an open file that is not written yet, and its description.
type plannedFile struct {
	*bytes.Reader
	name    string
	content *journal.Content // nil for a directory
}

func plannedDir(name string) *plannedFile { return &plannedFile{name: name} }

func (f *plannedFile) Stat() (fs.FileInfo, error) { return f, nil }
func (f *plannedFile) Close() error               { return nil }
func (f *plannedFile) Name() string               { return f.name }
func (f *plannedFile) IsDir() bool                { return f.content == nil }
func (f *plannedFile) ModTime() time.Time         { return time.Time{} }
func (f *plannedFile) Sys() any                   { return nil }

func (f *plannedFile) Size() int64 {
	if f.content == nil {
		return 0
	}
	return int64(len(f.content.Data))
}

func (f *plannedFile) Mode() fs.FileMode {
	if f.content == nil {
		return fs.ModeDir | 0o755
	}
	return f.content.Mode
}
