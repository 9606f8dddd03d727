package token

import (
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
)

// Whatever is sent, there is a typed refusal or claims that were signed.
func FuzzVerify(f *testing.F) {
	tokens := newTokens(f, secretConfig())
	good := forge(f, jwt.SigningMethodHS256, []byte(testSecret), nil, object{"sub": "ann", "aud": "srv", "exp": 4102444800})
	none := forge(f, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil, object{"sub": "ann", "aud": "srv", "exp": 4102444800})
	for _, s := range []string{good, none, "", "..", "a.b.c", good + "=", strings.ToLower(good)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		c, err := tokens.Verify(t.Context(), raw, Facts{})
		if (err == nil) != (raw == good) || (c == nil) == (err == nil) {
			t.Fatalf("claims %v, error %v", c, err)
		}
		if err != nil && ReasonOf(err) == "" {
			t.Fatalf("error without a reason: %v", err)
		}
	})
}

// Claims as a provider might write them, signed.
func FuzzClaims(f *testing.F) {
	cfg := secretConfig()
	cfg.CheckIP, cfg.CheckServerName = true, true
	tokens := newTokens(f, cfg)
	for _, s := range []string{
		`{"sub":"ann","aud":"srv","exp":4102444800,"service":"srv"}`, `{"aud":["srv",null]}`, `{"exp":1e309}`, `{"ip":"::/0,x"}`, `{"nbf":-0.0}`, `[]`, `null`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		signed := part(t, object{"alg": "HS256"}) + "." + strict.EncodeToString(payload)
		sig, err := jwt.SigningMethodHS256.Sign(signed, []byte(testSecret))
		if err != nil {
			t.Fatal(err)
		}
		c, err := tokens.Verify(t.Context(), signed+"."+strict.EncodeToString(sig), Facts{})
		if err == nil && (c.Subject == "" || c.ExpiresAt.IsZero() || !contains(c.Audience, "srv") || !contains(c.Services, "srv") || c.hasIP) {
			t.Fatalf("accepted %s", payload)
		}
		if err != nil && ReasonOf(err) == "" {
			t.Fatalf("error without a reason: %v", err)
		}
	})
}

// Whatever a provider serves, keys that come out are of their class.
func FuzzParseJWKS(f *testing.F) {
	f.Add(jwks(f, jwkOf(f, ecKey().private.Public(), "1", nil), jwkOf(f, rsaKey().private.Public(), "2", nil)))
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","x":"","y":"AA"},{"kty":"RSA","n":"","e":"AQAB"},{"kty":"AKP"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		keys, err := parseJWKS(body)
		for _, k := range keys {
			if alg, err := classOf(k.key); err != nil || string(alg) != k.alg {
				t.Fatalf("key %v: %v", k, err)
			}
		}
		if (len(keys) == 0) != (err != nil) {
			t.Fatalf("%d keys, error %v", len(keys), err)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	p := &provider{body: jwks(b, jwkOf(b, ecKey().private.Public(), "1", nil), jwkOf(b, rsaKey().private.Public(), "2", nil))}
	remote := newTokens(b, remoteConfig(p))
	long := object{"exp": 4102444800}
	for _, bb := range []struct {
		name   string
		tokens *Tokens
		raw    string
	}{
		{"HS256", newTokens(b, secretConfig()), forge(b, jwt.SigningMethodHS256, []byte(testSecret), nil, claims(long))},
		{"ES256", remote, by(b, ecKey(), "1", long)},
		{"RS256", remote, by(b, rsaKey(), "2", long)},
	} {
		for _, cached := range []bool{true, false} {
			name := bb.name + "/uncached"
			if cached {
				name = bb.name + "/cached"
			}
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if !cached {
						bb.tokens.cache = newCache()
					}
					if _, err := bb.tokens.Verify(b.Context(), bb.raw, Facts{}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
