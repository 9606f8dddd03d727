package tools

import (
	"errors"
	"testing"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/famcptest"
	"github.com/famcp/famcp/templates/project/internal/notes"
)

func TestDeleteNote(t *testing.T) {
	tests := []struct {
		name    string
		id      string
		options []famcptest.Option
		want    string
		wantErr error
		stays   bool
	}{
		{name: "asks first", id: "milk", wantErr: famcp.ErrAsked, stays: true},
		{name: "yes", id: "milk", options: []famcptest.Option{famcptest.WithAnswer("delete", famcptest.Confirm(true))}, want: "deleted"},
		{name: "no", id: "milk", options: []famcptest.Option{famcptest.WithAnswer("delete", famcptest.Confirm(false))}, want: "declined", stays: true},
		{name: "dismissed", id: "milk", options: []famcptest.Option{famcptest.WithAnswer("delete", famcptest.Cancel())}, want: "declined", stays: true},
		{name: "nothing to ask about", id: "bread", want: "absent", stays: true},
		{name: "a client that cannot ask", id: "milk", options: []famcptest.Option{famcptest.WithCapabilities()}, wantErr: famcp.ErrCannotAsk, stays: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			store := notes.New(10, notes.Note{ID: "milk", Text: "Buy milk"})
			out, err := deleteNote(store)(t.Context(), famcptest.NewCall(t, tt.options...), deleteNoteIn{ID: tt.id})
			if !errors.Is(err, tt.wantErr) {
				t.Fatalf("error = %v, want %v", err, tt.wantErr)
			}
			if out.Outcome != tt.want {
				t.Errorf("outcome = %q, want %q", out.Outcome, tt.want)
			}
			if _, ok := store.Get("milk"); ok != tt.stays {
				t.Errorf("the note is still there: %t, want %t", ok, tt.stays)
			}
		})
	}
}
