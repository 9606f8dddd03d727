package token

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func ecEntry(t testing.TB, key *KeyPair, kid string, changes object) object {
	t.Helper()
	return jwkOf(t, key.private.Public(), kid, changes)
}

func TestParseJWKS(t *testing.T) {
	ec := func(changes object) object { return ecEntry(t, ecKey(), "ec", changes) }
	rsaEntry := func(changes object) object { return ecEntry(t, rsaKey(), "rsa", changes) }
	tests := []struct {
		name string
		keys []any
		want []string // kid and alg; nil: the set is refused
	}{
		{"both", []any{ec(nil), rsaEntry(nil)}, []string{"ec ES256", "rsa RS256"}},
		{"without alg", []any{ec(object{"alg": nil}), rsaEntry(object{"alg": nil})}, []string{"ec ES256", "rsa RS256"}},
		{"without use", []any{ec(object{"use": nil})}, []string{"ec ES256"}},
		{"without kid", []any{ec(object{"kid": nil})}, []string{" ES256"}},
		{"mixed with what is not understood", []any{
			rsaEntry(nil),
			object{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "kid": "ed"},
			object{"kty": "OKP", "crv": "X448", "x": "AA", "kid": "x448"},
			object{"kty": "AKP", "alg": "ML-DSA-65", "pub": "AA", "kid": "pq"},
			object{"kty": "oct", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3I", "kid": "shared"},
			object{"kty": "new"},
			object{},
			"text", 7, nil,
			[]int{1},
			ec(object{"use": "enc", "kid": "enc"}),
			ec(object{"key_ops": []string{"deriveKey"}, "kid": "derive"}),
			ec(nil),
		}, []string{"rsa RS256", "ec ES256"}},
		{"key_ops verify", []any{ec(object{"key_ops": []string{"verify"}})}, []string{"ec ES256"}},
		{"only enc", []any{ec(object{"use": "enc"})}, nil},
		{"EC key said to be RSA", []any{ec(object{"alg": "RS256"})}, nil},
		{"EC key said to be HMAC", []any{ec(object{"alg": "HS256"})}, nil},
		{"RSA for another hash", []any{rsaEntry(object{"alg": "RS512"})}, nil},
		{"RSA for PSS", []any{rsaEntry(object{"alg": "PS256"})}, nil},
		{"small RSA", []any{rsaEntry(object{"n": strings.Repeat("x", 171)})}, nil},
		{"huge RSA", []any{rsaEntry(object{"n": strings.Repeat("x", 1400)})}, nil},
		{"point not on the curve", []any{ec(object{"x": strings.Repeat("A", 43)})}, nil},
		{"other curve", []any{ec(object{"crv": "P-384"})}, nil},
		{"published private key", []any{ec(object{"d": "AQAB"})}, nil},
		{"member of another type", []any{ec(object{"x": 7})}, nil},
		{"certificates are not looked at", []any{ec(object{"x5c": []string{"nonsense"}, "x5u": "https://evil.test"})}, []string{"ec ES256"}},
		{"none", []any{}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			keys, err := parseJWKS(jwks(t, tt.keys...))
			var got []string
			for _, k := range keys {
				got = append(got, k.kid+" "+k.alg)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || (err != nil) != (tt.want == nil) {
				t.Errorf("keys, error %v (-want +got):\n%s", err, diff)
			}
		})
	}
	for _, body := range []string{"", "null", "[]", `{"keys":{}}`, "<html>", `{"keys":[]} x`} {
		if keys, err := parseJWKS([]byte(body)); err == nil {
			t.Errorf("%q is read as %v", body, keys)
		}
	}
	many := make([]any, 3*maxJWKSKeys)
	for i := range many {
		many[i] = ec(object{"kid": strconv.Itoa(i)})
	}
	if keys, err := parseJWKS(jwks(t, many...)); err != nil || len(keys) != maxJWKSKeys {
		t.Errorf("%d keys, %v, want %d", len(keys), err, maxJWKSKeys)
	}
}

func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{body: jwks(t, ecEntry(t, ecKey(), "1", nil))}
		tokens := newTokens(t, remoteConfig(p))
		long := object{"exp": time.Now().Add(24 * time.Hour).Unix()}
		first, second := by(t, ecKey(), "1", long), by(t, otherECKey(), "2", long)
		hits := func(want int) {
			t.Helper()
			if got := p.count(); got != want {
				t.Fatalf("%d fetches, want %d", got, want)
			}
		}

		hits(0) // New opens no connection
		wantReason(t, tokens, first, "")
		wantReason(t, tokens, first, "")
		hits(1)

		p.serve(jwks(t, ecEntry(t, ecKey(), "1", nil), ecEntry(t, otherECKey(), "2", nil)))
		wantReason(t, tokens, second, "") // at once
		wantReason(t, tokens, first, "")
		hits(2)

		// Unknown kids and wrong signatures share one fetch per cool-down.
		for range 5 {
			wantReason(t, tokens, by(t, ecKey(), "3", nil), ReasonUnknownKey)
			wantReason(t, tokens, by(t, otherECKey(), "1", nil), ReasonBadSignature)
		}
		hits(2)
		time.Sleep(defaultCooldown)
		for range 5 {
			wantReason(t, tokens, by(t, ecKey(), "3", nil), ReasonUnknownKey)
			wantReason(t, tokens, by(t, otherECKey(), "1", nil), ReasonBadSignature)
		}
		hits(3)
		wantReason(t, tokens, second, "") // none of this shut out a valid caller

		// What needs no key asks for none.
		time.Sleep(defaultCooldown)
		wantReason(t, tokens, "x.y.z", ReasonMalformed)
		wantReason(t, tokens, bySecret(t, nil), ReasonAlgorithm)
		hits(3)

		// A withdrawn key stops within the TTL, also for a cached token.
		p.serve(jwks(t, ecEntry(t, otherECKey(), "2", nil)))
		wantReason(t, tokens, first, "")
		time.Sleep(MaxCacheTTL)
		wantReason(t, tokens, first, ReasonUnknownKey)
		wantReason(t, tokens, second, "")
	})
}

// D12: a provider puts new material under an old kid.
func TestSameKIDNewMaterial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{body: jwks(t, ecEntry(t, ecKey(), "k", nil))}
		tokens := newTokens(t, remoteConfig(p))
		old := by(t, ecKey(), "k", nil)
		wantReason(t, tokens, old, "")
		p.serve(jwks(t, ecEntry(t, otherECKey(), "k", nil)))
		wantReason(t, tokens, by(t, otherECKey(), "k", nil), "")
		wantReason(t, tokens, old, ReasonBadSignature) // although it was cached
		wantReason(t, tokens, old, ReasonBadSignature)
		if got := p.count(); got != 2 {
			t.Errorf("%d fetches, want 2", got)
		}
	})
}

func TestOutageAfterWarmUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{body: jwks(t, ecEntry(t, ecKey(), "1", nil))}
		tokens := newTokens(t, remoteConfig(p))
		wantReason(t, tokens, by(t, ecKey(), "1", nil), "")
		for name, fail := range map[string]func(){"down": func() { p.down = true }, "hangs": func() { p.hang = true }, "nonsense": func() { p.body = []byte("<html>") }} {
			p.set(fail)
			time.Sleep(MaxCacheTTL) // the set is too old
			waited := 0
			for range 200 { // over hours
				at := time.Now()
				wantReason(t, tokens, by(t, ecKey(), "1", nil), "")
				if time.Since(at) > 0 {
					waited++
				}
				time.Sleep(time.Minute)
			}
			if waited > 1 {
				t.Errorf("%s: %d callers waited for a provider that is out, want at most the first", name, waited)
			}
			wantReason(t, tokens, by(t, otherECKey(), "new", nil), ReasonUnavailable)
			wantReason(t, tokens, by(t, otherECKey(), "1", nil), ReasonBadSignature)
			if err := tokens.Ready(t.Context()); err != nil {
				t.Errorf("%s: not ready: %v", name, err)
			}

			p.set(func() { p.down, p.hang, p.body = false, false, jwks(t, ecEntry(t, ecKey(), "1", nil)) })
			time.Sleep(defaultCooldown)
			wantReason(t, tokens, by(t, ecKey(), "1", nil), "")
			synctest.Wait()
			wantReason(t, tokens, by(t, otherECKey(), "1", nil), ReasonBadSignature)
			wantReason(t, tokens, by(t, otherECKey(), "new", nil), ReasonUnknownKey) // it answers again
		}
	})
}

func TestColdStart(t *testing.T) {
	for name, fail := range map[string]func(*provider){"down": func(p *provider) { p.down = true }, "hangs": func(p *provider) { p.hang = true }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				p := &provider{body: jwks(t, ecEntry(t, ecKey(), "1", nil))}
				fail(p)
				cfg := remoteConfig(p)
				cfg.JWKSURL += "?key=hush"
				cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
				tokens := newTokens(t, cfg)
				if err := tokens.Start(); err != nil {
					t.Fatalf("Start: %v, but the process should be up", err)
				}
				raw := by(t, ecKey(), "1", object{"exp": time.Now().Add(24 * time.Hour).Unix()})
				for range 50 {
					at := time.Now()
					_, err := tokens.Verify(t.Context(), raw, Facts{})
					if ReasonOf(err) != ReasonUnavailable || strings.Contains(err.Error(), "id.test") || strings.Contains(err.Error(), "refused") {
						t.Fatalf("error %v, want one without internals", err)
					}
					if took := time.Since(at); took >= 5*time.Second {
						t.Fatalf("an answer took %v", took)
					}
					if ReasonOf(tokens.Ready(t.Context())) != ReasonUnavailable {
						t.Fatal("ready without keys")
					}
					time.Sleep(time.Second)
				}
				wantReason(t, tokens, "nonsense", ReasonMalformed)
				if got := p.count(); got > 10 {
					t.Errorf("%d fetches in a minute, want them to slow down", got)
				}

				p.set(func() { p.down, p.hang = false, false })
				time.Sleep(defaultCooldown + fetchTimeout)
				if err := tokens.Ready(t.Context()); err != nil { // the probe alone brings it up
					t.Errorf("not ready after the provider is back: %v", err)
				}
				wantReason(t, tokens, raw, "")
				if strings.Contains(log.String(), "hush") {
					t.Errorf("the log holds the query of the URL:\n%s", log.String())
				}
			})
		})
	}
}

// One fetch serves all who wait, and each leaves when its own context ends.
func TestSingleFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		p := &provider{body: jwks(t, ecEntry(t, ecKey(), "1", nil))}
		tokens := newTokens(t, remoteConfig(roundTripper(func(req *http.Request) (*http.Response, error) {
			<-release
			return p.RoundTrip(req)
		})))
		raw := by(t, ecKey(), "1", nil)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { wantReason(t, tokens, raw, "") })
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := tokens.Verify(ctx, raw, Facts{})
		if ReasonOf(err) != ReasonUnavailable || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the context's", err)
		}
		close(release)
		wg.Wait()
		if got := p.count(); got != 1 {
			t.Errorf("%d fetches, want 1", got)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestHostileProvider is about a provider over a real connection.
func TestHostileProvider(t *testing.T) {
	good := jwks(t, ecEntry(t, ecKey(), "1", nil))
	trap := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		t.Error("a redirect was followed to another origin")
		_, _ = w.Write(good)
	}))
	defer trap.Close()
	flood := func(w http.ResponseWriter, _ *http.Request) {
		for chunk := bytes.Repeat([]byte(" "), 64<<10); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	tests := []struct {
		name    string
		handler http.HandlerFunc
		want    Reason
	}{
		{"good", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(good) }, ""},
		{"of any content type", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = w.Write(good)
		}, ""},
		{"redirect within", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/keys" {
				http.Redirect(w, r, "/moved", http.StatusFound)
				return
			}
			_, _ = w.Write(good)
		}, ""},
		{"redirect elsewhere", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, trap.URL, http.StatusFound) }, ReasonUnavailable},
		{"redirect for ever", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/keys", http.StatusFound) }, ReasonUnavailable},
		{"error", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write(good)
		}, ReasonUnavailable},
		{"flood", flood, ReasonUnavailable},
		{"cut off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9999")
			_, _ = w.Write(good)
		}, ReasonUnavailable},
		{"one byte too long", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(good)
			_, _ = w.Write(bytes.Repeat([]byte(" "), maxJWKSBytes+1-len(good)))
		}, ReasonUnavailable},
		{"as long as can be", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(good)
			_, _ = w.Write(bytes.Repeat([]byte(" "), maxJWKSBytes-len(good)))
		}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var requests atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				tt.handler(w, r)
			}))
			defer server.Close()
			cfg := remoteConfig(nil)
			cfg.JWKSURL, cfg.HTTPClient = server.URL+"/keys", nil
			wantReason(t, newTokens(t, cfg), by(t, ecKey(), "1", nil), tt.want)
			if got := requests.Load(); got > 1+maxRedirects {
				t.Errorf("%d requests for one fetch", got)
			}
		})
	}
}

// A provider that trickles is cut off by the timeout, and nothing stays behind.
func TestTricklingProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := newTokens(t, remoteConfig(roundTripper(func(req *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(trickle{req.Context()}), Request: req}, nil
		})))
		began := time.Now()
		wantReason(t, tokens, by(t, ecKey(), "1", nil), ReasonUnavailable)
		if took := time.Since(began); took != fetchTimeout {
			t.Errorf("took %v, want %v", took, fetchTimeout)
		}
	}) // which fails when a goroutine is left
}

type trickle struct{ ctx context.Context }

func (r trickle) Read(p []byte) (int, error) {
	select {
	case <-time.After(100 * time.Millisecond):
		p[0] = ' '
		return 1, nil
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	}
}

// Keys change under load; run with the race detector.
func TestConcurrentRotation(t *testing.T) {
	sets := [][]byte{
		jwks(t, ecEntry(t, ecKey(), "1", nil), ecEntry(t, otherECKey(), "2", nil)),
		jwks(t, ecEntry(t, ecKey(), "1", nil)),
	}
	p := &provider{body: sets[0]}
	cfg := remoteConfig(p)
	cfg.CacheTTL, cfg.Cooldown = time.Nanosecond, time.Nanosecond // a fetch for each call
	tokens := newTokens(t, cfg)
	stays, comes := by(t, ecKey(), "1", nil), by(t, otherECKey(), "2", nil)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) * 2 {
		wg.Go(func() {
			for i := range 50 {
				p.serve(sets[i%2])
				wantReason(t, tokens, stays, "")
				if _, err := tokens.Verify(t.Context(), comes, Facts{}); err != nil && ReasonOf(err) != ReasonUnknownKey {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
