package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/famcp/famcp/internal/scaffold/gomod"
	"github.com/famcp/famcp/internal/scaffold/journal"
	"github.com/famcp/famcp/internal/scaffold/manifest"
	"github.com/famcp/famcp/internal/scaffold/overlay"
	"github.com/famcp/famcp/internal/scaffold/render"
	"github.com/famcp/famcp/internal/scaffold/vcs"
)

// Found is a project that exists. Its files are reached through it, which keeps every path inside the project.
type Found struct {
	Dir        string // absolute, without links
	Repository string // root of the git repository that Dir lies in, or is; empty outside of one

	root *os.Root
}

// Find finds the project that the directory dir is in: by its record or, where that is lost, by its go.mod. The caller
// closes it.
func Find(dir string) (*Found, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return nil, fmt.Errorf("project directory: %w", err)
	}
	for at := abs; ; at = filepath.Dir(at) {
		if isProject(at) {
			root, err := os.OpenRoot(at)
			if err != nil {
				return nil, err
			}
			return &Found{Dir: at, Repository: vcs.Root(at), root: root}, nil
		}
		if at == filepath.Dir(at) {
			return nil, fmt.Errorf("%s is not in a project that famcp made: there is no %s in it or above it; name the project's directory", abs, manifest.Path)
		}
	}
}

// isProject reports whether there is a record in dir, or a module that requires the runtime.
func isProject(dir string) bool {
	for _, name := range []string{manifest.Path, manifest.BasePath} {
		if info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name))); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return false
	}
	mod, err := modfile.ParseLax("go.mod", text, nil)
	if err != nil || mod.Module == nil || mod.Module.Mod.Path == gomod.Runtime {
		return false
	}
	for _, r := range mod.Require {
		if r.Mod.Path == gomod.Runtime {
			return true
		}
	}
	return false
}

// Close lets go of the project's directory.
func (p *Found) Close() error { return p.root.Close() }

// recorded is a project's record.
type recorded struct {
	manifest *manifest.Manifest
	base     map[string]render.File
	overlay  *overlay.Tree
	commit   string // that it was found in; empty when it is the project's own
	reason   error  // why it is not
}

// A RecordError means that a project's record cannot be used, nor found again in its history.
type RecordError struct{ Err error }

func (e *RecordError) Error() string {
	return fmt.Sprintf("%v; git's history has no good one either: run famcp upgrade --adopt to begin a new one", e.Err)
}

func (e *RecordError) Unwrap() error { return e.Err }

// readRecord reads the record of the project, from its history when it is lost or damaged.
func (p *Found) readRecord() (*recorded, error) {
	text, err := p.recordFile(manifest.Path)
	if err != nil {
		return p.recordInHistory(err)
	}
	base, err := p.recordFile(manifest.BasePath)
	if err != nil {
		return p.recordInHistory(err)
	}
	var overlay []byte
	if p.exists(manifest.OverlayPath) {
		if overlay, err = p.recordFile(manifest.OverlayPath); err != nil {
			return p.recordInHistory(err)
		}
	}
	rec, err := parseRecord(text, base, overlay)
	var newer *manifest.NewerError
	switch {
	case errors.As(err, &newer):
		return nil, err
	case err != nil:
		return p.recordInHistory(err)
	}
	return rec, nil
}

// parseRecord reads the three files of a record; the last is that of a team's own template.
func parseRecord(text, archive, team []byte) (*recorded, error) {
	m, base, err := manifest.Read(text, archive)
	if err != nil {
		return nil, err
	}
	tree, err := RecordedOverlay(m, team)
	return &recorded{manifest: m, base: base, overlay: tree}, err
}

func (p *Found) recordFile(name string) ([]byte, error) {
	c, err := journal.Read(p.root, name)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, fmt.Errorf("%s is missing", name)
	}
	return c.Data, nil
}

func (p *Found) recordInHistory(reason error) (*recorded, error) {
	// What is wrong here is told in one sentence; how to get out of it follows.
	reason = errors.New(strings.Split(reason.Error(), "; ")[0])
	if p.Repository == "" {
		return nil, &RecordError{reason}
	}
	var r *recorded
	names := []string{manifest.Path, manifest.BasePath, manifest.OverlayPath}
	commit, err := vcs.History(p.Repository, p.Dir, names, func(files [][]byte) (found bool) {
		var err error
		r, err = parseRecord(files[0], files[1], files[2])
		return err == nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w; looking for a good one in git's history: %w", reason, err)
	}
	if commit == "" {
		return nil, &RecordError{reason}
	}
	r.commit, r.reason = commit, reason
	return r, nil
}

// read is the file at name; nil when there is none.
func (p *Found) read(name string) (*journal.Content, error) { return journal.Read(p.root, name) }

// secret reports whether the file at name holds what no command reads.
func secret(name string) bool {
	base := path.Base(name)
	switch path.Ext(base) {
	case ".key", ".pem", ".p12":
		return true
	}
	return name == "config/local.yaml" || base == ".env" || strings.HasPrefix(base, ".env.") && base != ".env.example"
}

// sameText reports whether two texts differ in nothing but line ends.
func sameText(a, b []byte) bool { return bytes.Equal(render.LF(a), render.LF(b)) }

// exists reports whether there is anything at name.
func (p *Found) exists(name string) bool {
	_, err := p.root.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}
