package call

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	var table Table
	facts := &Facts{RequestID: "r"}
	key, release := table.Put(facts)
	if got := table.Take(key); got != facts {
		t.Fatalf("got %v, want the facts put in", got)
	}
	if got := table.Take(key); got != nil {
		t.Errorf("taken twice: %v", got)
	}
	release()

	key, release = table.Put(facts)
	release()
	if got := table.Take(key); got != nil {
		t.Errorf("released facts are still there: %v", got)
	}
	if got := table.Take(""); got != nil {
		t.Errorf("got %v for no key", got)
	}
}

func TestRequestID(t *testing.T) {
	tests := []struct {
		name, id string
		keep     bool
	}{
		{"plain", "abc-123", true},
		{"all visible ASCII", "!~", true},
		{"longest", strings.Repeat("x", MaxRequestID), true},
		{"too long", strings.Repeat("x", MaxRequestID+1), false},
		{"empty", "", false},
		{"space", "a b", false},
		{"line break", "a\nb", false},
		{"not ASCII", "é", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := RequestID(tt.id)
			if kept := got == tt.id; kept != tt.keep {
				t.Errorf("RequestID(%q) = %q, kept %v, want %v", tt.id, got, kept, tt.keep)
			}
			if got == "" {
				t.Error("empty request id")
			}
		})
	}
}
