package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/dirhash"

	"github.com/famcp/famcp/cmd/famcp/internal/iostreams"
	"github.com/famcp/famcp/internal/scaffold"
)

// runtimeModule is the module that generated projects require.
const runtimeModule = "github.com/famcp/famcp"

// Build says which famcp this is. [ReadBuild] makes it.
type Build struct {
	Version string // v1.2.3, a pseudo-version, or "devel"
	Commit  string // full hash; empty when unknown
}

// ReadBuild combines what the release told the linker, either of which may be
// empty, with what the go command recorded in the binary: so a build by
// `go install …@v1.2.3` reports v1.2.3 as well. info may be nil.
func ReadBuild(version, commit string, info *debug.BuildInfo) Build {
	b := Build{Version: version, Commit: commit}
	if info != nil {
		if b.Version == "" && info.Main.Version != "(devel)" {
			b.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && b.Commit == "" {
				b.Commit = s.Value
			}
		}
	}
	if b.Version == "" {
		b.Version = "devel"
	}
	return b
}

// ReadRelease says what a project that gets the runtime as a module writes to
// its go.mod and go.sum. Version and checksum are the linker's or, in a build
// by `go install …@v1.2.3`, those the go command recorded; with a checksum
// famcp counts as published. source holds the module's go.mod; info may be nil.
func ReadRelease(version, sum string, source fs.FS, info *debug.BuildInfo) scaffold.Release {
	if version == "" && info != nil && info.Main.Path == runtimeModule && info.Main.Sum != "" {
		version, sum = info.Main.Version, info.Main.Sum
	}
	r := scaffold.Release{Version: version}
	if version == "" || sum == "" {
		return r
	}
	modSum, err := dirhash.Hash1([]string{"go.mod"}, func(name string) (io.ReadCloser, error) { return source.Open(name) })
	if err != nil {
		return r // without its go.mod the module could not be required
	}
	r.GoSum = []string{
		runtimeModule + " " + version + " " + sum,
		runtimeModule + " " + version + "/go.mod " + modSum,
	}
	return r
}

// String is the line that `famcp version` prints.
func (b Build) String() string {
	commit := ""
	if b.Commit != "" {
		commit = "commit " + b.Commit[:min(12, len(b.Commit))] + ", "
	}
	return fmt.Sprintf("famcp %s (%s%s %s/%s)", b.Version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// versionDoc is the answer of `famcp version --json`. Fields keep their
// meaning; new ones may come.
type versionDoc struct {
	Schema  int    `json:"schema"`
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

type versionOptions struct {
	IO    *iostreams.IOStreams
	Build Build

	JSON bool
}

func newVersionCmd(app *App, run func(context.Context, *versionOptions) error) *cobra.Command {
	opts := &versionOptions{IO: app.IO, Build: app.Build}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of famcp",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), opts) },
	}
	cmd.Flags().BoolVar(&opts.JSON, "json", false, "Print one JSON document.")
	return cmd
}

func versionRun(_ context.Context, opts *versionOptions) error {
	if !opts.JSON {
		_, err := fmt.Fprintln(opts.IO.Out, opts.Build)
		return err
	}
	return writeJSON(opts.IO.Out, versionDoc{
		Schema:  1,
		Version: opts.Build.Version,
		Commit:  opts.Build.Commit,
		Go:      runtime.Version(),
		OS:      runtime.GOOS,
		Arch:    runtime.GOARCH,
	})
}

// writeJSON writes one document for programs, indented for the people who look
// over their shoulder.
func writeJSON(w io.Writer, doc any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(doc)
}
