package token

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Claims are what a token says. A value returned by [Tokens.Verify] is shared
// and must not be changed.
type Claims struct {
	Subject   string
	Issuer    string
	Audience  []string  // a string claim is one element
	ID        string    // jti
	ExpiresAt time.Time // zero means absent, as below
	NotBefore time.Time
	IssuedAt  time.Time
	Scopes    []string // scope, space separated or an array; when absent, scp in the same forms
	Services  []string // service, separated by spaces or commas, or an array
	IPs       []string // ip, in the forms of service: addresses and CIDRs

	all   map[string]any
	hasIP bool   // an empty claim ip lets nobody in
	token digest // of what is signed
}

// Map returns a copy of all claims, as JSON decodes them but for numbers, which
// are json.Number so that long identifiers keep their digits.
func (c *Claims) Map() map[string]any { return Clone(c.all).(map[string]any) }

// All is [Claims.Map] without the copy: what it returns must not be changed.
func (c *Claims) All() map[string]any { return c.all }

// Has reports whether the claim name is value or, being an array or a string
// separated by spaces, contains it.
func (c *Claims) Has(name, value string) bool {
	list, err := words(c.all, name, " ")
	return err == nil && value != "" && slices.Contains(list, value)
}

// Clone returns a copy of a claim's value, as deep as JSON goes.
func Clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := maps.Clone(v)
		for k := range m {
			m[k] = Clone(m[k])
		}
		return m
	case []any:
		s := slices.Clone(v)
		for i := range s {
			s[i] = Clone(s[i])
		}
		return s
	default:
		return v
	}
}

// parsed is a decoded token whose signature nobody has looked at.
type parsed struct {
	header    map[string]any
	alg, kid  string
	signed    string // header and payload as sent
	signature []byte
	claims    *Claims
}

// strict refuses the base64 texts that decode to the same bytes as another: one
// token has one spelling.
var strict = base64.RawURLEncoding.Strict()

// parse decodes raw and checks everything that needs no key.
func parse(raw string) (*parsed, error) {
	if len(raw) > MaxBytes {
		return nil, fail(ReasonMalformed, "the token is longer than 16 KiB")
	}
	parts := strings.Split(raw, ".") // line breaks are skipped by encoding/base64, strict or not
	if len(parts) != 3 || strings.ContainsAny(raw, "\r\n") {
		return nil, fail(ReasonMalformed, "not a signed JWT: three parts in base64url with dots between them")
	}
	p := &parsed{signed: parts[0] + "." + parts[1]}
	var payload map[string]any
	if !decodePart(parts[0], &p.header) || !decodePart(parts[1], &payload) {
		return nil, fail(ReasonMalformed, "header or claims of the token are not a JSON object in base64url")
	}
	var err error
	if p.signature, err = strict.DecodeString(parts[2]); err != nil {
		return nil, fail(ReasonMalformed, "the signature of the token is not base64url")
	}
	if _, critical := p.header["crit"]; critical { // RFC 7515 §4.1.11
		return nil, fail(ReasonMalformed, "the token demands an extension (crit) that is not understood here")
	}
	p.alg, _ = p.header["alg"].(string)
	p.kid, _ = p.header["kid"].(string)
	if p.claims, err = readClaims(payload); err != nil {
		return nil, err
	}
	p.claims.token = sha256.Sum256([]byte(p.signed))
	return p, nil
}

func decodePart(part string, v *map[string]any) bool {
	data, err := strict.DecodeString(part)
	if err != nil {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(v) == nil && *v != nil && !d.More()
}

// signedDigest identifies a token by what is signed, not by its text: an ECDSA
// signature has a second valid form, under which a revoked token would pass.
func signedDigest(raw string) digest {
	if i := strings.LastIndexByte(raw, '.'); i >= 0 {
		raw = raw[:i]
	}
	return sha256.Sum256([]byte(raw))
}

// methods are the signature algorithms there are. The key's algorithm looks it
// up, so that golang-jwt's own registry, which knows none, is never asked.
var methods = map[string]jwt.SigningMethod{
	algHS256:      jwt.SigningMethodHS256,
	string(ES256): jwt.SigningMethodES256,
	string(RS256): jwt.SigningMethodRS256,
}

// verifyKey is a key and the one algorithm of its class.
type verifyKey struct {
	kid string // empty means none
	alg string
	key any // []byte, *ecdsa.PublicKey or *rsa.PublicKey
}

// keySet is an immutable set of keys.
type keySet struct {
	keys       []verifyKey
	anyKID     bool // one key of our own: a token's kid does not matter
	fetched    time.Time
	generation uint64 // the same for the same keys
}

// verify checks the signature of p.
func (s *keySet) verify(p *parsed) error {
	found := false
	for _, k := range s.keys {
		if k.alg != p.alg || !s.anyKID && p.kid != "" && k.kid != p.kid {
			continue
		}
		found = true
		if methods[k.alg].Verify(p.signed, p.signature, k.key) == nil {
			return nil
		}
	}
	if !found {
		return fail(ReasonUnknownKey, "no key known here made the token")
	}
	return fail(ReasonBadSignature, "the signature of the token is wrong")
}

// readClaims types the claims this package knows.
func readClaims(all map[string]any) (*Claims, error) {
	c := &Claims{all: all}
	for name, field := range map[string]*string{"sub": &c.Subject, "iss": &c.Issuer, "jti": &c.ID} {
		v, present := all[name]
		s, ok := v.(string)
		if present && !ok {
			return nil, fail(ReasonMalformed, "the claim %s is not a string", name)
		}
		*field = s
	}
	for name, field := range map[string]*time.Time{"exp": &c.ExpiresAt, "nbf": &c.NotBefore, "iat": &c.IssuedAt} {
		v, present := all[name]
		if !present {
			continue
		}
		at, ok := numericDate(v)
		if !ok {
			return nil, fail(ReasonMalformed, "the claim %s is not a time in seconds since 1970", name)
		}
		*field = at
	}
	scope := "scope"
	if _, ok := all[scope]; !ok {
		scope = "scp" // of Okta and Entra
	}
	lists := []struct {
		name, separators string
		field            *[]string
	}{
		{"aud", "", &c.Audience},
		{scope, " ", &c.Scopes},
		{"service", ", ", &c.Services},
		{"ip", ", ", &c.IPs},
	}
	for _, l := range lists {
		list, err := words(all, l.name, l.separators)
		if err != nil {
			return nil, err
		}
		*l.field = list
	}
	_, c.hasIP = all["ip"]
	return c, nil
}

// words reads a claim that is an array of strings or one string; separators
// split the latter.
func words(all map[string]any, name, separators string) ([]string, error) {
	v, present := all[name]
	if !present {
		return nil, nil
	}
	switch v := v.(type) {
	case string:
		if separators == "" {
			return []string{v}, nil
		}
		return strings.FieldsFunc(v, func(r rune) bool { return strings.ContainsRune(separators, r) }), nil
	case []any:
		list := make([]string, 0, len(v))
		for _, e := range v {
			s, ok := e.(string)
			if !ok {
				return nil, fail(ReasonMalformed, "the claim %s is not an array of strings", name)
			}
			list = append(list, s)
		}
		return list, nil
	default:
		return nil, fail(ReasonMalformed, "the claim %s is neither a string nor an array of strings", name)
	}
}

// numericDate reads a NumericDate (RFC 7519 §2), fractions included, between
// 1970 and the year 9999: beyond, arithmetic on it would wrap.
func numericDate(v any) (time.Time, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return time.Time{}, false
	}
	seconds, err := n.Float64()
	if err != nil || seconds < 0 || seconds > 253402300799 {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(seconds * 1000)), true
}

// problems says all that keeps a token with these claims from being accepted at
// the time now, most telling first: revoked is final, whatever else there is.
func (t *Tokens) problems(c *Claims, facts Facts, now time.Time) []*Error {
	var found []*Error
	_, byID := t.revokedID[c.ID]
	_, byUser := t.revokedSubject[c.Subject]
	_, byToken := t.revokedToken[c.token]
	if byID && c.ID != "" || byUser || byToken {
		found = append(found, fail(ReasonRevoked, "the token was revoked"))
	}
	found = append(found, timeProblems(c, t.cfg.Skew, now)...)
	if !slices.ContainsFunc(c.Audience, func(aud string) bool { return aud != "" && contains(t.audiences, aud) }) {
		found = append(found, fail(ReasonAudience, "the token was made for another audience"))
	}
	if t.cfg.ExpectedIssuer != "" && c.Issuer != t.cfg.ExpectedIssuer {
		found = append(found, fail(ReasonIssuer, "the token was made by another issuer"))
	}
	if t.cfg.CheckServerName && !contains(c.Services, t.cfg.ServerName) {
		found = append(found, fail(ReasonService, "the token's claim service does not name this server"))
	}
	if t.cfg.CheckIP && c.hasIP && !allowsIP(c.IPs, facts.IP) {
		found = append(found, fail(ReasonIP, "the token may not be used from this address"))
	}
	return found
}

// timeProblems are those that need no configuration but the skew.
func timeProblems(c *Claims, skew time.Duration, now time.Time) []*Error {
	var found []*Error
	if c.Subject == "" {
		found = append(found, fail(ReasonSubject, "the token names no subject (sub)"))
	}
	if c.ExpiresAt.IsZero() {
		found = append(found, fail(ReasonExpired, "the token has no expiry (exp)"))
	} else if late := now.Sub(c.ExpiresAt); late >= skew {
		found = append(found, fail(ReasonExpired, "the token expired %s ago", late.Truncate(time.Second)))
	}
	if early := c.NotBefore.Sub(now); !c.NotBefore.IsZero() && early > skew {
		found = append(found, fail(ReasonNotYetValid, "the token is valid in %s", early.Truncate(time.Second)))
	}
	return found
}

// allowsIP reports whether ip is in one of the addresses and CIDRs of list. An
// entry that is neither fits nobody. IPv4 addresses mapped into IPv6 are those
// they stand for, in token and connection alike.
func allowsIP(list []string, ip netip.Addr) bool {
	if !ip.IsValid() {
		return false
	}
	ip = ip.Unmap().WithZone("")
	return slices.ContainsFunc(list, func(s string) bool {
		prefix, ok := parsePrefix(s)
		return ok && prefix.Contains(ip)
	})
}

func parsePrefix(s string) (netip.Prefix, bool) {
	if addr, err := netip.ParseAddr(s); err == nil {
		addr = addr.Unmap().WithZone("")
		return netip.PrefixFrom(addr, addr.BitLen()), true
	}
	prefix, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, false
	}
	if addr := prefix.Addr(); addr.Is4In6() && prefix.Bits() >= 96 {
		prefix = netip.PrefixFrom(addr.Unmap(), prefix.Bits()-96)
	}
	return prefix, true
}

// contains reads better where it is negated.
func contains(list []string, s string) bool { return slices.Contains(list, s) }
