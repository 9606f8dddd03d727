package front

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/famcp/famcp/internal/runtime/protocol"
)

// hostSet holds the host names that are served besides the loopback ones.
type hostSet map[string]bool

func newHostSet(names []string) (hostSet, error) {
	set := hostSet{}
	for _, name := range names {
		n := strings.ToLower(strings.TrimSpace(name))
		if n == "" || strings.ContainsAny(n, "/*@ ") {
			return nil, fmt.Errorf("webServer.allowedHosts: %q is not a host name; write it as example.com or example.com:8443", name)
		}
		set[strings.TrimSuffix(n, ".")] = true
	}
	return set, nil
}

// allows reports whether a Host header names this server. An entry without a
// port allows every port.
func (s hostSet) allows(host string) bool {
	host = strings.ToLower(host)
	name := hostname(host)
	return isLoopbackName(name) || s[name] || s[host]
}

// hostname returns the name of a host with or without a port, without
// brackets and without the final dot.
func hostname(host string) string {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	return strings.TrimSuffix(strings.Trim(name, "[]"), ".")
}

func isLoopbackName(name string) bool {
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap().IsLoopback()
}

// originSet holds the browser origins that may call this server besides the
// loopback ones.
type originSet struct {
	any  bool
	list map[string]bool
}

func newOriginSet(origins []string) (originSet, error) {
	set := originSet{list: map[string]bool{}}
	for _, o := range origins {
		if o == "*" {
			set.any = true
			continue
		}
		u, err := url.Parse(strings.TrimSuffix(strings.TrimSpace(o), "/"))
		if err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" || u.User != nil || u.RawQuery != "" {
			return originSet{}, fmt.Errorf("webServer.originHosts: %q is not an origin; write it as https://example.com", o)
		}
		set.list[strings.ToLower(u.Scheme+"://"+u.Host)] = true
	}
	return set, nil
}

// allows reports whether pages of origin may call the server under host. A
// page on this machine may call a server that is addressed as on this machine.
func (s originSet) allows(origin, host string) bool {
	if s.any || s.list[strings.ToLower(origin)] {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") {
		return false
	}
	return isLoopbackName(u.Hostname()) && isLoopbackName(hostname(host))
}

const (
	allowedMethods = "GET, POST, DELETE, OPTIONS"
	routeMethods   = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS" // of the project's routes
	allowedHeaders = "Authorization, Content-Type, Accept, Last-Event-ID, " +
		"Mcp-Protocol-Version, Mcp-Session-Id, Mcp-Method, Mcp-Name, X-Request-Id, traceparent, tracestate, baggage"
	exposedHeaders = "WWW-Authenticate, Mcp-Session-Id, X-Request-Id, Retry-After"
)

// guard applies the Host and Origin checks and sets the CORS headers. It
// reports whether the request may go on; if not, it has been answered. The
// Host check stops DNS rebinding, the Origin check foreign pages (transports,
// security warning).
func (f *Front) guard(w http.ResponseWriter, r *http.Request) bool {
	h := w.Header()
	h.Add("Vary", "Origin")
	if (f.cfg.CheckHost || onLoopback(r)) && !f.hosts.allows(r.Host) {
		f.refuse(w, nil, Refusal{
			Status: http.StatusForbidden, Code: protocol.CodeServer,
			Message: "this host name is not served; if it is this server's public name, add it to webServer.allowedHosts",
			Data:    protocol.ErrorData{Field: "Host", Reason: "webServer.allowedHosts"},
		})
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	if !f.origins.allows(origin, r.Host) {
		f.refuse(w, nil, Refusal{
			Status: http.StatusForbidden, Code: protocol.CodeServer,
			Message: "pages of this origin may not call this server; add the origin to webServer.originHosts if they should",
			Data:    protocol.ErrorData{Field: "Origin", Reason: "webServer.originHosts"},
		})
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", exposedHeaders)
	return true
}

// onLoopback reports whether the connection was accepted on a loopback address.
func onLoopback(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && isLoopbackName(hostname(addr.String()))
}

// isPreflight reports whether a browser asks before it sends what a page wants
// to send.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// preflight answers OPTIONS without asking for credentials, which browsers do
// not send then. The names of Mcp-Param headers are the tools'
// business, so those asked for are allowed.
func preflight(w http.ResponseWriter, r *http.Request, methods string) {
	h := w.Header()
	if r.Header.Get("Origin") == "" {
		h.Set("Allow", methods)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	headers := []string{allowedHeaders}
	for asked := range strings.SplitSeq(r.Header.Get("Access-Control-Request-Headers"), ",") {
		asked = http.CanonicalHeaderKey(strings.TrimSpace(asked))
		if strings.HasPrefix(asked, protocol.HeaderParam) {
			headers = append(headers, asked)
		}
	}
	h.Add("Vary", "Access-Control-Request-Headers")
	h.Set("Access-Control-Allow-Methods", methods)
	h.Set("Access-Control-Allow-Headers", strings.Join(headers, ", "))
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}
