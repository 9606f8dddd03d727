package notes_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp/templates/project/internal/notes"
)

func TestStore(t *testing.T) {
	s := notes.New(2, notes.Note{ID: "b", Text: "first"})

	if added, err := s.Add(notes.Note{ID: "b", Text: "second"}); added || err != nil {
		t.Errorf("Add of a taken id = %t, %v, want it left alone", added, err)
	}
	if added, err := s.Add(notes.Note{ID: "a", Text: "new"}); !added || err != nil {
		t.Errorf("Add of a new id = %t, %v, want it added", added, err)
	}
	if _, err := s.Add(notes.Note{ID: "c"}); !errors.Is(err, notes.ErrFull) {
		t.Errorf("Add to a full store = %v, want %v", err, notes.ErrFull)
	}
	want := []notes.Note{{ID: "a", Text: "new"}, {ID: "b", Text: "first"}}
	if diff := cmp.Diff(want, s.All()); diff != "" {
		t.Errorf("All (-want +got):\n%s", diff)
	}
	if !s.Delete("a") || s.Delete("a") {
		t.Error("Delete should report true once, then false")
	}
	if n, ok := s.Get("a"); ok {
		t.Errorf("Get after Delete = %v, want nothing", n)
	}
}
