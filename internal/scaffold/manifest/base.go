package manifest

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/famcp/famcp/internal/scaffold/render"
)

// Base is the archive of the files whose pristine text an upgrade needs: the managed and the seeded ones, in the
// order given. Equal files make equal archives. They are stored, not compressed: git does that itself, and sees
// how little changed between two versions.
func Base(files []render.File) ([]byte, error) {
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, f := range files {
		if f.Owner != render.Managed && f.Owner != render.Seeded {
			continue
		}
		h := &zip.FileHeader{Name: f.Path, Method: zip.Store, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
		h.SetMode(f.Mode)
		fw, err := w.CreateHeader(h)
		if err != nil {
			return nil, fmt.Errorf("writing %s: %w", BasePath, err)
		}
		if _, err := fw.Write(f.Data); err != nil {
			return nil, fmt.Errorf("writing %s: %w", BasePath, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("writing %s: %w", BasePath, err)
	}
	return buf.Bytes(), nil
}

// ReadBase reads an archive made by [Base]. The manifest has the owners.
func ReadBase(data []byte) (files []render.File, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s is damaged: %w; restore it from git", BasePath, err)
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
