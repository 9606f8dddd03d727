package cli

import (
	"context"
	"errors"
	"fmt"
)

// Exit codes of the command; [exitCodes] documents them.
const (
	codeDone        = 0
	codeFailed      = 1
	codeUsage       = 2
	codePerson      = 3
	codeInterrupted = 130
)

// exitCodes is the help topic "exit-codes".
const exitCodes = `famcp ends with one of these codes:

  0    done
  1    failed; standard error says what and why, and nothing half-made is left
  2    usage: the command line or an answer is wrong or missing, nothing was done
  3    finished, but a person has to look: conflicts, a red build, an upgrade that
       --check found due, edits of the runtime, a registration that add leaves
  130  interrupted by Ctrl-C or a signal, or declined; nothing half-made is left`

// errInterrupted ends a run that the person broke off. It is not printed as an
// error: who pressed Ctrl-C knows.
var errInterrupted = errors.New("interrupted")

// A usageError says that the command line or the answers are at fault, so that
// running the same again cannot help.
type usageError struct {
	err error
	// syntax is set when the command line was not understood; the usage line
	// of the command is then printed.
	syntax bool
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// A personError says that a person has to look. Without an error, everything
// was said already.
type personError struct{ err error }

func (e *personError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *personError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{err: fmt.Errorf(format, args...)}
}

// exitCode is the one ladder from errors to exit codes.
func exitCode(err error) int {
	var usage *usageError
	var person *personError
	switch {
	case err == nil:
		return codeDone
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return codeInterrupted
	case errors.As(err, &usage):
		return codeUsage
	case errors.As(err, &person):
		return codePerson
	default:
		return codeFailed
	}
}
