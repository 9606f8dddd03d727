package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/famcp/famcp/cmd/famcp/internal/iostreams"
	"github.com/famcp/famcp/cmd/famcp/internal/verify"
	"github.com/famcp/famcp/internal/scaffold"
)

type upgradeOptions struct {
	IO        *iostreams.IOStreams
	Release   scaffold.Release
	Templates fs.FS
	Runtime   fs.FS
	Getenv    func(string) string

	Dir                 string
	Given               map[string]string // answers by key, from flags
	DryRun              bool
	Check               bool
	Yes                 bool
	JSON                bool
	AllowDirty          bool
	Continue            bool
	Abort               bool
	Adopt               bool
	DiscardRuntimeEdits bool
	NoVerify            bool
}

func newUpgradeCmd(app *App, run func(context.Context, *upgradeOptions) error) *cobra.Command {
	opts := &upgradeOptions{
		IO:        app.IO,
		Release:   app.Release,
		Templates: app.Templates,
		Runtime:   app.Runtime,
		Getenv:    app.Getenv,
		Dir:       ".",
		Given:     map[string]string{},
	}
	cmd := &cobra.Command{
		Use:   "upgrade [DIR]",
		Short: "Bring a project up to this famcp",
		Long: `Bring the project that DIR is in up to the template and the runtime of this
famcp, without losing a line of it. DIR is the working directory when it is not
given; any directory of the project will do.

Files of the template are merged with your edits, line by line. Files that are
yours are left alone; what the template changed in them is shown. The runtime is
replaced as a whole, go.mod and go.sum get the higher version of each
requirement, and code and settings that newer versions ask to be changed are
changed. All files are written or none, and then the project is built, vetted and
tested. Nothing is fetched but what the go command needs for that.

Where both sides changed the same lines, both are in the file between conflict
markers. Resolve them and run famcp upgrade --continue, or put everything back
with famcp upgrade --abort.`,
		Example: `  famcp upgrade --check
  famcp upgrade --dry-run | git apply --stat
  famcp upgrade
  famcp upgrade --continue`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				if opts.Dir = args[0]; opts.Dir == "" {
					return usagef("DIR is empty; name a directory of the project, or use . for this one")
				}
			}
			return run(cmd.Context(), opts)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&opts.DryRun, "dry-run", false, "Print what would change as a patch for git apply, and write nothing.")
	flags.BoolVar(&opts.Check, "check", false, "Say whether an upgrade is due, with exit code 3 when it is, and write nothing.")
	flags.BoolVarP(&opts.Yes, "yes", "y", false, "Ask nothing: take the default of every new question that is not answered.")
	flags.BoolVar(&opts.JSON, "json", false, "Print one JSON document; asks nothing.")
	flags.BoolVar(&opts.AllowDirty, "allow-dirty", false, "Go on although files of the project are not committed.")
	flags.BoolVar(&opts.Continue, "continue", false, "Finish an upgrade whose conflicts are resolved.")
	flags.BoolVar(&opts.Abort, "abort", false, "Put every file back to what it was before the upgrade.")
	flags.BoolVar(&opts.Adopt, "adopt", false, "Begin a new record where the old one is lost; shows what differs and changes nothing else.")
	flags.BoolVar(&opts.DiscardRuntimeEdits, "discard-runtime-edits", false, "Replace third_party/famcp although somebody edited it.")
	flags.BoolVar(&opts.NoVerify, "no-verify", false, "Do not build, vet and test the project afterwards.")
	addAnswerFlags(cmd, opts.Given, app.Release)
	for _, q := range scaffold.Questions() { // for questions that are new to a project
		if q.Key == "runtime" {
			flags.Lookup(q.Flag).Usage = "Change how the project gets the runtime: vendored into third_party, or as a Go module."
			flags.Lookup(q.Flag).DefValue = ""
			continue
		}
		flags.Lookup(q.Flag).Hidden = true
		if q.Kind == scaffold.Switch {
			flags.Lookup("no-" + q.Flag).Hidden = true
		}
	}
	return cmd
}

// upgradeRun is `famcp upgrade`: find the project, plan, agree, write, verify, report.
func upgradeRun(ctx context.Context, opts *upgradeOptions) error {
	if err := opts.checkFlags(); err != nil {
		return err
	}
	found, err := scaffold.Find(opts.Dir)
	if err != nil {
		return err
	}
	defer found.Close()
	switch {
	case opts.Abort:
		return opts.abort(found)
	case opts.Continue:
		return opts.proceed(ctx, found)
	case opts.Adopt:
		return opts.adopt(ctx, found)
	}
	return opts.upgrade(ctx, found)
}

func (o *upgradeOptions) checkFlags() error {
	var modes []string
	for _, m := range []struct {
		on   bool
		flag string
	}{{o.DryRun, "--dry-run"}, {o.Check, "--check"}, {o.Continue, "--continue"}, {o.Abort, "--abort"}, {o.Adopt, "--adopt"}} {
		if m.on {
			modes = append(modes, m.flag)
		}
	}
	if len(modes) > 1 {
		return usagef("%s and %s exclude each other", modes[0], modes[1])
	}
	return nil
}

func (o *upgradeOptions) options() scaffold.UpgradeOptions {
	return scaffold.UpgradeOptions{
		Given:               o.Given,
		Defaults:            o.Yes,
		Templates:           o.Templates,
		Runtime:             o.Runtime,
		Release:             o.Release,
		Env:                 o.Getenv,
		AllowDirty:          o.AllowDirty,
		DiscardRuntimeEdits: o.DiscardRuntimeEdits,
	}
}

func (o *upgradeOptions) upgrade(ctx context.Context, found *scaffold.Found) error {
	writes := !o.DryRun && !o.Check
	asks := writes && o.IO.CanPrompt() && !o.Yes && !o.JSON
	report := &upgradeReport{Schema: 1, Dir: found.Dir, DryRun: !writes, Files: []scaffold.UpgradeFile{}, Conflicts: []string{}}
	if writes {
		if err := o.recover(found, report); err != nil {
			return err
		}
	}
	plan, err := o.plan(ctx, found, asks)
	if err != nil {
		var edited *scaffold.RuntimeEditedError
		if errors.As(err, &edited) {
			report.State, report.Edited = stateRefused, edited.Paths
			if o.JSON {
				return errors.Join(report.print(o), &personError{err})
			}
			return &personError{err}
		}
		return err
	}
	report.planned(plan, writes)
	switch {
	case !plan.Due():
		return report.print(o)
	case o.Check:
		return errors.Join(report.print(o), &personError{})
	case o.DryRun:
		report.Diff = plan.Diff()
		return report.print(o)
	}
	if asks {
		report.State = statePlanned
		report.heading(o.IO.Err)
		report.body(o.IO.Err)
		fmt.Fprintln(o.IO.Err)
		report.shown = true
		if err := confirm(ctx, o.IO, "Upgrade it?"); err != nil {
			return err
		}
	}
	if err := o.apply(ctx, plan.Apply); err != nil {
		return err
	}
	if len(plan.Unresolved) > 0 {
		report.State = stateConflicts
		report.Next = []string{"famcp upgrade --continue", "famcp upgrade --abort"}
		return errors.Join(report.print(o), &personError{fmt.Errorf(
			"%d of the files have conflicts; resolve them and run famcp upgrade --continue, or put everything back with famcp upgrade --abort", len(plan.Unresolved),
		)})
	}
	return o.conclude(ctx, found, report)
}

// recover puts back what a killed upgrade left.
func (o *upgradeOptions) recover(found *scaffold.Found, report *upgradeReport) error {
	restored, err := found.Recover()
	if restored != nil && err == nil {
		report.restored(restored)
		fmt.Fprintf(o.IO.Err, "An interrupted upgrade was undone: %s.\n", restoredText(restored))
	}
	return err
}

// plan plans the upgrade, asking new questions where there is somebody to ask.
func (o *upgradeOptions) plan(ctx context.Context, found *scaffold.Found, asks bool) (*scaffold.UpgradePlan, error) {
	for {
		progress := o.IO.StartProgress("Comparing the project with the template")
		plan, err := scaffold.PlanUpgrade(ctx, found, o.options())
		progress.Stop()
		var open *scaffold.OpenQuestionsError
		var broken scaffold.Violations
		switch {
		case errors.As(err, &open) && asks:
			if err := o.ask(ctx, open); err != nil {
				return nil, err
			}
			continue
		case errors.As(err, &open), errors.As(err, &broken):
			return nil, &usageError{err: err}
		}
		return plan, err
	}
}

// ask asks the questions that are new to the project.
func (o *upgradeOptions) ask(ctx context.Context, open *scaffold.OpenQuestionsError) error {
	given := maps.Clone(open.Known)
	maps.Copy(given, o.Given)
	iv := &interview{opts: &newOptions{IO: o.IO, Release: o.Release, Dir: o.Dir}, given: given}
	asked := open.Questions
	if err := iv.ask(ctx, asked); err != nil {
		return err
	}
	for _, q := range asked {
		text, ok := given[q.Key]
		if !ok {
			text = iv.fallback(q, nil)
		}
		o.Given[q.Key] = text
	}
	return nil
}

func (o *upgradeOptions) apply(ctx context.Context, apply func(context.Context) error) error {
	progress := o.IO.StartProgress("Writing the project")
	defer progress.Stop()
	return apply(ctx)
}

// conclude verifies an upgrade without conflicts and forgets what was before when it is good.
func (o *upgradeOptions) conclude(ctx context.Context, found *scaffold.Found, report *upgradeReport) error {
	report.State = stateDone
	if !o.NoVerify {
		var err error
		if report.Verify, err = o.verify(ctx, found, report.name); err != nil {
			report.State = stateUnverified
			report.Next = []string{"famcp upgrade --continue", "famcp upgrade --abort"}
			if ctx.Err() != nil {
				return errors.Join(report.print(o), err)
			}
			return errors.Join(report.print(o), &personError{fmt.Errorf(
				"the upgrade is complete, but %w; correct that and run famcp upgrade --continue, or put everything back with famcp upgrade --abort", err,
			)})
		}
	}
	if err := found.Finish(); err != nil {
		return err
	}
	return report.print(o)
}

// verify builds, vets and tests the project.
func (o *upgradeOptions) verify(ctx context.Context, found *scaffold.Found, name string) ([]verify.Step, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return nil, errors.New("there is no go command on PATH to build, vet and test it")
	}
	steps, err := runVerify(ctx, o.IO, verify.Options{Dir: found.Dir, Name: name})
	if err != nil && ctx.Err() == nil && len(steps) > 0 {
		if last := steps[len(steps)-1]; !last.OK {
			err = fmt.Errorf("%s fails", last.Name)
		}
	}
	return steps, err
}

// abort is `famcp upgrade --abort`.
func (o *upgradeOptions) abort(found *scaffold.Found) error {
	restored, err := found.Abort()
	if err != nil {
		return err
	}
	report := &upgradeReport{Schema: 1, Dir: found.Dir, State: stateAborted, Files: []scaffold.UpgradeFile{}, Conflicts: []string{}}
	report.restored(restored)
	return report.print(o)
}

// proceed is `famcp upgrade --continue`.
func (o *upgradeOptions) proceed(ctx context.Context, found *scaffold.Found) error {
	report := &upgradeReport{Schema: 1, Dir: found.Dir, Files: []scaffold.UpgradeFile{}, Conflicts: []string{}}
	plan, err := scaffold.PlanContinue(ctx, found, o.options())
	var unresolved *scaffold.UnresolvedError
	if errors.As(err, &unresolved) {
		report.State, report.Markers = stateConflicts, unresolved.Markers
		for _, m := range unresolved.Markers {
			if n := len(report.Conflicts); n == 0 || report.Conflicts[n-1] != m.Path {
				report.Conflicts = append(report.Conflicts, m.Path)
			}
		}
		if o.JSON {
			return errors.Join(report.print(o), &personError{err})
		}
		return &personError{err}
	}
	if err != nil {
		return err
	}
	report.planned(plan, true)
	if err := o.apply(ctx, plan.ApplyContinue); err != nil {
		return err
	}
	return o.conclude(ctx, found, report)
}

// adopt is `famcp upgrade --adopt`.
func (o *upgradeOptions) adopt(ctx context.Context, found *scaffold.Found) error {
	plan, err := scaffold.PlanAdopt(found, o.options())
	var broken scaffold.Violations
	if errors.As(err, &broken) {
		return &usageError{err: err}
	}
	if err != nil {
		return err
	}
	report := &upgradeReport{Schema: 1, Dir: found.Dir, Files: []scaffold.UpgradeFile{}, Conflicts: []string{}}
	report.planned(plan, true)
	if err := o.apply(ctx, plan.Apply); err != nil {
		return err
	}
	if err := found.Finish(); err != nil {
		return err
	}
	report.State = stateAdopted
	if err := report.print(o); err != nil || len(plan.Advice) == 0 {
		return err
	}
	return &personError{}
}
