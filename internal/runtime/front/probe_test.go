package front

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestProbes(t *testing.T) {
	check := func(name string, kind CheckKind, err error) Check {
		return Check{name, kind, func(context.Context) error { return err }}
	}
	secret := errors.New("dial 10.0.0.1: password=hunter2")
	tests := []struct {
		name   string
		checks []Check
		path   string
		status int
		want   map[string]any // without version and uptime
	}{
		{"health", nil, "/health", 200, map[string]any{"status": "ok", "details": map[string]any{}}},
		{"healthz", []Check{check("loop", Liveness, nil), check("db", Readiness, secret)}, "/healthz", 200, map[string]any{"status": "ok", "details": map[string]any{"loop": "ok"}}},
		{"unhealthy", []Check{check("loop", Liveness, secret)}, "/health", 503, map[string]any{"status": "failed", "details": map[string]any{"loop": "failed"}}},
		{"ready", []Check{check("db", Readiness, nil)}, "/ready", 200, map[string]any{"status": "ready", "checks": map[string]any{"db": "ok"}}},
		{"not ready", []Check{check("db", Readiness, secret), check("b", Readiness, nil)}, "/readyz", 503, map[string]any{"status": "not ready", "checks": map[string]any{"db": "failed", "b": "ok"}}},
		{"panic", []Check{{"p", Readiness, func(context.Context) error { panic("x") }}}, "/ready", 503, map[string]any{"status": "not ready", "checks": map[string]any{"p": "failed"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			url := newFixture(t, func(c *Config) { c.Checks = tt.checks }).serve(t)
			// Probes address a pod by number and know no Origin rules.
			a := send(t, "GET", url+tt.path, "", "Host: 10.1.2.3:3000", "Accept:")
			var got map[string]any
			if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != tt.status {
				t.Fatalf("got %d %s", a.status, a.body)
			}
			if strings.HasPrefix(tt.path, "/health") {
				if got["version"] != "1.2.3" || got["uptime"] == nil {
					t.Errorf("got %v", got)
				}
				delete(got, "version")
				delete(got, "uptime")
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			if head := send(t, "HEAD", url+tt.path, ""); head.status != tt.status || head.body != "" {
				t.Errorf("HEAD: %d %q", head.status, head.body)
			}
			if post := send(t, "POST", url+tt.path, "{}"); post.status != 405 || post.header.Get("Allow") == "" {
				t.Errorf("POST: %d", post.status)
			}
		})
	}
}

func TestProbesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		p := newProber(Readiness, []Check{{"n", Readiness, func(context.Context) error { runs.Add(1); return nil }}}, slog.New(slog.DiscardHandler))
		for range 5 {
			p.run(t.Context())
		}
		if runs.Load() != 1 {
			t.Errorf("%d runs within a second, want 1", runs.Load())
		}
		time.Sleep(checkFresh)
		p.run(t.Context())
		if runs.Load() != 2 {
			t.Errorf("%d runs after a second, want 2", runs.Load())
		}
	})
}

func TestHungCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		release := make(chan struct{})
		p := newProber(Readiness, []Check{{"n", Readiness, func(context.Context) error { runs.Add(1); <-release; return nil }}}, slog.New(slog.DiscardHandler))
		for range 3 {
			start := time.Now()
			if p.run(t.Context())["n"] == nil {
				t.Error("a hung check is fine")
			}
			if took := time.Since(start); took > checkTimeout {
				t.Errorf("probe took %s", took)
			}
			time.Sleep(checkFresh)
		}
		if runs.Load() != 1 {
			t.Errorf("started %d times", runs.Load())
		}
		close(release)
		synctest.Wait()
		if err := p.run(t.Context())["n"]; err != nil {
			t.Errorf("recovered: %v", err)
		}
	})
}

func TestHome(t *testing.T) {
	url := newFixture(t, func(c *Config) {
		c.Info.Title, c.Info.Description = `<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`
	}).serve(t)
	a := send(t, "GET", url+"/", "")
	if a.status != 200 || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
		t.Fatalf("got %d %v", a.status, a.header)
	}
	for _, bad := range []string{"<script>", "<img"} {
		if strings.Contains(a.body, bad) {
			t.Errorf("the page contains %s", bad)
		}
	}
	for _, want := range []string{"1.2.3", "2026-07-28", "2025-11-25", Path, "/health", "&lt;script&gt;"} {
		if !strings.Contains(a.body, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if !strings.HasPrefix(a.header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("policy %q", a.header.Get("Content-Security-Policy"))
	}
	if a := send(t, "POST", url+"/", "{}"); a.status != 405 {
		t.Errorf("POST /: %d", a.status)
	}
	for _, path := range []string{"/nothing", "/mcp/", "/MCP", "/favicon.ico", "/sse"} {
		a := send(t, "GET", url+path, "")
		if a.status != 404 || a.header.Get("Content-Type") != "application/json" || !json.Valid([]byte(a.body)) {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

func TestRoutes(t *testing.T) {
	url := newFixture(t, func(c *Config) {
		c.Routes = []Route{
			{Pattern: "GET /widgets/{id}", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = w.Write([]byte(r.PathValue("id") + r.Header.Get("Famcp-Internal-Call")))
			})},
			{Pattern: "/panic", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("secret") })},
			{Pattern: "/late", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.(http.Flusher).Flush()
				panic("secret")
			})},
			{Pattern: "/{$}", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("own home")) })},
		}
	}).serve(t)
	if a := send(t, "GET", url+"/widgets/7", "", "Famcp-Internal-Call: x"); a.status != 200 || a.body != "7" {
		t.Errorf("got %d %q", a.status, a.body)
	}
	if a := send(t, "GET", url+"/widgets/7", "", "Origin: https://evil.example.com"); a.status != 403 {
		t.Errorf("foreign origin: %d", a.status)
	}
	if a := send(t, "GET", url+"/", ""); a.body != "own home" {
		t.Errorf("home %q", a.body)
	}
	if a := send(t, "GET", url+"/panic", ""); a.status != 500 || a.code() != -32603 || strings.Contains(a.body, "secret") {
		t.Errorf("panic: %d %s", a.status, a.body)
	}
	res := open(t, "GET", url+"/late", "")
	defer res.Body.Close()
	if b, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("an answer cut by a panic looks complete: %q", b)
	}
}
