// Package cli is the famcp command: one file per verb, one ladder from errors
// to exit codes, and no way to the outside but through [App].
package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/famcp/famcp/cmd/famcp/internal/iostreams"
	"github.com/famcp/famcp/internal/scaffold"
)

// App is what the commands work with; main fills it from the process, tests
// from what they like.
type App struct {
	IO        *iostreams.IOStreams
	Build     Build
	Release   scaffold.Release // what a project in module mode needs to know of this famcp
	Templates fs.FS            // the template project
	Runtime   fs.FS            // the source of the runtime, for vendoring
	Getenv    func(string) string
	Environ   []string // the same environment, as NAME=value
}

// Main runs the command line args, without the program's name, and returns the
// exit code. Until it returns SIGINT, SIGTERM and SIGHUP, the end of its
// terminal, cancel the running command, which then puts everything back; a
// second signal does not break that off.
func Main(args []string, app *App) int {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as it is under nohup
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()

	// Whatever cobra refuses before a command runs is the command line's fault.
	running := false
	root := newRootCmd(app)
	root.PersistentPreRun = func(*cobra.Command, []string) { running = true }
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !running {
		err = &usageError{err: err, syntax: true}
	}
	printError(app.IO, cmd, err)
	return exitCode(err)
}

func newRootCmd(app *App) *cobra.Command {
	root := &cobra.Command{
		Use:   "famcp",
		Short: "Make MCP servers in Go",
		Long: `famcp makes MCP servers in Go: a repository that builds, passes its tests and
serves old and new MCP clients over HTTP and stdio.`,
		Example: `  famcp new my-server`,
		Version: app.Build.String(),

		// Main prints errors, and usage only where it helps.
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetIn(app.IO.In)
	root.SetOut(app.IO.Out)
	root.SetErr(app.IO.Err)
	root.SetFlagErrorFunc(suggestFlag)
	root.AddCommand(
		newNewCmd(app, newRun),
		newAddCmd(app, addRun),
		newUpgradeCmd(app, upgradeRun),
		newTokenCmd(app, tokenRun),
		newVersionCmd(app, versionRun),
		&cobra.Command{Use: "exit-codes", Short: "Exit codes of famcp", Long: exitCodes, Args: cobra.NoArgs, Run: func(*cobra.Command, []string) {
			fmt.Fprintln(app.IO.Out, exitCodes)
		}},
	)
	root.SetHelpCommand(newHelpCmd(root))
	return root
}

// newHelpCmd is cobra's help command, but for a topic that does not exist:
// that is a usage error here.
func newHelpCmd(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return &usageError{err: fmt.Errorf("there is no help about %q; run \"famcp help\" for what there is", strings.Join(args, " "))}
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

// printError tells the person what went wrong with cmd. An interrupt is no error.
func printError(io *iostreams.IOStreams, cmd *cobra.Command, err error) {
	if err == nil || err.Error() == "" || exitCode(err) == codeInterrupted {
		return
	}
	fmt.Fprintf(io.Err, "%s %s\n", io.Bad("famcp:"), strings.TrimSpace(err.Error()))
	var usage *usageError
	if errors.As(err, &usage) && usage.syntax {
		fmt.Fprintf(io.Err, "\nUsage: %s\nRun \"%s --help\" for more.\n", cmd.UseLine(), cmd.CommandPath())
	}
}

// suggestFlag adds the flag that was probably meant to an error about an
// unknown one.
func suggestFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	if short := unknown.GetSpecifiedShortnames(); short != "" && strings.Contains(cmd.Use, "DIR") {
		return fmt.Errorf("%w; for a directory called -%s write ./-%s", err, short, short)
	}
	name := unknown.GetSpecifiedName()
	best, distance := "", min(3, 1+len(name)/2)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if d := editDistance(name, f.Name); d < distance && !f.Hidden {
			best, distance = f.Name, d
		}
	})
	if best == "" {
		return err
	}
	return fmt.Errorf("%w; did you mean --%s?", err, best)
}

// editDistance is the Levenshtein distance of two ASCII words.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
