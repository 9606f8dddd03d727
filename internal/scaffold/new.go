// Package scaffold makes projects: it plans what to write, checks that it can be written, and applies the plan as a
// whole or not at all.
package scaffold

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"
	"golang.org/x/mod/sumdb/dirhash"

	"github.com/famcp/famcp/internal/scaffold/gomod"
	"github.com/famcp/famcp/internal/scaffold/manifest"
	"github.com/famcp/famcp/internal/scaffold/overlay"
	"github.com/famcp/famcp/internal/scaffold/render"
)

// Release says which famcp is running.
type Release struct {
	Version string   // semantic version with its v; empty for a development build
	Commit  string   // of its source, in full; may be empty
	GoSum   []string // the go.sum lines of this version of the famcp module; empty when it is not published
}

// Published reports whether projects can refer to this release as a Go module.
func (r Release) Published() bool { return semver.IsValid(r.Version) && len(r.GoSum) > 0 }

// name is the version as people and records have it.
func (r Release) name() string { return cmp.Or(r.Version, "devel") }

// NewOptions are the input of [PlanNew].
type NewOptions struct {
	Dir       string // target directory; relative to the working directory
	Answers   Answers
	Templates fs.FS // holds the trees project and bare
	Runtime   fs.FS // source of the runtime, for the vendored one
	Release   Release
	Overlay   *overlay.Tree       // the team's own template, which lies over Templates; nil without one
	Secrets   []render.File       // files of this machine, which git ignores: neither recorded nor committed
	Git       bool                // make a repository and the first commit
	Env       func(string) string // environment for git's identity and configuration; nil is an empty one
	Now       func() time.Time    // time of the first commit; nil is [time.Now]
}

func (o *NewOptions) setDefaults() {
	if o.Env == nil {
		o.Env = func(string) string { return "" }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// Plan is a checked project, ready to be written once.
type Plan struct {
	Target  Target
	Answers Answers
	Files   []render.File // sorted by path
	Overlay *overlay.Tree // the team's own template; nil without one

	opts NewOptions
}

// PlanNew renders a project and checks everything that can be checked without writing. Bad answers are [Violations].
func PlanNew(ctx context.Context, o NewOptions) (*Plan, error) {
	o.setDefaults()
	if err := o.Answers.Check(); err != nil {
		return nil, err
	}
	if o.Answers.Runtime == "module" && !o.Release.Published() {
		return nil, Violations{errUnpublished}
	}
	target, err := CheckTarget(o.Dir)
	if err != nil {
		return nil, err
	}
	files, err := project(o)
	if err != nil {
		return nil, err
	}
	return &Plan{Target: target, Answers: o.Answers, Files: files, Overlay: o.Overlay, opts: o}, ctx.Err()
}

// project is every file of the project, sorted by path.
func project(o NewOptions) ([]render.File, error) {
	files, err := rendering(o)
	if err != nil {
		return nil, err
	}
	m, err := record(o)
	if err != nil {
		return nil, err
	}
	written, err := manifest.Record(*m, files)
	if err != nil {
		return nil, err
	}
	files = slices.Concat(files, written, o.Secrets)
	slices.SortFunc(files, byPath)
	return files, nil
}

// rendering is every file of the project but the record, sorted by path.
func rendering(o NewOptions) ([]render.File, error) {
	files, err := render.Project(o.Templates, dataFor(o.Answers))
	if err != nil {
		return nil, err
	}
	if team := o.Overlay; team != nil {
		if files, err = render.Overlay(files, team.Files, dataFor(o.Answers)); err != nil {
			return nil, fmt.Errorf("the template from %s: %w", team.Source, err)
		}
	}
	modules, err := moduleFiles(o)
	if err != nil {
		return nil, err
	}
	files = append(files, modules...)
	slices.SortFunc(files, byPath)
	return files, nil
}

// record is what the manifest says of a project made now, without its files.
func record(o NewOptions) (*manifest.Manifest, error) {
	templateSum, err := sumOf(o.Templates)
	if err != nil {
		return nil, err
	}
	team, err := overlayRecord(o.Overlay)
	if err != nil {
		return nil, err
	}
	version := o.Release.name()
	return &manifest.Manifest{
		Famcp:       version,
		Commit:      o.Release.Commit,
		Template:    version,
		TemplateSum: templateSum,
		Runtime:     version,
		Answers:     o.Answers.byKey(),
		Overlay:     team,
	}, nil
}

// sumOf is the hash of all files of templates, as go.sum hashes modules.
func sumOf(templates fs.FS) (string, error) {
	var names []string
	err := fs.WalkDir(templates, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return dirhash.Hash1(names, func(name string) (io.ReadCloser, error) {
		data, err := fs.ReadFile(templates, name)
		return io.NopCloser(bytes.NewReader(render.LF(data))), err
	})
}

func byPath(a, b render.File) int { return strings.Compare(a.Path, b.Path) }

var errUnpublished = Violation{
	Key: "runtime", Flag: "runtime",
	Rule: "cannot be module: this famcp does not know the checksums of its own release; use vendored",
}

func dataFor(a Answers) render.Data {
	command := "http"
	if a.Transport == "stdio" {
		command = "stdio"
	}
	issuer := a.Issuer
	if issuer == "" {
		issuer = fmt.Sprintf("http://localhost:%d", a.Port)
	}
	return render.Data{
		Name:           a.Name,
		Module:         a.Module,
		Title:          a.Title,
		Description:    a.Description,
		Port:           a.Port,
		Auth:           a.Auth,
		Issuer:         issuer,
		JWKSURI:        a.JWKSURI,
		Protected:      a.Auth != AuthNone,
		HS256:          a.Auth == AuthHS256,
		Embedded:       a.Auth == AuthEmbedded,
		LocalKey:       a.Auth == AuthLocalKey,
		RemoteJWKS:     a.Auth == AuthRemoteJWKS,
		Issues:         a.Issues(),
		TokenVariable:  strings.ToUpper(strings.ReplaceAll(a.Name, "-", "_")) + "_TOKEN",
		CI:             a.CI,
		Transport:      a.Transport,
		Examples:       a.Examples,
		License:        a.License,
		Author:         a.Author,
		Runtime:        a.Runtime,
		GoVersion:      gomod.GoVersion,
		HTTP:           a.Transport != "stdio",
		Stdio:          a.Transport != "http",
		GitHub:         a.CI == "github" || a.CI == "both",
		GitLab:         a.CI == "gitlab" || a.CI == "both",
		DefaultCommand: command,
		Command:        a.Name,
	}
}
