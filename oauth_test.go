package famcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/famcp/famcp"
)

// serveEmbedded starts a server that makes its own tokens, with one tool that
// needs a scope, and returns its URL without /mcp.
func serveEmbedded(t *testing.T, change func(*famcp.Config)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + listener.Addr().String()
	s := newServer(t, func(c *famcp.Config) {
		web := &c.WebServer
		web.PublicURL, web.Auth.Enabled = base, true
		web.Auth.JWT.Mode, web.Auth.JWT.KeyStoragePath = "embedded", t.TempDir()
		if change != nil {
			change(c)
		}
		web.Auth.JWT.ExpectedIssuer = web.PublicURL
	})
	tool := reader("whoami")
	tool.Access.Scopes = []string{"notes:read"}
	famcp.AddTool(s, tool, func(_ context.Context, call *famcp.Call, _ nothing) (string, error) { return call.Subject(), nil })
	handler, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	srv := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}}
	srv.Start()
	t.Cleanup(func() {
		_ = s.Close(context.Background())
		srv.Close()
	})
	return base
}

var ticket = regexp.MustCompile(`name="ticket" value="([^"]+)"`)

// consent answers the page at address as ann would and returns where it leads.
func consent(ctx context.Context, address string, scopes ...string) (url.Values, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	m := ticket.FindSubmatch(page)
	if m == nil {
		return nil, fmt.Errorf("%d without a form: %s", resp.StatusCode, page)
	}
	form := url.Values{"ticket": {html.UnescapeString(string(m[1]))}, "answer": {"allow"}, "user": {"ann"}, "scope": scopes}
	at, _, _ := strings.Cut(address, "?")
	req, err = http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err = http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	to, err := resp.Location()
	if err != nil {
		return nil, err
	}
	return to.Query(), nil
}

// TestOAuthClient: the SDK's client finds out by itself where to log in, does,
// and comes back for a scope it lacks; it may have begun without credentials.
func TestOAuthClient(t *testing.T) {
	for _, anonymous := range []bool{false, true} {
		t.Run(fmt.Sprint("anonymous=", anonymous), func(t *testing.T) {
			base := serveEmbedded(t, func(c *famcp.Config) { c.WebServer.Auth.AnonymousDiscovery = anonymous })
			logins := 0
			handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
				PreregisteredClient: &oauthex.ClientCredentials{ClientID: "famcp-dev"},
				RedirectURL:         "http://127.0.0.1:4711/callback",
				AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
					scopes := []string{"notes:read"}
					if logins++; logins == 1 && !anonymous {
						scopes = nil // the person unticks it; the client asks twice at most for one request
					}
					q, err := consent(ctx, args.URL, scopes...)
					if err != nil {
						return nil, err
					}
					return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: base + "/mcp", OAuthHandler: handler}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			if want := map[bool]int{true: 0, false: 1}[anonymous]; logins != want {
				t.Errorf("%d logins after connecting, want %d", logins, want)
			}
			res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "whoami"})
			if err != nil {
				t.Fatal(err)
			}
			if text := res.Content[0].(*mcp.TextContent).Text; text != "ann" || res.IsError || logins != map[bool]int{true: 1, false: 2}[anonymous] {
				t.Errorf("the tool says %q after %d logins", text, logins)
			}
		})
	}
}

func get(t *testing.T, method, address, body string, header ...string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data), resp.Header
}

// TestTokenEndpoints: which there are follows from the configuration.
func TestTokenEndpoints(t *testing.T) {
	const password = "a-long-password"
	withBasic := func(c *famcp.Config) {
		c.WebServer.Auth.Basic = famcp.BasicConfig{Username: "op", Password: password}
	}
	for name, tt := range map[string]struct {
		change                  func(*famcp.Config)
		authorize, gen, adminis int
	}{
		"as it comes":            {nil, 400, 404, 404},
		"in production":          {func(c *famcp.Config) { withBasic(c); c.Env = "production" }, 404, 404, 404},
		"reached by others":      {func(c *famcp.Config) { c.WebServer.PublicURL = "https://mcp.test" }, 404, 404, 404},
		"behind a proxy":         {func(c *famcp.Config) { c.WebServer.TrustProxy = true }, 404, 404, 404},
		"others with a password": {func(c *famcp.Config) { withBasic(c); c.WebServer.PublicURL = "https://mcp.test" }, 400, 404, 404},
		"with all of it": {func(c *famcp.Config) {
			withBasic(c)
			c.WebServer.GenJWTAPIEnable, c.AdminPanel.Enabled = true, true
		}, 400, 401, 401},
	} {
		t.Run(name, func(t *testing.T) {
			base := serveEmbedded(t, tt.change)
			for path, want := range map[string]int{
				"/oauth/authorize": tt.authorize, "/gen-jwt": tt.gen, "/admin": tt.adminis,
				"/.well-known/jwks.json": 200, "/.well-known/oauth-protected-resource/mcp": 200, "/ct": 405,
			} {
				if status, body, _ := get(t, http.MethodGet, base+path, ""); status != want {
					t.Errorf("%s: %d %s, want %d", path, status, body, want)
				}
			}
		})
	}
}

// TestMakingTokens: the user of Basic makes a token on the page, and neither it
// nor that user may make more by /gen-jwt.
func TestMakingTokens(t *testing.T) {
	base := serveEmbedded(t, func(c *famcp.Config) {
		c.WebServer.Auth.Basic = famcp.BasicConfig{Username: "op", Password: "a-long-password"}
		c.WebServer.GenJWTAPIEnable = true
		c.AdminPanel = famcp.AdminPanelConfig{Enabled: true, AuthType: "basic"}
	})
	const login = "Basic b3A6YS1sb25nLXBhc3N3b3Jk"
	form := url.Values{"do": {"make"}, "user": {"ann"}, "life": {"1"}, "unit": {"h"}, "scope": {"notes:read"}}
	status, page, _ := get(t, http.MethodPost, base+"/admin", form.Encode(),
		"Authorization", login, "Content-Type", "application/x-www-form-urlencoded", "Origin", base)
	m := regexp.MustCompile(`<textarea id="made"[^>]*>([^<]+)<`).FindStringSubmatch(page)
	if status != http.StatusOK || m == nil {
		t.Fatalf("%d\n%s", status, page)
	}
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	status, body, _ := get(t, http.MethodPost, base+"/mcp", call, "Authorization", "Bearer "+m[1], "Content-Type", "application/json",
		"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "whoami")
	if status != http.StatusOK || !strings.Contains(body, `"ann"`) {
		t.Errorf("a call with the token: %d %s", status, body)
	}
	status, body, _ = get(t, http.MethodPost, base+"/ct", `{"t":"`+m[1]+`"}`, "Content-Type", "application/json")
	var checked struct{ Valid bool }
	if err := json.Unmarshal([]byte(body), &checked); err != nil || status != http.StatusOK || !checked.Valid {
		t.Errorf("/ct: %d %s", status, body)
	}
	for _, credentials := range []string{"Bearer " + m[1], login} {
		status, body, _ := get(t, http.MethodPost, base+"/gen-jwt", `{"username":"bob"}`, "Authorization", credentials, "Content-Type", "application/json")
		if status != http.StatusForbidden {
			t.Errorf("/gen-jwt: %d %s", status, body)
		}
	}
}

// TestTokenRules: what makes tokens does not start open.
func TestTokenRules(t *testing.T) {
	for want, change := range map[string]func(*famcp.Config){
		"webServer.genJwtApiEnable": func(c *famcp.Config) { c.WebServer.GenJWTAPIEnable = true },
		"adminPanel.enabled":        func(c *famcp.Config) { c.AdminPanel.Enabled = true },
		"adminPanel.authType": func(c *famcp.Config) {
			c.WebServer.Auth.Enabled, c.WebServer.Auth.JWT.EncryptKey = true, "Zq3t6w9yBxEeHhMcQfTjWnZr4u7xAcDf"
			c.AdminPanel = famcp.AdminPanelConfig{Enabled: true, AuthType: "basic"}
		},
	} {
		cfg := famcp.DefaultConfig()
		change(cfg)
		if _, err := famcp.New(cfg, famcp.Info{Name: "sample", Version: "1.0.0"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
