// Package templates holds the template of generated projects: a program in project, and in bare the files that take
// the place of project's when no starter tools are wanted. Both are packages of this module and are built, tested
// and linted like any other.
package templates

import (
	"embed"
	"io/fs"
)

//go:embed all:project all:bare renames.txt
var files embed.FS

// FS returns the template trees, project and bare, and renames.txt, the table of files with another path than before. It must not be changed; it may be read concurrently.
func FS() fs.FS { return files }
