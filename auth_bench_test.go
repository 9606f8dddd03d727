package famcp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/internal/runtime/token"
)

// BenchmarkAuth calls a tool over a real socket, with a JWT on every request
// and with authentication off.
func BenchmarkAuth(b *testing.B) {
	for _, mode := range []string{"off", "jwt"} {
		b.Run(mode, func(b *testing.B) {
			cfg := famcp.DefaultConfig()
			cfg.Logger.Level = "error"
			cfg.MCP.RateLimit.MaxRequests, cfg.MCP.RateLimit.MaxConcurrentPerSubject = 0, 0
			credentials := ""
			if mode == "jwt" {
				cfg.WebServer.Auth.Enabled, cfg.WebServer.Auth.JWT.EncryptKey = true, authSecret
				tokens, err := token.New(famcp.TokenConfig(cfg, "sample"))
				if err != nil {
					b.Fatal(err)
				}
				raw, _, err := tokens.Issue(token.Grant{Subject: "alice", Scopes: []string{"read"}})
				if err != nil {
					b.Fatal(err)
				}
				credentials = "Bearer " + raw
			}
			s, err := famcp.New(cfg, famcp.Info{Name: "sample", Version: "1"})
			if err != nil {
				b.Fatal(err)
			}
			tool := reader("echo")
			famcp.AddTool(s, tool, func(context.Context, *famcp.Call, nothing) (string, error) { return "x", nil })
			h, err := s.Handler()
			if err != nil {
				b.Fatal(err)
			}
			web := httptest.NewServer(h)
			defer func() {
				_ = s.Close(b.Context())
				web.Close()
			}()
			const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{},"_meta":{` +
				`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, web.URL+"/mcp", strings.NewReader(body))
					if err != nil {
						b.Error(err)
						return
					}
					for name, value := range map[string]string{
						"Content-Type": "application/json", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "echo", "Authorization": credentials,
					} {
						if value != "" {
							r.Header.Set(name, value)
						}
					}
					res, err := http.DefaultClient.Do(r)
					if err != nil {
						b.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
					if res.StatusCode != http.StatusOK {
						b.Errorf("status %d", res.StatusCode)
						return
					}
				}
			})
		})
	}
}
