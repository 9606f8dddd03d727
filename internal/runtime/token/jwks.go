package token

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Bounds of a fetch and of what it brings.
const (
	fetchTimeout = 4 * time.Second // a caller who waits for it is answered within 5 s
	maxJWKSBytes = 512 << 10
	maxJWKSKeys  = 100 // of those that can be used
	maxRedirects = 3
)

// remoteSet is the key set of an identity provider.
//
// A set is fetched by whoever needs it, by one goroutine at a time that ends
// with the fetch; all others wait for that one, each within its own context.
// Three things cause a fetch:
//
//   - age: past the TTL a set is fetched before it is used again, and shortly
//     before without anybody waiting. When that fails the old set goes on
//     serving, and nobody waits again until the provider has answered once;
//   - a token whose kid is unknown or whose signature is wrong: the provider may
//     have added a key, or put new material under an old kid. At most one fetch
//     per cool-down, whoever asks;
//   - nothing fetched yet.
//
// After a failure the next fetch waits, one second at first and twice as long
// each time, up to the cool-down.
type remoteSet struct {
	url      string
	client   *http.Client
	ttl      time.Duration
	cooldown time.Duration
	log      *slog.Logger

	set atomic.Pointer[keySet] // the last good one; nil before

	mu       sync.Mutex
	flight   *flight   // the fetch that is under way; nil when none is
	tried    time.Time // begin of the last fetch
	failures int       // in a row
	err      error     // of the last fetch
	asked    time.Time // begin of the last fetch for a token
}

type flight struct {
	done    chan struct{}
	patient bool // the provider is not known to be out: it can be waited for
}

func newRemoteSet(cfg Config, log *slog.Logger) *remoteSet {
	client := http.Client{}
	if cfg.HTTPClient != nil {
		client = *cfg.HTTPClient
	}
	client.CheckRedirect = sameOrigin
	if u, err := url.Parse(cfg.JWKSURL); err == nil && u.Scheme == "http" && cfg.Production {
		log.Warn("SECURITY: the key set (jwtToken.jwksUri) is fetched over plain http: " +
			"whoever is on the way can replace the keys; use https in production")
	}
	return &remoteSet{url: cfg.JWKSURL, client: &client, ttl: cfg.CacheTTL, cooldown: cfg.Cooldown, log: log}
}

// sameOrigin lets a provider move its key set about, but never sends the fetch
// elsewhere: to an address inside the network, or from https to http.
func sameOrigin(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	if req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
		return errors.New("the key set redirects to another origin; set jwksUri to where it is")
	}
	if len(via) > maxRedirects {
		return errors.New("the key set redirects too often")
	}
	return nil
}

// current returns the set to use now.
func (r *remoteSet) current(ctx context.Context) (*keySet, error) {
	s, now := r.set.Load(), time.Now()
	if s != nil {
		age := now.Sub(s.fetched)
		if age < r.ttl*4/5 {
			return s, nil
		}
		if age < r.ttl {
			r.start(now, false)
			return s, nil
		}
	}
	f := r.start(now, false)
	if s != nil && (f == nil || !f.patient) {
		return s, nil
	}
	if err := r.wait(ctx, f); err != nil && s == nil {
		return nil, err
	}
	if newer := r.set.Load(); newer != nil {
		return newer, nil
	}
	return nil, r.outage()
}

// again returns a set newer than seen for the sake of a token that seen does
// not verify, or nil when there is none. outage tells that there is none because
// the provider does not answer.
func (r *remoteSet) again(ctx context.Context, seen *keySet) (newer *keySet, outage error) {
	if s := r.set.Load(); s != seen {
		return s, nil
	}
	if f := r.start(time.Now(), true); f != nil {
		if err := r.wait(ctx, f); err != nil {
			return nil, err
		}
	}
	if s := r.set.Load(); s != seen {
		return s, nil
	}
	return nil, r.outage()
}

// start returns the fetch under way, or a new one, or nil when it is too early
// for one. token tells that a token asks, which it may once per cool-down.
func (r *remoteSet) start(now time.Time, token bool) *flight {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.flight != nil {
		return r.flight
	}
	if r.failures > 0 && now.Sub(r.tried) < r.backoff() {
		return nil
	}
	if token {
		if !r.asked.IsZero() && now.Sub(r.asked) < r.cooldown {
			return nil
		}
		r.asked = now
	}
	r.tried = now
	r.flight = &flight{done: make(chan struct{}), patient: r.failures == 0}
	go r.fly(r.flight)
	return r.flight
}

func (r *remoteSet) backoff() time.Duration {
	return min(time.Second<<min(r.failures-1, 10), r.cooldown)
}

// wait waits for f, nil being one that is over.
func (r *remoteSet) wait(ctx context.Context, f *flight) error {
	if f == nil {
		return nil
	}
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
		return unavailable(ctx.Err())
	}
}

// outage returns the error of the last fetch, nil when it went well.
func (r *remoteSet) outage() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		return nil
	}
	return unavailable(r.err)
}

func unavailable(cause error) error {
	return &Error{Reason: ReasonUnavailable, Text: "tokens cannot be checked right now; try again later", Cause: cause}
}

// fly runs one fetch. It outlives the caller that caused it, as others wait for
// it too, and is bounded by its own timeout.
func (r *remoteSet) fly(f *flight) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	keys, err := r.fetch(ctx)

	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(f.done)
	r.flight = nil
	r.err = err
	if err != nil {
		r.failures++
		r.log.Warn("fetching the key set for tokens", "err", err, "failures", r.failures, "stale", r.set.Load() != nil)
		return
	}
	if r.failures > 0 {
		r.log.Info("the key set for tokens can be fetched again", "failures", r.failures)
	}
	r.failures = 0
	next := &keySet{keys: keys, fetched: time.Now(), generation: 1}
	if last := r.set.Load(); last != nil {
		next.generation = last.generation
		if !reflect.DeepEqual(last.keys, keys) {
			next.generation++
		}
	}
	r.set.Store(next)
}

func (r *remoteSet) fetch(ctx context.Context) ([]verifyKey, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	resp, err := r.client.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the URL, whose query may hold a credential
		}
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the provider answered HTTP %d", resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxJWKSBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading the key set: %w", err)
	}
	if len(body) > maxJWKSBytes {
		return nil, errors.New("the key set is longer than 512 KiB")
	}
	return parseJWKS(body)
}

// parseJWKS returns the keys of a set that can check tokens here and passes over
// the others: RFC 7517 §5 has unknown kinds ignored, and a set that fails as a
// whole would lock everybody out the day its provider adds a post-quantum key.
func parseJWKS(body []byte) ([]verifyKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, errors.New("the key set is not a JSON object with keys")
	}
	var keys []verifyKey
	for _, raw := range set.Keys {
		if key, ok := parseJWK(raw); ok && len(keys) < maxJWKSKeys {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("the key set has no key for ES256 or RS256")
	}
	return keys, nil
}

// jwk are the members of a key that matter. Certificates and their addresses
// are left out before the library sees the key.
type jwk struct {
	Kty string          `json:"kty"`
	KID string          `json:"kid,omitempty"`
	Crv string          `json:"crv,omitempty"`
	X   string          `json:"x,omitempty"`
	Y   string          `json:"y,omitempty"`
	N   string          `json:"n,omitempty"`
	E   string          `json:"e,omitempty"`
	Use string          `json:"use,omitempty"`
	Ops []string        `json:"key_ops,omitempty"`
	Alg string          `json:"alg,omitempty"`
	D   json.RawMessage `json:"d,omitempty"`
}

func parseJWK(raw []byte) (verifyKey, bool) {
	var m jwk
	if json.Unmarshal(raw, &m) != nil || m.Kty != "EC" && m.Kty != "RSA" {
		return verifyKey{}, false
	}
	if m.Use != "" && m.Use != "sig" || len(m.Ops) > 0 && !slices.Contains(m.Ops, "verify") {
		return verifyKey{}, false
	}
	if m.D != nil { // a private key that is published signs for everybody
		return verifyKey{}, false
	}
	public, err := json.Marshal(jwk{Kty: m.Kty, Crv: m.Crv, X: m.X, Y: m.Y, N: m.N, E: m.E})
	if err != nil {
		return verifyKey{}, false
	}
	var key jose.JSONWebKey
	if key.UnmarshalJSON(public) != nil {
		return verifyKey{}, false
	}
	alg, err := classOf(key.Key)
	if err != nil || m.Alg != "" && m.Alg != string(alg) {
		return verifyKey{}, false
	}
	return verifyKey{kid: m.KID, alg: string(alg), key: key.Key}, true
}
