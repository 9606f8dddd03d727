package famcp

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	maxUpstreamBody  = 64 << 10       // of an upstream's error that is read, so that the connection can be used again
	longestRetry     = 24 * time.Hour // that is believed of Retry-After
	upstreamsMessage = "the upstream service "
)

// FromResponse returns what a handler answers with when a service that it
// called answered res: nil for a status under 400. What a model can act on,
// that is 400, 401, 403, 404, 409, 422, 502, 503, 504 and the like, is a result
// with isError; 429 is that of [RateLimited] with the upstream's Retry-After; any
// other status is an internal error. The client learns the kind of failure and
// its status; the log learns the method and the host as well.
//
// Nothing of the upstream's headers, path and body goes anywhere, as any of
// them may hold a secret: read the body first if it is known to be safe, and
// write a message of your own. FromResponse reads a little of the body, so that
// the connection can be used again, and leaves closing it to the caller.
func FromResponse(res *http.Response) error {
	if res == nil {
		return errors.New("famcp.FromResponse: there is no response")
	}
	if res.StatusCode < 400 {
		return nil
	}
	if res.Body != nil {
		// The request's context bounds the time. What cannot be read is lost with
		// its connection, which is not the handler's concern.
		_, _ = io.CopyN(io.Discard, res.Body, maxUpstreamBody)
	}
	cause := upstreamCause(res)
	failed := func(what string) *Error {
		return Failf("%s%s (HTTP %d)%s", upstreamsMessage, what, res.StatusCode, retryHint(res)).With(cause)
	}
	switch res.StatusCode {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return failed("refused the request; check the arguments")
	case http.StatusUnauthorized:
		return failed("did not accept this server's credentials")
	case http.StatusForbidden:
		return failed("does not allow this")
	case http.StatusNotFound, http.StatusGone:
		return NotFoundf("%sdoes not have what was asked for (HTTP %d)", upstreamsMessage, res.StatusCode).With(cause)
	case http.StatusConflict, http.StatusPreconditionFailed:
		return failed("says that this is in conflict with the state of things")
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		return failed("is not available; try again later")
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return failed("did not answer in time; try again later, or ask for less")
	case http.StatusTooManyRequests:
		return RateLimited(retryAfter(res.Header)).With(cause)
	}
	return cause
}

// upstreamCause names the call for the log.
func upstreamCause(res *http.Response) error {
	call := "a request"
	if r := res.Request; r != nil && r.URL != nil {
		call = r.Method + " to " + r.URL.Host // a path may hold a key
	}
	return fmt.Errorf("%s was answered %d %s", call, res.StatusCode, http.StatusText(res.StatusCode))
}

func retryHint(res *http.Response) string {
	if after := retryAfter(res.Header); after > 0 {
		return "; retry after " + after.String()
	}
	return ""
}

// retryAfter reads Retry-After (RFC 9110, 10.2.3): seconds or a date; 0 when
// there is none that makes sense.
func retryAfter(h http.Header) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	after := time.Duration(0)
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		after = time.Duration(min(seconds, int64(longestRetry/time.Second))) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		after = time.Until(at).Round(time.Second)
	}
	return min(max(after, 0), longestRetry)
}
