package famcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/famcp/famcp/internal/runtime/auth"
	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/front"
	"github.com/famcp/famcp/internal/runtime/oauth"
	"github.com/famcp/famcp/internal/runtime/protocol"
	"github.com/famcp/famcp/internal/runtime/token"
)

// Identity is who sends a request. Subject is required: limits, sessions and
// tasks belong to it.
type Identity struct {
	Subject string
	Scopes  []string
	Claims  map[string]any // for [Call.Claim]; nil for none
	Expires time.Time      // refused from then on; zero is never
}

// Errors of a project's own validator. Any other error says that credentials
// cannot be checked at the moment: callers get 503, the log the error.
var (
	// ErrNoCredentials means that the request has none that the validator
	// knows; the built-in schemes then decide.
	ErrNoCredentials = auth.ErrNoCredentials
	// ErrBadCredentials refuses with 401.
	ErrBadCredentials = auth.ErrBadCredentials
	// ErrForbidden refuses a caller who is known with 403.
	ErrForbidden = auth.ErrForbidden
)

// Authenticate sets the project's own validator of HTTP requests. It is asked
// when no configured scheme lets a request in, and needs
// webServer.auth.enabled. It runs on every request, in many at once, so it must
// be quick. Call it once, before serving.
func (s *Server) Authenticate(check func(context.Context, *http.Request) (Identity, error)) {
	s.early("Authenticate", func() error {
		switch {
		case check == nil:
			return errors.New("the function is nil")
		case s.validator != nil:
			return errors.New("a validator is set already")
		case !s.cfg.WebServer.Auth.Enabled:
			return errors.New("authentication is off, so nobody would ask it; set webServer.auth.enabled (WS_AUTH_ENABLED=true)")
		}
		s.validator = func(ctx context.Context, r *http.Request) (auth.Identity, error) {
			id, err := check(ctx, r)
			return auth.Identity{Subject: id.Subject, Scopes: id.Scopes, Claims: id.Claims, Expires: id.Expires}, err
		}
		return nil
	})
}

// publicURL is where clients reach the server: the one source of resource,
// resource_metadata and issuer.
func (c *Config) publicURL() string {
	if u, err := url.Parse(c.WebServer.PublicURL); err == nil && u.Host != "" {
		// Clients compare it byte for byte, and so does a token's audience.
		u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
		return strings.TrimSuffix(u.String(), "/")
	}
	return "http://" + net.JoinHostPort("localhost", strconv.Itoa(c.WebServer.Port))
}

// usesJWT reports whether JWTs can be made or checked: the mode hs256, which is
// the default, needs its secret for that.
func (a *AuthConfig) usesJWT() bool { return a.asymmetric() || a.JWT.EncryptKey != "" }

func (a *AuthConfig) asymmetric() bool {
	mode := token.Mode(a.JWT.Mode)
	return mode == token.Embedded || mode == token.LocalKey || mode == token.RemoteJWKS
}

// configured reports whether anything but a validator can let callers in.
func (a *AuthConfig) configured() bool {
	return a.usesJWT() || len(a.PermanentServerTokens) > 0 || a.Basic.Username != ""
}

// checkTokens refuses settings of JWTs by which none could be checked. It reads
// no file: see [Server.openTokens].
func checkTokens(cfg *Config, name string) error {
	if !cfg.WebServer.Auth.usesJWT() || !cfg.WebServer.Auth.Enabled && cfg.MCP.Stdio.Token == "" {
		return nil
	}
	return atKeys(token.Check(TokenConfig(cfg, name)))
}

// openTokens returns what makes and checks JWTs, nil where none are used. It
// reads the key files, which only those need who have credentials to check.
func (s *Server) openTokens() (*token.Tokens, error) {
	if !s.cfg.WebServer.Auth.usesJWT() {
		return nil, nil
	}
	config := TokenConfig(s.cfg, s.info.Name)
	config.Logger = s.log
	tokens, err := token.New(config)
	return tokens, atKeys(err)
}

// atKeys names the whole key in each refusal of package token.
func atKeys(err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		if refused := (*token.ConfigError)(nil); errors.As(err, &refused) {
			return fmt.Errorf("webServer.auth.jwtToken.%s: %s", refused.Key, refused.Problem)
		}
		return err
	}
	var out []error
	for _, err := range joined.Unwrap() {
		out = append(out, atKeys(err))
	}
	return errors.Join(out...)
}

// startAuth makes the server ready to know who calls by HTTP. It returns nil
// while authentication is off.
func (s *Server) startAuth() (*auth.Authenticator, error) {
	cfg := &s.cfg.WebServer.Auth
	switch {
	case !cfg.Enabled && cfg.configured():
		s.log.Warn("authentication is configured and off: whoever reaches the server may use it", "key", "webServer.auth.enabled")
		return nil, nil
	case !cfg.Enabled:
		return nil, nil
	case !cfg.configured() && s.validator == nil:
		return nil, errors.New("webServer.auth.enabled: nobody could get in; set webServer.auth.jwtToken, permanentServerTokens or basic, " +
			"or give the server a validator by Authenticate")
	}
	tokens, err := s.openTokens()
	if err != nil {
		return nil, err
	}
	if tokens != nil {
		if err := tokens.Start(); err != nil {
			return nil, fmt.Errorf("webServer.auth.jwtToken: %w", err)
		}
		s.checks = append(s.checks, front.Check{Name: "auth", Kind: front.Readiness, Func: tokens.Ready})
	}
	s.tokens = tokens
	config := auth.Config{
		Realm: s.info.Name, Tokens: s.tokens, User: cfg.Basic.Username, Password: cfg.Basic.Password.Reveal(), Own: s.validator,
		Revoked: cfg.Revoked.Users, AnonymousDiscovery: cfg.AnonymousDiscovery, MaxFailures: cfg.Failures.MaxPerAddress, Failed: s.metrics.AuthFailure, Logger: s.log,
	}
	for _, permanent := range cfg.PermanentServerTokens {
		config.Permanent = append(config.Permanent, permanent.Reveal())
	}
	if cfg.asymmetric() {
		if config.Metadata, err = oauth.ResourceMetadataURL(s.cfg.publicURL()); err != nil {
			return nil, fmt.Errorf("webServer.publicUrl: %w", err)
		}
	}
	return auth.New(config), nil
}

// authorize is the front's: a is nil while authentication is off.
func authorize(a *auth.Authenticator) func(context.Context, *http.Request, *call.Facts, *protocol.Message) *front.Refusal {
	return func(ctx context.Context, r *http.Request, facts *call.Facts, m *protocol.Message) *front.Refusal {
		if assumed(ctx, facts) || a == nil {
			return nil
		}
		return a.Authorize(ctx, r, facts, m)
	}
}

// stdioToken returns what checks the token of mcp.stdio.token, nil where there is
// none. A token that is refused already is an error.
func (s *Server) stdioToken(ctx context.Context) (func(context.Context) (*token.Claims, error), error) {
	raw := s.cfg.MCP.Stdio.Token.Reveal()
	if raw == "" {
		return nil, nil
	}
	const key = "mcp.stdio.token (MCP_STDIO_TOKEN)"
	tokens, err := s.openTokens()
	switch {
	case err != nil:
		return nil, err
	case tokens == nil:
		return nil, fmt.Errorf("%s: nothing can check it; set webServer.auth.jwtToken, or leave it out", key)
	}
	verify := func(ctx context.Context) (*token.Claims, error) {
		claims, err := tokens.Verify(ctx, raw, token.Facts{})
		if err != nil {
			return nil, fmt.Errorf("%s: %w; get another token", key, err)
		}
		return claims, nil
	}
	if _, err := verify(ctx); err != nil && token.ReasonOf(err) != token.ReasonUnavailable {
		return nil, err
	}
	return verify, nil
}

// stdioCaller returns what makes each request that of mcp.stdio.token, for as
// long as the token is valid; nil where there is none.
func (s *Server) stdioCaller(ctx context.Context) (func(*call.Facts, *protocol.Message) error, error) {
	verify, err := s.stdioToken(ctx)
	if verify == nil {
		return nil, err
	}
	return func(facts *call.Facts, _ *protocol.Message) error {
		claims, err := verify(ctx)
		if err != nil {
			s.log.Info("authentication failed", "reason", token.ReasonOf(err), "requestId", facts.RequestID)
			return &jsonrpc.Error{Code: protocol.CodeServer, Message: err.Error()}
		}
		facts.Subject, facts.Scopes, facts.AllScopes = claims.Subject, claims.Scopes, false
		facts.Claims, facts.Authenticated = claims.All(), true
		return nil
	}, nil
}

// asLocal returns the context of a client in this process, which has every scope
// unless mcp.stdio.token says who it is.
func (s *Server) asLocal(ctx context.Context) (context.Context, error) {
	verify, err := s.stdioToken(ctx)
	if verify == nil {
		return ctx, err
	}
	claims, err := verify(ctx)
	if err != nil {
		return nil, err
	}
	return call.Assume(ctx, call.Identity{Subject: claims.Subject, Scopes: claims.Scopes, Claims: claims.All()}), nil
}

// describeAuth is the text of use://auth.
func (s *Server) describeAuth() string {
	cfg := &s.cfg.WebServer.Auth
	if !cfg.Enabled {
		return "Authentication is off: no credentials are needed.\n"
	}
	var b strings.Builder
	b.WriteString("Send credentials with every request to " + front.Path + ", in the header Authorization:\n")
	if cfg.usesJWT() {
		fmt.Fprintf(&b, "- Bearer TOKEN, a JWT (%s); claims sub, exp and aud are required.\n", cfg.JWT.Mode)
	}
	if len(cfg.PermanentServerTokens) > 0 {
		b.WriteString("- Bearer TOKEN, a permanent token of this server.\n")
	}
	if cfg.Basic.Username != "" {
		b.WriteString("- Basic, with user and password.\n")
	}
	if s.validator != nil {
		b.WriteString("- Whatever else this server's operator has told you: it has a check of its own.\n")
	}
	if cfg.AnonymousDiscovery {
		b.WriteString("Without credentials you can discover the server and list what is public.\n")
	}
	if cfg.asymmetric() {
		if url, err := oauth.ResourceMetadataURL(s.cfg.publicURL()); err == nil {
			b.WriteString("Where to get a token: " + url + "\n")
		}
	}
	b.WriteString("A missing scope is answered with HTTP 403 and the scopes that are needed.\n")
	return b.String()
}
