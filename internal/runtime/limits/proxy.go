package limits

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
)

// Proxies are the proxies whose word on who is calling is believed. The zero
// value believes none.
type Proxies struct {
	local bool // those on this machine and in private networks
	nets  []netip.Prefix
}

// NewProxies returns the proxies in the given networks or at the given
// addresses, and with local those on loopback and private addresses.
func NewProxies(local bool, networks []string) (Proxies, error) {
	p := Proxies{local: local}
	for _, text := range networks {
		n, err := parseNetwork(strings.TrimSpace(text))
		if err != nil {
			return Proxies{}, fmt.Errorf("%q is neither an address nor a network such as 10.1.0.0/16", text)
		}
		p.nets = append(p.nets, n)
	}
	return p, nil
}

func parseNetwork(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		addr = addr.Unmap().WithZone("")
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	n, err := netip.ParsePrefix(text)
	if err != nil {
		return n, err
	}
	if n.Addr().Is4In6() && n.Bits() >= 96 {
		n = netip.PrefixFrom(n.Addr().Unmap(), n.Bits()-96)
	}
	return n.Masked(), nil
}

func (p *Proxies) trusts(a netip.Addr) bool {
	if p.local && (a.IsLoopback() || a.IsPrivate()) {
		return true
	}
	for _, n := range p.nets {
		if n.Contains(a) {
			return true
		}
	}
	return false
}

// Caller returns the address a request comes from: that of the connection's
// peer, remote, and where that is a trusted proxy, the right-most address in
// X-Forwarded-For or Forwarded (RFC 7239) that is no trusted proxy. What is
// to the left of it, anybody may have written. An entry that is no address
// ends the search at the proxy that passed it on. When both headers are there
// and differ, one of them is the client's own, so neither is believed. The
// zero Addr says that remote is no address, such as on a Unix socket.
func (p *Proxies) Caller(remote string, h http.Header) netip.Addr {
	peer, ok := parseAddress(remote)
	if !ok || !p.trusts(peer) {
		return peer
	}
	forwardedFor, forwarded := h["X-Forwarded-For"], h["Forwarded"]
	switch {
	case forwarded == nil:
		return p.caller(peer, forwardedFor, parseAddress)
	case forwardedFor == nil:
		return p.caller(peer, forwarded, parseElement)
	}
	a := p.caller(peer, forwardedFor, parseAddress)
	if a != p.caller(peer, forwarded, parseElement) {
		return peer
	}
	return a
}

// caller reads from the right and only as far as it must. Splitting at every
// comma, in quotes or not, keeps what a client wrote from swallowing what a
// proxy appended.
func (p *Proxies) caller(peer netip.Addr, lines []string, parse func(string) (netip.Addr, bool)) netip.Addr {
	for i := len(lines) - 1; i >= 0; i-- {
		for rest, more := lines[i], true; more; {
			entry := rest
			if comma := strings.LastIndexByte(rest, ','); comma >= 0 {
				rest, entry = rest[:comma], rest[comma+1:]
			} else {
				more = false
			}
			a, ok := parse(strings.Trim(entry, " \t"))
			if !ok {
				return peer
			}
			if peer = a; !p.trusts(a) {
				return a
			}
		}
	}
	return peer
}

// parseElement returns the address of a Forwarded element's parameter for.
func parseElement(element string) (netip.Addr, bool) {
	for pair := range strings.SplitSeq(element, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if !strings.EqualFold(name, "for") {
			continue
		}
		if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
			value = value[1 : n-1]
		}
		return parseAddress(value)
	}
	return netip.Addr{}, false
}

// parseAddress reads an address with or without a port.
func parseAddress(s string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	if err != nil {
		ap, err := netip.ParseAddrPort(s)
		if err != nil {
			return netip.Addr{}, false
		}
		a = ap.Addr()
	}
	return a.Unmap().WithZone(""), true
}
