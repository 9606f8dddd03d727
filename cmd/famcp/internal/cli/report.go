package cli

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/famcp/famcp/cmd/famcp/internal/iostreams"
	"github.com/famcp/famcp/cmd/famcp/internal/verify"
	"github.com/famcp/famcp/internal/scaffold"
	"github.com/famcp/famcp/internal/scaffold/render"
)

// starterCall calls the first starter tool of the template.
const starterCall = "call search_docs query=health"

// report is the answer of `famcp new`: for programs the document itself, for
// people a rendering of it. Fields keep their meaning; new ones may come.
type report struct {
	Schema   int              `json:"schema"`
	DryRun   bool             `json:"dryRun"`
	Target   reportTarget     `json:"target"`
	Answers  scaffold.Answers `json:"answers"`
	Versions reportVersions   `json:"versions"`
	Template *reportTemplate  `json:"template,omitempty"`
	Files    []reportFile     `json:"files"`
	Git      reportGit        `json:"git"`
	Verify   []verify.Step    `json:"verify,omitempty"`
	Next     []string         `json:"next"`    // commands, to be run in this order
	Command  string           `json:"command"` // makes the same project without a question
}

type reportTarget struct {
	Dir   string         `json:"dir"`   // absolute
	State scaffold.State `json:"state"` // before writing
}

// reportVersions is what made the project and what it is made of.
type reportVersions struct {
	Famcp   string `json:"famcp"`
	Runtime string `json:"runtime"`
	SDK     string `json:"sdk"`
	Go      string `json:"go"`
}

// reportTemplate is the team's own template.
type reportTemplate struct {
	Source string `json:"source"` // without credentials
	Ref    string `json:"ref,omitempty"`
	Commit string `json:"commit,omitempty"`
	Files  int    `json:"files"` // of the project that come from it
}

// name is the template as --template takes it.
func (t *reportTemplate) name() string {
	if t.Ref == "" {
		return t.Source
	}
	return t.Source + "@" + t.Ref
}

type reportFile struct {
	Path  string `json:"path"` // slash-separated, relative to the target
	Mode  string `json:"mode"` // octal
	Owner string `json:"owner"`
	Bytes int    `json:"bytes"`
	// Overlay is set for files of the team's own template.
	Overlay bool `json:"overlay,omitempty"`
}

type reportGit struct {
	Repository string `json:"repository"` // new, existing (its own), enclosing, or none
	Commit     string `json:"commit"`     // hash; empty without one, or before it
	Branch     string `json:"branch"`     // of a new repository
	Hint       string `json:"hint"`       // why there is no commit and what to do
}

// newReport describes plan before it is applied.
func newReport(opts *newOptions, plan *scaffold.Plan) (*report, error) {
	r := &report{
		Schema:   1,
		DryRun:   opts.DryRun,
		Target:   reportTarget{Dir: plan.Target.Dir, State: plan.Target.State},
		Answers:  plan.Answers,
		Versions: reportVersions{Famcp: opts.Build.Version},
		Git:      reportGit{Repository: "new"},
		Next:     nextCommands(opts.Dir, plan.Answers),
		Command:  equivalent(opts, plan),
	}
	if t := plan.Overlay; t != nil {
		r.Template = &reportTemplate{Source: t.Source, Ref: t.Ref, Commit: t.Commit}
		for _, f := range plan.Files {
			if f.Overlay {
				r.Template.Files++
			}
		}
	}
	switch {
	case opts.NoGit:
		r.Git.Repository = "none"
	case plan.Target.State == scaffold.OnlyGit:
		r.Git.Repository = "existing"
	case plan.Target.Repository != "":
		r.Git.Repository = "enclosing"
	}
	for _, f := range plan.Files {
		r.Files = append(r.Files, reportFile{
			Path:  f.Path,
			Mode:  fmt.Sprintf("%04o", f.Mode.Perm()),
			Owner: string(f.Owner),
			Bytes: len(f.Data),

			Overlay: f.Overlay,
		})
		if f.Path == "go.mod" {
			if err := r.Versions.read(f.Data); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// read takes the versions from the project's go.mod.
func (v *reportVersions) read(gomod []byte) error {
	f, err := modfile.Parse("go.mod", gomod, nil)
	if err != nil {
		return err
	}
	if f.Go != nil {
		v.Go = f.Go.Version
	}
	for _, r := range f.Require {
		switch r.Mod.Path {
		case runtimeModule:
			v.Runtime = r.Mod.Version
		case "github.com/modelcontextprotocol/go-sdk":
			v.SDK = r.Mod.Version
		}
	}
	return nil
}

// applied adds what was done.
func (r *report) applied(res *scaffold.Result) {
	r.Git.Commit, r.Git.Branch, r.Git.Hint = res.Commit, res.Branch, res.Hint
}

// print writes the answer: the document, the plan of a dry run, or what comes
// next.
func (r *report) print(opts *newOptions) error {
	if opts.JSON {
		return writeJSON(opts.IO.Out, r)
	}
	var b strings.Builder
	if r.DryRun {
		r.plan(&b)
	} else {
		fmt.Fprintf(&b, "Next:\n")
		for _, c := range r.Next {
			fmt.Fprintf(&b, "  %s\n", c)
		}
	}
	fmt.Fprintf(&b, "The same without questions:\n  %s\n", r.Command)
	_, err := io.WriteString(opts.IO.Out, b.String())
	return err
}

// done says on standard error what was made; a document has it, too.
func (r *report) done(io *iostreams.IOStreams) {
	fmt.Fprintf(io.Err, "%s Made %s in %s: %d files", io.Good("✓"), r.Answers.Name, r.Target.Dir, len(r.Files))
	if r.Git.Commit != "" {
		fmt.Fprintf(io.Err, ", first commit %.7s on %s", r.Git.Commit, r.Git.Branch)
	}
	fmt.Fprintln(io.Err)
	if r.Git.Hint != "" {
		fmt.Fprintf(io.Err, "  %s\n", r.Git.Hint)
	}
	var secrets []string
	for _, f := range r.Files {
		if f.Owner == string(render.Secret) {
			secrets = append(secrets, f.Path)
		}
	}
	if len(secrets) > 0 {
		fmt.Fprintf(io.Err, "  For this machine alone, and ignored by git: %s\n", strings.Join(secrets, ", "))
	}
}

// plan lists every file and what would be committed.
func (r *report) plan(w io.Writer) {
	r.summary(w)
	fmt.Fprintf(w, "\nFiles:\n")
	for _, f := range r.Files {
		from := ""
		if f.Overlay {
			from = "  (team's template)"
		}
		fmt.Fprintf(w, "  %s  %-10s  %7d  %s%s\n", f.Mode, f.Owner, f.Bytes, f.Path, from)
	}
	fmt.Fprintln(w)
}

// summary shows the answers and what will happen.
func (r *report) summary(w io.Writer) {
	row := func(label, text string) { fmt.Fprintf(w, "  %-15s %s\n", label, text) }
	fmt.Fprintf(w, "In %s:\n", r.Target.Dir)
	for _, q := range scaffold.Questions() {
		if q.Applies(r.Answers) {
			row(q.Key, cmp.Or(q.Text(r.Answers), "-"))
		}
	}
	if t := r.Template; t != nil {
		row("template", fmt.Sprintf("%s, %d of the files", t.name(), t.Files))
	}
	row("files", strconv.Itoa(len(r.Files)))
	row("git", map[string]string{
		"new":       "a new repository, every file in its first commit",
		"existing":  "every file in the first commit of the repository, if it has none yet",
		"enclosing": "no commit, the directory is inside a repository",
		"none":      "no repository, no commit",
	}[r.Git.Repository])
}

// nextCommands are what to run in a new project.
func nextCommands(dir string, a scaffold.Answers) []string {
	var next []string
	if path.Clean(dir) != "." {
		next = append(next, "cd "+shellQuote(typedDir(dir)))
	}
	next = append(next, "go build -o "+a.Name+" .")
	switch {
	case a.Examples:
		next = append(next, "./"+a.Name+" "+starterCall)
	case a.Transport == "stdio":
		next = append(next, "./"+a.Name+" tools")
	default:
		next = append(next, "./"+a.Name+" http")
	}
	if a.Issues() && a.Transport != "stdio" {
		next = append(next, "famcp token --subject me --ttl 12h")
	}
	return next
}

// equivalent is the command line that makes the same project anywhere without
// a question; only answers other than the defaults are in it.
func equivalent(opts *newOptions, plan *scaffold.Plan) string {
	a := plan.Answers
	words := []string{"famcp", "new", shellQuote(typedDir(opts.Dir)), "--yes"}
	if name, err := scaffold.NameFromDir(opts.Dir); err != nil || name != a.Name {
		words = append(words, "--name", a.Name)
	}
	defaults := scaffold.Defaults(a.Name, opts.Release)
	for _, q := range scaffold.Questions() {
		text := q.Text(a)
		switch {
		case text == q.Text(defaults) || q.Key == "name":
		case q.Kind == scaffold.Switch && text == "false":
			words = append(words, "--no-"+q.Flag)
		case q.Kind == scaffold.Switch:
			words = append(words, "--"+q.Flag)
		default:
			words = append(words, "--"+q.Flag, shellQuote(text))
		}
	}
	if t := plan.Overlay; t != nil {
		words = append(words, "--template", shellQuote((&reportTemplate{Source: t.Source, Ref: t.Ref}).name()))
	}
	if opts.NoGit {
		words = append(words, "--no-git")
	}
	if opts.Verify {
		words = append(words, "--verify")
	}
	return strings.Join(words, " ")
}

// typedDir is dir such that no command takes it for a flag.
func typedDir(dir string) string {
	if strings.HasPrefix(dir, "-") {
		return "./" + dir
	}
	return dir
}

// shellQuote is text as one word of a POSIX shell.
func shellQuote(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:,+@%=", r)
	}
	if text != "" && strings.Trim(text, "=") == text && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
