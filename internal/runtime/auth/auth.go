// Package auth decides who sends an HTTP request, and what a caller without
// credentials may do.
//
// The form of the Authorization header chooses the scheme: Bearer with a
// permanent token or a JWT, Basic, and what is left is shown to the project's own
// validator. A caller who is refused learns why as far as the contract has it;
// an unreachable identity provider is the server's trouble and nobody's fault.
//
// Credentials go no further than this package: facts, logs and errors have the
// subject, never what proved it.
package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/front"
	"github.com/famcp/famcp/internal/runtime/limits"
	"github.com/famcp/famcp/internal/runtime/protocol"
	"github.com/famcp/famcp/internal/runtime/token"
)

// Errors of a project's own validator.
var (
	// ErrNoCredentials says that the request has none that the validator knows.
	ErrNoCredentials = errors.New("no credentials")
	// ErrBadCredentials says that it has some, and they are wrong.
	ErrBadCredentials = errors.New("the credentials are not valid")
	// ErrForbidden says that the caller is known and not let in.
	ErrForbidden = errors.New("the caller may not use this server")
)

// Reasons of failures beside those of package token.
const (
	reasonBasic     = "basic"     // wrong user or password
	reasonValidator = "validator" // the project's own refused them
	reasonForbidden = "forbidden" // the project's own does not let the caller in
)

// Reasons lists all reasons of failures, for a metric's label.
func Reasons() []string {
	all := []string{reasonBasic, reasonValidator, reasonForbidden}
	for _, r := range token.Reasons() {
		all = append(all, string(r))
	}
	return all
}

// Subjects of the operator's own credentials. Whoever may choose a subject, of a
// JWT or by the project's validator, cannot choose one of these: sessions and
// tasks would be shared.
const (
	permanentSubject = "permanent-token:" // and a digest
	basicSubject     = "basic:"           // and the user
)

func isOperators(subject string) bool {
	return strings.HasPrefix(subject, permanentSubject) || strings.HasPrefix(subject, basicSubject)
}

// Identity is who sends a request.
type Identity struct {
	Subject   string
	Scopes    []string
	AllScopes bool // every scope is granted
	Claims    map[string]any
	Expires   time.Time // zero is never
}

// Config configures an [Authenticator]. At least one scheme must be there.
type Config struct {
	Realm string // of challenges: the server's name

	Tokens    *token.Tokens // nil takes no JWTs
	Permanent []string      // tokens that do not expire
	User      string        // of the Basic scheme; "" is off
	Password  string
	// Own is the project's validator, asked when no scheme above let the
	// request in; nil for none.
	Own func(context.Context, *http.Request) (Identity, error)

	// Metadata is the address of the protected resource's metadata (RFC 9728), ""
	// where none is served.
	Metadata string

	Revoked []string // subjects that are let in by nothing

	AnonymousDiscovery bool // lets callers without credentials find out what is here

	MaxFailures int                 // of an address in a minute; more are refused with 429. 0 is without limit
	Failed      func(reason string) // told of each failure; nil is nobody
	Logger      *slog.Logger        // required
	Now         func() time.Time    // nil is time.Now
}

// Authenticator authenticates HTTP requests. It is safe for concurrent use.
type Authenticator struct {
	cfg        Config
	permanent  []permanent
	revoked    map[string]bool
	failures   *limits.Limits
	challenges []string // WWW-Authenticate without an error
}

// permanent is a token that does not expire, by its digest: digests are compared
// in constant time whatever the lengths.
type permanent struct {
	digest  [sha256.Size]byte
	subject string
}

// New returns an authenticator.
func New(cfg Config) *Authenticator {
	if cfg.Failed == nil {
		cfg.Failed = func(string) {}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	a := &Authenticator{cfg: cfg, revoked: map[string]bool{}, failures: limits.New(limits.Config{
		MaxRequests: cfg.MaxFailures, Window: time.Minute, ByAddress: true,
	})}
	for _, subject := range cfg.Revoked {
		a.revoked[subject] = true
	}
	for _, text := range cfg.Permanent {
		digest := sha256.Sum256([]byte(text))
		// A part of the digest tells tokens apart, and nothing of the token.
		a.permanent = append(a.permanent, permanent{digest, permanentSubject + hex.EncodeToString(digest[:6])})
	}
	a.challenges = a.challenge("")
	return a
}

// challenge returns the WWW-Authenticate headers (RFC 6750 §3, RFC 7617,
// RFC 9728 §5.1). Parameters are added to that of Bearer.
func (a *Authenticator) challenge(parameters string) []string {
	bearer := `Bearer realm="` + a.cfg.Realm + `"`
	if a.cfg.Metadata != "" {
		bearer += `, resource_metadata="` + a.cfg.Metadata + `"`
	}
	all := []string{bearer + parameters}
	if a.cfg.User != "" {
		all = append(all, `Basic realm="`+a.cfg.Realm+`", charset="UTF-8"`)
	}
	return all
}

// failure is why a request has no identity.
type failure struct {
	reason      string
	text        string // for the caller
	credentials bool   // there were some: it counts
	unavailable bool   // the server cannot tell at the moment
	forbidden   bool   // the caller is known
	cause       error  // for the log
}

var missing = &failure{reason: string(token.ReasonMissing), text: "credentials are required; see the WWW-Authenticate header"}

func bad(reason, text string, cause error) *failure {
	return &failure{reason: reason, text: text, credentials: true, cause: cause}
}

// identify finds who sends a request.
func (a *Authenticator) identify(ctx context.Context, r *http.Request, address netip.Addr) (*Identity, *failure) {
	headers := r.Header.Values("Authorization")
	f := missing
	switch {
	case len(headers) > 1:
		return nil, bad(string(token.ReasonMalformed), "more than one Authorization header", nil)
	case len(headers) == 1:
		scheme, rest, _ := strings.Cut(strings.TrimSpace(headers[0]), " ")
		rest = strings.TrimSpace(rest)
		var id *Identity
		switch strings.ToLower(scheme) {
		case "bearer":
			id, f = a.bearer(ctx, rest, address)
		case "basic":
			id, f = a.basic(rest)
		default:
			f = bad(string(token.ReasonMalformed), "the Authorization header has another scheme than Bearer or Basic", nil)
		}
		if id != nil {
			return id, nil
		}
	}
	if a.cfg.Own == nil || f.reason == string(token.ReasonRevoked) {
		return nil, f
	}
	return a.own(ctx, r, f)
}

// own asks the project's validator; f is what the schemes say.
func (a *Authenticator) own(ctx context.Context, r *http.Request, f *failure) (*Identity, *failure) {
	id, err := a.cfg.Own(ctx, r)
	switch {
	case err == nil && (id.Subject == "" || isOperators(id.Subject)):
		return nil, &failure{
			reason: reasonValidator, text: "credentials cannot be checked at the moment", unavailable: true,
			cause: errors.New("the validator let a caller in without a subject, or with one of the operator's credentials"),
		}
	case err == nil && !id.Expires.IsZero() && !a.cfg.Now().Before(id.Expires):
		return nil, bad(string(token.ReasonExpired), "the credentials have expired", nil)
	case err == nil:
		return &id, nil
	case errors.Is(err, ErrNoCredentials):
		return nil, f
	case errors.Is(err, ErrBadCredentials):
		return nil, bad(reasonValidator, "the credentials are not valid", err)
	case errors.Is(err, ErrForbidden):
		return nil, &failure{reason: reasonForbidden, text: "the caller may not use this server", credentials: true, forbidden: true, cause: err}
	default:
		return nil, &failure{reason: reasonValidator, text: "credentials cannot be checked at the moment", unavailable: true, cause: err}
	}
}

func (a *Authenticator) bearer(ctx context.Context, raw string, address netip.Addr) (*Identity, *failure) {
	if raw == "" {
		return nil, missing // no token was there
	}
	if subject := a.permanentSubject(raw); subject != "" {
		return &Identity{Subject: subject, AllScopes: true}, nil
	}
	if a.cfg.Tokens == nil {
		return nil, bad(string(token.ReasonMalformed), "the token is not known", nil)
	}
	claims, err := a.cfg.Tokens.Verify(ctx, raw, token.Facts{IP: address})
	if err != nil {
		f := bad(string(token.ReasonOf(err)), err.Error(), errors.Unwrap(err))
		f.unavailable = token.ReasonOf(err) == token.ReasonUnavailable
		return nil, f
	}
	if isOperators(claims.Subject) {
		return nil, bad(string(token.ReasonSubject), "the token names a subject that it cannot have", nil)
	}
	return &Identity{Subject: claims.Subject, Scopes: claims.Scopes, Claims: claims.All(), Expires: a.cfg.Tokens.Until(claims)}, nil
}

// permanentSubject returns the subject of a permanent token, or "". It looks at
// all of them.
func (a *Authenticator) permanentSubject(raw string) (subject string) {
	if len(a.permanent) == 0 || len(raw) > token.MaxBytes {
		return ""
	}
	digest := sha256.Sum256([]byte(raw))
	for i := range a.permanent {
		if subtle.ConstantTimeCompare(digest[:], a.permanent[i].digest[:]) == 1 {
			subject = a.permanent[i].subject
		}
	}
	return subject
}

func (a *Authenticator) basic(encoded string) (*Identity, *failure) {
	if a.cfg.User == "" {
		return nil, bad(reasonBasic, "the Basic scheme is not served", nil)
	}
	raw, err := base64.StdEncoding.DecodeString(encoded)
	user, password, ok := strings.Cut(string(raw), ":")
	if err != nil || !ok {
		return nil, bad(string(token.ReasonMalformed), "the Basic credentials cannot be read", nil)
	}
	if !a.Operator(user, password) {
		return nil, bad(reasonBasic, "the user or the password is wrong", nil)
	}
	return &Identity{Subject: basicSubject + a.cfg.User, AllScopes: true}, nil
}

// Operator reports whether user and password are those of the Basic scheme. It
// takes the same time whatever is wrong.
func (a *Authenticator) Operator(user, password string) bool {
	if a.cfg.User == "" {
		return false
	}
	same := func(got, want string) int {
		g, w := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(want))
		return subtle.ConstantTimeCompare(g[:], w[:])
	}
	return same(user, a.cfg.User)&same(password, a.cfg.Password) == 1
}

// Authorize is that of [front.Config]: it puts the caller's identity into the
// facts, or refuses. Facts of a caller without credentials who may look around
// grant nothing.
func (a *Authenticator) Authorize(ctx context.Context, r *http.Request, facts *call.Facts, m *protocol.Message) *front.Refusal {
	if retry, full := a.failures.Full(facts); full && isBasic(r) {
		// A password can be guessed, so beyond the limit none is looked at. A
		// token cannot, and a valid one is never kept out.
		return tooManyFailures(retry)
	}
	id, f := a.identify(ctx, r, facts.Address)
	if f == nil && a.revoked[id.Subject] {
		f = bad(string(token.ReasonRevoked), "the caller's access was revoked", nil)
	}
	if f == nil {
		facts.Subject, facts.Scopes, facts.AllScopes = id.Subject, id.Scopes, id.AllScopes
		facts.Claims, facts.Authenticated, facts.Expires = id.Claims, true, id.Expires
		return nil
	}
	facts.AllScopes = false
	if !f.credentials && !f.unavailable && a.cfg.AnonymousDiscovery && discovers(r, m) {
		return nil
	}
	return a.refuse(ctx, facts, f)
}

// Unclaimed refuses a caller without credentials on somebody's session.
func (a *Authenticator) Unclaimed(ctx context.Context, facts *call.Facts) *front.Refusal {
	return a.refuse(ctx, facts, missing)
}

func (a *Authenticator) refuse(ctx context.Context, facts *call.Facts, f *failure) *front.Refusal {
	if f.unavailable {
		a.cfg.Logger.WarnContext(ctx, "credentials cannot be checked", "reason", f.reason, "requestId", facts.RequestID, "error", f.cause)
		a.cfg.Failed(f.reason)
		return &front.Refusal{
			Code: protocol.CodeUnavailable, Message: "credentials cannot be checked at the moment; retry later",
			Data: protocol.ErrorData{Reason: "unavailable", RetryAfter: 5}, Header: http.Header{"Retry-After": {"5"}},
		}
	}
	x := &front.Refusal{
		Status: http.StatusUnauthorized, Code: protocol.CodeServer, Message: f.text,
		Data: protocol.ErrorData{Reason: f.reason}, Header: http.Header{"Www-Authenticate": a.challenges},
	}
	if !f.credentials {
		return x // no attempt, no failure: clients find out like this that they need a token
	}
	a.cfg.Failed(f.reason)
	a.cfg.Logger.InfoContext(ctx, "authentication failed", "reason", f.reason, "address", facts.Address, "requestId", facts.RequestID, "error", f.cause)
	if retry, ok := a.failures.Request(facts); !ok {
		return tooManyFailures(retry)
	}
	if f.forbidden {
		x.Status, x.Header = http.StatusForbidden, nil
		return x
	}
	x.Header = http.Header{"Www-Authenticate": a.challenge(`, error="invalid_token"`)}
	return x
}

func tooManyFailures(retry time.Duration) *front.Refusal {
	return front.TooMany("too many failed authentications from this address", "webServer.auth.failures.maxPerAddress", retry)
}

func isBasic(r *http.Request) bool {
	scheme, _, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	return strings.EqualFold(scheme, "basic")
}

// StepUp is the challenge of a caller who lacks scopes: all that it has and all
// that it needs, because clients ask for what the challenge lists and for
// nothing else. It is "" where no metadata is served.
func (a *Authenticator) StepUp(granted, missing []string) string {
	if a.cfg.Metadata == "" {
		return ""
	}
	scopes := strings.Join(append(append([]string{}, granted...), missing...), " ")
	return a.challenge(`, error="insufficient_scope", scope="` + quotable(scopes) + `"`)[0]
}

// quotable leaves out what a scope cannot have (RFC 6749 §3.3) and a header's
// quoted string must not.
func quotable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			return -1
		}
		return r
	}, s)
}

// discovers reports whether a request is one that callers without credentials
// may send where they may look around. Whose session it is on is decided by
// the front.
func discovers(r *http.Request, m *protocol.Message) bool {
	if m == nil {
		return r.URL.Path == front.Path
	}
	if m.Kind == protocol.Notification {
		return true
	}
	switch m.Method {
	case "server/discover", "initialize", "ping",
		"tools/list", "prompts/list", "resources/list", "resources/templates/list":
		return true
	}
	return false
}
