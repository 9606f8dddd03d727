package scaffold

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/famcp/famcp/internal/scaffold/gomod"
	"github.com/famcp/famcp/internal/scaffold/render"
)

// moduleFiles are go.mod and go.sum of the project and, when it is vendored, the runtime with its own.
func moduleFiles(o NewOptions) ([]render.File, error) {
	var files []render.File
	add := func(dir string, owner render.Owner, f gomod.Files) {
		files = append(files,
			render.File{Path: path.Join(dir, "go.mod"), Mode: 0o644, Owner: owner, Data: f.Mod},
			render.File{Path: path.Join(dir, "go.sum"), Mode: 0o644, Owner: owner, Data: f.Sum})
	}
	if o.Answers.Runtime == "module" {
		f, err := gomod.Module(o.Answers.Module, o.Release.Version, o.Release.GoSum)
		add("", render.Structural, f)
		return files, err
	}
	f, err := gomod.Vendored(o.Answers.Module, o.Release.Version)
	if err != nil {
		return nil, err
	}
	add("", render.Structural, f)
	add(gomod.VendorDir, render.Locked, gomod.VendoredRuntime())
	runtime, err := runtimeFiles(o.Runtime)
	return append(files, runtime...), err
}

// runtimeFiles are the files of the runtime as a project carries them: without tests, which would need more modules,
// and without source.go, which embeds the runtime into famcp.
func runtimeFiles(source fs.FS) ([]render.File, error) {
	if source == nil {
		return nil, errors.New("no source of the runtime given")
	}
	var files []render.File
	err := fs.WalkDir(source, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "testdata":
			return fs.SkipDir
		case entry.IsDir(), strings.HasSuffix(name, "_test.go"), name == "source.go", name == "go.mod", name == "go.sum":
			return nil
		}
		data, err := fs.ReadFile(source, name)
		if err != nil {
			return err
		}
		files = append(files, render.File{
			Path:  path.Join(gomod.VendorDir, name),
			Mode:  0o644,
			Owner: render.Locked,
			Data:  render.LF(data),
		})
		return nil
	})
	return files, err
}
