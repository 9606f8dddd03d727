package famcp

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/famcp/famcp/internal/runtime/config"
)

// Defaults is what a program carries in its binary, so that it runs from any
// directory: desktop clients start stdio servers in the root. The zero value
// carries nothing.
type Defaults struct {
	Config  []byte // the YAML below all configuration files; nil for none
	FS      fs.FS  // documents: README.md at its root is the resource doc://readme; nil for none
	Command string // what runs without an argument, http or stdio; "" prints the help
}

// Main runs a program that serves what build makes: it is the whole of a main
// function. The command line says what to do, "help" lists the commands: serve
// over HTTP or stdio, call a tool without a client, show the tools, the
// configuration, the versions, ask a running server for its health.
//
// Build gets the configuration as [Load] reads it from the working directory,
// over that of d, of which there is at most one. It makes the server, registers
// the features and serves nothing; its context ends with the first signal. Main
// refuses to serve while [Server.Err] has faults, and lists them all.
//
// SIGINT and SIGTERM stop gracefully: running calls get 8 s to finish. A second
// one leaves at once. The exit status is 0 when done, 1 on a failure, 2 for wrong
// usage and 130 when interrupted. Main does not return.
//
// Standard output is for what a command answers and for the protocol. So that a
// forgotten fmt.Println does not end a client's session, Main sets [os.Stdout] to
// standard error for the project's code.
//
// Main also tunes the collector: GOGC is 400 while the heap is small, which
// halves the processor time of a busy server, and goes down to 100 as it grows;
// the memory limit is 90 % of what the control group allows, so that garbage
// does not get the process killed. What GOGC and GOMEMLIMIT set in the
// environment stays.
func Main[C any, P interface {
	*C
	Configured
}](build func(ctx context.Context, cfg P) (*Server, error), d ...Defaults,
) {
	tune(os.LookupEnv, os.DirFS("/"))
	p := newProgram(build, d...)
	os.Stdout = os.Stderr
	os.Exit(p.supervise(os.Args[1:]))
}

// program is one run of a program: everything it takes from the process.
type program struct {
	name        string // of the executable, for messages
	defaults    Defaults
	source      config.Source
	in          io.Reader
	out         io.Writer // what was asked for, nothing else
	err         io.Writer // everything said to people
	interactive bool      // somebody at a terminal can be asked

	configure func(config.Source) (Configured, *config.Report, error)
	assemble  func(context.Context, Configured) (*Server, error)
}

func newProgram[C any, P interface {
	*C
	Configured
}](build func(ctx context.Context, cfg P) (*Server, error), d ...Defaults,
) *program {
	p := &program{
		name: strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe"),
		in:   os.Stdin, out: os.Stdout, err: os.Stderr,
		interactive: isTerminal(os.Stdin) && isTerminal(os.Stderr),
		configure: func(src config.Source) (Configured, *config.Report, error) {
			return load[C, P](src)
		},
		assemble: func(ctx context.Context, cfg Configured) (*Server, error) {
			return build(ctx, cfg.(P))
		},
	}
	if len(d) > 0 {
		p.defaults = d[0]
	}
	p.source = config.Source{Defaults: p.defaults.Config, Dir: ".", Environ: os.Environ()}
	return p
}

// isTerminal leaves out the null device, which is no terminal but looks like
// one to os.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// errReported fails a command that has already said why.
var errReported = errors.New("failed")

// usageError is a command line that cannot be run.
type usageError struct {
	command string // whose help to read; "" for the program's
	problem string
}

func (e *usageError) Error() string { return e.problem }

func usagef(command, format string, args ...any) error {
	return &usageError{command, fmt.Sprintf(format, args...)}
}

// supervise runs the command under the signals of the process.
func (p *program) supervise(args []string) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	done := make(chan int, 1)
	go func() { done <- p.run(ctx, args) }()
	for {
		select {
		case code := <-done:
			return code
		case <-signals:
			if ctx.Err() != nil {
				return exitInterrupted
			}
			cancel()
		}
	}
}

// run runs one command and returns the exit status. When ctx ends the command
// stops.
func (p *program) run(ctx context.Context, args []string) int {
	err := p.dispatch(ctx, args)
	var usage *usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		p.complain(err)
		fmt.Fprintf(p.err, "See %q.\n", strings.TrimSpace(p.name+" help "+usage.command))
		return exitUsage
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintf(p.err, "%s: interrupted\n", p.name)
		return exitInterrupted
	default:
		p.complain(err)
		return exitFailed
	}
}

// complain prints each fault in err once, on a line of its own.
func (p *program) complain(err error) {
	lines := faultLines(err)
	for i, line := range lines {
		if !slices.Contains(lines[:i], line) {
			fmt.Fprintf(p.err, "%s: %s\n", p.name, line)
		}
	}
}

// faultLines takes joined errors apart, also where they are wrapped as one:
// each then has what was put before the first.
func faultLines(err error) []string {
	if err == errReported { //nolint:errorlint // the tree itself is walked
		return nil
	}
	var inner []error
	before := ""
	switch e := err.(type) { //nolint:errorlint // the tree itself is walked
	case interface{ Unwrap() []error }:
		if inner = e.Unwrap(); errors.Join(inner...).Error() != err.Error() {
			inner = nil // one sentence around several errors
		}
	case interface{ Unwrap() error }:
		wrapped := e.Unwrap()
		if wrapped == nil {
			break
		}
		if prefix, ok := strings.CutSuffix(err.Error(), wrapped.Error()); ok {
			inner, before = []error{wrapped}, prefix
		}
	}
	if inner == nil {
		return []string{strings.Join(strings.Fields(err.Error()), " ")}
	}
	var lines []string
	for _, e := range inner {
		for _, line := range faultLines(e) {
			lines = append(lines, before+line)
		}
	}
	return lines
}

func (p *program) dispatch(ctx context.Context, args []string) error {
	name := p.defaults.Command
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	switch name {
	case "", "help", "-h", "-help", "--help":
		return p.help(args)
	case "-version", "--version":
		name = "version"
	}
	c, ok := find(name)
	if !ok {
		return unknownCommand(name)
	}
	options := flag.NewFlagSet(name, flag.ContinueOnError)
	run := c.setup(p, options)
	operands, err := parse(options, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, err := io.WriteString(p.out, c.help(p.name))
		return err
	case err != nil:
		return err
	case c.params == "" && len(operands) > 0:
		return usagef(name, "%s takes no argument, got %q", name, operands[0])
	}
	return run(ctx, operands)
}

func find(name string) (command, bool) {
	for _, c := range commands() {
		if c.name == name {
			return c, true
		}
	}
	return command{}, false
}

func unknownCommand(name string) error {
	if strings.HasPrefix(name, "-") {
		return usagef("", "unknown option %s; a command comes first", name)
	}
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return usagef("", "unknown command %q%s", name, didYouMean(name, names))
}

// parse reads options before, between and after the operands; all that follows
// -- is operands.
func parse(options *flag.FlagSet, args []string) (operands []string, err error) {
	options.SetOutput(io.Discard)
	for {
		if err := options.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			problem := err.Error()
			if name, ok := strings.CutPrefix(problem, "flag provided but not defined: -"); ok {
				problem = "unknown option " + dashed(name)
			}
			return nil, usagef(options.Name(), "%s: %s", options.Name(), problem)
		}
		rest := options.Args()
		if len(rest) == 0 {
			return operands, nil
		}
		if read := len(args) - len(rest); read > 0 && args[read-1] == "--" {
			return append(operands, rest...), nil
		}
		operands, args = append(operands, rest[0]), rest[1:]
	}
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// help prints the help of the program, or of the one command named.
func (p *program) help(args []string) error {
	if len(args) == 0 {
		_, err := io.WriteString(p.out, p.overview())
		return err
	}
	c, ok := find(args[0])
	if !ok {
		return unknownCommand(args[0])
	}
	_, err := io.WriteString(p.out, c.help(p.name))
	return err
}

func (p *program) overview() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is an MCP server.\n\nUsage: %[1]s COMMAND [OPTIONS]\n\nCommands:\n", p.name)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, c := range commands() {
		summary := c.summary
		if c.name == p.defaults.Command {
			summary += " (without a command, this)"
		}
		fmt.Fprintf(w, "  %s\t%s\n", c.name, summary)
	}
	fmt.Fprint(w, "  help\tshow this, or the help of one command\n")
	_ = w.Flush() // to memory
	fmt.Fprintf(&b, `
Configuration: built-in defaults, then config/default.yaml,
config/<FAMCP_ENV>.yaml and config/local.yaml in the working directory, then
environment variables. %q shows what is in force and where it
came from. Files named .env are not read: let your shell do it (set -a; . ./.env)
or your container's env_file.

The Go collector runs with GOGC from 400, for a small heap, down to 100 and a
memory limit of 90 %% of what the control group allows, unless GOGC or GOMEMLIMIT
is set.

Exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
`, p.name+" config")
	return b.String()
}

// command is one row of the table of commands.
type command struct {
	name    string
	params  string // operands, for the usage line; "" takes none
	summary string
	about   string // what the summary leaves open; NAME stands for the program
	setup   func(*program, *flag.FlagSet) func(context.Context, []string) error
}

func (c command) help(name string) string {
	options := flag.NewFlagSet(c.name, flag.ContinueOnError)
	c.setup(&program{}, options)
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s %s [OPTIONS]", name, c.name)
	if c.params != "" {
		b.WriteString(" " + c.params)
	}
	fmt.Fprintf(&b, "\n\n%s.\n", strings.ToUpper(c.summary[:1])+c.summary[1:])
	if c.about != "" {
		b.WriteString("\n" + strings.ReplaceAll(strings.TrimSpace(c.about), "NAME ", name+" ") + "\n")
	}
	b.WriteString("\nOptions:\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	options.VisitAll(func(f *flag.Flag) {
		value, usage := flag.UnquoteUsage(f)
		fmt.Fprintf(w, "  %s\t%s\n", strings.TrimSpace(dashed(f.Name)+" "+value), usage)
	})
	fmt.Fprint(w, "  -h, --help\tshow this\n")
	_ = w.Flush() // to memory
	return b.String()
}

// didYouMean is the end of a message about an unknown name: the candidate that
// is most like it, if they are much alike.
func didYouMean(name string, candidates []string) string {
	best, most := "", 0.7
	for _, c := range candidates {
		if s := likeness(name, c); s > most {
			best, most = c, s
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// likeness is the share of two names that their longest common subsequence
// makes up: 0 for nothing, 1 for all.
func likeness(a, b string) float64 {
	common := make([]int, len(b)+1) // of a so far and each beginning of b
	for i := range len(a) {
		before := 0 // common[j] of the row before
		for j := range len(b) {
			above := common[j+1]
			common[j+1] = max(above, common[j])
			if a[i] == b[j] {
				common[j+1] = before + 1
			}
			before = above
		}
	}
	return 2 * float64(common[len(b)]) / float64(len(a)+len(b))
}
