package famcp

import (
	"errors"
	"fmt"
	"time"

	"github.com/famcp/famcp/internal/runtime/invoke"
)

// Kind classifies an [Error].
type Kind int

const (
	Failed      Kind = iota // the model sees it and can act on it
	Invalid                 // an argument is refused
	NotFound                // what was named does not exist
	Conflict                // the state of the world forbids it
	Limited                 // too many requests
	Unavailable             // something upstream is down
)

// Error is an error whose Message goes out to the client. Cause is only
// logged. It is made by [Failf] and its siblings.
type Error struct {
	Kind       Kind
	Message    string
	Field      string        // the argument concerned; "" for none
	RetryAfter time.Duration // of Limited; 0 when not known
	Cause      error
}

// Error returns the message and the cause.
func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Message
	}
	return e.Message + ": " + e.Cause.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// With returns a copy of e with the cause, for the log.
func (e *Error) With(cause error) *Error {
	with := *e
	with.Cause = cause
	return &with
}

// Failf says that the tool failed in a way the model can act on. A tool call
// answers it as a result with isError, in both eras.
func Failf(format string, args ...any) *Error {
	return &Error{Kind: Failed, Message: fmt.Sprintf(format, args...)}
}

// Invalidf refuses the argument field, as a violated input schema would be.
func Invalidf(field, format string, args ...any) *Error {
	return &Error{Kind: Invalid, Field: field, Message: fmt.Sprintf(format, args...)}
}

// NotFoundf says that what was asked for does not exist. Reading a resource
// answers it with the code of the client's era.
func NotFoundf(format string, args ...any) *Error {
	return &Error{Kind: NotFound, Message: fmt.Sprintf(format, args...)}
}

// Conflictf says that the state of the world forbids the request (-32007).
func Conflictf(format string, args ...any) *Error {
	return &Error{Kind: Conflict, Message: fmt.Sprintf(format, args...)}
}

// RateLimited says that the caller must slow down: -32003 in the modern era,
// a result with isError on a legacy session, whose clients take that code for
// a lost connection.
func RateLimited(retryAfter time.Duration) *Error {
	return &Error{Kind: Limited, Message: "too many requests", RetryAfter: retryAfter}
}

// Unavailablef says that something this server depends on is down (-32006).
func Unavailablef(format string, args ...any) *Error {
	return &Error{Kind: Unavailable, Message: fmt.Sprintf(format, args...)}
}

// fault is the pipeline's reading of an error of this package. What is wrapped
// around it is for the log.
func fault(err error) (*invoke.Fault, bool) {
	var e *Error
	if !errors.As(err, &e) {
		if errors.Is(err, ErrDeclined) {
			return &invoke.Fault{Kind: invoke.Failed, Message: ErrDeclined.Error()}, true
		}
		return nil, false
	}
	kind := invoke.Failed
	switch e.Kind {
	case Failed:
	case Invalid:
		kind = invoke.Invalid
	case NotFound:
		kind = invoke.NotFound
	case Conflict:
		kind = invoke.Conflict
	case Limited:
		kind = invoke.RateLimited
	case Unavailable:
		kind = invoke.Unavailable
	}
	cause := e.Cause
	if err != error(e) { //nolint:errorlint // e itself, unwrapped
		cause = err
	}
	return &invoke.Fault{Kind: kind, Message: e.Message, Field: e.Field, RetryAfter: e.RetryAfter, Cause: cause}, true
}
