// Package render turns the template trees and a project's data into files. It is pure: the same input gives the
// same bytes, whatever the time, the machine and the environment.
package render

import "io/fs"

// Owner says who may change a file after it was written, and so what an upgrade does with it.
type Owner string

// The owners.
const (
	Locked     Owner = "locked"     // famcp's alone: the vendored runtime
	Structural Owner = "structural" // go.mod and go.sum, combined by their structure
	Managed    Owner = "managed"    // the template's, three-way merged with the team's edits
	Seeded     Owner = "seeded"     // written once, the team's from then on
	Record     Owner = "record"     // famcp's own record under .famcp
	Secret     Owner = "secret"     // of one machine: ignored by git, in no record, never read again
)

// File is one file of a project.
type File struct {
	Path  string      // slash-separated, relative to the project
	Mode  fs.FileMode // 0644 or 0755; a secret 0600
	Owner Owner
	Data  []byte
	// Overlay is set for a file of a team's own template.
	Overlay bool
}

// Valid reports whether o is an owner that a record may hold.
func (o Owner) Valid() bool {
	switch o {
	case Locked, Structural, Managed, Seeded, Record:
		return true
	}
	return false
}
