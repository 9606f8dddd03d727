// Package iostreams gives commands their standard streams and the facts about
// them: which are terminals, and whether colour and prompts are welcome.
package iostreams

import (
	"bytes"
	"io"
	"os"
	"slices"

	"golang.org/x/term"
)

// IOStreams are the streams of one run of the command. Standard output carries
// what was asked for and nothing else; everything said to the person goes to Err.
//
// The zero value of every fact is the one for a pipe: no terminal, no colour.
type IOStreams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer

	InTTY, OutTTY, ErrTTY bool

	// Unattended is set where terminals have nobody behind them.
	Unattended bool
	// Color reports whether escape sequences are welcome on terminals.
	Color bool
	// Accessible asks for plain line prompts, for screen readers and for
	// terminals that do not understand escape sequences.
	Accessible bool
}

// System returns the streams of the process. The environment decides about
// colour (NO_COLOR, when it is not empty), accessibility (ACCESSIBLE, TERM=dumb)
// and attendance (CI, which every known service sets, some on a terminal).
func System(getenv func(string) string) *IOStreams {
	dumb := getenv("TERM") == "dumb"
	return &IOStreams{
		In:         os.Stdin,
		Out:        os.Stdout,
		Err:        os.Stderr,
		InTTY:      term.IsTerminal(int(os.Stdin.Fd())),
		OutTTY:     term.IsTerminal(int(os.Stdout.Fd())),
		ErrTTY:     term.IsTerminal(int(os.Stderr.Fd())),
		Unattended: !slices.Contains([]string{"", "0", "false"}, getenv("CI")),
		Color:      !dumb && getenv("NO_COLOR") == "",
		Accessible: dumb || getenv("ACCESSIBLE") != "",
	}
}

// Test returns streams that are no terminals, reading in, and the buffers
// behind Out and Err. Tests set the facts they need.
func Test(in string) (s *IOStreams, out, errOut *bytes.Buffer) {
	out, errOut = new(bytes.Buffer), new(bytes.Buffer)
	return &IOStreams{In: bytes.NewBufferString(in), Out: out, Err: errOut}, out, errOut
}

// CanPrompt reports whether there is a person to ask: answers are read from
// standard input and questions are drawn on standard error, and a redirected
// standard output means that a program is waiting for the answer.
func (s *IOStreams) CanPrompt() bool { return s.InTTY && s.OutTTY && s.ErrTTY && !s.Unattended }

// Bold returns text for standard error, emphasised when that is welcome.
func (s *IOStreams) Bold(text string) string { return s.paint("1", text) }

// Good returns text for standard error in the colour of success.
func (s *IOStreams) Good(text string) string { return s.paint("32", text) }

// Bad returns text for standard error in the colour of failure.
func (s *IOStreams) Bad(text string) string { return s.paint("31", text) }

func (s *IOStreams) paint(sgr, text string) string {
	if !s.Color || !s.ErrTTY {
		return text
	}
	return "\x1b[" + sgr + "m" + text + "\x1b[0m"
}
