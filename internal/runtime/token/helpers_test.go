package token

import (
	"bytes"
	"context"
	"crypto"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math/big"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	testSecret = "Zq3t6w9yBxEeHhMcQfTjWnZr4u7xAcDf"
	testIssuer = "https://id.test"
	testURL    = "https://id.test/keys"
)

// Keys are made once: RSA is slow.
var (
	ecKey, otherECKey = sync.OnceValue(makeKey(ES256)), sync.OnceValue(makeKey(ES256))
	rsaKey            = sync.OnceValue(makeKey(RS256))
)

func makeKey(alg Algorithm) func() *KeyPair {
	return func() *KeyPair {
		k, err := GenerateKeyPair(alg)
		if err != nil {
			panic(err)
		}
		return k
	}
}

func secretConfig() Config {
	return Config{Mode: HS256, Secret: []byte(testSecret), ServerName: "srv", Skew: 30 * time.Second}
}

func localConfig(t testing.TB, key *KeyPair) Config {
	t.Helper()
	dir := t.TempDir()
	if err := key.Write(dir, false); err != nil {
		t.Fatal(err)
	}
	return Config{
		Mode: LocalKey, Algorithm: key.alg, PublicKeyFile: filepath.Join(dir, PublicKeyName),
		ServerName: "srv", PublicURL: "https://srv.test", ExpectedIssuer: testIssuer, Skew: 30 * time.Second,
	}
}

func remoteConfig(transport http.RoundTripper) Config {
	return Config{
		Mode: RemoteJWKS, JWKSURL: testURL, HTTPClient: &http.Client{Transport: transport},
		ServerName: "srv", PublicURL: "https://srv.test", ExpectedIssuer: testIssuer, Skew: 30 * time.Second,
	}
}

func newTokens(t testing.TB, cfg Config) *Tokens {
	t.Helper()
	tokens, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

type object = map[string]any

// claims returns valid ones for every configuration here, with changes; a nil
// value removes a claim.
func claims(changes object) object {
	c := object{"sub": "ann", "aud": "srv", "iss": testIssuer, "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

// forge signs whatever it is told with whatever key.
func forge(t testing.TB, method jwt.SigningMethod, key any, header, payload object) string {
	t.Helper()
	h := object{"alg": method.Alg(), "typ": "JWT"}
	maps.Copy(h, header)
	signed := part(t, h) + "." + part(t, payload)
	sig, err := method.Sign(signed, key)
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(sig)
}

func part(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// by signs valid claims with key under kid, none when empty.
func by(t testing.TB, key *KeyPair, kid string, changes object) string {
	t.Helper()
	header := object{}
	if kid != "" {
		header["kid"] = kid
	}
	return forge(t, methods[string(key.alg)], key.private, header, claims(changes))
}

// bySecret signs valid claims with the secret of secretConfig.
func bySecret(t testing.TB, changes object) string {
	t.Helper()
	return forge(t, jwt.SigningMethodHS256, []byte(testSecret), nil, claims(changes))
}

func wantReason(t testing.TB, tokens *Tokens, raw string, want Reason) {
	t.Helper()
	wantReasonFrom(t, tokens, raw, netip.Addr{}, want)
}

func wantReasonFrom(t testing.TB, tokens *Tokens, raw string, ip netip.Addr, want Reason) {
	t.Helper()
	c, err := tokens.Verify(t.Context(), raw, Facts{IP: ip})
	if got := ReasonOf(err); got != want {
		t.Errorf("reason = %q (%v), want %q", got, err, want)
	}
	if (err == nil) != (c != nil) {
		t.Errorf("claims %v with error %v", c, err)
	}
}

// jwkOf makes a member of a key set; changes replace members, nil removes one.
func jwkOf(t testing.TB, key crypto.PublicKey, kid string, changes object) object {
	t.Helper()
	alg, err := classOf(key)
	if err != nil {
		t.Fatal(err)
	}
	data, err := (&keySet{keys: []verifyKey{{kid: kid, alg: string(alg), key: key}}}).public()
	if err != nil {
		t.Fatal(err)
	}
	var set struct{ Keys []object }
	if err := json.Unmarshal(data, &set); err != nil {
		t.Fatal(err)
	}
	m := set.Keys[0]
	maps.Copy(m, changes)
	maps.DeleteFunc(m, func(_ string, v any) bool { return v == nil })
	return m
}

func jwks(t testing.TB, keys ...any) []byte {
	t.Helper()
	data, err := json.Marshal(object{"keys": keys})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// provider is an identity provider's key set without a network, so that time
// can be faked around it.
type provider struct {
	mu   sync.Mutex
	body []byte
	down bool
	hang bool
	hits int
}

func (p *provider) serve(body []byte) { p.set(func() { p.body = body }) }

func (p *provider) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func (p *provider) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hits
}

func (p *provider) RoundTrip(req *http.Request) (*http.Response, error) {
	p.mu.Lock()
	p.hits++
	body, down, hang := p.body, p.down, p.hang
	p.mu.Unlock()
	if hang {
		<-req.Context().Done()
		return nil, context.Cause(req.Context())
	}
	if down {
		return nil, errors.New("dial tcp 10.1.2.3:443: connection refused")
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(body)), Request: req}, nil
}

func writeTo(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// malleate returns the second valid form of an ES256 signature: (r, n-s).
func malleate(t testing.TB, raw string) string {
	t.Helper()
	i := bytes.LastIndexByte([]byte(raw), '.')
	sig, err := base64.RawURLEncoding.DecodeString(raw[i+1:])
	if err != nil {
		t.Fatal(err)
	}
	n, _ := new(big.Int).SetString("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551", 16)
	s := new(big.Int).Sub(n, new(big.Int).SetBytes(sig[32:]))
	s.FillBytes(sig[32:])
	return raw[:i+1] + base64.RawURLEncoding.EncodeToString(sig)
}
