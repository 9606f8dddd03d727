package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"golang.org/x/mod/sumdb/dirhash"

	"github.com/famcp/famcp/internal/scaffold/manifest"
	"github.com/famcp/famcp/internal/scaffold/overlay"
	"github.com/famcp/famcp/internal/scaffold/render"
)

// overlayRecord is what is recorded of a team's own template; nil without one.
func overlayRecord(tree *overlay.Tree) (*manifest.Overlay, error) {
	if tree == nil {
		return nil, nil
	}
	sum, err := overlaySum(tree.Files)
	return &manifest.Overlay{Source: tree.Source, Ref: tree.Ref, Commit: tree.Commit, Sum: sum, Files: tree.Files}, err
}

// RecordedOverlay is the team's own template of a project, from its manifest and the archive at
// [manifest.OverlayPath]; nil for a project without one. As [NewOptions].Overlay it makes the project's files anew, over
// whatever template of famcp: neither the directory nor the repository that it came from is needed.
func RecordedOverlay(m *manifest.Manifest, archive []byte) (*overlay.Tree, error) {
	if m.Overlay == nil {
		return nil, nil
	}
	files, err := manifest.ReadOverlay(archive)
	if err != nil {
		return nil, err
	}
	if sum, err := overlaySum(files); err != nil || sum != m.Overlay.Sum {
		return nil, errors.Join(err, fmt.Errorf("%s is damaged: it is not what %s has recorded; restore both from git", manifest.OverlayPath, manifest.Path))
	}
	return &overlay.Tree{Source: m.Overlay.Source, Ref: m.Overlay.Ref, Commit: m.Overlay.Commit, Files: files}, nil
}

// overlaySum is the hash of files with their modes, as go.sum hashes modules.
func overlaySum(files []render.File) (string, error) {
	content := make(map[string][]byte, len(files))
	for _, f := range files {
		content[fmt.Sprintf("%s %o", f.Path, f.Mode)] = f.Data
	}
	return dirhash.Hash1(slices.Collect(maps.Keys(content)), func(name string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content[name])), nil
	})
}
