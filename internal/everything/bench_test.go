package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// BenchmarkModernCall is one modern tools/call through the whole server,
// without the network.
func BenchmarkModernCall(b *testing.B) {
	cfg, err := configure("127.0.0.1:0", "bench")
	if err != nil {
		b.Fatal(err)
	}
	cfg.Logger.Level = "error"
	s, err := newServer(cfg)
	if err != nil {
		b.Fatal(err)
	}
	handler, err := s.Handler()
	if err != nil {
		b.Fatal(err)
	}
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"test_simple_text","arguments":{},"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(body))
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "test_simple_text",
		} {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			b.Fatal(w.Code, w.Body)
		}
	}
}
