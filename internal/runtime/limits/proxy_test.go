package limits

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

func TestCaller(t *testing.T) {
	const proxy, client = "10.0.0.1:4711", "203.0.113.9"
	xff := func(lines ...string) http.Header { return http.Header{"X-Forwarded-For": lines} }
	forwarded := func(lines ...string) http.Header { return http.Header{"Forwarded": lines} }
	tests := []struct {
		name   string
		local  bool
		nets   []string
		remote string
		header http.Header
		want   string
	}{
		{"no proxy trusted", false, nil, proxy, xff(client), "10.0.0.1"},
		{"client speaks for itself", true, nil, "198.51.100.1:1", xff("1.2.3.4"), "198.51.100.1"},
		{"local proxy", true, nil, proxy, xff(client), client},
		{"loopback proxy", true, nil, "[::1]:4711", xff(client), client},
		{"private IPv6 proxy", true, nil, "[fd00::1]:1", xff("2001:db8::1"), "2001:db8::1"},
		{"mapped proxy address", true, nil, "[::ffff:10.0.0.1]:1", xff(client), client},
		{"public proxy is not local", true, nil, "198.51.100.1:1", xff(client), "198.51.100.1"},
		{"listed address", false, []string{"198.51.100.1"}, "198.51.100.1:1", xff(client), client},
		{"listed network", false, []string{"198.51.0.0/16"}, "198.51.100.1:1", xff(client), client},
		{"listed network does not make local ones trusted", false, []string{"198.51.0.0/16"}, proxy, xff(client), "10.0.0.1"},

		{"spoofed entry on the left", true, nil, proxy, xff("1.2.3.4, " + client), client},
		{"spoofed private entry on the left", true, nil, proxy, xff("10.9.9.9, " + client), client},
		{"spoofed entry in a line of its own", true, nil, proxy, xff("1.2.3.4", client), client},
		{"chain of proxies", true, nil, proxy, xff("1.2.3.4, "+client+", 10.0.0.3", "10.0.0.2"), client},
		{"untrusted hop on the right", true, nil, proxy, xff(client + ", 198.51.100.1, 10.0.0.2"), "198.51.100.1"},
		{"all trusted", true, nil, proxy, xff("10.0.0.3, 10.0.0.2"), "10.0.0.3"},
		{"no header", true, nil, proxy, nil, "10.0.0.1"},
		{"spaces and tabs", true, nil, proxy, xff("1.2.3.4 ,\t" + client + " "), client},
		{"with port", true, nil, proxy, xff(client + ":55123"), client},
		{"IPv6 in brackets", true, nil, proxy, xff("[2001:db8::1]"), "2001:db8::1"},
		{"IPv6 in brackets with port", true, nil, proxy, xff("[2001:db8::1]:443"), "2001:db8::1"},
		{"IPv6 with zone", true, nil, proxy, xff("2001:db8::1%eth0"), "2001:db8::1"},

		{"garbage on the left", true, nil, proxy, xff("<script>, " + client), client},
		{"garbage on the right", true, nil, proxy, xff(client + ", unknown"), "10.0.0.1"},
		{"garbage behind a proxy", true, nil, proxy, xff("1.2.3.4, rubbish, 10.0.0.2"), "10.0.0.2"},
		{"empty", true, nil, proxy, xff(""), "10.0.0.1"},
		{"only commas", true, nil, proxy, xff(",,,"), "10.0.0.1"},
		{"zero bytes", true, nil, proxy, xff("\x00"), "10.0.0.1"},

		{"Forwarded", true, nil, proxy, forwarded("for=" + client + ";proto=https;by=10.0.0.1"), client},
		{"Forwarded in another order and case", true, nil, proxy, forwarded("Proto=https; For=" + client), client},
		{"Forwarded IPv6", true, nil, proxy, forwarded(`for="[2001:db8::1]:4711"`), "2001:db8::1"},
		{"Forwarded spoofed", true, nil, proxy, forwarded("for=1.2.3.4, for=" + client), client},
		{"Forwarded with an open quote", true, nil, proxy, forwarded(`for="1.2.3.4, for=` + client), client},
		{"Forwarded hidden", true, nil, proxy, forwarded("for=_secret"), "10.0.0.1"},
		{"Forwarded without for", true, nil, proxy, forwarded("proto=https"), "10.0.0.1"},
		{"both agree", true, nil, proxy, http.Header{"X-Forwarded-For": {client}, "Forwarded": {"for=" + client}}, client},
		{"both differ", true, nil, proxy, http.Header{"X-Forwarded-For": {client}, "Forwarded": {"for=1.2.3.4"}}, "10.0.0.1"},

		{"no address at all", true, nil, "@", xff(client), "invalid IP"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := NewProxies(tt.local, tt.nets)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Caller(tt.remote, tt.header).String(); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestNewProxies(t *testing.T) {
	for _, good := range []string{"10.1.0.0/16", "10.1.2.3/16", "::ffff:10.1.0.0/112", " 10.1.2.3 ", "::ffff:10.1.2.3"} {
		p, err := NewProxies(false, []string{good})
		if err != nil {
			t.Errorf("%q: %v", good, err)
		} else if !p.trusts(netip.MustParseAddr("10.1.2.3")) || p.trusts(netip.MustParseAddr("10.2.0.1")) {
			t.Errorf("%q is not what it says: %v", good, p.nets)
		}
	}
	for _, bad := range []string{"", "proxy", "10.1.0.0/33", "10.1.0.0/", "10.1.0.0-10.2.0.0", "10.1.0.1:80"} {
		if _, err := NewProxies(false, []string{bad}); err == nil || !strings.Contains(err.Error(), "10.1.0.0/16") {
			t.Errorf("%q: error %v", bad, err)
		}
	}
}

// FuzzCaller: whatever a client writes to the left of what its proxy appends,
// and whatever comes from a peer that is no proxy, changes nothing.
func FuzzCaller(f *testing.F) {
	f.Add("1.2.3.4", "for=1.2.3.4")
	f.Add(`"`, `for="[::1`)
	f.Add(",, ;=", ";for=;for")
	f.Fuzz(func(t *testing.T, left, element string) {
		p, err := NewProxies(true, nil)
		if err != nil {
			t.Fatal(err)
		}
		client := netip.MustParseAddr("203.0.113.9")
		for name, line := range map[string]string{
			"X-Forwarded-For": left + "," + client.String(), "Forwarded": element + ",for=" + client.String(),
		} {
			if got := p.Caller("127.0.0.1:1", http.Header{name: {left, line}}); got != client {
				t.Errorf("%s %q: got %s", name, line, got)
			}
		}
		if got := p.Caller("127.0.0.1:1", http.Header{"X-Forwarded-For": {left}, "Forwarded": {element}}); !got.IsValid() {
			t.Errorf("X-Forwarded-For %q, Forwarded %q: no address", left, element)
		}
		if got := p.Caller("198.51.100.1:1", http.Header{"X-Forwarded-For": {left}}); got.String() != "198.51.100.1" {
			t.Errorf("a client is believed: %s", got)
		}
	})
}
