package manifest

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/famcp/famcp/internal/scaffold/render"
)

// Base is the archive of the files whose pristine text an upgrade needs: the managed and the seeded ones, in the
// order given. Equal files make equal archives. They are stored, not compressed: git does that itself, and sees
// how little changed between two versions.
func Base(files []render.File) ([]byte, error) {
	return archive(BasePath, slices.DeleteFunc(slices.Clone(files), func(f render.File) bool {
		return f.Owner != render.Managed && f.Owner != render.Seeded
	}))
}

// ReadBase reads an archive made by [Base]. The manifest has the owners.
func ReadBase(data []byte) ([]render.File, error) { return readArchive(BasePath, data) }

// ReadOverlay reads the archive of the team's own template.
func ReadOverlay(data []byte) ([]render.File, error) { return readArchive(OverlayPath, data) }

// archive packs files; path is what to call it in errors.
func archive(path string, files []render.File) ([]byte, error) {
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.Path, Method: zip.Store, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
		h.SetMode(f.Mode)
		fw, err := w.CreateHeader(h)
		if err != nil {
			return nil, fmt.Errorf("writing %s: %w", path, err)
		}
		if _, err := fw.Write(f.Data); err != nil {
			return nil, fmt.Errorf("writing %s: %w", path, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("writing %s: %w", path, err)
	}
	return buf.Bytes(), nil
}

func readArchive(path string, data []byte) (files []render.File, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s is damaged: %w; restore it from git", path, err)
		}
	}()
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	for _, zf := range r.File {
		rc, err := zf.Open()
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(rc)
		if err = errors.Join(err, rc.Close()); err != nil {
			return nil, err
		}
		files = append(files, render.File{Path: zf.Name, Mode: zf.Mode(), Data: text})
	}
	return files, nil
}
