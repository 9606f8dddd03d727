package front

import (
	"net/http"
	"strconv"
	"time"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/protocol"
	"github.com/famcp/famcp/internal/runtime/telemetry"
)

// admit authorizes a message and, if it is a request, counts it and gives it
// the slot that it needs, for [call.Facts.Release]. Notifications are not
// counted: refusing a cancellation would keep work running. Nor are answers to
// the server's questions: a call waits for them.
func (f *Front) admit(r *http.Request, s *session, facts *call.Facts, m *protocol.Message) *Refusal {
	if f.cfg.Authorize != nil {
		if refusal := f.cfg.Authorize(r.Context(), r, facts, m); refusal != nil {
			return refusal
		}
	}
	if s != nil {
		if refusal := f.ownSession(r, s, facts); refusal != nil {
			return refusal
		}
	}
	return f.count(facts, m)
}

// count counts a request and gives it the slot that it needs.
func (f *Front) count(facts *call.Facts, m *protocol.Message) *Refusal {
	if m == nil || m.Kind != protocol.Request {
		return nil
	}
	if retry, ok := f.cfg.Limits.Request(facts); !ok {
		return f.tooMany(facts, f.cfg.Limits.Scope(), "too many requests", "mcp.rateLimit.maxRequests", retry)
	}
	if !f.cfg.Limits.Call(facts) {
		return f.tooMany(facts, telemetry.ScopeConcurrency,
			"too many calls run at once; wait for one to end", "mcp.rateLimit.maxConcurrentPerSubject", time.Second)
	}
	return nil
}

// ownSession refuses a session of somebody else: to another subject it is as if
// it were not there, and a caller without credentials is asked for them.
func (f *Front) ownSession(r *http.Request, s *session, facts *call.Facts) *Refusal {
	switch {
	case facts.Authenticated && !f.sessions.claim(s, facts.Subject):
		return &Refusal{Code: protocol.CodeSession, Message: sessionLost}
	case facts.Anonymous() && f.sessions.owned(s):
		return f.cfg.Unclaimed(r.Context(), facts)
	}
	return nil
}

// stepUp returns what makes the challenge of a caller who lacks scopes.
func (f *Front) stepUp(facts *call.Facts) func(missing []string) string {
	if f.cfg.StepUp == nil {
		return nil
	}
	return func(missing []string) string { return f.cfg.StepUp(facts.Scopes, missing) }
}

// stream counts a stream, until leave is run. If it is one too many, the
// request has been answered.
func (f *Front) stream(w http.ResponseWriter, facts *call.Facts) (leave func(), ok bool) {
	end, ok := f.cfg.Limits.Stream(facts)
	if !ok {
		f.refuse(w, facts.ID, *f.tooMany(facts, telemetry.ScopeStreams,
			"too many streams are open; close one first", "mcp.streams.maxPerSubject", time.Second))
		return nil, false
	}
	f.cfg.Metrics.Stream()
	return func() { f.cfg.Metrics.StreamDone(); end() }, true
}

// tooMany refuses until retry has passed, in whole seconds: Retry-After has no
// fractions (RFC 9110, 10.2.3). Scope says in the metrics which limit it was.
func (f *Front) tooMany(facts *call.Facts, scope, message, key string, retry time.Duration) *Refusal {
	f.cfg.Metrics.RateLimitHit(scope)
	f.log.Debug("refused", "limit", key, "subject", facts.Subject, "requestId", facts.RequestID)
	return TooMany(message, key, retry)
}

// TooMany is the refusal of what is above the limit that the configuration
// calls key.
func TooMany(message, key string, retry time.Duration) *Refusal {
	seconds := int64((retry + time.Second - 1) / time.Second)
	return &Refusal{
		Code: protocol.CodeRateLimited, Message: message,
		Data:   protocol.ErrorData{Reason: key, RetryAfter: float64(seconds)},
		Header: http.Header{"Retry-After": {strconv.FormatInt(seconds, 10)}},
	}
}
