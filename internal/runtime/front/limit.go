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
func (f *Front) admit(r *http.Request, facts *call.Facts, m *protocol.Message) *Refusal {
	if f.cfg.Authorize != nil {
		if refusal := f.cfg.Authorize(r.Context(), r, facts, m); refusal != nil {
			return refusal
		}
	}
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
	seconds := int64((retry + time.Second - 1) / time.Second)
	return &Refusal{
		Code: protocol.CodeRateLimited, Message: message,
		Data:   protocol.ErrorData{Reason: key, RetryAfter: float64(seconds)},
		Header: http.Header{"Retry-After": {strconv.FormatInt(seconds, 10)}},
	}
}
