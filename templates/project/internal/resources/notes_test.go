package resources

import (
	"testing"

	"github.com/famcp/famcp/famcptest"
	"github.com/famcp/famcp/templates/project/internal/notes"
)

func TestAllNotes(t *testing.T) {
	tests := []struct {
		name  string
		notes []notes.Note
		want  string
	}{
		{name: "none", want: `[]`},
		{name: "one", notes: []notes.Note{{ID: "milk", Text: "Buy milk"}}, want: `[{"id":"milk","text":"Buy milk"}]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := allNotes(notes.New(10, tt.notes...))(t.Context(), famcptest.NewCall(t))
			if err != nil || got.Text != tt.want {
				t.Errorf("contents = %s, %v, want %s", got.Text, err, tt.want)
			}
		})
	}
}
