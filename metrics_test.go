package famcp

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// newMeteredServer serves the tools ok, fails and panics, and a route.
func newMeteredServer(t *testing.T, change func(*Config)) *Server {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Logger.Level = "error"
	cfg.WebServer.Metrics.Enabled = true
	cfg.WebServer.Metrics.IncludeProcessMetrics = false
	if change != nil {
		change(cfg)
	}
	s, err := New(cfg, Info{Name: "metered", Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	tool := func(name string) Tool { return Tool{Name: name, Description: "Is " + name + ".", Effect: ReadOnly()} }
	AddTool(s, tool("ok"), func(context.Context, *Call, struct{}) (string, error) { return "ok", nil })
	AddTool(s, tool("fails"), func(context.Context, *Call, struct{}) (string, error) { return "", Failf("no") })
	AddTool(s, tool("breaks"), func(context.Context, *Call, struct{}) (string, error) { return "", errors.New("hidden") })
	AddTool(s, tool("panics"), func(context.Context, *Call, struct{}) (string, error) { panic("oh") })
	s.Handle("GET /things/{id}", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("id") == "panic" {
			panic("oh")
		}
		w.WriteHeader(http.StatusTeapot)
	}), Access{Public: true})
	return s
}

func meteredURL(t *testing.T, s *Server) string {
	t.Helper()
	handler, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(handler)
	t.Cleanup(func() {
		_ = s.Close(context.WithoutCancel(t.Context()))
		web.Close()
	})
	return web.URL
}

func fetch(t *testing.T, method, url string, head ...string) (status int, body string, h http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range head {
		name, value, ok := strings.Cut(line, ": ")
		if !ok {
			continue
		}
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(data), res.Header
}

const noCapabilities = `,"io.modelcontextprotocol/clientCapabilities":{}`

func callModern(t *testing.T, url, tool string) (status int) {
	t.Helper()
	res, err := http.DefaultClient.Do(modernRequest(t.Context(), url+"/mcp", "tools/call", tool, noCapabilities))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// samples returns the values of the server's own metrics, without those of
// times and sizes.
func samples(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && strings.HasPrefix(name, "mcp_") && !strings.Contains(name, "_bucket") && !strings.Contains(name, "_sum") && value != "0" {
			out[name] = value
		}
	}
	return out
}

// checkSamples scrapes until the metrics are those wanted: a request is counted
// after its client has the answer.
func checkSamples(t *testing.T, url string, want map[string]string) {
	t.Helper()
	var got map[string]string
	for deadline := time.Now().Add(10 * time.Second); ; {
		status, text, h := fetch(t, "GET", url+"/metrics")
		if status != http.StatusOK || !strings.HasPrefix(h.Get("Content-Type"), "text/plain") {
			t.Fatalf("%d %v", status, h)
		}
		got = samples(text)
		delete(got, `mcp_http_requests_total{method="GET",path="/metrics",status="200"}`) // this loop's
		if maps.Equal(got, want) || time.Now().After(deadline) {
			break
		}
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, want %s", name, got[name], value)
		}
		delete(got, name)
	}
	for name, value := range got {
		t.Errorf("unexpected %s %s", name, value)
	}
}

// TestMetrics: contract §8, every name and label, over a socket.
func TestMetrics(t *testing.T) {
	s := newMeteredServer(t, func(cfg *Config) { cfg.MCP.RateLimit.MaxRequests = 8 })
	url := meteredURL(t, s)
	for _, tool := range []string{"ok", "ok", "fails", "breaks", "panics", "made_up"} {
		callModern(t, url, tool)
	}
	open := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	res, err := http.Post(url+"/mcp", "application/json", open)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	listen, stop := context.WithCancel(t.Context())
	defer stop()
	r := modernRequest(listen, url+"/mcp", "subscriptions/listen", "", noCapabilities)
	r.Body = io.NopCloser(strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"notifications":{"toolsListChanged":true}}}`))
	r.ContentLength = -1
	stream, err := http.DefaultClient.Do(r) // ninth request minus the unknown: the eighth
	if err != nil || stream.StatusCode != http.StatusOK {
		t.Fatalf("listen: %v %v", stream, err)
	}
	defer func() { _ = stream.Body.Close() }()
	if status := callModern(t, url, "ok"); status != http.StatusTooManyRequests {
		t.Errorf("beyond the limit: %d", status)
	}
	fetch(t, "GET", url+"/health")
	fetch(t, "HEAD", url+"/healthz")
	fetch(t, "GET", url+"/things/1")
	fetch(t, "GET", url+"/things/2")
	fetch(t, "GET", url+"/things/panic")
	fetch(t, "GET", url+"/wp-admin/setup.php")
	fetch(t, "BREW", url+"/mcp")
	fetch(t, "GET", url+"/")
	fetch(t, "POST", url+"/metrics")
	fetch(t, "GET", url+"/health", "Host: rebound.example")
	fetch(t, "GET", url+"/metrics", "Host: rebound.example")

	checkSamples(t, url, map[string]string{
		`mcp_tool_calls_total{status="ok",tool="ok"}`:                            "2",
		`mcp_tool_calls_total{status="failed",tool="fails"}`:                     "1",
		`mcp_tool_calls_total{status="error",tool="breaks"}`:                     "1",
		`mcp_tool_calls_total{status="error",tool="panics"}`:                     "1",
		`mcp_tool_calls_total{status="error",tool="other"}`:                      "1",
		`mcp_tool_duration_seconds_count{tool="ok"}`:                             "2",
		`mcp_tool_duration_seconds_count{tool="fails"}`:                          "1",
		`mcp_tool_duration_seconds_count{tool="breaks"}`:                         "1",
		`mcp_tool_duration_seconds_count{tool="panics"}`:                         "1",
		`mcp_rate_limit_hits_total{scope="subject"}`:                             "1",
		`mcp_http_requests_total{method="POST",path="/mcp",status="200"}`:        "4",
		`mcp_http_requests_total{method="POST",path="/mcp",status="400"}`:        "1",
		`mcp_http_requests_total{method="POST",path="/mcp",status="429"}`:        "1",
		`mcp_http_requests_total{method="POST",path="/mcp",status="500"}`:        "2",
		`mcp_http_requests_total{method="other",path="/mcp",status="405"}`:       "1",
		`mcp_http_requests_total{method="GET",path="/health",status="200"}`:      "2",
		`mcp_http_requests_total{method="HEAD",path="/healthz",status="200"}`:    "1",
		`mcp_http_requests_total{method="GET",path="/things/{id}",status="418"}`: "2",
		`mcp_http_requests_total{method="GET",path="/things/{id}",status="500"}`: "1",
		`mcp_http_requests_total{method="GET",path="other",status="404"}`:        "1",
		`mcp_http_requests_total{method="GET",path="/",status="200"}`:            "1",
		`mcp_http_requests_total{method="POST",path="/metrics",status="405"}`:    "1",
		`mcp_http_requests_total{method="GET",path="/metrics",status="403"}`:     "1",
		`mcp_payload_bytes_count`:                                                "9",
		`mcp_result_bytes_count`:                                                 "7",
		`mcp_sessions`:                                                           "1",
		`mcp_streams`:                                                            "1",
		`mcp_panics_total`:                                                       "2",
	})
}

// TestMetricsListener: on a listener of their own there are metrics and
// nothing else, and beside /mcp there are none.
func TestMetricsListener(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	own := listener.Addr().String()
	_ = listener.Close()
	s := newMeteredServer(t, func(cfg *Config) {
		cfg.WebServer.Port = 0
		cfg.WebServer.Metrics.Listen, cfg.WebServer.Metrics.Path = own, "/internal/metrics"
		cfg.WebServer.Metrics.IncludeProcessMetrics = true
	})
	log := &lines{}
	s.log = newLogger(LoggerConfig{Level: "info"}, log)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.RunHTTP(ctx) }()
	main := log.waitFor(t, `msg=serving url=(\S+)/mcp`)[1]
	for _, tt := range []struct {
		method, url, host string
		status            int
		part              string
	}{
		{"GET", "http://" + own + "/internal/metrics", "", 200, "\nmcp_sessions 0\n"},
		{"GET", "http://" + own + "/internal/metrics", "", 200, "\ngo_goroutines "},
		{"HEAD", "http://" + own + "/internal/metrics", "", 200, ""},
		{"POST", "http://" + own + "/internal/metrics", "", 405, "only GET"},
		{"GET", "http://" + own + "/mcp", "", 404, "/internal/metrics"},
		{"GET", "http://" + own + "/internal/metrics", "Host: rebound.example", 403, "-32000"},
		{"GET", main + "/internal/metrics", "", 404, "nothing is served"},
		{"GET", main + "/metrics", "", 404, "nothing is served"},
	} {
		status, body, _ := fetch(t, tt.method, tt.url, tt.host)
		if status != tt.status || !strings.Contains(body, tt.part) {
			t.Errorf("%s %s: %d %.200s, want %d with %q", tt.method, tt.url, status, body, tt.status, tt.part)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", own); err == nil {
		t.Error("the listener is still open")
	}
}

// TestMetricsOff: without the key there are none, and a project's own are
// taken all the same.
func TestMetricsOff(t *testing.T) {
	s := newMeteredServer(t, func(cfg *Config) { cfg.WebServer.Metrics.Enabled = false })
	if s.Metrics() == nil {
		t.Error("nothing takes the project's metrics")
	}
	url := meteredURL(t, s)
	if status, body, _ := fetch(t, "GET", url+"/metrics"); status != http.StatusNotFound {
		t.Errorf("%d %s", status, body)
	}
}

func TestMetricsKeys(t *testing.T) {
	tests := []struct {
		name, path, listen string
		insecure           bool
		part               string // of the error; "" for none
	}{
		{"beside /mcp", "/metrics", "", false, ""},
		{"own listener", "/metrics", "127.0.0.1:9090", false, ""},
		{"IPv6", "/metrics", "[::1]:9090", false, ""},
		{"name", "/metrics", "localhost:0", false, ""},
		{"everywhere", "/metrics", "0.0.0.0:9090", false, "webServer.metrics.listen: 0.0.0.0:9090 is reachable"},
		{"everywhere, allowed", "/metrics", "0.0.0.0:9090", true, ""},
		{"no host", "/metrics", ":9090", false, "write 0.0.0.0"},
		{"no port", "/metrics", "127.0.0.1", false, "is not an address with a port"},
		{"port by name", "/metrics", "127.0.0.1:http", false, "has no port"},
		{"port too large", "/metrics", "127.0.0.1:65536", false, "has no port"},
		{"the endpoint", "/mcp", "", false, "is served by the server already"},
		{"a probe", "/health", "", false, "is served by the server already"},
		{"the root", "/", "", false, "is not a path below /"},
		{"relative", "metrics", "", false, "is not a path below /"},
		{"empty", "", "", false, "is not a path below /"},
		{"a pattern", "/m/{id}", "", false, "must be a plain path"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := DefaultConfig()
			web := &cfg.WebServer
			web.AllowInsecureBind = tt.insecure
			web.Metrics = MetricsConfig{Enabled: true, Path: tt.path, Listen: tt.listen}
			err := errors.Join(cfg.validate(), cfg.checkListen(nil))
			if tt.part == "" {
				if err != nil {
					t.Error(err)
				}
			} else if err == nil || !strings.Contains(err.Error(), tt.part) {
				t.Errorf("got %v, want %q", err, tt.part)
			}
		})
	}
}

// TestMetricsPathIsTaken: no route of the project can hide the metrics.
func TestMetricsPathIsTaken(t *testing.T) {
	s := newMeteredServer(t, nil)
	s.Handle("GET /metrics", http.NotFoundHandler(), Access{Public: true})
	if _, err := s.Handler(); err == nil || !strings.Contains(err.Error(), "serves this path") {
		t.Errorf("got %v", err)
	}
}

// TestAuthFailureMetric: failed authentications are counted by their reason.
// The request without credentials that OAuth clients begin with is none.
func TestAuthFailureMetric(t *testing.T) {
	s := newMeteredServer(t, func(cfg *Config) {
		cfg.WebServer.Auth.Enabled = true
		cfg.WebServer.Auth.PermanentServerTokens = []Secret{"a-permanent-token-of-the-test"}
	})
	url := meteredURL(t, s)
	for _, credentials := range []string{"", "Bearer wrong-token-of-the-test-1234", "Digest x"} {
		r := modernRequest(t.Context(), url+"/mcp", "tools/list", "", noCapabilities)
		if credentials != "" {
			r.Header.Set("Authorization", credentials)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		size, _ := io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusUnauthorized || size == 0 {
			t.Errorf("%q: %d, %d bytes", credentials, res.StatusCode, size)
		}
	}
	checkSamples(t, url, map[string]string{
		`mcp_auth_failures_total{reason="malformed"}`:                     "2",
		`mcp_http_requests_total{method="POST",path="/mcp",status="401"}`: "3",
		`mcp_payload_bytes_count`:                                         "3",
	})
}
