package invoke

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestSealedState(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	clock := func() time.Time { return now }
	s, err := newSealer("", 600*time.Second, 0, clock)
	if err != nil {
		t.Fatal(err)
	}
	other, err := newSealer("", 600*time.Second, 0, clock)
	if err != nil {
		t.Fatal(err)
	}
	bound := binding("alice", "tools/call", "t", json.RawMessage(`{"a":1,"b":2}`))
	text, err := s.seal(state{Round: 1, Kept: map[string]json.RawMessage{"k": json.RawMessage(`"secret"`)}}, bound)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "secret") {
		t.Fatal("the state shows what it keeps")
	}
	tests := []struct {
		name  string
		seal  *sealer
		text  string
		bound []byte
		after time.Duration
		want  error
	}{
		{"its own request", s, text, bound, 0, nil},
		{"equal JSON in another order", s, text, binding("alice", "tools/call", "t", json.RawMessage(` { "b":2, "a":1 } `)), 0, nil},
		{"at the end of its life", s, text, bound, 600 * time.Second, nil},
		{"expired", s, text, bound, 601 * time.Second, errStateExpired},
		{"other arguments", s, text, binding("alice", "tools/call", "t", json.RawMessage(`{"a":1,"b":3}`)), 0, errStateForged},
		{"another subject", s, text, binding("bob", "tools/call", "t", json.RawMessage(`{"a":1,"b":2}`)), 0, errStateForged},
		{"another tool", s, text, binding("alice", "tools/call", "u", json.RawMessage(`{"a":1,"b":2}`)), 0, errStateForged},
		{"another method", s, text, binding("alice", "prompts/get", "t", json.RawMessage(`{"a":1,"b":2}`)), 0, errStateForged},
		{"another process", other, text, bound, 0, errStateForged},
		{"something appended", s, text + "-TAMPERED", bound, 0, errStateForged},
		{"a byte changed", s, "A" + text[1:], bound, 0, errStateForged},
		{"cut short", s, text[:len(text)-1], bound, 0, errStateForged},
		{"nonsense", s, "%%%", bound, 0, errStateForged},
		{"nothing", s, "", bound, 0, errStateForged},
	}
	if text[0] == 'A' {
		tests[10].text = "B" + text[1:]
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			start := now
			defer func() { now = start }()
			now = now.Add(tt.after)
			st, err := tt.seal.open(tt.text, tt.bound)
			if !errors.Is(err, tt.want) {
				t.Fatalf("got error %v, want %v", err, tt.want)
			}
			if tt.want == nil && string(st.Kept["k"]) != `"secret"` {
				t.Errorf("got kept %s", st.Kept["k"])
			}
		})
	}
}

func TestSealedStateIsSharedByASecret(t *testing.T) {
	secret := strings.Repeat("s", 32)
	a, err := newSealer(secret, time.Minute, 0, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	b, err := newSealer(secret, time.Minute, 0, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	text, err := a.seal(state{Round: 3}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := b.open(text, nil); err != nil || st.Round != 3 {
		t.Errorf("got round %d, error %v", st.Round, err)
	}
}

func TestSealedStateIsBounded(t *testing.T) {
	s, err := newSealer("", time.Minute, 100, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	big := map[string]json.RawMessage{"k": json.RawMessage(`"` + strings.Repeat("x", 200) + `"`)}
	if _, err := s.seal(state{Kept: big}, nil); err == nil || !strings.Contains(err.Error(), "mcp.mrtr.maxStateBytes") {
		t.Errorf("got error %v, want one that names the key", err)
	}
}
