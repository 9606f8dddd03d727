package famcptest

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/invoke"
	"github.com/famcp/famcp/internal/runtime/protocol"
)

// Option changes the call that [NewCall] makes.
type Option func(*plan)

type plan struct {
	facts    call.Facts
	revision string
	can      []famcp.Capability
	answers  map[string]Answer
	recorder *Recorder
}

// WithSubject makes the call come from subject with these scopes only. Without
// it the caller has every scope.
func WithSubject(subject string, scopes ...string) Option {
	return func(p *plan) {
		p.facts.Authenticated = true
		p.facts.Subject, p.facts.Scopes, p.facts.AllScopes = subject, scopes, false
	}
}

// WithRevision sets the protocol revision of the call; without it [Modern].
func WithRevision(revision string) Option { return func(p *plan) { p.revision = revision } }

// WithCapabilities makes the client declare these capabilities only. Without
// it the client can be asked anything.
func WithCapabilities(can ...famcp.Capability) Option { return func(p *plan) { p.can = can } }

// WithAnswer gives the answer to the handler's question under key. A question
// without one returns [famcp.ErrAsked], as the first round of a request does.
func WithAnswer(key string, a Answer) Option { return func(p *plan) { p.answers[key] = a } }

// WithHeader sets a header of the HTTP request.
func WithHeader(name, value string) Option { return func(p *plan) { p.facts.Header.Set(name, value) } }

// WithRecorder lets r keep what the handler sends to its client.
func WithRecorder(r *Recorder) Option { return func(p *plan) { p.recorder = r } }

// Recorder keeps what the handlers of its calls send. The zero value is ready
// to use. It is safe for concurrent use.
type Recorder struct {
	mu   sync.Mutex
	seen Notifications
}

// Notifications returns what was sent so far.
func (r *Recorder) Notifications() Notifications {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

func (r *Recorder) add(method string, params json.RawMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, Notification{Method: method, Params: params})
}

// NewCall returns a call to hand to a handler without a server. It is over
// when the test ends.
func NewCall(t testing.TB, options ...Option) *famcp.Call {
	t.Helper()
	p := &plan{
		facts: call.Facts{
			RequestID: "famcptest", Method: "tools/call", Transport: call.HTTP,
			Subject: "famcptest", AllScopes: true, Header: http.Header{}, CanAsk: true,
		},
		revision: Modern, answers: map[string]Answer{}, recorder: &Recorder{},
		can: everything,
	}
	for _, o := range options {
		o(p)
	}
	p.facts.Era = protocol.EraOf(p.revision)
	answers := map[string]json.RawMessage{}
	for key, a := range p.answers {
		if a.result == nil {
			a = Decline()
		}
		raw, err := json.Marshal(a.result)
		if err != nil {
			t.Fatalf("the answer to %q cannot be sent as JSON: %v", key, err)
		}
		answers[key] = raw
	}
	var caps mcp.ClientCapabilities
	raw, err := json.Marshal(declared(p.can))
	if err == nil {
		err = json.Unmarshal(raw, &caps)
	}
	if err != nil {
		t.Fatalf("declaring the client's capabilities: %v", err)
	}
	c, end, err := invoke.NewDetached(t.Context(), invoke.Detached{
		Facts: &p.facts, Version: p.revision, Answers: answers, Capabilities: &caps,
		Client: &mcp.Implementation{Name: "famcptest", Version: "1"},
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), Sent: p.recorder.add,
	})
	if err != nil {
		t.Fatalf("making a call: %v", err)
	}
	t.Cleanup(end)
	return famcp.CallFor(c)
}

// everything is what a client can be asked for.
var everything = []famcp.Capability{famcp.CanElicit, famcp.CanVisit, famcp.CanSample, famcp.CanRoots}

// declared returns the capabilities object of a client. It is not of the
// SDK's type, which declares roots whatever it holds.
func declared(can []famcp.Capability) map[string]any {
	caps, elicitation := map[string]any{}, map[string]any{}
	for _, c := range can {
		switch c {
		case famcp.CanElicit:
			elicitation["form"], caps["elicitation"] = map[string]any{}, elicitation
		case famcp.CanVisit:
			elicitation["url"], caps["elicitation"] = map[string]any{}, elicitation
		case famcp.CanSample:
			caps["sampling"] = map[string]any{}
		case famcp.CanRoots:
			caps["roots"] = map[string]any{}
		}
	}
	return caps
}
