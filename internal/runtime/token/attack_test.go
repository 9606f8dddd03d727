package token

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// TestAttacks is the table of what must not get in. Every token in it is valid
// but for the one thing its row names, so that a row fails without its check.
func TestAttacks(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("an address in a token was fetched")
	}))
	defer elsewhere.Close()

	secret := newTokens(t, secretConfig())
	local := newTokens(t, localConfig(t, ecKey()))
	localRSA := newTokens(t, localConfig(t, rsaKey()))
	provided := &provider{}
	provided.serve(jwks(t, jwkOf(t, ecKey().private.Public(), "ec", nil), jwkOf(t, rsaKey().private.Public(), "rsa", nil)))
	remoteCfg := remoteConfig(provided)
	remoteCfg.Secret = []byte(testSecret) // left over from another mode
	remote := newTokens(t, remoteCfg)

	ecPEM, err := ecKey().PublicPEM()
	if err != nil {
		t.Fatal(err)
	}
	rsaPEM, err := rsaKey().PublicPEM()
	if err != nil {
		t.Fatal(err)
	}
	good := by(t, ecKey(), "", nil)
	parts := strings.Split(good, ".")
	now := time.Now()
	hs := jwt.SigningMethodHS256

	tests := []struct {
		name   string
		tokens *Tokens
		raw    string
		want   Reason
	}{
		{"valid hs256", secret, bySecret(t, nil), ""},
		{"valid local", local, good, ""},
		{"valid local RSA", localRSA, by(t, rsaKey(), "", nil), ""},
		{"valid remote EC", remote, by(t, ecKey(), "ec", nil), ""},
		{"valid remote RSA", remote, by(t, rsaKey(), "rsa", nil), ""},
		{"valid remote without kid", remote, by(t, rsaKey(), "", nil), ""},

		{"none", secret, forge(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil, claims(nil)), ReasonAlgorithm},
		{"none, asymmetric", local, forge(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil, claims(nil)), ReasonAlgorithm},
		{"nOnE", remote, forge(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, object{"alg": "nOnE"}, claims(nil)), ReasonAlgorithm},
		{"no alg", local, part(t, object{"typ": "JWT"}) + "." + parts[1] + "." + parts[2], ReasonAlgorithm},
		{"public key PEM as HMAC secret", local, forge(t, hs, ecPEM, nil, claims(nil)), ReasonAlgorithm},
		{"public RSA key PEM as HMAC secret", localRSA, forge(t, hs, rsaPEM, nil, claims(nil)), ReasonAlgorithm},
		{"public key as HMAC secret, remote", remote, forge(t, hs, ecPEM, object{"kid": "ec"}, claims(nil)), ReasonAlgorithm},
		{"HMAC secret of another mode", remote, bySecret(t, nil), ReasonAlgorithm},
		{"HS384 with the right secret", secret, forge(t, jwt.SigningMethodHS384, []byte(testSecret), nil, claims(nil)), ReasonAlgorithm},
		{"RS512 with the right key", localRSA, forge(t, jwt.SigningMethodRS512, rsaKey().private, nil, claims(nil)), ReasonAlgorithm},
		{"PS256 with the right key", remote, forge(t, jwt.SigningMethodPS256, rsaKey().private, object{"kid": "rsa"}, claims(nil)), ReasonAlgorithm},
		{"ES256 against hs256", secret, good, ReasonAlgorithm},
		{"RS256 against ES256", local, by(t, rsaKey(), "", nil), ReasonAlgorithm},
		{"key class chosen by the token", remote, by(t, rsaKey(), "ec", nil), ReasonUnknownKey},

		{"another secret", secret, forge(t, hs, []byte(strings.Repeat("k", 32)), nil, claims(nil)), ReasonBadSignature},
		{"another key", local, by(t, otherECKey(), "", nil), ReasonBadSignature},
		{"another key under a known kid", remote, by(t, otherECKey(), "ec", nil), ReasonBadSignature},
		{"another key without kid", remote, by(t, otherECKey(), "", nil), ReasonBadSignature},
		{"unknown kid", remote, by(t, ecKey(), "x", nil), ReasonUnknownKey},
		{"no signature", local, parts[0] + "." + parts[1] + ".", ReasonBadSignature},
		{"zero signature", local, parts[0] + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString(make([]byte, 64)), ReasonBadSignature},
		{"claims replaced", local, parts[0] + "." + part(t, claims(object{"sub": "root"})) + "." + parts[2], ReasonBadSignature},
		{"header replaced", local, part(t, object{"alg": "ES256"}) + "." + parts[1] + "." + parts[2], ReasonBadSignature},
		{"jwk of the attacker", local, forge(t, jwt.SigningMethodES256, otherECKey().private,
			object{"jwk": jwkOf(t, otherECKey().private.Public(), "own", nil), "kid": "own"}, claims(nil)), ReasonBadSignature},
		{"jku of the attacker", remote, forge(t, jwt.SigningMethodES256, otherECKey().private,
			object{"jku": elsewhere.URL, "kid": "ec"}, claims(nil)), ReasonBadSignature},
		{"x5u of the attacker", remote, forge(t, jwt.SigningMethodES256, otherECKey().private,
			object{"x5u": elsewhere.URL, "kid": "ec"}, claims(nil)), ReasonBadSignature},
		{"kid that is a path to an empty secret", secret, forge(t, hs, []byte{}, object{"kid": "../../../dev/null"}, claims(nil)), ReasonBadSignature},
		{"crit", local, forge(t, jwt.SigningMethodES256, ecKey().private,
			object{"crit": []string{"exp"}}, claims(nil)), ReasonMalformed},
		{"b64 false", local, forge(t, jwt.SigningMethodES256, ecKey().private,
			object{"crit": []string{"b64"}, "b64": false}, claims(nil)), ReasonMalformed},

		{"expired", secret, bySecret(t, object{"exp": now.Add(-5 * time.Minute).Unix()}), ReasonExpired},
		{"no expiry", secret, bySecret(t, object{"exp": nil}), ReasonExpired},
		{"expiry null", secret, forge(t, hs, []byte(testSecret), nil, object{"sub": "ann", "aud": "srv", "exp": nil}), ReasonMalformed},
		{"expiry a string", secret, bySecret(t, object{"exp": "9999999999"}), ReasonMalformed},
		{"expiry beyond the calendar", secret, bySecret(t, object{"exp": 1e300}), ReasonMalformed},
		{"expiry that would wrap", secret, bySecret(t, object{"exp": int64(1) << 62}), ReasonMalformed},
		{"expiry negative", secret, bySecret(t, object{"exp": -1}), ReasonMalformed},
		{"not yet valid", secret, bySecret(t, object{"nbf": now.Add(5 * time.Minute).Unix()}), ReasonNotYetValid},
		{"nbf a list", secret, bySecret(t, object{"nbf": []int{0}}), ReasonMalformed},
		{"no subject", secret, bySecret(t, object{"sub": nil}), ReasonSubject},
		{"empty subject", secret, bySecret(t, object{"sub": ""}), ReasonSubject},
		{"subject a number", secret, bySecret(t, object{"sub": 7}), ReasonMalformed},

		{"no audience", secret, bySecret(t, object{"aud": nil}), ReasonAudience},
		{"another audience", secret, bySecret(t, object{"aud": "other"}), ReasonAudience},
		{"audiences, none ours", secret, bySecret(t, object{"aud": []string{"srv2", "sr"}}), ReasonAudience},
		{"audience with ours inside", secret, bySecret(t, object{"aud": "other srv"}), ReasonAudience},
		{"empty audiences", secret, bySecret(t, object{"aud": []string{}}), ReasonAudience},
		{"audience of mixed types", secret, bySecret(t, object{"aud": []any{"srv", 1}}), ReasonMalformed},
		{"audience an object", secret, bySecret(t, object{"aud": object{"srv": true}}), ReasonMalformed},
		{"URL audience against hs256", secret, bySecret(t, object{"aud": "https://srv.test/mcp"}), ReasonAudience},
		{"audience of the bare URL", local, by(t, ecKey(), "", object{"aud": "https://srv.test"}), ReasonAudience},
		{"another issuer", local, by(t, ecKey(), "", object{"iss": "https://evil.test"}), ReasonIssuer},
		{"issuer with a slash more", local, by(t, ecKey(), "", object{"iss": testIssuer + "/"}), ReasonIssuer},
		{"no issuer", remote, by(t, ecKey(), "ec", object{"iss": nil}), ReasonIssuer},
		{"issuer a list", remote, by(t, ecKey(), "ec", object{"iss": []string{testIssuer}}), ReasonMalformed},
		{"claim in capitals", secret, bySecret(t, object{"sub": nil, "SUB": "ann"}), ReasonSubject},

		{"empty", secret, "", ReasonMissing},
		{"not a token", secret, "hello", ReasonMalformed},
		{"two parts", secret, parts[0] + "." + parts[1], ReasonMalformed},
		{"four parts", secret, good + ".x", ReasonMalformed},
		{"five parts, as encrypted tokens", secret, "a.b.c.d.e", ReasonMalformed},
		{"JSON serialization", secret, `{"payload":"` + parts[1] + `"}`, ReasonMalformed},
		{"padding", local, good + "==", ReasonMalformed},
		{"line break, which base64 skips", local, parts[0] + "." + parts[1] + "." + parts[2][:4] + "\n" + parts[2][4:], ReasonMalformed},
		{"second spelling of the signature", local, respell(good), ReasonMalformed},
		{"header null", secret, base64.RawURLEncoding.EncodeToString([]byte("null")) + "." + parts[1] + "." + parts[2], ReasonMalformed},
		{"claims an array", secret, parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte("[]")) + "." + parts[2], ReasonMalformed},
		{"claims with a second document", secret, parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{}{"a":1}`)) + "." + parts[2], ReasonMalformed},
		{"huge", secret, bySecret(t, object{"pad": strings.Repeat("x", MaxBytes)}), ReasonMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 { // the second time a good one comes from the cache
				wantReason(t, tt.tokens, tt.raw, tt.want)
			}
			if _, err := tt.tokens.Verify(t.Context(), tt.raw, Facts{}); err != nil {
				for _, p := range strings.Split(tt.raw, ".") {
					if len(p) > 8 && strings.Contains(err.Error(), p) {
						t.Errorf("the error %q holds part of the token", err)
					}
				}
			}
		})
	}
}

// respell changes the bits of the last character that carry nothing.
func respell(raw string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, raw[len(raw)-1])
	return raw[:len(raw)-1] + string(alphabet[last|1])
}

func TestAudience(t *testing.T) {
	replaced := localConfig(t, ecKey())
	replaced.ExpectedAudience = []string{"api://a", "api://b"}
	slash := localConfig(t, ecKey())
	slash.PublicURL = "https://srv.test/base/"
	tests := []struct {
		name string
		cfg  Config
		aud  any
		want Reason
	}{
		{"name", localConfig(t, ecKey()), "srv", ""},
		{"URL", localConfig(t, ecKey()), "https://srv.test/mcp", ""},
		{"array", localConfig(t, ecKey()), []string{"x", "https://srv.test/mcp"}, ""},
		{"URL under a path", slash, "https://srv.test/base/mcp", ""},
		{"replaced, first", replaced, "api://a", ""},
		{"replaced, second of an array", replaced, []string{"x", "api://b"}, ""},
		{"replaced, name no more", replaced, "srv", ReasonAudience},
		{"replaced, URL no more", replaced, "https://srv.test/mcp", ReasonAudience},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wantReason(t, newTokens(t, tt.cfg), by(t, ecKey(), "", object{"aud": tt.aud}), tt.want)
		})
	}
}

func TestIP(t *testing.T) {
	cfg := secretConfig()
	cfg.CheckIP = true
	checked := newTokens(t, cfg)
	tests := []struct {
		name  string
		claim any
		from  string // empty: unknown
		want  Reason
	}{
		{"no claim", nil, "192.0.2.1", ""},
		{"no claim, no address", nil, "", ""},
		{"same", "192.0.2.1", "192.0.2.1", ""},
		{"another", "192.0.2.1", "192.0.2.11", ReasonIP},
		{"address unknown", "192.0.2.1", "", ReasonIP},
		{"CIDR", "192.0.2.0/24", "192.0.2.77", ""},
		{"CIDR with host bits", "192.0.2.9/24", "192.0.2.77", ""},
		{"outside the CIDR", "192.0.2.0/24", "192.0.3.1", ReasonIP},
		{"mapped connection", "192.0.2.0/24", "::ffff:192.0.2.1", ""},
		{"mapped claim", "::ffff:192.0.2.1", "192.0.2.1", ""},
		{"mapped CIDR", "::ffff:192.0.2.0/120", "192.0.2.200", ""},
		{"outside the mapped CIDR", "::ffff:192.0.2.0/120", "192.0.3.200", ReasonIP},
		{"IPv6", "2001:db8::/32", "2001:db8::5", ""},
		{"IPv6 in another form", "2001:0DB8:0::1", "2001:db8::1", ""},
		{"IPv6 everything is not IPv4", "::/0", "192.0.2.1", ReasonIP},
		{"zone", "fe80::1", "fe80::1%eth0", ""},
		{"list in a string", "10.0.0.1, 192.0.2.1", "192.0.2.1", ""},
		{"array", []string{"10.0.0.0/8", "192.0.2.1"}, "10.9.9.9", ""},
		{"outside the array", []string{"10.0.0.0/8", "192.0.2.1"}, "11.9.9.9", ReasonIP},
		{"nonsense fits nobody", []string{"anywhere", "*"}, "192.0.2.1", ReasonIP},
		{"octal is no address", "192.0.02.1", "192.0.2.1", ReasonIP},
		{"empty string", "", "192.0.2.1", ReasonIP},
		{"empty array", []string{}, "192.0.2.1", ReasonIP},
		{"number", 7, "192.0.2.1", ReasonMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ip, err := netip.ParseAddr(tt.from)
			if tt.from != "" && err != nil {
				t.Fatal(err)
			}
			raw := bySecret(t, object{"ip": tt.claim})
			wantReasonFrom(t, checked, raw, ip, tt.want)
		})
	}
	t.Run("each call", func(t *testing.T) {
		raw := bySecret(t, object{"ip": "192.0.2.1"})
		wantReasonFrom(t, checked, raw, netip.MustParseAddr("192.0.2.1"), "")
		wantReasonFrom(t, checked, raw, netip.MustParseAddr("192.0.2.2"), ReasonIP)
	})
	t.Run("off", func(t *testing.T) {
		wantReason(t, newTokens(t, secretConfig()), bySecret(t, object{"ip": "192.0.2.1"}), "")
	})
}

func TestService(t *testing.T) {
	cfg := secretConfig()
	cfg.CheckServerName = true
	checked := newTokens(t, cfg)
	tests := []struct {
		name  string
		claim any
		want  Reason
	}{
		{"none", nil, ReasonService},
		{"ours", "srv", ""},
		{"list in a string", "other, srv", ""},
		{"array", []string{"other", "srv"}, ""},
		{"others", []string{"other"}, ReasonService},
		{"ours as a part", "srv-admin", ReasonService},
		{"part of ours", "sr", ReasonService},
		{"object", object{"srv": 1}, ReasonMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wantReason(t, checked, bySecret(t, object{"service": tt.claim}), tt.want)
		})
	}
}

func TestRevoked(t *testing.T) {
	cfg := localConfig(t, ecKey())
	stolen := by(t, ecKey(), "", object{"sub": "bob"})
	cfg.Revoked = Revoked{IDs: []string{"id-1"}, Tokens: []string{"  " + stolen + "\n"}, Subjects: []string{"eve"}}
	tokens := newTokens(t, cfg)
	tests := []struct {
		name string
		raw  string
		want Reason
	}{
		{"by jti", by(t, ecKey(), "", object{"jti": "id-1"}), ReasonRevoked},
		{"another jti", by(t, ecKey(), "", object{"jti": "id-12"}), ""},
		{"no jti", by(t, ecKey(), "", nil), ""},
		{"by user", by(t, ecKey(), "", object{"sub": "eve"}), ReasonRevoked},
		{"by token", stolen, ReasonRevoked},
		{"by token, with its other signature", malleate(t, stolen), ReasonRevoked},
		{"another token of the user", by(t, ecKey(), "", object{"sub": "bob", "jti": "2"}), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { wantReason(t, tokens, tt.raw, tt.want) })
	}
	t.Run("the other signature is a valid one", func(t *testing.T) {
		wantReason(t, newTokens(t, localConfig(t, ecKey())), malleate(t, stolen), "")
	})
	t.Run("an empty jti in the list revokes nothing", func(t *testing.T) {
		cfg := secretConfig()
		cfg.Revoked.IDs = []string{""}
		wantReason(t, newTokens(t, cfg), bySecret(t, nil), "")
	})
}
