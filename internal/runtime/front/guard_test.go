package front

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/protocol"
)

func TestGuard(t *testing.T) {
	list := modernCall("7", "tools/list", "")
	url := newFixture(t, func(c *Config) {
		c.Hosts = []string{"MCP.example.com", "other.example.com:8443"}
		c.Origins = []string{"https://app.example.com", "http://intern.example.com:8080/"}
	}).serve(t)
	tests := []struct {
		name, host, origin string
		status             int
		reason             string
	}{
		{"plain", "", "", 200, ""},
		{"localhost", "localhost:1234", "", 200, ""},
		{"IPv6", "[::1]:1234", "", 200, ""},
		{"mapped IPv4", "[::ffff:127.0.0.1]", "", 200, ""},
		{"final dot", "localhost.", "", 200, ""},
		{"allowed host", "mcp.example.com", "", 200, ""},
		{"allowed host, any port", "mcp.example.com:99", "", 200, ""},
		{"allowed host and port", "other.example.com:8443", "", 200, ""},
		{"allowed host, other port", "other.example.com:1", "", 403, "webServer.allowedHosts"},
		{"foreign host", "evil.example.com", "", 403, "webServer.allowedHosts"},
		{"loopback in a foreign name", "127.0.0.1.evil.example.com", "", 403, "webServer.allowedHosts"},
		{"localhost in a foreign name", "localhost.evil.example.com", "", 403, "webServer.allowedHosts"},
		{"loopback origin", "", "http://localhost:5173", 200, ""},
		{"loopback IPv6 origin", "", "http://[::1]:5173", 200, ""},
		{"loopback origin on a public host", "mcp.example.com", "http://localhost:5173", 403, "webServer.originHosts"},
		{"allowed origin", "mcp.example.com", "https://app.example.com", 200, ""},
		{"allowed origin in capitals", "", "https://APP.example.com", 200, ""},
		{"allowed origin, trailing slash in the list", "", "http://intern.example.com:8080", 200, ""},
		{"allowed origin, other scheme", "", "http://app.example.com", 403, "webServer.originHosts"},
		{"foreign origin", "", "https://evil.example.com", 403, "webServer.originHosts"},
		{"opaque origin", "", "null", 403, "webServer.originHosts"},
		{"file origin", "", "file://localhost", 403, "webServer.originHosts"},
		{"host before origin", "evil.example.com", "https://evil.example.com", 403, "webServer.allowedHosts"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			headers := []string{modernHead, methodList}
			if tt.host != "" {
				headers = append(headers, "Host: "+tt.host)
			}
			if tt.origin != "" {
				headers = append(headers, "Origin: "+tt.origin)
			}
			a := send(t, "POST", url+Path, list, headers...)
			if a.status != tt.status {
				t.Fatalf("got %d %s, want %d", a.status, a.body, tt.status)
			}
			if !strings.Contains(strings.Join(a.header.Values("Vary"), ","), "Origin") {
				t.Error("no Vary: Origin")
			}
			allowed := a.header.Get("Access-Control-Allow-Origin")
			if tt.status != 200 {
				if m := a.message(t); m.Error == nil || !strings.Contains(m.Error.Message, tt.reason) || allowed != "" {
					t.Errorf("got %s, allowed %q; want the key %s", a.body, allowed, tt.reason)
				}
				return
			}
			if allowed != tt.origin {
				t.Errorf("allowed origin %q, want %q", allowed, tt.origin)
			}
			if tt.origin != "" && !strings.Contains(a.header.Get("Access-Control-Expose-Headers"), "Mcp-Session-Id") {
				t.Error("Mcp-Session-Id is not exposed")
			}
		})
	}
}

func TestErrorsCarryCORS(t *testing.T) {
	url := newFixture(t, nil).serve(t)
	a := send(t, "POST", url+Path, "{", modernHead, "Origin: http://localhost:1")
	if a.status != 400 || a.header.Get("Access-Control-Allow-Origin") != "http://localhost:1" {
		t.Errorf("got %d %v", a.status, a.header)
	}
}

func TestPreflight(t *testing.T) {
	url := newFixture(t, nil).serve(t)
	a := send(t, "OPTIONS", url+Path, "", "Origin: http://localhost:5173", "Access-Control-Request-Method: POST",
		"Access-Control-Request-Headers: content-type, mcp-param-region, x-evil")
	if a.status != 204 || a.body != "" {
		t.Fatalf("got %d %q", a.status, a.body)
	}
	allowed := a.header.Get("Access-Control-Allow-Headers")
	for _, want := range []string{"Authorization", "Content-Type", "Mcp-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Mcp-Name", "Last-Event-ID", "Mcp-Param-Region"} {
		if !strings.Contains(allowed, want) {
			t.Errorf("%s is not allowed by %q", want, allowed)
		}
	}
	if strings.Contains(strings.ToLower(allowed), "evil") || a.header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("too much is allowed: %v", a.header)
	}
	if got := a.header.Get("Access-Control-Allow-Methods"); !strings.Contains(got, "DELETE") {
		t.Errorf("methods %q", got)
	}
	if a := send(t, "OPTIONS", url+Path, "", "Origin: https://evil.example.com"); a.status != 403 {
		t.Errorf("foreign preflight: %d", a.status)
	}
}

func TestNewRefusesBadConfig(t *testing.T) {
	h := http.NotFoundHandler()
	tests := []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"no server", func(c *Config) { c.Server = nil }, "Server"},
		{"host with scheme", func(c *Config) { c.Hosts = []string{"https://a"} }, "webServer.allowedHosts"},
		{"host wildcard", func(c *Config) { c.Hosts = []string{"*"} }, "webServer.allowedHosts"},
		{"origin without scheme", func(c *Config) { c.Origins = []string{"a.example.com"} }, "webServer.originHosts"},
		{"origin with path", func(c *Config) { c.Origins = []string{"https://a.example.com/x"} }, "webServer.originHosts"},
		{"bad pattern", func(c *Config) { c.Routes = []Route{{Pattern: "GET", Handler: h}} }, "GET"},
		{"same pattern twice", func(c *Config) { c.Routes = []Route{{Pattern: "/a", Handler: h}, {Pattern: "/a", Handler: h}} }, "/a"},
		{"pattern of ours", func(c *Config) { c.Routes = []Route{{Pattern: "POST /mcp", Handler: h}} }, "/mcp"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fx := newFixture(t, nil)
			cfg := fx.cfg
			tt.change(&cfg)
			if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one about %s", err, tt.want)
			}
		})
	}
}

// A browser asks first without credentials, also for what needs them, and for
// paths whose handlers know nothing of that.
func TestRoutePreflight(t *testing.T) {
	own := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }
	url := newFixture(t, func(c *Config) {
		c.Authorize = func(context.Context, *http.Request, *call.Facts, *protocol.Message) *Refusal {
			return &Refusal{Status: http.StatusUnauthorized}
		}
		c.Routes = []Route{
			{Pattern: "/private", Handler: http.HandlerFunc(own)},
			{Pattern: "GET /public", Handler: http.HandlerFunc(own), Public: true},
			{Pattern: "OPTIONS /own", Handler: http.HandlerFunc(own), Public: true},
		}
	}).serve(t)
	ask := []string{"Origin: http://localhost:5173", "Access-Control-Request-Method: GET", "Access-Control-Request-Headers: mcp-protocol-version"}
	for path, want := range map[string]int{"/private": 204, "/public": 204, "/own": 418} {
		resp := send(t, http.MethodOptions, url+path, "", ask...)
		if resp.status != want || resp.header.Get("Access-Control-Allow-Origin") != "http://localhost:5173" {
			t.Errorf("%s: %d %v", path, resp.status, resp.header)
		}
		if want == 204 && !strings.Contains(resp.header.Get("Access-Control-Allow-Headers"), "Mcp-Protocol-Version") {
			t.Errorf("%s: %v", path, resp.header)
		}
	}
	if resp := send(t, http.MethodOptions, url+"/private", ""); resp.status != 401 {
		t.Errorf("OPTIONS that is no preflight: %d", resp.status)
	}
	if resp := send(t, http.MethodOptions, url+"/private", "", "Origin: https://evil.example.com", "Access-Control-Request-Method: GET"); resp.status != 403 {
		t.Errorf("preflight of a foreign page: %d", resp.status)
	}
}
