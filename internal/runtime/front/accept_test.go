package front

import (
	"net/http"
	"testing"
)

func TestAcceptedBy(t *testing.T) {
	both, asJSON, asStream := accepted{true, true}, accepted{json: true}, accepted{stream: true}
	tests := []struct {
		name   string
		values []string
		want   accepted
	}{
		{"absent", nil, both},
		{"empty", []string{""}, both},
		{"all", []string{"*/*"}, both},
		{"both", []string{"application/json, text/event-stream"}, both},
		{"two headers", []string{"application/json", "text/event-stream"}, both},
		{"JSON", []string{"application/json"}, asJSON},
		{"JSON with parameters", []string{"Application/JSON; charset=utf-8; q=0.5"}, asJSON},
		{"any application", []string{"application/*"}, asJSON},
		{"stream", []string{"text/event-stream"}, asStream},
		{"any text", []string{"text/*"}, asStream},
		{"quality zero", []string{"application/json;q=0, text/event-stream;q=0.1"}, asStream},
		{"quality zero in digits", []string{"application/json; q=0.000, */*;q=0"}, accepted{}},
		{"others", []string{"text/html, image/*"}, accepted{}},
		{"junk", []string{";;,=,"}, accepted{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := acceptedBy(http.Header{"Accept": tt.values}); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}
