package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/famcp/famcp/cmd/famcp/internal/verify"
	"github.com/famcp/famcp/internal/migrate"
	"github.com/famcp/famcp/internal/scaffold"
	"github.com/famcp/famcp/internal/scaffold/gomod"
	"github.com/famcp/famcp/internal/scaffold/merge"
	"github.com/famcp/famcp/internal/scaffold/patch"
)

// What came of `famcp upgrade`.
const (
	stateUpToDate   = "upToDate"
	statePlanned    = "planned" // due, and nothing written
	stateDone       = "done"
	stateConflicts  = "conflicts"  // written, with conflicts in it
	stateUnverified = "unverified" // written, and building, vetting or testing it fails
	stateRefused    = "refused"    // nothing written, because somebody edited the runtime
	stateAborted    = "aborted"
	stateAdopted    = "adopted"
)

// upgradeReport is the answer of `famcp upgrade`: for programs the document
// itself, for people a rendering of it in Markdown, which a pull request can
// have as its text. Fields keep their meaning; new ones may come.
type upgradeReport struct {
	Schema     int                    `json:"schema"`
	State      string                 `json:"state"`
	DryRun     bool                   `json:"dryRun"` // or a check
	Dir        string                 `json:"dir"`    // of the project, absolute
	From       scaffold.Versions      `json:"from"`
	To         scaffold.Versions      `json:"to"`
	Files      []scaffold.UpgradeFile `json:"files"`
	Runtime    int                    `json:"runtimeFiles"` // of the vendored runtime, written or removed
	Modules    []gomod.Change         `json:"modules"`
	Migrations *migrate.Result        `json:"migrations"`
	Conflicts  []string               `json:"conflicts"` // paths
	Markers    []scaffold.Marker      `json:"markers,omitempty"`
	Advice     []reportAdvice         `json:"advice"`
	Notes      []string               `json:"notes"`
	Edited     []string               `json:"runtimeEdits,omitempty"`
	Restored   []string               `json:"restored,omitempty"` // paths
	Kept       string                 `json:"kept,omitempty"`     // where edits of restored files are
	Verify     []verify.Step          `json:"verify,omitempty"`
	Diff       string                 `json:"diff,omitempty"` // of a dry run
	Next       []string               `json:"next,omitempty"` // commands to choose from

	name  string // of the server
	shown bool   // a person has read all but the advice and agreed
}

// reportAdvice is what the template changed in a file that is the team's.
type reportAdvice struct {
	Path string `json:"path"`
	Diff string `json:"diff"`
}

func (r *upgradeReport) planned(plan *scaffold.UpgradePlan, writes bool) {
	r.From, r.To, r.name = plan.From, plan.To, plan.Answers.Name
	r.Files = append(r.Files, plan.Files...)
	r.Runtime, r.Modules, r.Migrations, r.Notes = plan.Runtime, plan.Modules, plan.Migrations, plan.Notes
	r.Conflicts = append(r.Conflicts, plan.Unresolved...)
	for _, f := range plan.Advice {
		r.Advice = append(r.Advice, reportAdvice{f.Path, patch.Unified([]patch.File{f})})
	}
	switch {
	case !plan.Due():
		r.State = stateUpToDate
	case !writes:
		r.State = statePlanned
	}
}

func (r *upgradeReport) restored(restored *scaffold.Restored) {
	r.Restored, r.Kept = restored.Paths, restored.Kept
}

func restoredText(r *scaffold.Restored) string {
	text := fmt.Sprintf("%d files are as they were before", len(r.Paths))
	if r.Kept != "" {
		text += ", and what was edited in them since is in " + r.Kept
	}
	return text
}

// print writes the answer: the document, the patch of a dry run, or the report.
func (r *upgradeReport) print(o *upgradeOptions) error {
	if o.JSON {
		return writeJSON(o.IO.Out, r)
	}
	if o.DryRun {
		r.write(o.IO.Err) // around the patch, not in it
		_, err := io.WriteString(o.IO.Out, r.Diff)
		return err
	}
	var b strings.Builder
	r.write(&b)
	_, err := io.WriteString(o.IO.Out, b.String())
	return err
}

// write is the report for people.
func (r *upgradeReport) write(w io.Writer) {
	r.heading(w)
	switch {
	case r.State == stateAborted:
		return
	case r.shown:
		r.section(w, "To resolve", r.fileLines(scaffold.Conflict))
	default:
		r.body(w)
	}
	r.advice(w)
}

func (r *upgradeReport) heading(w io.Writer) {
	switch r.State {
	case stateUpToDate:
		fmt.Fprintf(w, "Up to date with famcp %s.\n", r.To.Famcp)
	case stateAborted:
		fmt.Fprintf(w, "The upgrade was undone: %s.\n", restoredText(&scaffold.Restored{Paths: r.Restored, Kept: r.Kept}))
	case stateAdopted:
		fmt.Fprintf(w, "The project has a new record, of famcp %s.\n", r.To.Famcp)
	case statePlanned:
		fmt.Fprintf(w, "An upgrade from famcp %s to %s is due.\n", r.From.Famcp, r.To.Famcp)
	default:
		if r.From.Famcp == "" {
			fmt.Fprintf(w, "The upgrade to famcp %s is finished.\n", r.To.Famcp)
		} else {
			fmt.Fprintf(w, "Upgrade from famcp %s to %s.\n", r.From.Famcp, r.To.Famcp)
		}
	}
}

// body is what changes and why.
func (r *upgradeReport) body(w io.Writer) {
	r.section(w, "Files", r.fileLines())
	r.section(w, "Modules", r.moduleLines())
	if r.Migrations != nil {
		r.section(w, "Migrations", changeLines(r.Migrations.Changes))
		r.section(w, "Left to do, also in "+migrate.NotePath, changeLines(r.Migrations.Notes))
	}
	r.section(w, "Notes", r.Notes)
}

func (r *upgradeReport) section(w io.Writer, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s:\n\n", title)
	for _, line := range lines {
		fmt.Fprintf(w, "- %s\n", line)
	}
}

// fileLines are what is done with files; with actions given, with those that one of them is done with.
func (r *upgradeReport) fileLines(actions ...scaffold.Action) []string {
	var lines []string
	for _, f := range r.Files {
		if len(actions) > 0 && !slices.Contains(actions, f.Action) {
			continue
		}
		if f.Action == scaffold.Keep && f.Why == "" {
			continue // the template did not change it
		}
		line := fmt.Sprintf("%s `%s`", f.Action, f.Path)
		if f.From != "" {
			line += fmt.Sprintf(", which was `%s`", f.From)
		}
		if f.Ledger != nil && f.Action != scaffold.Keep {
			line += ": " + ledgerText(f.Ledger)
		}
		if len(f.Conflicts) > 0 {
			places := make([]string, len(f.Conflicts))
			for i, c := range f.Conflicts {
				places[i] = fmt.Sprintf("%d-%d", c.Line, c.Line+c.Lines-1)
			}
			line += "; resolve lines " + strings.Join(places, ", ")
		}
		if f.Why != "" {
			line += ": " + f.Why
		}
		lines = append(lines, line)
	}
	if r.Runtime > 0 && len(actions) == 0 {
		lines = append(lines, fmt.Sprintf("runtime in `%s`: %d files", gomod.VendorDir, r.Runtime))
	}
	return lines
}

// ledgerText says where the lines of the team's file went.
func ledgerText(l *merge.Ledger) string {
	parts := []string{fmt.Sprintf("%d of your lines kept", l.Kept)}
	if l.Conflict > 0 {
		parts = append(parts, fmt.Sprintf("%d in conflict", l.Conflict))
	}
	if l.Replaced > 0 {
		parts = append(parts, fmt.Sprintf("%d of the template's replaced", l.Replaced))
	}
	return strings.Join(parts, ", ")
}

func (r *upgradeReport) moduleLines() []string {
	var lines []string
	for _, c := range r.Modules {
		lines = append(lines, strings.Join(strings.Fields(fmt.Sprintf("%s %s %s → %s", c.Line, c.Path, cmp.Or(c.From, "none"), cmp.Or(c.To, "none"))), " "))
	}
	return lines
}

func changeLines(changes []migrate.Change) []string {
	lines := make([]string, len(changes))
	for i, c := range changes {
		lines[i] = c.String()
	}
	return lines
}

// advice shows what the template changed in the team's files.
func (r *upgradeReport) advice(w io.Writer) {
	if len(r.Advice) == 0 {
		return
	}
	fmt.Fprintf(w, "\nThe template changed files that are yours. Nothing was done to them; take over what you like:\n")
	for _, a := range r.Advice {
		fence := "```"
		for strings.Contains(a.Diff, fence) {
			fence += "`"
		}
		fmt.Fprintf(w, "\n%sdiff\n%s%s\n", fence, a.Diff, fence)
	}
}
