package famcp

import (
	"cmp"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/famcp/famcp/internal/runtime/admin"
	"github.com/famcp/famcp/internal/runtime/auth"
	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/front"
	"github.com/famcp/famcp/internal/runtime/limits"
	"github.com/famcp/famcp/internal/runtime/oauth"
	"github.com/famcp/famcp/internal/runtime/protocol"
	"github.com/famcp/famcp/internal/runtime/token"
)

// addressOf returns where a request comes from.
type addressOf func(*http.Request) netip.Addr

// authRoutes are the endpoints about tokens: where to get one, whether one is
// good and, where the configuration asks for that, new ones.
func (s *Server) authRoutes(a *auth.Authenticator, proxies *limits.Proxies) ([]front.Route, error) {
	web := &s.cfg.WebServer
	if a == nil || s.tokens == nil {
		return nil, nil
	}
	address := func(r *http.Request) netip.Addr { return proxies.Caller(r.RemoteAddr, r.Header) }
	title := cmp.Or(s.info.Title, s.info.Name)
	routes, err := admin.Routes(admin.Config{
		Tokens: s.tokens, Name: s.info.Name, Title: title, Scopes: s.engine.Scopes, Address: address, Logger: s.log,
		Issue: web.GenJWTAPIEnable, Page: s.adminPage(a, address),
	})
	if err != nil || !web.Auth.asymmetric() {
		return routes, err
	}
	found, err := oauth.Routes(oauth.Config{
		Tokens: s.tokens, Algorithm: token.Algorithm(web.Auth.JWT.Algorithm), PublicURL: s.cfg.publicURL(), Title: title,
		Scopes: s.engine.Scopes, Server: token.Mode(web.Auth.JWT.Mode) != token.RemoteJWKS, Provider: s.provider(a, address),
	})
	return append(routes, found...), err
}

// provider is the development identity provider, nil where there is none.
func (s *Server) provider(a *auth.Authenticator, address addressOf) *oauth.Provider {
	web := &s.cfg.WebServer
	if token.Mode(web.Auth.JWT.Mode) != token.Embedded || s.cfg.Production() {
		return nil
	}
	p := &oauth.Provider{Service: s.info.Name, Address: address, Logger: s.log}
	if web.Auth.Basic.Username != "" {
		p.CheckPassword = a.Operator
		return p
	}
	// Without a password, being on this machine is what counts as a login.
	u, err := url.Parse(s.cfg.publicURL())
	if err != nil || !isLoopback(u.Hostname()) || !isLoopback(web.Host) || len(web.AllowedHosts) > 0 || web.TrustProxy || len(web.TrustedProxies) > 0 {
		s.log.Warn("the development identity provider is off, because others than this machine reach the server; " +
			"set webServer.auth.basic for whom may log in, or FAMCP_ENV=production")
		return nil
	}
	return p
}

// adminPage is /admin, nil where there is none.
func (s *Server) adminPage(a *auth.Authenticator, address addressOf) *admin.Page {
	switch panel := s.cfg.AdminPanel; {
	case !panel.Enabled:
		return nil
	case panel.AuthType == "basic":
		return &admin.Page{Operator: a.Operator}
	}
	return &admin.Page{Authenticate: func(r *http.Request) (*call.Facts, *front.Refusal) {
		from := address(r)
		f := &call.Facts{RequestID: r.Header.Get(protocol.HeaderRequestID), Transport: call.HTTP, Subject: from.String(), Address: from}
		return f, a.Authorize(r.Context(), r, f, nil)
	}}
}

// makesTokens are the rules of what makes tokens over HTTP.
func (c *Config) makesTokens(fail func(path, format string, args ...any)) {
	a := &c.WebServer.Auth
	for path, on := range map[string]bool{"webServer.genJwtApiEnable": c.WebServer.GenJWTAPIEnable, "adminPanel.enabled": c.AdminPanel.Enabled} {
		switch {
		case !on:
		case !a.Enabled:
			fail(path, "would let everybody make tokens, because webServer.auth.enabled is false; set that too")
		case !a.usesJWT():
			fail(path, "there are no tokens to make or check; set webServer.auth.jwtToken, such as its mode")
		}
	}
	if c.AdminPanel.Enabled && c.AdminPanel.AuthType == "basic" && a.Basic.Username == "" {
		fail("adminPanel.authType", "basic needs a user; set webServer.auth.basic, or jwtToken here")
	}
}

// origins are the browser origins that may call the server: its own pages
// always may.
func (c *Config) origins() []string {
	origins := c.WebServer.OriginHosts
	if u, err := url.Parse(c.WebServer.PublicURL); err == nil && u.Host != "" {
		origins = append([]string{u.Scheme + "://" + u.Host}, origins...)
	}
	return origins
}
