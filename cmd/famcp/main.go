// Command famcp makes MCP servers in Go: see `famcp help`.
package main

import (
	"os"
	"runtime/debug"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/cmd/famcp/internal/cli"
	"github.com/famcp/famcp/cmd/famcp/internal/iostreams"
	"github.com/famcp/famcp/templates"
)

// Set by the linker of a release, as goreleaser.yaml says; empty in any other build.
var (
	version string // v1.2.3
	commit  string
	sum     string // checksum of this version of the module as go.sum has it: h1:…
)

func main() {
	info, _ := debug.ReadBuildInfo()
	build := cli.ReadBuild(version, commit, info)
	release := cli.ReadRelease(version, sum, famcp.Source(), info)
	release.Commit = build.Commit
	os.Exit(cli.Main(os.Args[1:], &cli.App{
		IO:        iostreams.System(os.Getenv),
		Build:     build,
		Release:   release,
		Templates: templates.FS(),
		Runtime:   famcp.Source(),
		Getenv:    os.Getenv,
		Environ:   os.Environ(),
	}))
}
