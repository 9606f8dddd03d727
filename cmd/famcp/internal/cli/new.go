package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/famcp/famcp/cmd/famcp/internal/iostreams"
	"github.com/famcp/famcp/cmd/famcp/internal/verify"
	"github.com/famcp/famcp/internal/runtime/token"
	"github.com/famcp/famcp/internal/scaffold"
	"github.com/famcp/famcp/internal/scaffold/overlay"
)

// maxAnswersBytes bounds an answers file; real ones have a dozen short lines.
const maxAnswersBytes = 64 << 10

type newOptions struct {
	IO        *iostreams.IOStreams
	Build     Build
	Release   scaffold.Release
	Templates fs.FS
	Runtime   fs.FS
	Getenv    func(string) string
	Environ   []string

	Dir      string
	Given    map[string]string // answers by key, from flags
	Answers  string            // path of the answers file
	Template string            // directory or URL of the team's own template; empty without one
	Yes      bool
	DryRun   bool
	JSON     bool
	NoGit    bool
	Verify   bool
}

func newNewCmd(app *App, run func(context.Context, *newOptions) error) *cobra.Command {
	opts := &newOptions{
		IO:        app.IO,
		Build:     app.Build,
		Release:   app.Release,
		Templates: app.Templates,
		Runtime:   app.Runtime,
		Getenv:    app.Getenv,
		Environ:   app.Environ,
		Given:     map[string]string{},
	}
	cmd := &cobra.Command{
		Use:   "new [DIR]",
		Short: "Make a new MCP server project",
		Long: `Make a new MCP server project in DIR: a Go repository that builds, passes its
tests and serves old and new MCP clients over HTTP and stdio.

DIR must not exist yet, or be empty, or hold nothing but .git. Without DIR the
project goes to a directory called like --name.

On a terminal a form asks for what the flags and the answers file left open and
shows what it will do; anywhere else, and with --yes or --json, nothing is asked.
Flags win over the answers file, which wins over the defaults. No existing file
is ever overwritten.

--template lays a team's own files over the project: those of a directory, or of
a git repository at a branch, tag or commit. They may be .tmpl files like those
of famcp; nothing in them is run.

With --auth hs256 or localKey the secret or key pair of this machine is made,
too, in files that git ignores and only you can read.`,
		Example: `  famcp new my-server
  famcp new my-server --yes
  famcp new my-server --yes --auth hs256
  famcp new . --module github.com/acme/weather --ci gitlab --license none
  famcp new my-server --answers answers.yaml --dry-run --json
  famcp new my-server --yes --template https://github.com/acme/mcp-template.git@v2`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				opts.Dir = args[0]
				if opts.Dir == "" {
					return usagef("DIR is empty; name a directory, or use . for this one")
				}
			}
			return run(cmd.Context(), opts)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	addAnswerFlags(cmd, opts.Given, app.Release)
	flags.StringVar(&opts.Answers, "answers", "", "Read answers from this YAML or JSON `file`.")
	flags.StringVar(&opts.Template, "template", "", "Lay a team's own template, `DIR|GIT-URL[@REF]`, over the project.")
	flags.BoolVarP(&opts.Yes, "yes", "y", false, "Ask nothing: take the default of every answer that is not given.")
	flags.BoolVar(&opts.DryRun, "dry-run", false, "Print what would be written and write nothing.")
	flags.BoolVar(&opts.JSON, "json", false, "Print one JSON document; asks nothing.")
	flags.BoolVar(&opts.NoGit, "no-git", false, "Make no git repository and no commit.")
	flags.BoolVar(&opts.Verify, "verify", false, "Then build, vet and test the project and call its server.")
	return cmd
}

// newRun is `famcp new`: collect answers, plan, agree, write, report.
func newRun(ctx context.Context, opts *newOptions) error {
	given, err := opts.given()
	if err != nil {
		return err
	}
	if opts.Dir == "" {
		opts.Dir = strings.TrimSpace(given["name"]) // still empty when that is open, too
	}
	if opts.Dir != "" {
		if err := checkDir(opts.Dir); err != nil {
			return err
		}
	}
	asks := opts.IO.CanPrompt() && !opts.Yes && !opts.JSON
	if asks {
		if err := askOpen(ctx, opts, given); err != nil {
			return err
		}
	}
	if opts.Dir == "" {
		return usagef("no directory given, and nobody to ask; pass DIR or --name, as in: famcp new my-server --yes")
	}
	if _, named := given["name"]; !named {
		if given["name"], err = scaffold.NameFromDir(opts.Dir); err != nil {
			return &usageError{err: err}
		}
	}
	answers, err := scaffold.Resolve(given, opts.Release)
	if err != nil {
		return &usageError{err: err}
	}

	plan, err := opts.plan(ctx, answers)
	if err != nil {
		return err
	}
	report, err := newReport(opts, plan)
	if err != nil {
		return err
	}
	if opts.DryRun {
		return report.print(opts)
	}
	if asks {
		report.summary(opts.IO.Err)
		if err := confirm(ctx, opts.IO, "Create it?"); err != nil {
			return err
		}
	}
	result, err := opts.apply(ctx, plan)
	if err != nil {
		return err
	}
	report.applied(result)
	if !opts.JSON {
		report.done(opts.IO)
	}
	if opts.Verify {
		report.Verify, err = opts.verify(ctx, answers, result.Dir)
	}
	return errors.Join(report.print(opts), err)
}

// given are the answers of the flags and, below them, of the answers file.
func (o *newOptions) given() (map[string]string, error) {
	given := map[string]string{}
	if o.Answers != "" {
		data, err := readBounded(o.Answers, maxAnswersBytes)
		if err != nil {
			return nil, usagef("reading the answers file: %w", err)
		}
		if given, err = scaffold.ParseAnswers(data); err != nil {
			return nil, usagef("answers file %s: %w", o.Answers, err)
		}
	}
	maps.Copy(given, o.Given)
	return given, nil
}

// plan renders and checks the project.
func (o *newOptions) plan(ctx context.Context, answers scaffold.Answers) (*scaffold.Plan, error) {
	tree, err := o.overlay(ctx)
	if err != nil {
		return nil, err
	}
	progress := o.IO.StartProgress("Rendering the project")
	defer progress.Stop()
	secrets, err := newSecrets(answers)
	if err != nil {
		return nil, err
	}
	plan, err := scaffold.PlanNew(ctx, scaffold.NewOptions{
		Dir:       o.Dir,
		Answers:   answers,
		Templates: o.Templates,
		Runtime:   o.Runtime,
		Release:   o.Release,
		Overlay:   tree,
		Secrets:   secrets,
		Git:       !o.NoGit,
		Env:       o.Getenv,
	})
	var broken scaffold.Violations
	if errors.As(err, &broken) {
		return nil, &usageError{err: err}
	}
	return plan, err
}

// overlay fetches the team's own template.
func (o *newOptions) overlay(ctx context.Context) (*overlay.Tree, error) {
	if o.Template == "" {
		return nil, nil
	}
	progress := o.IO.StartProgress("Fetching the template")
	defer progress.Stop()
	return overlay.Fetch(ctx, o.Template)
}

func (o *newOptions) apply(ctx context.Context, plan *scaffold.Plan) (*scaffold.Result, error) {
	progress := o.IO.StartProgress("Writing the project")
	defer progress.Stop()
	return plan.Apply(ctx, func(done, total int) {
		progress.Phase(fmt.Sprintf("Writing the project (file %d of %d)", done, total))
	})
}

func (o *newOptions) verify(ctx context.Context, a scaffold.Answers, dir string) ([]verify.Step, error) {
	var makeToken func() (string, error)
	if a.Issues() {
		makeToken = func() (string, error) {
			tokens, err := openTokens(&project{Dir: dir, Name: a.Name}, o.Environ, o.IO)
			if err != nil {
				return "", err
			}
			raw, _, err := tokens.Issue(token.Grant{Subject: "famcp-verify", TTL: 5 * time.Minute})
			return raw, err
		}
	}
	return runVerify(ctx, o.IO, verify.Options{
		Dir:       dir,
		Name:      a.Name,
		HTTP:      a.Transport != "stdio",
		Stdio:     a.Transport != "http",
		Protected: a.Auth != scaffold.AuthNone,
		Token:     makeToken,
	})
}

// runVerify shows each step as it ends: here the person waits for minutes.
func runVerify(ctx context.Context, io *iostreams.IOStreams, o verify.Options) ([]verify.Step, error) {
	var progress *iostreams.Progress
	o.Begin = func(name string) { progress = io.StartProgress(name) }
	o.End = func(s verify.Step) {
		progress.Stop()
		mark := io.Good("✓")
		if !s.OK {
			mark = io.Bad("✗")
		}
		fmt.Fprintf(io.Err, "%s %s (%.1f s)\n", mark, s.Name, s.Seconds)
		if s.Error != "" {
			fmt.Fprintln(io.Err, s.Error)
		}
	}
	return verify.Run(ctx, o)
}

// checkDir refuses directories that could not be shown, or typed, as they are.
func checkDir(dir string) error {
	if i := strings.IndexFunc(dir, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }); i >= 0 {
		return usagef("directory %q contains a control or undecodable character; choose another", dir)
	}
	return nil
}

// readBounded reads a file of at most limit bytes, and no more of a bigger one.
func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return data, nil
}
