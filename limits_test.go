package famcp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestDefaultRateLimit: a server whose configuration says nothing serves one
// address a hundred requests in a minute.
func TestDefaultRateLimit(t *testing.T) {
	s, err := New(nil, Info{Name: "limited", Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(t.Context()) }()
	list := func(address string) *httptest.ResponseRecorder {
		r := modernRequest(t.Context(), "http://localhost/mcp", "tools/list", "", `,"io.modelcontextprotocol/clientCapabilities":{}`)
		r.RemoteAddr = address
		r.Header.Set("X-Forwarded-For", "203.0.113.9") // believed from nobody
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	for i := range 100 {
		if w := list("192.0.2.1:1"); w.Code != http.StatusOK {
			t.Fatalf("request %d: %d %s", i+1, w.Code, w.Body)
		}
	}
	if w := list("192.0.2.1:2"); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("request 101: %d %v %s", w.Code, w.Header(), w.Body)
	}
	if w := list("192.0.2.2:1"); w.Code != http.StatusOK {
		t.Errorf("another address: %d %s", w.Code, w.Body)
	}
}

// TestClientSurvivesLimit: the SDK's client fails a refused call, and goes on
// in the same session.
func TestClientSurvivesLimit(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.Logger.Level = "error"
			cfg.MCP.RateLimit.MaxConcurrentPerSubject = 1
			s, err := New(cfg, Info{Name: "limited", Version: "1"})
			if err != nil {
				t.Fatal(err)
			}
			enter, leave := make(chan struct{}), make(chan struct{})
			tool := func(name string) Tool { return Tool{Name: name, Description: "Is " + name + ".", Effect: ReadOnly()} }
			AddTool(s, tool("slow"), func(context.Context, *Call, struct{}) (string, error) {
				enter <- struct{}{}
				<-leave
				return "done", nil
			})
			AddTool(s, tool("quick"), func(context.Context, *Call, struct{}) (string, error) { return "done", nil })
			handler, err := s.Handler()
			if err != nil {
				t.Fatal(err)
			}
			web := httptest.NewServer(handler)
			defer web.Close()
			defer func() { _ = s.Close(t.Context()) }()
			client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil)
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: web.URL + "/mcp"},
				&mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = session.Close() }()
			call := func(name string) error {
				_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name})
				return err
			}
			slow := make(chan error, 1)
			go func() { slow <- call("slow") }()
			<-enter
			if err := call("quick"); err == nil {
				t.Error("a second call was not refused")
			}
			leave <- struct{}{}
			if err := <-slow; err != nil {
				t.Errorf("the first call: %v", err)
			}
			if err := call("quick"); err != nil {
				t.Errorf("after its end: %v", err)
			}
		})
	}
}
