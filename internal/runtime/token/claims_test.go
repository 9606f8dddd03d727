package token

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestClaims(t *testing.T) {
	tokens := newTokens(t, secretConfig())
	raw := bySecret(t, object{
		"exp": 4102444800.5, "nbf": 1600000000, "iat": 4000000000, "jti": "j", "scope": "a  b", "scp": []string{"ignored"},
		"service": "x,srv", "ip": []string{"::1"}, "tenant": 12345678901234567, "roles": object{"in": []any{"x"}}, "allow": "gen-token other",
	})
	got, err := tokens.Verify(t.Context(), raw, Facts{})
	if err != nil {
		t.Fatal(err)
	}
	want := &Claims{
		Subject: "ann", Issuer: testIssuer, Audience: []string{"srv"}, ID: "j",
		ExpiresAt: time.UnixMilli(4102444800500), NotBefore: time.Unix(1600000000, 0),
		IssuedAt: time.Unix(4000000000, 0), // ahead of the clock, which is no reason (golang-jwt/jwt#48)
		Scopes:   []string{"a", "b"}, Services: []string{"x", "srv"}, IPs: []string{"::1"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Claims{})); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	m := got.Map()
	if m["tenant"] != json.Number("12345678901234567") {
		t.Errorf("tenant = %v, want all its digits", m["tenant"])
	}
	m["roles"].(object)["in"].([]any)[0] = "changed"
	delete(m, "sub")
	if again := got.Map(); again["sub"] != "ann" || again["roles"].(object)["in"].([]any)[0] != "x" {
		t.Errorf("a change of the copy reached the claims: %v", again)
	}
	if !got.Has("allow", "gen-token") || got.Has("allow", "gen") || got.Has("tenant", "1") || got.Has("none", "") {
		t.Errorf("Has is wrong")
	}
}

func TestScopes(t *testing.T) {
	tests := []struct {
		name   string
		claims object
		want   []string
	}{
		{"none", nil, nil},
		{"string", object{"scope": "read write"}, []string{"read", "write"}},
		{"array", object{"scope": []string{"read"}}, []string{"read"}},
		{"scp array", object{"scp": []string{"read", "write"}}, []string{"read", "write"}},
		{"scp string", object{"scp": "read write"}, []string{"read", "write"}},
		{"an empty scope hides scp", object{"scope": "", "scp": "admin"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := newTokens(t, secretConfig()).Verify(t.Context(), bySecret(t, tt.claims), Facts{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, c.Scopes, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("scopes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSkew(t *testing.T) {
	tests := []struct {
		name     string
		skew     time.Duration
		exp, nbf time.Duration // from now; nbf 0 means none
		want     Reason
	}{
		{"exp 5 s ago", 30 * time.Second, -5 * time.Second, 0, ""},
		{"exp 29 s ago", 30 * time.Second, -29 * time.Second, 0, ""},
		{"exp 30 s ago", 30 * time.Second, -30 * time.Second, 0, ReasonExpired},
		{"exp 5 min ago", 30 * time.Second, -5 * time.Minute, 0, ReasonExpired},
		{"exp now, no skew", 0, 0, 0, ReasonExpired},
		{"exp in 1 s, no skew", 0, time.Second, 0, ""},
		{"nbf in 5 s", 30 * time.Second, time.Hour, 5 * time.Second, ""},
		{"nbf in 30 s", 30 * time.Second, time.Hour, 30 * time.Second, ""},
		{"nbf in 31 s", 30 * time.Second, time.Hour, 31 * time.Second, ReasonNotYetValid},
		{"nbf in 1 s, no skew", 0, time.Hour, time.Second, ReasonNotYetValid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := secretConfig()
				cfg.Skew = tt.skew
				changes := object{"exp": time.Now().Add(tt.exp).Unix()}
				if tt.nbf != 0 {
					changes["nbf"] = time.Now().Add(tt.nbf).Unix()
				}
				wantReason(t, newTokens(t, cfg), bySecret(t, changes), tt.want)
			})
		})
	}
}

// A cached token stops at its expiry like any other.
func TestCacheExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := secretConfig()
		cfg.Skew = 0
		tokens := newTokens(t, cfg)
		raw := bySecret(t, object{"exp": time.Now().Add(time.Minute).Unix()})
		wantReason(t, tokens, raw, "")
		time.Sleep(time.Minute - time.Second)
		wantReason(t, tokens, raw, "")
		time.Sleep(time.Second)
		wantReason(t, tokens, raw, ReasonExpired)
	})
}

func TestCacheBounds(t *testing.T) {
	c := newCache()
	for i := range cacheEntries {
		c.put(strconv.Itoa(i), &Claims{}, 1)
	}
	c.get("0") // used, so the next is the oldest
	long := strings.Repeat("x", cacheTokenBytes+1)
	c.put(long[1:], &Claims{}, 1)
	c.put(long, &Claims{}, 1)
	for raw, want := range map[string]bool{"0": true, "1": false, "2": true, long[1:]: true, long: false} {
		if _, _, got := c.get(raw); got != want {
			t.Errorf("entry %.9s is there: %v, want %v", raw, got, want)
		}
	}
	if got := len(c.entries); got != cacheEntries || c.order.Len() != got {
		t.Errorf("%d entries, %d in order, want %d", got, c.order.Len(), cacheEntries)
	}
}

func TestParseTTL(t *testing.T) {
	good := map[string]time.Duration{
		"1s": time.Second, "45m": 45 * time.Minute, "12h": 12 * time.Hour, "30d": 720 * time.Hour,
		"2w": 336 * time.Hour, "1y": 8760 * time.Hour, "365d": MaxTTL, "007d": 168 * time.Hour,
	}
	for s, want := range good {
		if got, err := ParseTTL(s); err != nil || got != want {
			t.Errorf("ParseTTL(%q) = %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{
		"", "d", "30", "0s", "000d", "-1d", "+1d", "1.5h", "1h30m", " 1d", "1d ", "1 d", "1D", "1M", "1ms", "1µs", "1µ", "x",
		"1e3s", "0x1s", "1_0s", "٣d", "999999999999999999999y", "9223372036854775807s", "293y", "106752d", "\x00s",
	} {
		if got, err := ParseTTL(s); err == nil || errors.Is(err, ErrTTLTooLong) || got != 0 {
			t.Errorf("ParseTTL(%q) = %v, %v, want it refused", s, got, err)
		}
	}
	for s, want := range map[string]time.Duration{"366d": 366 * day, "2y": 730 * day, "31536001s": MaxTTL + time.Second, "292y": 292 * 365 * day} {
		if got, err := ParseTTL(s); !errors.Is(err, ErrTTLTooLong) || got != want {
			t.Errorf("ParseTTL(%q) = %v, %v, want %v and ErrTTLTooLong", s, got, err, want)
		}
	}
}
