package famcp

import (
	"embed"
	"io/fs"
)

// The linker drops this from every program that does not call Source.
//
//go:embed *.go go.mod LICENSE famcptest internal/runtime
var source embed.FS

// Source returns the source of the runtime, tests and go.mod included, with
// paths from the module's root. It is for the famcp command only, which writes it into
// the projects it makes; a vendored runtime does not have it.
func Source() fs.FS { return source }
