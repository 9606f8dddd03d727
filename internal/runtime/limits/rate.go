package limits

import (
	"sync"
	"time"
)

const (
	// maxKeys is how many callers of a window are counted one by one, in 2.3 MB.
	maxKeys = 100_000
	// shared is how many counters those beyond share.
	shared = 1024
)

// rate limits requests by the sliding window counter: those of the running
// window, and of the one before as much as the last window's length still
// covers. It is exact for a caller that was quiet for a window.
//
// Counters are dropped with their window, never to make room: a caller who
// has used its share cannot wash that off by filling the table from other
// addresses. Newcomers to a full table share counters instead.
type rate struct {
	limit  int
	window time.Duration

	mu        sync.Mutex
	start     time.Time // of the running window; zero before the first request
	now, last map[key]uint32
}

func (r *rate) take(k key, at time.Time) (retry time.Duration, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	counter, wait := r.look(k, at)
	if wait > 0 {
		return wait, false
	}
	r.now[counter]++
	return 0, true
}

// full is take that takes nothing.
func (r *rate) full(k key, at time.Time) (retry time.Duration, full bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, wait := r.look(k, at)
	return wait, wait > 0
}

// look returns the counter of a caller, and how long it takes until one more
// request fits. r.mu is held.
func (r *rate) look(k key, at time.Time) (counter key, wait time.Duration) {
	age := r.slide(at)
	counter = k
	if _, known := r.now[k]; !known && len(r.now) >= maxKeys {
		counter %= shared
	}
	return counter, r.wait(r.now[counter], max(r.last[k], r.last[counter]), age)
}

// slide opens the window that at lies in and returns how old that is.
func (r *rate) slide(at time.Time) time.Duration {
	age := at.Sub(r.start)
	switch {
	case r.start.IsZero() || age >= 2*r.window:
		r.start, r.now, r.last = at, map[key]uint32{}, nil
		return 0
	case age >= r.window:
		r.start = r.start.Add(r.window)
		r.now, r.last = make(map[key]uint32), r.now
		return age - r.window
	}
	return max(age, 0)
}

// wait returns how long it takes until one more request fits, zero when it
// does now: used and before are the counts of the running window, which is
// age old, and of the one before.
func (r *rate) wait(used, before uint32, age time.Duration) time.Duration {
	if room := r.limit - int(used); room > 0 {
		return max(r.fades(before, room)-age, 0)
	}
	return r.window - age + r.fades(used, r.limit)
}

// fades returns the age of a window from which on n requests of the one before
// it count as less than room.
func (r *rate) fades(n uint32, room int) time.Duration {
	if int(n) < room {
		return 0
	}
	return time.Duration(float64(r.window)*float64(int(n)-room)/float64(n)) + 1
}
