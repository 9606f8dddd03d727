package invoke

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/call"
)

func TestDeprecatedDescribe(t *testing.T) {
	until := time.Date(2027, 3, 31, 0, 0, 0, 0, time.UTC)
	tests := []struct {
		name string
		d    *Deprecated
		want string
	}{
		{"not deprecated", nil, "Does it."},
		{"without a replacement", &Deprecated{Until: until}, "[DEPRECATED until 2027-03-31] Does it."},
		{"with one", &Deprecated{Until: until, ReplacedBy: "do_it"}, "[DEPRECATED until 2027-03-31, use do_it] Does it."},
		{"with a note", &Deprecated{Until: until, Note: "It was slow."}, "[DEPRECATED until 2027-03-31] Does it.\n\nIt was slow."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.d.Describe("Does it."); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestDeprecatedUseIsLoggedOnceAnHour(t *testing.T) {
	now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	e, err := New(Config{Logger: slog.New(slog.NewTextHandler(&out, nil)), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	d := &Deprecated{Until: now.AddDate(0, 3, 0), ReplacedBy: "new"}
	c := &Call{Facts: &call.Facts{RequestID: "r1"}, engine: e}
	steps := []struct {
		after time.Duration
		name  string
		lines int // in all
	}{
		{0, "old", 1},
		{time.Minute, "old", 1},
		{time.Minute, "other", 2},
		{58*time.Minute - time.Second, "old", 2},
		{time.Second, "old", 3},
	}
	for _, s := range steps {
		now = now.Add(s.after)
		e.used(t.Context(), c, d, "tool", s.name)
		if got := strings.Count(out.String(), "a deprecated entry is in use"); got != s.lines {
			t.Errorf("%s after %s: %d lines, want %d", s.name, s.after, got, s.lines)
		}
	}
	if !strings.Contains(out.String(), "requestId=r1") || !strings.Contains(out.String(), "use=new") {
		t.Errorf("the line says neither who nor what instead: %s", out.String())
	}
}

func TestOverdueEntriesAreLogged(t *testing.T) {
	now := time.Date(2027, 4, 1, 0, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	e, err := New(Config{Logger: slog.New(slog.NewTextHandler(&out, nil)), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	e.tools["late"] = &Tool{Listed: &mcp.Tool{Name: "late"}, Deprecated: &Deprecated{Until: now}}
	e.tools["early"] = &Tool{Listed: &mcp.Tool{Name: "early"}, Deprecated: &Deprecated{Until: now.AddDate(0, 0, 1)}}
	e.prompts["stays"] = &Prompt{Listed: &mcp.Prompt{Name: "stays"}}
	e.LogOverdue(t.Context())
	if got := out.String(); strings.Count(got, "level=ERROR") != 1 || !strings.Contains(got, "name=late") {
		t.Errorf("got %q, want one error, about late", got)
	}
}
