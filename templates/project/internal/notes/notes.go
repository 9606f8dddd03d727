// Package notes keeps notes in memory, for the starter tools to work on.
package notes

import (
	"cmp"
	"errors"
	"slices"
	"sync"
)

// ErrFull is returned when a store holds as many notes as it may.
var ErrFull = errors.New("the store is full")

// A Note is a text under an id.
type Note struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// A Store holds notes, safe for concurrent use. Make one with [New].
type Store struct {
	limit int

	mu    sync.Mutex
	notes map[string]Note
}

// New returns a store of at most limit notes that holds those given.
func New(limit int, initial ...Note) *Store {
	s := &Store{limit: limit, notes: make(map[string]Note, len(initial))}
	for _, n := range initial {
		s.notes[n.ID] = n
	}
	return s
}

// Add stores n and reports whether it did: a note that has the id already stays. A store that is full gives [ErrFull].
func (s *Store) Add(n Note) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.notes[n.ID]; taken {
		return false, nil
	}
	if len(s.notes) >= s.limit {
		return false, ErrFull
	}
	s.notes[n.ID] = n
	return true, nil
}

// Get returns the note with the id.
func (s *Store) Get(id string) (Note, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.notes[id]
	return n, ok
}

// Delete removes the note with the id and reports whether there was one.
func (s *Store) Delete(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.notes[id]
	delete(s.notes, id)
	return ok
}

// All returns the notes, sorted by id.
func (s *Store) All() []Note {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Note, 0, len(s.notes)) // not nil: no notes are [] in JSON
	for _, n := range s.notes {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b Note) int { return cmp.Compare(a.ID, b.ID) })
	return all
}
