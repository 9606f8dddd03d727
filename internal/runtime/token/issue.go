package token

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// ErrCannotIssue is the error of [Tokens.Issue] in the mode RemoteJWKS, whose
// provider makes the tokens, and in LocalKey without a private key.
var ErrCannotIssue = errors.New("this server makes no tokens: get one from its identity provider, or set privateKeyPath in the mode localKey")

// Grant is a token to be made. Only Subject must be set.
type Grant struct {
	Subject   string
	Audience  []string       // empty means the first of Tokens.Audiences; a Signer has none
	Issuer    string         // empty means Tokens.Issuer; a Signer has none
	Scopes    []string       // claim scope
	Services  []string       // claim service
	IPs       []string       // claim ip: addresses and CIDRs
	ID        string         // claim jti; empty means a random one
	TTL       time.Duration  // whole seconds; 0 means the configured life, and is refused by a Signer
	Uncapped  bool           // lets TTL exceed MaxTTL
	NotBefore time.Time      // zero means none
	Extra     map[string]any // further claims, none of them reserved
}

// Reserved reports whether the claim name is one that this package sets or
// checks, and so no [Grant] may have as an extra.
func Reserved(name string) bool {
	return slices.Contains([]string{"iss", "sub", "aud", "exp", "nbf", "iat", "jti", "scope", "scp", "service", "ip"}, name)
}

// Issue makes a token and returns it with its claims.
func (t *Tokens) Issue(g Grant) (string, *Claims, error) {
	signer := t.signer
	if t.store != nil {
		pair, _, err := t.store.load()
		if err != nil {
			return "", nil, err
		}
		signer = pair.Signer()
	}
	if signer == nil {
		return "", nil, ErrCannotIssue
	}
	if len(g.Audience) == 0 {
		g.Audience = t.audiences[:1]
	}
	if g.Issuer == "" {
		g.Issuer = t.cfg.Issuer
	}
	if g.TTL == 0 {
		g.TTL = t.cfg.DefaultTTL
	}
	return signer.Sign(g)
}

// Signer makes tokens with one key, without a server's configuration. It is
// safe for concurrent use.
type Signer struct {
	alg string
	kid string // empty means none
	key any    // []byte or crypto.Signer
}

// NewSecretSigner returns the signer of the mode HS256. The secret must be as
// strong as that of a configuration.
func NewSecretSigner(secret []byte) (*Signer, error) {
	if problem := weakSecret(secret); problem != "" {
		return nil, errors.New(problem)
	}
	return &Signer{alg: algHS256, key: slices.Clone(secret)}, nil
}

// Signer returns the signer of the pair.
func (k *KeyPair) Signer() *Signer {
	return &Signer{alg: string(k.alg), kid: k.kid, key: k.private}
}

// Sign makes a token and returns it with its claims. Subject and TTL must be
// set.
func (s *Signer) Sign(g Grant) (string, *Claims, error) {
	if err := g.check(); err != nil {
		return "", nil, err
	}
	now := time.Now().Truncate(time.Second)
	all := jwt.MapClaims{
		"sub": g.Subject, "iat": now.Unix(), "exp": now.Add(g.TTL).Unix(), "jti": g.ID,
	}
	if g.ID == "" {
		all["jti"] = rand.Text()
	}
	if g.Issuer != "" {
		all["iss"] = g.Issuer
	}
	if len(g.Audience) == 1 {
		all["aud"] = g.Audience[0]
	} else if len(g.Audience) > 1 {
		all["aud"] = g.Audience
	}
	if !g.NotBefore.IsZero() {
		all["nbf"] = g.NotBefore.Unix()
	}
	if len(g.Scopes) > 0 {
		all["scope"] = strings.Join(g.Scopes, " ")
	}
	if len(g.Services) > 0 {
		all["service"] = g.Services
	}
	if len(g.IPs) > 0 {
		all["ip"] = g.IPs
	}
	for name, v := range g.Extra {
		all[name] = v
	}

	tok := jwt.NewWithClaims(methods[s.alg], all)
	if s.kid != "" {
		tok.Header["kid"] = s.kid
	}
	raw, err := tok.SignedString(s.key)
	if err != nil {
		return "", nil, fmt.Errorf("signing a token: %w", err)
	}
	p, err := parse(raw)
	if err != nil {
		return "", nil, fmt.Errorf("these claims make a token that no server takes: %w", err)
	}
	return raw, p.claims, nil
}

// check refuses what would make a token that means something else than asked.
func (g *Grant) check() error {
	if g.Subject == "" {
		return errors.New("a token needs a subject")
	}
	if g.TTL < time.Second || g.TTL%time.Second != 0 {
		return fmt.Errorf("a token cannot live %s; use whole seconds above zero", g.TTL)
	}
	if g.TTL > MaxTTL && !g.Uncapped {
		return fmt.Errorf("%s is too long: %w", g.TTL, ErrTTLTooLong)
	}
	if slices.Contains(g.Audience, "") {
		return errors.New("an audience is empty; leave it out")
	}
	for _, scope := range g.Scopes { // RFC 6749 §3.3
		if scope == "" || strings.ContainsFunc(scope, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' || r == '\\' }) {
			return fmt.Errorf("%q is not a scope: printable ASCII without spaces, quotes and backslashes", scope)
		}
	}
	for _, service := range g.Services {
		if service == "" || strings.ContainsAny(service, ", ") {
			return fmt.Errorf("%q is not the name of a service: it is empty or has a space or comma", service)
		}
	}
	for _, ip := range g.IPs {
		if _, ok := parsePrefix(ip); !ok {
			return fmt.Errorf("%q is neither an address nor a CIDR such as 10.0.0.0/8", ip)
		}
	}
	for name, v := range g.Extra {
		if name == "" || Reserved(name) {
			return fmt.Errorf("the claim %q is reserved; use the option for it", name)
		}
		if _, err := json.Marshal(v); err != nil {
			return fmt.Errorf("the claim %q is no JSON: %w", name, err)
		}
	}
	return nil
}
