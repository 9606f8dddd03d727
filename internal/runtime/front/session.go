package front

import (
	"crypto/rand"
	"encoding/json"
	"sync"
	"time"
)

// session is a legacy session. Its fields besides the constant ones are
// guarded by the table's mutex.
type session struct {
	id      string
	version string // negotiated

	owner string // the first authenticated subject that used it; "" so far nobody
	// leave ends the stream of a caller without credentials once the session
	// belongs to somebody; nil without one.
	leave func()
	inUse int // requests and streams
	since time.Time
	timer *time.Timer
	calls map[string]*legacyCall // in flight, by id as sent
}

// legacyCall is a call in flight on a session.
type legacyCall struct {
	wireID    json.RawMessage // the id that the SDK knows the call by
	cancelled func()
}

// sessionTable knows the live sessions. They end by DELETE, by idling and
// with the server, never behind its back.
type sessionTable struct {
	limit int
	idle  time.Duration
	end   func(*session) // ends an SDK session that has left the table

	mu      sync.Mutex
	live    map[string]*session
	opening int
}

// reserve makes room for a session that is about to be opened; the caller
// runs release in any case.
func (t *sessionTable) reserve() (release func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.limit > 0 && len(t.live)+t.opening >= t.limit {
		return nil, false
	}
	t.opening++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.opening--
	}, true
}

// add makes a session known.
func (t *sessionTable) add(id, version, owner string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &session{id: id, version: version, owner: owner, since: time.Now(), calls: map[string]*legacyCall{}}
	if t.live == nil {
		t.live = map[string]*session{}
	}
	t.live[id] = s
	if t.idle > 0 {
		s.timer = time.AfterFunc(t.idle, func() { t.expire(s) })
	}
}

// claim reports whether an authenticated subject may use s, which becomes its
// own if it was nobody's.
func (t *sessionTable) claim(s *session, subject string) bool {
	t.mu.Lock()
	var leave func()
	if s.owner == "" {
		s.owner, leave, s.leave = subject, s.leave, nil
	}
	mine := s.owner == subject
	t.mu.Unlock()
	if leave != nil {
		leave()
	}
	return mine
}

// leaveWhenOwned runs leave as soon as the session belongs to somebody.
func (t *sessionTable) leaveWhenOwned(s *session, leave func()) {
	t.mu.Lock()
	owned := s.owner != ""
	if !owned {
		s.leave = leave
	}
	t.mu.Unlock()
	if owned {
		leave()
	}
}

func (t *sessionTable) owned(s *session) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return s.owner != ""
}

// use returns a live session and keeps it from expiring until leave is run.
func (t *sessionTable) use(id string) (s *session, leave func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok = t.live[id]
	if !ok {
		return nil, nil, false
	}
	s.inUse++
	if s.timer != nil {
		s.timer.Stop()
	}
	return s, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		s.inUse--
		s.since = time.Now()
		if s.inUse == 0 && s.timer != nil && t.live[s.id] == s {
			s.timer.Reset(t.idle)
		}
	}, true
}

func (t *sessionTable) expire(s *session) {
	t.mu.Lock()
	// The timer may have fired just before a request came in.
	stale := t.live[s.id] == s && s.inUse == 0 && time.Since(s.since) >= t.idle
	if stale {
		delete(t.live, s.id)
	}
	t.mu.Unlock()
	if stale {
		t.end(s)
	}
}

// remove takes a session out of the table and reports whether it was there.
func (t *sessionTable) remove(s *session) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live[s.id] != s {
		return false
	}
	delete(t.live, s.id)
	if s.timer != nil {
		s.timer.Stop()
	}
	return true
}

func (t *sessionTable) closeAll() {
	t.mu.Lock()
	all := make([]*session, 0, len(t.live))
	for _, s := range t.live {
		if s.timer != nil {
			s.timer.Stop()
		}
		all = append(all, s)
	}
	clear(t.live)
	t.mu.Unlock()
	for _, s := range all {
		t.end(s)
	}
}

func (t *sessionTable) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.live)
}

// begin registers a call; ok is false when its id is in flight. cancelled is
// run when the client cancels it.
func (t *sessionTable) begin(s *session, id json.RawMessage, cancelled func()) (wireID json.RawMessage, end func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := string(id)
	if _, taken := s.calls[key]; taken {
		return nil, nil, false
	}
	c := &legacyCall{wireID: sdkID(id), cancelled: cancelled}
	s.calls[key] = c
	return c.wireID, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(s.calls, key)
	}, true
}

// cancel marks a call as cancelled by its client and returns the id that the
// SDK knows it by, or nil when it is not in flight.
func (t *sessionTable) cancel(s *session, id json.RawMessage) json.RawMessage {
	t.mu.Lock()
	c := s.calls[string(id)]
	t.mu.Unlock()
	if c == nil {
		return nil
	}
	c.cancelled()
	return c.wireID
}

// inFlight returns the SDK's ids of the calls of s.
func (t *sessionTable) inFlight(s *session) []json.RawMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	ids := make([]json.RawMessage, 0, len(s.calls))
	for _, c := range s.calls {
		ids = append(ids, c.wireID)
	}
	return ids
}

// sdkID returns the id to hand to the SDK in the place of id. The SDK reads
// numbers as float64 and writes strings its own way; an id that might not come
// back byte for byte travels as a random string.
func sdkID(id json.RawMessage) json.RawMessage {
	if survives(id) {
		return id
	}
	return json.RawMessage(`"` + rand.Text() + `"`)
}

func survives(id json.RawMessage) bool {
	if id[0] != '"' {
		return len(id) <= 15 && string(id) != "-0"
	}
	for _, c := range id {
		if c < ' ' || c > '~' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}
