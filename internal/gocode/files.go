package gocode

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"
)

// maxFileBytes bounds a file that is read. Source files and settings are far smaller; the rest is data.
const maxFileBytes = 1 << 20

// Walk visits the regular files of a project that a team writes, in lexical order: nothing vendored, no test data, no
// other module and, but for those of known tools, nothing hidden. Links are not followed.
func Walk(ctx context.Context, fsys fs.FS, visit func(name string) error) error {
	return fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if entry.IsDir() {
			if name != "." && (skipDir(entry.Name()) || nestedModule(fsys, name)) {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		return visit(name)
	})
}

// ReadText is the text of a file, or nil when it has more than a megabyte or is not text.
func ReadText(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFileBytes || !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return nil, nil
	}
	return data, nil
}

// skipDir reports whether a directory of that name holds nothing of the team's.
func skipDir(name string) bool {
	switch name {
	case "third_party", "vendor", "node_modules", "testdata":
		return true
	case ".github", ".gitlab", ".circleci", ".devcontainer", ".vscode":
		return false
	}
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

func nestedModule(fsys fs.FS, dir string) bool {
	_, err := fs.Stat(fsys, path.Join(dir, "go.mod"))
	return err == nil
}
