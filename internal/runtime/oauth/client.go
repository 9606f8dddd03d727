package oauth

import (
	"net/netip"
	"net/url"
	"strings"
)

// DevClient is the public client that is always known. Its redirect URIs are
// all http URLs on the loopback.
const DevClient = "famcp-dev"

// client is who asks for a token.
type client struct {
	id        string
	name      string
	redirects []string // registered; nil for DevClient
}

// mayRedirect reports whether an authorization response may go to raw, which
// parseRedirect has accepted. It must be registered literally; the port of a
// loopback URI may differ, because native clients take a free one (RFC 8252
// §7.3).
func (c *client) mayRedirect(raw string) bool {
	if c.id == DevClient {
		return isLoopbackURI(raw)
	}
	for _, registered := range c.redirects {
		if raw == registered || isLoopbackURI(raw) && isLoopbackURI(registered) && withoutPort(raw) == withoutPort(registered) {
			return true
		}
	}
	return false
}

const maxURI = 2048

// parseRedirect returns the parts of a redirect URI that could be used at all:
// https, or http on the loopback (MCP authorization, Communication Security).
// Characters that browsers read differently than package url are refused.
func parseRedirect(raw string) (*url.URL, bool) {
	if raw == "" || len(raw) > maxURI {
		return nil, false
	}
	for i := range len(raw) {
		if c := raw[i]; c <= ' ' || c > '~' || strings.IndexByte("\\\"<>^`{|}#", c) >= 0 {
			return nil, false
		}
	}
	u, err := url.Parse(raw)
	if err != nil || u.User != nil || u.Hostname() == "" || u.Opaque != "" {
		return nil, false
	}
	return u, u.Scheme == "https" || u.Scheme == "http" && isLoopbackHost(u.Hostname())
}

func isLoopbackHost(name string) bool {
	if name == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback()
}

func isLoopbackURI(raw string) bool {
	u, ok := parseRedirect(raw)
	return ok && u.Scheme == "http"
}

func withoutPort(raw string) string {
	u, ok := parseRedirect(raw)
	if !ok {
		return ""
	}
	u.Host = u.Hostname()
	return u.String()
}
