// Package limits bounds what one caller can take from a server: requests in a
// time, calls at once, open streams. Its memory is bounded whatever callers do.
//
// A caller is a subject: that of its token, else its address. All addresses of
// an IPv6 network of 64 bits count as one, because whoever has one of them has
// them all.
package limits

import (
	"hash/maphash"
	"net/netip"
	"time"

	"github.com/famcp/famcp/internal/runtime/call"
)

// Config configures [Limits]. A number of zero is without limit.
type Config struct {
	MaxRequests int           // of a caller in Window
	Window      time.Duration // at least 1 ns when MaxRequests is set
	ByAddress   bool          // counts requests by address even where a subject is known
	MaxCalls    int           // of a caller at once
	MaxStreams  int           // of a caller at once
}

// Limits are the limits of one server. A nil *Limits admits everything. It is
// safe for concurrent use.
type Limits struct {
	byAddress bool
	seed      maphash.Seed
	requests  rate
	calls     places
	streams   places
}

// New returns limits under which nobody has taken anything.
func New(cfg Config) *Limits {
	return &Limits{
		byAddress: cfg.ByAddress, seed: maphash.MakeSeed(),
		requests: rate{limit: cfg.MaxRequests, window: cfg.Window},
		calls:    places{limit: cfg.MaxCalls},
		streams:  places{limit: cfg.MaxStreams},
	}
}

// Scope says whose requests are counted together: "subject" or "ip".
func (l *Limits) Scope() string {
	if l != nil && l.byAddress {
		return "ip"
	}
	return "subject"
}

// Request counts a request. When the caller has had its share it is not
// counted, and retry says when the next will be admitted.
func (l *Limits) Request(f *call.Facts) (retry time.Duration, ok bool) {
	if l == nil || l.requests.limit == 0 {
		return 0, true
	}
	return l.requests.take(l.counted(f), time.Now())
}

// Full reports whether the next [Limits.Request] of a caller would be refused,
// and for how long.
func (l *Limits) Full(f *call.Facts) (retry time.Duration, full bool) {
	if l == nil || l.requests.limit == 0 {
		return 0, false
	}
	return l.requests.full(l.counted(f), time.Now())
}

// counted is who a request of f is counted for.
func (l *Limits) counted(f *call.Facts) key {
	if l.byAddress && f.Address.IsValid() {
		return l.network(f.Address)
	}
	return l.caller(f)
}

// Call gives a request its slot, for [call.Facts.Release] to give back.
// Methods that run no handler of the server need none: a client can list,
// and find out that the server is alive, while its calls run.
func (l *Limits) Call(f *call.Facts) (ok bool) {
	if l == nil || l.calls.limit == 0 {
		return true
	}
	switch f.Method {
	case "tools/call", "prompts/get", "resources/read", "completion/complete":
	default:
		return true
	}
	k := l.caller(f)
	if !l.calls.take(k) {
		return false
	}
	f.Slot = &slot{places: &l.calls, key: k, held: true}
	return true
}

// Stream opens a stream for a caller, who has it until leave is run, once.
func (l *Limits) Stream(f *call.Facts) (leave func(), ok bool) {
	if l == nil || l.streams.limit == 0 {
		return func() {}, true
	}
	k := l.caller(f)
	if !l.streams.take(k) {
		return nil, false
	}
	return func() { l.streams.give(k) }, true
}

// key stands for a caller. It is a seeded hash, so that long subjects take no
// memory and nobody can choose whom to collide with.
type key uint64

func (l *Limits) caller(f *call.Facts) key {
	if f.Address.IsValid() {
		var b [64]byte
		if string(f.Address.AppendTo(b[:0])) == f.Subject {
			return l.network(f.Address)
		}
	}
	return key(maphash.String(l.seed, f.Subject))
}

func (l *Limits) network(a netip.Addr) key {
	b := a.As16()
	if a.Unmap().Is4() {
		return key(maphash.Bytes(l.seed, b[:]))
	}
	return key(maphash.Bytes(l.seed, b[:8]))
}
