// Package call carries the facts of one request from the transport that
// received it to the handler that serves it.
//
// On a legacy session the SDK's handler context is that of the initialize
// request, so facts cannot travel in the HTTP request's context. The
// transport puts them in a [Table] and sends the key in [Header], an internal
// header that is stripped from everything a client sends; a middleware takes
// them out again.
package call

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/famcp/famcp/internal/runtime/protocol"
)

// Header is the internal header that names an entry of a [Table].
const Header = "Famcp-Internal-Call"

// Transport names how a request arrived.
type Transport string

const (
	HTTP  Transport = "http"
	Stdio Transport = "stdio"
)

// Facts are what is known of one request apart from its parameters. They are
// not changed once the request is delivered.
type Facts struct {
	RequestID string          // X-Request-Id, accepted or made; never empty
	ID        json.RawMessage // the JSON-RPC id as sent; nil for a notification
	Method    string
	Era       protocol.Era
	Transport Transport
	Subject   string   // who asks; "stdio", an address, or the token's subject
	Scopes    []string // granted scopes; nil means none
	AllScopes bool     // every scope is granted (auth off, stdio)
	// Authenticated says that credentials have shown who the subject is; else,
	// over HTTP, it is an address that others may share.
	Authenticated bool
	Claims        map[string]any // the token's claims, which must not be changed; nil without one
	Expires       time.Time      // when the credentials do; zero never
	Header        http.Header    // request headers without credentials; nil on stdio
	Address       netip.Addr     // the caller's, from behind trusted proxies; zero on stdio and where unknown

	// CanAsk reports whether the server's own requests (elicitation, sampling,
	// roots) can reach the client while this request runs. It is false for a
	// legacy answer that must be plain JSON.
	CanAsk bool

	// Done is run once the request's handler has returned, which may be long
	// after its client went away; nil for nothing.
	Done func()

	// Slot is the request's place among its caller's; nil holds none.
	Slot     Slot
	SlotKept bool // by a task, beyond the answer

	// Task is the parameter task of a tools/call of revision 2025-11-25; nil
	// without one.
	Task json.RawMessage
	// Listen is there in subscriptions/listen alone.
	Listen *Listen

	// Of modern HTTP requests, whose messages go out by these; elsewhere the
	// session knows. Notify does nothing once the answer is out, never blocks
	// and is safe for concurrent use.
	Notify   func(method string, params json.RawMessage)
	LogLevel string // from which on log messages are wanted; "" wants none
}

// Slot is a place among the calls that one caller may run at once. Its
// methods are safe for concurrent use.
type Slot interface {
	// Pause gives the place away until resume is called.
	Pause() (resume func())
	// Release gives the place back for good. A second call does nothing.
	Release()
}

// As makes the request one of the caller that other facts are about.
func (f *Facts) As(caller *Facts) {
	f.Subject, f.Scopes, f.AllScopes = caller.Subject, caller.Scopes, caller.AllScopes
	f.Claims, f.Authenticated, f.Expires = caller.Claims, caller.Authenticated, caller.Expires
}

// Anonymous reports whether the caller has no credentials where others have
// some: it may look around, and sees what is public.
func (f *Facts) Anonymous() bool { return !f.Authenticated && !f.AllScopes }

// Pause is [Slot.Pause] where a slot is held.
func (f *Facts) Pause() (resume func()) {
	if f.Slot == nil {
		return func() {}
	}
	return f.Slot.Pause()
}

// Release is [Slot.Release] where a slot is held and not kept.
func (f *Facts) Release() {
	if f.Slot != nil && !f.SlotKept {
		f.Slot.Release()
	}
}

// KeepSlot holds the slot beyond the answer, until release is called. Call it
// before the request is answered.
func (f *Facts) KeepSlot() (release func()) {
	if f.Slot == nil {
		return func() {}
	}
	f.SlotKept = true
	return f.Slot.Release
}

// Listen is what a subscription wants apart from what the SDK knows of.
type Listen struct {
	TaskIDs []string        // to be told of; only those agreed upon once the subscription has begun
	Meta    json.RawMessage // of each notification
	Began   chan struct{}   // closed when the acknowledgement is out
}

type contextKey struct{}

// NewContext returns a context that carries f.
func NewContext(ctx context.Context, f *Facts) context.Context {
	return context.WithValue(ctx, contextKey{}, f)
}

// FromContext returns the facts that ctx carries, or nil.
func FromContext(ctx context.Context) *Facts {
	f, _ := ctx.Value(contextKey{}).(*Facts)
	return f
}

// Table holds the facts of requests in delivery. The zero value is ready to
// use. It is safe for concurrent use.
type Table struct {
	entries sync.Map

	once   sync.Once
	status string
}

// StatusToken returns the progress token under which a task's status travels
// through the SDK, which knows no such notification. No client learns of it.
func (t *Table) StatusToken() string {
	t.once.Do(func() { t.status = "task-status-" + rand.Text() })
	return t.status
}

// TaskStatus returns the status of a task that travels as the parameters of
// notifications/progress, or nil when they are what they seem.
func (t *Table) TaskStatus(progress json.RawMessage) json.RawMessage {
	var p struct {
		Token   any    `json:"progressToken"`
		Message string `json:"message"`
	}
	if json.Unmarshal(progress, &p) != nil || p.Token != t.StatusToken() {
		return nil
	}
	return json.RawMessage(p.Message)
}

// Put stores f and returns the key to send in [Header] and a function that
// removes the entry if nobody has taken it.
func (t *Table) Put(f *Facts) (key string, release func()) {
	key = rand.Text()
	t.entries.Store(key, f)
	return key, func() { t.entries.Delete(key) }
}

// Take removes and returns the facts stored under key, or nil.
func (t *Table) Take(key string) *Facts {
	v, ok := t.entries.LoadAndDelete(key)
	if !ok {
		return nil
	}
	return v.(*Facts)
}

// Drop removes the facts stored under key and reports whether nobody had taken
// them: then nobody ever will.
func (t *Table) Drop(key string) bool { return t.Take(key) != nil }

// NewRequestID returns a fresh request id.
func NewRequestID() string { return rand.Text() }

// MaxRequestID is the longest X-Request-Id that is accepted from a client.
const MaxRequestID = 128

// RequestID returns id when it is 1 to [MaxRequestID] visible ASCII
// characters (contract §8), else a fresh one.
func RequestID(id string) string {
	if id == "" || len(id) > MaxRequestID {
		return NewRequestID()
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return NewRequestID()
		}
	}
	return id
}
