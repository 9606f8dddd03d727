package render

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// renamesFile is the table of renames in a template file system.
const renamesFile = "renames.txt"

// Renames says what the template's files were called in earlier versions: the old path of a project's file by the new
// one. The table is a file beside the trees, with "old new" on a line and comments after #; there need not be one.
func Renames(templates fs.FS) (map[string]string, error) {
	text, err := fs.ReadFile(templates, renamesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	renames := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0:
			continue
		case len(fields) != 2 || !fs.ValidPath(fields[0]) || !fs.ValidPath(fields[1]):
			return nil, fmt.Errorf("%s: want an old and a new path, not %q", renamesFile, line)
		case renames[fields[1]] != "":
			return nil, fmt.Errorf("%s: %s has two old paths", renamesFile, fields[1])
		}
		renames[fields[1]] = fields[0]
	}
	return renames, nil
}
