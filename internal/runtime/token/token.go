// Package token makes and checks JSON Web Tokens (RFC 7519) and keeps their
// keys. It serves no HTTP and knows no MCP: schemes, challenges and endpoints
// are those of package auth.
//
// What decides is always the configuration, never the token. A mode names its
// algorithms, each key has the one algorithm of its class, and a token's header
// only picks among those: alg none, a public key used as an HMAC secret, and
// keys or addresses carried by the token (jwk, jku, x5c, x5u) have no code that
// could accept them. A token with a crit header is refused, as this package
// understands no extension.
//
// Signature and decoding are done once per token: the result is cached under the
// token's digest until the key set changes. Times, audience, address and
// revocation are looked at on every call.
package token

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// MaxBytes is the length above which a token is refused unread.
const MaxBytes = 16 << 10

// Mode is where keys come from, the configuration's jwtToken.mode.
type Mode string

// The modes of contract.md §3.
const (
	HS256        Mode = "hs256"        // a shared secret, for development
	LegacyAESCTR Mode = "legacyAesCtr" // the same as HS256: tokens of the old encryption are not read
	Embedded     Mode = "embedded"     // keys made on first use in a directory
	LocalKey     Mode = "localKey"     // keys in PEM files
	RemoteJWKS   Mode = "remoteJwks"   // an identity provider's key set
)

// Algorithm is an asymmetric signature algorithm, the configuration's
// jwtToken.algorithm.
type Algorithm string

// The algorithms of the asymmetric modes.
const (
	ES256 Algorithm = "ES256" // ECDSA on P-256, the default
	RS256 Algorithm = "RS256" // RSA PKCS #1 v1.5, keys from 2048 bits
)

// algHS256 is the algorithm of the mode of that name.
const algHS256 = "HS256"

// Config is how tokens are made and checked. It is copied by [New]. Zero means
// none, unless a field says otherwise.
type Config struct {
	Mode           Mode      // empty means HS256
	Secret         []byte    // HS256: at least MinSecretBytes
	Algorithm      Algorithm // Embedded and LocalKey; empty means ES256. RemoteJWKS accepts both, each by its own class of keys
	KeyDir         string    // Embedded: where the key is kept
	PublicKeyFile  string    // LocalKey: PEM, a public key or a certificate
	PrivateKeyFile string    // LocalKey: PEM; empty means that no tokens are made
	JWKSURL        string    // RemoteJWKS

	ServerName       string   // accepted audience, and the element required in the claim service
	PublicURL        string   // with /mcp an accepted audience of the asymmetric modes
	Issuer           string   // claim iss of tokens made here; empty means ExpectedIssuer
	ExpectedIssuer   string   // required claim iss; must be set in the asymmetric modes
	ExpectedAudience []string // replaces ServerName and PublicURL

	CheckServerName bool // the claim service must contain ServerName
	CheckIP         bool // the claim ip is enforced

	Revoked Revoked

	CacheTTL   time.Duration // RemoteJWKS: age at which a key set is fetched anew; 0 means MaxCacheTTL, which is also the most
	Cooldown   time.Duration // RemoteJWKS: least time between two fetches for the sake of a token; 0 means 30 s
	Skew       time.Duration // forgiven clock difference, both ways, at most MaxSkew
	DefaultTTL time.Duration // life of tokens made without one; 0 means 30 min

	Production bool         // only changes what is warned about
	HTTPClient *http.Client // for the key set; nil means one with the default transport. Its CheckRedirect is replaced
	Logger     *slog.Logger // nil discards
}

// Revoked lists what is refused although it is valid.
type Revoked struct {
	IDs      []string // values of the claim jti
	Tokens   []string // whole tokens
	Subjects []string // values of the claim sub
}

// Facts are what is known of the caller beside the token.
type Facts struct {
	IP netip.Addr // the caller's address; the zero value satisfies no claim ip
}

// Tokens makes and checks tokens. It is safe for concurrent use and starts
// nothing that outlives a bounded fetch, so it needs no closing.
type Tokens struct {
	cfg       Config
	log       *slog.Logger
	algs      []string // algorithms a token may name
	audiences []string // values of aud, one of which a token must have

	revokedID      map[string]struct{}
	revokedSubject map[string]struct{}
	revokedToken   map[digest]struct{} // of what is signed, see signedDigest

	fixed  *keySet    // HS256 and LocalKey
	signer *Signer    // HS256, and LocalKey with a private key
	store  *keyStore  // Embedded
	remote *remoteSet // RemoteJWKS
	cache  *cache
}

type digest = [sha256.Size]byte

// New checks cfg and reads the key files of LocalKey. Each refusal is a
// [*ConfigError] in the joined error. It makes no key and opens no connection:
// see [Tokens.Start].
func New(cfg Config) (*Tokens, error) {
	cfg, err := complete(cfg)
	if err != nil {
		return nil, err
	}
	t := &Tokens{
		cfg:            cfg,
		log:            cfg.Logger,
		audiences:      cfg.ExpectedAudience,
		revokedID:      set(cfg.Revoked.IDs),
		revokedSubject: set(cfg.Revoked.Subjects),
		revokedToken:   make(map[digest]struct{}),
		cache:          newCache(),
	}
	for _, raw := range cfg.Revoked.Tokens {
		t.revokedToken[signedDigest(strings.TrimSpace(raw))] = struct{}{}
	}
	if len(t.audiences) == 0 {
		t.audiences = []string{cfg.ServerName}
		if cfg.Mode != HS256 && cfg.PublicURL != "" {
			t.audiences = append(t.audiences, strings.TrimRight(cfg.PublicURL, "/")+"/mcp")
		}
	}
	switch cfg.Mode {
	case HS256:
		t.algs = []string{algHS256}
		t.fixed = &keySet{keys: []verifyKey{{alg: algHS256, key: cfg.Secret}}, anyKID: true}
		t.signer, err = NewSecretSigner(cfg.Secret)
		if cfg.Production {
			t.log.Warn("SECURITY: tokens are signed with a shared secret (jwtToken.mode hs256), which is for development: " +
				"whoever can check a token can make one; use embedded, localKey or remoteJwks in production")
		}
	case Embedded:
		t.algs = []string{string(cfg.Algorithm)}
		t.store = &keyStore{dir: cfg.KeyDir, alg: cfg.Algorithm, log: t.log}
	case LocalKey:
		t.algs = []string{string(cfg.Algorithm)}
		err = t.loadLocal()
	case RemoteJWKS:
		t.algs = []string{string(ES256), string(RS256)}
		t.remote = newRemoteSet(cfg, t.log)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// loadLocal reads the key files of the mode LocalKey.
func (t *Tokens) loadLocal() error {
	public, err := readPublicKey(t.cfg.PublicKeyFile, t.cfg.Algorithm)
	if err != nil {
		return refuse("publicKeyPath", "%v", err)
	}
	t.fixed = &keySet{keys: []verifyKey{public}, anyKID: true}
	if t.cfg.PrivateKeyFile == "" {
		return nil
	}
	pair, err := ReadKeyPair(t.cfg.PrivateKeyFile, t.cfg.Algorithm)
	if err != nil {
		return refuse("privateKeyPath", "%v", err)
	}
	if pair.KeyID() != public.kid {
		return refuse("privateKeyPath", "%s is not the private half of %s, so tokens made here would be refused here; set a matching pair",
			t.cfg.PrivateKeyFile, t.cfg.PublicKeyFile)
	}
	t.signer = pair.Signer()
	return nil
}

// Start makes or reads the key of the mode Embedded, whose error should end the
// start, and begins the first fetch of RemoteJWKS without waiting for it: a
// provider that is down is no reason not to start. Without Start both happen on
// first use.
func (t *Tokens) Start() error {
	switch {
	case t.store != nil:
		_, _, err := t.store.load()
		return err
	case t.remote != nil:
		t.remote.start(time.Now(), false)
	}
	return nil
}

// Ready reports why tokens cannot be checked now, for a readiness probe: nil, or
// a [*Error] with [ReasonUnavailable]. It tries what is missing itself, within
// ctx and the bound of a fetch, so that a probe alone brings a server up once
// its provider is back.
func (t *Tokens) Ready(ctx context.Context) error {
	_, err := t.keys(ctx)
	return err
}

// Audiences returns the values of the claim aud that are accepted, the first
// being that of tokens made here.
func (t *Tokens) Audiences() []string { return append([]string(nil), t.audiences...) }

// Issuer returns the claim iss of tokens made here, or, in the mode RemoteJWKS,
// the one expected. Empty means none.
func (t *Tokens) Issuer() string { return t.cfg.Issuer }

// Until returns when c stops being accepted: its expiry, with the skew that is
// forgiven.
func (t *Tokens) Until(c *Claims) time.Time { return c.ExpiresAt.Add(t.cfg.Skew) }

// CanIssue reports whether [Tokens.Issue] can work in this mode.
func (t *Tokens) CanIssue() bool { return t.signer != nil || t.store != nil }

// Verify checks raw, the token alone without a scheme, and returns its claims.
// They are shared with other callers and must not be changed. Every error is an
// [*Error] whose text holds no part of the token; that of a canceled ctx has
// [ReasonUnavailable] and wraps ctx's error.
func (t *Tokens) Verify(ctx context.Context, raw string, facts Facts) (*Claims, error) {
	if raw == "" {
		return nil, fail(ReasonMissing, "no token was sent")
	}
	c, err := t.authentic(ctx, raw)
	if err != nil {
		return nil, err
	}
	if problems := t.problems(c, facts, time.Now()); len(problems) > 0 {
		return nil, problems[0]
	}
	return c, nil
}

// authentic returns the claims of a token whose signature is good, whatever
// they say.
func (t *Tokens) authentic(ctx context.Context, raw string) (*Claims, error) {
	if c, generation, ok := t.cache.get(raw); ok {
		keys, err := t.keys(ctx)
		if err != nil {
			return nil, err
		}
		if keys.generation == generation {
			return c, nil
		}
	}
	p, err := parse(raw)
	if err != nil {
		return nil, err
	}
	if !contains(t.algs, p.alg) {
		return nil, fail(ReasonAlgorithm, "the token's algorithm is not one that is accepted here")
	}
	keys, err := t.keys(ctx)
	if err != nil {
		return nil, err
	}
	err = keys.verify(p)
	if err != nil && t.remote != nil {
		newer, outage := t.remote.again(ctx, keys)
		switch {
		case newer != nil:
			keys = newer
			err = keys.verify(p)
		case outage != nil && ReasonOf(err) == ReasonUnknownKey:
			err = outage // the key may be one the provider has added
		}
	}
	if err != nil {
		return nil, err
	}
	t.cache.put(raw, p.claims, keys.generation)
	return p.claims, nil
}

// keys returns what signatures are checked with now.
func (t *Tokens) keys(ctx context.Context) (*keySet, error) {
	switch {
	case t.remote != nil:
		return t.remote.current(ctx)
	case t.store != nil:
		_, keys, err := t.store.load()
		if err != nil {
			return nil, &Error{Reason: ReasonUnavailable, Text: "the keys cannot be read", Cause: err}
		}
		return keys, nil
	default:
		return t.fixed, nil
	}
}

// ErrNoPublicKeys is the error of [Tokens.PublicJWKS] in a mode that publishes
// no keys.
var ErrNoPublicKeys = errors.New("this mode has no public keys of its own")

// PublicJWKS returns the JSON of the public key set (RFC 7517) of the modes
// Embedded and LocalKey, and ErrNoPublicKeys in the others.
func (t *Tokens) PublicJWKS() ([]byte, error) {
	switch {
	case t.store != nil:
		_, keys, err := t.store.load()
		if err != nil {
			return nil, err
		}
		return keys.public()
	case t.cfg.Mode == LocalKey:
		return t.fixed.public()
	default:
		return nil, ErrNoPublicKeys
	}
}

func set(values []string) map[string]struct{} {
	m := make(map[string]struct{}, len(values))
	for _, v := range values {
		m[v] = struct{}{}
	}
	return m
}
