// Package patch writes changes of files as git does, for people to read and for git apply to take.
package patch

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"znkr.io/diff/textdiff"
)

// File is one change. Old is nil for a file that is new, New for one that goes.
type File struct {
	Path     string // slash-separated
	Old, New []byte
	Mode     fs.FileMode // of the new file, else of the old one
	OldMode  fs.FileMode // of the old file when there is a new one; 0 when it stays the same
}

// Unified is the changes as one patch, sorted by path.
func Unified(files []File) string {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	var out strings.Builder
	for _, f := range files {
		chmod := f.Old != nil && f.New != nil && f.OldMode != 0 && gitMode(f.OldMode) != gitMode(f.Mode)
		if f.Old != nil && f.New != nil && bytes.Equal(f.Old, f.New) && !chmod {
			continue
		}
		before, after := quote("a/"+f.Path), quote("b/"+f.Path)
		fmt.Fprintf(&out, "diff --git %s %s\n", before, after)
		mode := gitMode(f.Mode)
		if chmod {
			fmt.Fprintf(&out, "old mode %s\nnew mode %s\n", gitMode(f.OldMode), mode)
		}
		if f.Old == nil {
			fmt.Fprintf(&out, "new file mode %s\n", mode)
			before = "/dev/null"
		}
		if f.New == nil {
			fmt.Fprintf(&out, "deleted file mode %s\n", mode)
			after = "/dev/null"
		}
		if bytes.IndexByte(f.Old, 0) >= 0 || bytes.IndexByte(f.New, 0) >= 0 {
			if !bytes.Equal(f.Old, f.New) {
				writeBinary(&out, f.Old, f.New)
			}
			continue
		}
		if bytes.Equal(f.Old, f.New) {
			continue // git names no sides of a file whose mode alone changes, and of an empty one
		}
		end := ""
		if strings.Contains(f.Path, " ") {
			end = "\t" // which ends a name with spaces
		}
		fmt.Fprintf(&out, "--- %s%s\n+++ %s%s\n", before, end, after, end)
		hunks := string(textdiff.Unified(f.Old, f.New, textdiff.IndentHeuristic()))
		// A side without lines begins at line 0.
		if len(f.Old) == 0 {
			hunks = strings.Replace(hunks, "@@ -1,0 ", "@@ -0,0 ", 1)
		}
		if len(f.New) == 0 {
			hunks = strings.Replace(hunks, " +1,0 @@", " +0,0 @@", 1)
		}
		out.WriteString(hunks)
	}
	return out.String()
}

func gitMode(mode fs.FileMode) string {
	if mode&0o100 != 0 {
		return "100755"
	}
	return "100644"
}

// quote is a path as git writes it: in quotes when it would not stand for itself otherwise.
func quote(path string) string {
	plain := !strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r >= 0x7f })
	if plain {
		return path
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(path) {
		switch c := path[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
