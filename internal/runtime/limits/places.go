package limits

import "sync"

// places counts what callers hold at the same time. It has an entry only for
// a caller that holds something.
type places struct {
	limit int

	mu   sync.Mutex
	held map[key]int
}

func (p *places) take(k key) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[k] >= p.limit {
		return false
	}
	p.add(k)
	return true
}

// add is called with the mutex held.
func (p *places) add(k key) {
	if p.held == nil {
		p.held = map[key]int{}
	}
	p.held[k]++
}

func (p *places) give(k key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(k)
}

// drop is called with the mutex held.
func (p *places) drop(k key) {
	if p.held[k]--; p.held[k] == 0 {
		delete(p.held, k)
	}
}

// slot is the place of one call; it implements [call.Slot].
type slot struct {
	places *places
	key    key

	// Under places.mu.
	held, over bool
}

func (s *slot) Release() {
	s.places.mu.Lock()
	defer s.places.mu.Unlock()
	if s.held {
		s.places.drop(s.key)
	}
	s.held, s.over = false, true
}

// Pause lets another call have the place. What resumes goes on at once, even
// where that makes one more than the limit: its work must not be lost.
func (s *slot) Pause() (resume func()) {
	s.places.mu.Lock()
	defer s.places.mu.Unlock()
	if s.held {
		s.places.drop(s.key)
		s.held = false
	}
	return s.resume
}

func (s *slot) resume() {
	s.places.mu.Lock()
	defer s.places.mu.Unlock()
	if !s.held && !s.over {
		s.places.add(s.key)
		s.held = true
	}
}
