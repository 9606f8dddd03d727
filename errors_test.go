package famcp

import (
	"errors"
	"fmt"
	"testing"
)

// TestFaultLogsWhatIsAround an error that goes out, and its cause.
func TestFaultLogsWhatIsAround(t *testing.T) {
	full := errors.New("disk full")
	tests := []struct {
		name string
		err  error
		want string // in the log; "" for nothing
	}{
		{"alone", Failf("not saved"), ""},
		{"with a cause", Failf("not saved").With(full), "disk full"},
		{"wrapped", fmt.Errorf("saving note 7: %w", Failf("not saved").With(full)), "saving note 7: not saved: disk full"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, ok := fault(tt.err)
			if !ok || f.Message != "not saved" {
				t.Fatalf("got %+v", f)
			}
			got := ""
			if f.Cause != nil {
				got = f.Cause.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
