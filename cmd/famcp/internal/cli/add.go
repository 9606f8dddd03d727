package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/famcp/famcp/cmd/famcp/internal/iostreams"
	"github.com/famcp/famcp/internal/scaffold"
	"github.com/famcp/famcp/internal/scaffold/feature"
)

type addOptions struct {
	IO      *iostreams.IOStreams
	Runtime fs.FS

	Spec   feature.Spec
	Fields []string // name:type:description each
	DryRun bool
	JSON   bool
}

const addFields = `Write an argument as name:type:description. The types are string, int, number,
bool, []string, and choices such as open|closed; a ? after the type makes the
argument optional: --field 'limit:int?:Most orders to return.'`

func newAddCmd(app *App, run func(context.Context, *addOptions) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add",
		Short: "Add a tool, a prompt or a resource to a project",
		Long: `Add a tool, a prompt or a resource to the project that the working directory is
in: its file and its test, its registration, its line in the contract tests and
in CHANGELOG.md. What is added builds and passes its tests, and says to clients
that it cannot do anything yet: writing what it does is left.

Everything is written or nothing. With exit code 3 the new files are there, and
the registration is yours to write; the line is printed.`,
		Example: `  famcp add tool lookup_order --risk read-only \
    --description 'Looks up an order.' --field 'id:string:Id of the order.'
  famcp add prompt review --description 'Reviews a text.' --field 'text:string:Text.'
  famcp add resource order --uri 'orders://{id}' --description 'One order.'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, kind := range []feature.Kind{feature.Tool, feature.Prompt, feature.Resource} {
		cmd.AddCommand(newAddKindCmd(app, kind, run))
	}
	return cmd
}

func newAddKindCmd(app *App, kind feature.Kind, run func(context.Context, *addOptions) error) *cobra.Command {
	opts := &addOptions{IO: app.IO, Runtime: app.Runtime, Spec: feature.Spec{Kind: kind}}
	spec := &opts.Spec
	cmd := &cobra.Command{
		Use:   string(kind) + " [NAME]",
		Short: map[feature.Kind]string{feature.Tool: "Add a tool", feature.Prompt: "Add a prompt", feature.Resource: "Add a resource or a resource template"}[kind],
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				spec.Name = args[0]
			}
			return run(cmd.Context(), opts)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&spec.Description, "description", "", "What it does, when to use it and what comes back: the `text` that models see.")
	flags.StringVar(&spec.Title, "title", "", "Name for people, a `text` (default made from the name).")
	switch kind {
	case feature.Tool:
		cmd.Long = `Add a tool. A tool of medium or high risk asks the user before it does anything.

` + addFields
		cmd.Example = `  famcp add tool lookup_order --risk read-only --closed-world \
    --description 'Looks up an order.' --field 'id:string:Id of the order.'
  famcp add tool cancel_order --risk high --side-effects 'The order is cancelled.' \
    --description 'Cancels an order.' --field 'id:string:Id of the order.'`
		flags.StringVar(&spec.Risk, "risk", "", "How bad a call by mistake would be: a `risk` of read-only, low, medium or high.")
		flags.StringVar(&spec.SideEffects, "side-effects", "", "What a call changes, a `text`; not with read-only.")
		flags.BoolVar(&spec.Additive, "additive", false, "It only adds, and never changes or removes what is there.")
		flags.BoolVar(&spec.Idempotent, "idempotent", false, "Repeating a call changes nothing more.")
		flags.BoolVar(&spec.ClosedWorld, "closed-world", false, "It touches only what this server owns.")
		if err := cmd.RegisterFlagCompletionFunc("risk", cobra.FixedCompletions(feature.Risks, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // the flag was defined a few lines above
		}
	case feature.Prompt:
		cmd.Long = `Add a prompt. Its text is the description and what the arguments say.

` + addFields + `
Prompts have arguments of text only: string and choices.`
		cmd.Example = `  famcp add prompt review_text --description 'Reviews a text.' \
    --field 'text:string:Text to review.' --field 'focus:style|facts?:What to look at.'`
	case feature.Resource:
		cmd.Long = `Add a resource, or a resource template when the URI has variables such as {id}.
--field describes a variable: --field 'id:string:Id of the order.'`
		cmd.Example = `  famcp add resource opening_hours --description 'When the shop is open.'
  famcp add resource order --uri 'orders://{id}' --mime application/json \
    --description 'One order.' --field 'id:string:Id of the order.'`
		flags.StringVar(&spec.URI, "uri", "", "`URI`, or template of URIs (default NAME://all).")
		flags.StringVar(&spec.MIME, "mime", "", "Media `type` of the contents (default text/plain).")
	}
	flags.StringArrayVar(&opts.Fields, "field", nil, "An argument, as `name:type:description`; repeat it for more.")
	flags.StringArrayVar(&spec.Scopes, "scope", nil, "A `scope` that callers need; repeat it for more.")
	flags.BoolVar(&opts.DryRun, "dry-run", false, "Print what would change, as a patch, and write nothing.")
	flags.BoolVar(&opts.JSON, "json", false, "Print one JSON document; asks nothing.")
	return cmd
}

// addRun is `famcp add`: read and ask for what is to be added, plan, write, report.
func addRun(ctx context.Context, opts *addOptions) error {
	for _, text := range opts.Fields {
		f, err := feature.ParseField(text)
		if err != nil {
			return usagef("--field %w", err)
		}
		opts.Spec.Fields = append(opts.Spec.Fields, f)
	}
	if opts.IO.CanPrompt() && !opts.JSON {
		if err := askFeature(ctx, opts); err != nil {
			return err
		}
	}
	project, err := scaffold.Find(".")
	if err != nil {
		return err
	}
	defer project.Close()
	plan, err := opts.plan(ctx, project)
	if err != nil {
		return err
	}
	if !opts.DryRun {
		if err := plan.Apply(ctx); err != nil {
			return err
		}
	}
	return opts.report(project.Dir, plan)
}

func (o *addOptions) plan(ctx context.Context, project *scaffold.Found) (*scaffold.AddPlan, error) {
	progress := o.IO.StartProgress("Reading the project")
	defer progress.Stop()
	plan, err := scaffold.PlanAdd(ctx, project, scaffold.AddOptions{Spec: o.Spec, Runtime: o.Runtime})
	var broken scaffold.Violations
	if errors.As(err, &broken) {
		for i := range broken {
			if broken[i].Flag == "name" {
				broken[i].Flag = "" // it is no flag here
				broken[i].Key = "NAME"
			}
		}
		return nil, &usageError{err: broken}
	}
	return plan, err
}

// addReport is the answer of `famcp add --json`. Fields keep their meaning; new ones may come.
type addReport struct {
	Schema       int             `json:"schema"`
	DryRun       bool            `json:"dryRun"`
	Dir          string          `json:"dir"` // of the project
	Kind         feature.Kind    `json:"kind"`
	Name         string          `json:"name"`
	Files        []addFile       `json:"files"`
	Registration addRegistration `json:"registration"`
	Notes        []string        `json:"notes"`           // what else is left to do
	Patch        string          `json:"patch,omitempty"` // of a dry run
}

type addFile struct {
	Path   string `json:"path"`
	Change string `json:"change"` // created or changed
}

type addRegistration struct {
	Line string `json:"line"`
	File string `json:"file"`          // empty: the line has to be put somewhere by hand
	Why  string `json:"why,omitempty"` // that is
}

// report prints what was done, or would be. A registration that is left is an error that needs a person.
func (o *addOptions) report(dir string, plan *scaffold.AddPlan) error {
	r := addReport{
		Schema: 1, DryRun: o.DryRun, Dir: dir, Kind: plan.Spec.Kind, Name: plan.Spec.Name, Files: []addFile{}, Notes: plan.Notes,
		Registration: addRegistration{Line: plan.Registration, File: plan.Registered, Why: plan.Why},
	}
	if r.Notes == nil {
		r.Notes = []string{}
	}
	for _, f := range plan.Files {
		change := "changed"
		if f.Old == nil {
			change = "created"
		}
		r.Files = append(r.Files, addFile{f.Path, change})
	}
	var err error
	switch {
	case o.JSON && o.DryRun:
		r.Patch = plan.Patch()
		err = writeJSON(o.IO.Out, r)
	case o.JSON:
		err = writeJSON(o.IO.Out, r)
	case o.DryRun:
		_, err = fmt.Fprint(o.IO.Out, plan.Patch())
	default:
		err = o.print(r)
	}
	for _, note := range r.Notes {
		if !o.JSON {
			fmt.Fprintf(o.IO.Err, "Note: %s.\n", note)
		}
	}
	if err == nil && r.Registration.File == "" {
		err = needsPerson(r)
	}
	return err
}

func (o *addOptions) print(r addReport) error {
	fmt.Fprintf(o.IO.Err, "%s Added the %s %s.\n", o.IO.Good("✓"), r.Kind, r.Name)
	var out strings.Builder
	for _, f := range r.Files {
		fmt.Fprintf(&out, "%s %s\n", f.Change, f.Path)
	}
	if r.Registration.File != "" {
		code := slices.IndexFunc(r.Files, func(f addFile) bool { return f.Change == "created" })
		fmt.Fprintf(&out, "\nNext:\n  write what it does in %s, and what that should be in its test\n  go test ./...\n", r.Files[code].Path)
	}
	_, err := fmt.Fprint(o.IO.Out, out.String())
	return err
}

func needsPerson(r addReport) error {
	return &personError{fmt.Errorf("the %s is not registered yet, because %s; put this line into the function that gets the server, there called s, "+
		"and the %[1]s into the contract tests:\n\n\t%[3]s", r.Kind, r.Registration.Why, r.Registration.Line)}
}
