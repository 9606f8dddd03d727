package token

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func issuers(t *testing.T) map[string]Config {
	t.Helper()
	local := localConfig(t, rsaKey())
	local.PrivateKeyFile = filepath.Join(filepath.Dir(local.PublicKeyFile), PrivateKeyName)
	embedded := localConfig(t, ecKey())
	embedded.Mode, embedded.PublicKeyFile, embedded.KeyDir = Embedded, "", filepath.Join(t.TempDir(), "a", "keys")
	return map[string]Config{"hs256": secretConfig(), "localKey": local, "embedded": embedded}
}

func TestIssue(t *testing.T) {
	for name, cfg := range issuers(t) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg.CheckIP, cfg.CheckServerName, cfg.Skew = true, true, 0
				tokens := newTokens(t, cfg)
				if !tokens.CanIssue() {
					t.Fatal("CanIssue is false")
				}
				raw, claims, err := tokens.Issue(Grant{
					Subject: "ann", Scopes: []string{"read", "write"}, Services: []string{"srv"}, IPs: []string{"10.0.0.0/8"},
					TTL: time.Hour, Extra: map[string]any{"team": "x"},
				})
				if err != nil {
					t.Fatal(err)
				}
				facts := Facts{IP: netip.MustParseAddr("10.1.1.1")}
				got, err := tokens.Verify(t.Context(), raw, facts)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(claims, got, cmpopts.IgnoreUnexported(Claims{})); diff != "" {
					t.Errorf("claims issued and verified (-issued +verified):\n%s", diff)
				}
				if got.ID == "" || got.Map()["team"] != "x" || !cmp.Equal(got.Scopes, []string{"read", "write"}) {
					t.Errorf("claims = %v", got.Map())
				}
				other, _, err := tokens.Issue(Grant{Subject: "ann", Services: []string{"srv"}})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(defaultTTL)
				wantReasonFrom(t, tokens, other, facts.IP, ReasonExpired) // of the default life
				wantReasonFrom(t, tokens, raw, facts.IP, "")
				time.Sleep(defaultTTL)
				wantReasonFrom(t, tokens, raw, facts.IP, ReasonExpired)
			})
		})
	}
}

func TestIssueRefusals(t *testing.T) {
	tokens := newTokens(t, secretConfig())
	tests := []struct {
		name  string
		grant Grant
		want  string
	}{
		{"no subject", Grant{}, "needs a subject"},
		{"negative life", Grant{Subject: "a", TTL: -time.Second}, "whole seconds"},
		{"fraction of a second", Grant{Subject: "a", TTL: 1500 * time.Millisecond}, "whole seconds"},
		{"too long", Grant{Subject: "a", TTL: MaxTTL + time.Second}, "at most 1y"},
		{"empty audience", Grant{Subject: "a", Audience: []string{""}}, "audience is empty"},
		{"two scopes in one", Grant{Subject: "a", Scopes: []string{"a b"}}, "not a scope"},
		{"scope with a quote", Grant{Subject: "a", Scopes: []string{`a"`}}, "not a scope"},
		{"two services in one", Grant{Subject: "a", Services: []string{"a,b"}}, "not the name of a service"},
		{"not an address", Grant{Subject: "a", IPs: []string{"localhost"}}, "neither an address nor a CIDR"},
		{"reserved", Grant{Subject: "a", Extra: map[string]any{"exp": 1}}, `"exp" is reserved`},
		{"reserved scp", Grant{Subject: "a", Extra: map[string]any{"scp": "admin"}}, `"scp" is reserved`},
		{"not JSON", Grant{Subject: "a", Extra: map[string]any{"f": func() {}}}, "no JSON"},
		{"too big", Grant{Subject: "a", Extra: map[string]any{"f": strings.Repeat("x", MaxBytes)}}, "no server takes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			raw, _, err := tokens.Issue(tt.grant)
			if err == nil || !strings.Contains(err.Error(), tt.want) || raw != "" {
				t.Errorf("Issue = %q, %v, want %q", raw, err, tt.want)
			}
		})
	}
	if _, _, err := tokens.Issue(Grant{Subject: "a", TTL: MaxTTL + time.Second, Uncapped: true}); err != nil {
		t.Errorf("uncapped: %v", err)
	}
	for name, cfg := range map[string]Config{"remoteJwks": remoteConfig(&provider{}), "localKey without private key": localConfig(t, ecKey())} {
		tokens := newTokens(t, cfg)
		if _, _, err := tokens.Issue(Grant{Subject: "a"}); !errors.Is(err, ErrCannotIssue) || tokens.CanIssue() {
			t.Errorf("%s: error %v, CanIssue %v", name, err, tokens.CanIssue())
		}
	}
	if _, err := NewSecretSigner([]byte("short")); err == nil {
		t.Error("a short secret makes a signer")
	}
}

// Many start at once on an empty directory, each with its own store as processes
// have, and agree on one key.
func TestEmbeddedRace(t *testing.T) {
	cfg := issuers(t)["embedded"]
	const n = 16
	kids := make([]string, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			tokens, err := New(cfg)
			if err == nil {
				err = tokens.Start()
			}
			if err != nil {
				t.Error(err)
				return
			}
			pair, _, _ := tokens.store.load()
			kids[i] = pair.KeyID()
		})
	}
	wg.Wait()
	for _, kid := range kids {
		if kid == "" || kid != kids[0] {
			t.Fatalf("kids = %q, want one", kids)
		}
	}
	entries, err := os.ReadDir(cfg.KeyDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if e.Name() != "es256.pem" || os.PathSeparator == '/' && info.Mode().Perm() != 0o600 {
			t.Errorf("%s with mode %v, want es256.pem alone with 0600", e.Name(), info.Mode())
		}
	}
	if info, err := os.Stat(cfg.KeyDir); err != nil || os.PathSeparator == '/' && info.Mode().Perm() != 0o700 {
		t.Errorf("directory: %v, %v, want 0700", info.Mode(), err)
	}
}

func TestEmbeddedKeeps(t *testing.T) {
	cfg := issuers(t)["embedded"]
	raw, _, err := newTokens(t, cfg).Issue(Grant{Subject: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	wantReason(t, newTokens(t, cfg), raw, "") // after a restart
}

func TestEmbeddedUnusable(t *testing.T) {
	cfg := issuers(t)["embedded"]
	cfg.KeyDir = filepath.Join(writeTo(t, "file", nil), "keys") // below a file
	tokens := newTokens(t, cfg)
	if err := tokens.Start(); err == nil {
		t.Error("Start works without a directory")
	}
	wantReason(t, tokens, by(t, ecKey(), "", nil), ReasonUnavailable)
	if got := ReasonOf(tokens.Ready(t.Context())); got != ReasonUnavailable {
		t.Errorf("Ready: reason %q", got)
	}
}

func TestPublicJWKS(t *testing.T) {
	for name, cfg := range issuers(t) {
		data, err := newTokens(t, cfg).PublicJWKS()
		if name == "hs256" {
			if !errors.Is(err, ErrNoPublicKeys) {
				t.Errorf("hs256: %s, %v", data, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var set struct{ Keys []map[string]any }
		if err := json.Unmarshal(data, &set); err != nil || len(set.Keys) != 1 {
			t.Fatalf("%s: %v, %v", name, set, err)
		}
		key := set.Keys[0]
		for member := range key {
			if !slices.Contains([]string{"kty", "kid", "alg", "use", "crv", "x", "y", "n", "e"}, member) {
				t.Errorf("%s: member %q is published", name, member)
			}
		}
		if key["alg"] != string(cfg.Algorithm) || key["use"] != "sig" {
			t.Errorf("%s: %v", name, key)
		}
		parsed, err := parseJWKS(data)
		if err != nil || parsed[0].kid != key["kid"] {
			t.Errorf("%s: not read back: %v, %v", name, parsed, err)
		}
	}
}

// The key of RFC 7638 §3.1.
func TestThumbprint(t *testing.T) {
	key, ok := parseJWK([]byte(`{"kty":"RSA","n":"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw","e":"AQAB","alg":"RS256","kid":"2011-04-29"}`))
	if !ok {
		t.Fatal("the key is not read")
	}
	named, err := newVerifyKey(key.key, RS256)
	if want := "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"; err != nil || named.kid != want {
		t.Errorf("kid = %q, %v, want %q", named.kid, err, want)
	}
}

func TestKeyPairWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	if err := ecKey().Write(dir, false); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, PrivateKeyName))
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, PrivateKeyName)); err != nil || os.PathSeparator == '/' && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want 0600", info.Mode(), err)
	}
	if err := otherECKey().Write(dir, false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second write: %v, want fs.ErrExist", err)
	}
	if after, err := os.ReadFile(filepath.Join(dir, PrivateKeyName)); err != nil || string(after) != string(before) {
		t.Errorf("the key was replaced (%v)", err)
	}
	if err := otherECKey().Write(dir, true); err != nil {
		t.Fatal(err)
	}
	pair, err := ReadKeyPair(filepath.Join(dir, PrivateKeyName), ES256)
	if err != nil || pair.KeyID() != otherECKey().KeyID() {
		t.Errorf("overwritten: %v, %v", pair, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Errorf("files = %v, %v, want three", entries, err)
	}
}

// OpenSSL reads what is written and writes what is read.
func TestOpenSSL(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("openssl is not installed")
	}
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), openssl, args...).CombinedOutput(); err != nil {
			t.Fatalf("openssl %q: %v\n%s", args, err, out)
		}
	}
	private, public := filepath.Join(dir, "p.pem"), filepath.Join(dir, "q.pem")
	run("ecparam", "-name", "prime256v1", "-genkey", "-out", private)
	run("ec", "-in", private, "-pubout", "-out", public)
	cfg := localConfig(t, ecKey())
	run("pkey", "-pubin", "-in", cfg.PublicKeyFile, "-noout")
	cfg.PublicKeyFile, cfg.PrivateKeyFile = public, private
	tokens := newTokens(t, cfg)
	raw, _, err := tokens.Issue(Grant{Subject: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	wantReason(t, tokens, raw, "")
}

func TestInspect(t *testing.T) {
	now := time.Now()
	cfg := secretConfig()
	cfg.Revoked.Subjects = []string{"eve"}
	tokens := newTokens(t, cfg)
	tests := []struct {
		name    string
		raw     string
		alone   []Reason
		against []Reason
	}{
		{"good", bySecret(t, nil), nil, nil},
		{"expired within the skew", bySecret(t, object{"exp": now.Add(-9 * time.Second).Unix()}), []Reason{ReasonExpired}, nil},
		{
			"much is wrong", bySecret(t, object{"sub": "eve", "exp": nil, "nbf": now.Add(time.Hour).Unix(), "aud": "x"}),
			[]Reason{ReasonExpired, ReasonNotYetValid},
			[]Reason{ReasonRevoked, ReasonExpired, ReasonNotYetValid, ReasonAudience},
		},
		{"of another mode", by(t, ecKey(), "", nil), nil, []Reason{ReasonAlgorithm}},
	}
	reasons := func(in *Inspection, err error) (list []Reason) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range in.Problems {
			list = append(list, p.Reason)
		}
		return list
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.alone, reasons(Inspect(tt.raw))); diff != "" {
				t.Errorf("alone (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.against, reasons(tokens.Inspect(tt.raw, Facts{}))); diff != "" {
				t.Errorf("against the configuration (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := Inspect("x"); ReasonOf(err) != ReasonMalformed {
		t.Errorf("nonsense: %v", err)
	}
}
