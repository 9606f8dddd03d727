package famcp_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/internal/runtime/token"
)

const (
	authSecret = "0f7ac1d58e9b42aa93c6d1e07b54f8a2c9d3e6b1"
	permanent1 = "permanent-token-number-one"
	permanent2 = "permanent-token-number-two"
)

// guarded is a server with authentication on a real socket.
type guarded struct {
	*famcp.Server
	t      *testing.T
	url    string
	tokens *token.Tokens // makes what the server accepts
}

// newGuarded serves with tokens of hs256, two permanent tokens and the Basic
// scheme, unless change says otherwise.
func newGuarded(t *testing.T, change func(*famcp.Config), register func(*famcp.Server)) *guarded {
	t.Helper()
	var cfg famcp.Config
	s := newServer(t, func(c *famcp.Config) {
		auth := &c.WebServer.Auth
		auth.Enabled = true
		auth.JWT.EncryptKey = authSecret
		auth.PermanentServerTokens = []famcp.Secret{permanent1, permanent2}
		auth.Basic = famcp.BasicConfig{Username: "operator", Password: "correct horse battery"}
		c.MCP.Resources.SubscribeEnabled = true
		c.MCP.RateLimit.MaxRequests = 0
		if change != nil {
			change(c)
		}
		cfg = *c
	})
	g := &guarded{Server: s, t: t}
	famcp.AddTool(s, reader("open"), func(_ context.Context, c *famcp.Call, _ nothing) (string, error) {
		return fmt.Sprintf("%s %v %v %q", c.Subject(), c.Scopes(), c.Claim("team"), c.Header("Authorization")+c.Header("Cookie")), nil
	})
	public := reader("public")
	public.Access.Public = true
	famcp.AddTool(s, public, func(context.Context, *famcp.Call, nothing) (string, error) { return "x", nil })
	admin := reader("admin")
	admin.Access.Scopes = []string{"admin", "audit"}
	famcp.AddTool(s, admin, func(context.Context, *famcp.Call, nothing) (string, error) { return "secret", nil })
	famcp.AddPrompt(s, famcp.Prompt{Name: "admin", Description: "Is restricted.", Access: admin.Access},
		func(context.Context, *famcp.Call, nothing) ([]famcp.Message, error) {
			return []famcp.Message{famcp.UserMessage("secret")}, nil
		})
	s.AddResource(famcp.Resource{URI: "test://admin", Name: "admin", Access: admin.Access},
		func(context.Context, *famcp.Call) (famcp.Contents, error) { return famcp.Contents{Text: "secret"}, nil })
	if register != nil {
		register(s)
	}
	h, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = s.Close(ctx) // before the sockets: streams end
		web.Close()
	})
	g.url = web.URL
	if g.tokens, err = token.New(famcp.TokenConfig(&cfg, "sample")); err != nil {
		t.Fatal(err)
	}
	return g
}

// jwt returns a token of the server.
func (g *guarded) jwt(grant token.Grant) string {
	g.t.Helper()
	if grant.Subject == "" {
		grant.Subject = "alice"
	}
	raw, _, err := g.tokens.Issue(grant)
	if err != nil {
		g.t.Fatal(err)
	}
	return raw
}

// answered is an HTTP answer.
type answered struct {
	status int
	header http.Header
	body   string
}

func (r answered) code() int64 {
	var m struct{ Error struct{ Code int64 } }
	_ = json.Unmarshal([]byte(r.body), &m)
	return m.Error.Code
}

// do sends a request with header lines such as "Authorization: Bearer x".
func (g *guarded) do(method, path, body string, headers ...string) answered {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, g.url+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return answered{res.StatusCode, res.Header, string(text)}
}

// modern sends a request of the modern era.
func (g *guarded) modern(method, params string, headers ...string) answered {
	g.t.Helper()
	var p struct{ Name, URI string }
	_ = json.Unmarshal([]byte("{"+params+"}"), &p)
	if params != "" {
		params += ","
	}
	headers = append(headers, "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: "+method)
	if name := p.Name + p.URI; name != "" {
		headers = append(headers, "Mcp-Name: "+name)
	}
	return g.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, headers...)
}

// legacy sends a request on a session.
func (g *guarded) legacy(session, method, params string, headers ...string) answered {
	g.t.Helper()
	return g.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+`}}`,
		append(headers, "Mcp-Session-Id: "+session, "Accept: application/json")...)
}

// session opens a session and returns its id.
func (g *guarded) session(headers ...string) string {
	g.t.Helper()
	r := g.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, headers...)
	id := r.header.Get("Mcp-Session-Id")
	if id == "" {
		g.t.Fatalf("initialize: %d %s", r.status, r.body)
	}
	g.do("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, append(headers, "Mcp-Session-Id: "+id)...)
	return id
}

func bearer(raw string) string { return "Authorization: Bearer " + raw }

func basicAuth(user, password string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

const callOpen = `"name":"open","arguments":{}`

// TestCredentials: which are accepted, as whom, and how others are refused. The
// handler sees the subject, the scopes and the claims, and never a token.
func TestCredentials(t *testing.T) {
	g := newGuarded(t, nil, nil)
	good := g.jwt(token.Grant{Scopes: []string{"read", "write"}, Extra: map[string]any{"team": "blue"}})
	const (
		challenge = `Bearer realm="sample"`
		invalid   = challenge + `, error="invalid_token"`
		basic     = `Basic realm="sample", charset="UTF-8"`
	)
	tests := []struct {
		name      string
		headers   []string
		status    int
		want      string // in the body
		challenge string // of Bearer
	}{
		{"JWT", []string{bearer(good)}, 200, `alice [read write] blue \"\"`, ""},
		{"lower case", []string{"Authorization: bearer " + good}, 200, "alice", ""},
		{"upper case", []string{"Authorization: BEARER " + good}, 200, "alice", ""},
		{"permanent", []string{bearer(permanent1)}, 200, "permanent-token:", ""},
		{"basic", []string{basicAuth("operator", "correct horse battery")}, 200, "operator", ""},
		{"cookie beside", []string{bearer(good), "Cookie: session=1"}, 200, `\"\"`, ""},

		{"nothing", nil, 401, "missing", challenge},
		{"empty", []string{"Authorization: "}, 401, "malformed", invalid},
		{"no token", []string{"Authorization: Bearer"}, 401, "missing", challenge},
		{"a subject of permanent tokens", []string{bearer(g.jwt(token.Grant{Subject: "permanent-token:1"}))}, 401, "subject", invalid},
		{"the user of Basic as a subject", []string{bearer(g.jwt(token.Grant{Subject: "basic:operator"}))}, 401, "subject", invalid},
		{"another scheme", []string{"Authorization: Digest username=x"}, 401, "malformed", invalid},
		{"two headers", []string{bearer(good), bearer(good)}, 401, "malformed", invalid},
		{"junk", []string{bearer("junk")}, 401, "malformed", invalid},
		{"too long", []string{bearer(strings.Repeat("x", 20_000))}, 401, "malformed", invalid},
		{"tampered", []string{bearer(good[:len(good)-4] + "AAAA")}, 401, "bad_signature", invalid},
		{"none", []string{bearer(unsigned(t, good))}, 401, "algorithm", invalid},
		{"another audience", []string{bearer(g.jwt(token.Grant{Audience: []string{"other"}}))}, 401, "audience", invalid},
		{"not yet", []string{bearer(g.jwt(token.Grant{NotBefore: time.Now().Add(time.Hour)}))}, 401, "not_yet_valid", invalid},
		{"part of a permanent token", []string{bearer(permanent1[:25])}, 401, "malformed", invalid},
		{"basic, wrong password", []string{basicAuth("operator", "wrong")}, 401, "basic", invalid},
		{"basic, wrong user", []string{basicAuth("root", "correct horse battery")}, 401, "basic", invalid},
		{"basic, unreadable", []string{"Authorization: Basic !"}, 401, "malformed", invalid},
		{"in the query", nil, 401, "missing", challenge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for era, send := range map[string]func() answered{
				"modern": func() answered { return g.modern("tools/call", callOpen, tt.headers...) },
				"initialize": func() answered {
					return g.do("POST", "/mcp?access_token="+good, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, tt.headers...)
				},
			} {
				r := send()
				if r.status != tt.status || (era == "modern" && !strings.Contains(r.body, tt.want)) {
					t.Errorf("%s: got %d %s, want %d %s", era, r.status, r.body, tt.status, tt.want)
				}
				got := r.header.Values("Www-Authenticate")
				var want []string
				if tt.challenge != "" {
					want = []string{tt.challenge, basic}
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s: challenges %q, want %q", era, got, want)
				}
				if strings.Contains(r.body, good) || strings.Contains(r.body, permanent1) {
					t.Errorf("%s: the answer holds a token", era)
				}
			}
		})
	}
	if a, b := g.modern("tools/call", callOpen, bearer(permanent1)).body, g.modern("tools/call", callOpen, bearer(permanent2)).body; a == b {
		t.Errorf("two permanent tokens are one subject: %s", a)
	}
}

// unsigned returns the token with alg none and no signature.
func unsigned(t *testing.T, raw string) string {
	t.Helper()
	parts := strings.Split(raw, ".")
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + parts[1] + "."
}

// TestEveryDoorIsGuarded: methods, notifications, streams, ends of sessions and
// the project's own paths.
func TestEveryDoorIsGuarded(t *testing.T) {
	var served atomic.Int64
	g := newGuarded(t, nil, func(s *famcp.Server) {
		page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { served.Add(1); w.WriteHeader(http.StatusOK) })
		s.Handle("/private", page, famcp.Access{})
		s.Handle("/public", page, famcp.Access{Public: true})
	})
	session := g.session(bearer(g.jwt(token.Grant{})))
	on := "Mcp-Session-Id: " + session
	tests := []struct {
		name string
		send func(headers ...string) answered
		want int // without credentials
		with int
	}{
		{"tools/list", func(h ...string) answered { return g.modern("tools/list", "", h...) }, 401, 200},
		{"server/discover", func(h ...string) answered { return g.modern("server/discover", "", h...) }, 401, 200},
		{"unknown method", func(h ...string) answered { return g.modern("no/such", "", h...) }, 401, 404},
		{"legacy call", func(h ...string) answered { return g.legacy(session, "tools/list", "", h...) }, 401, 200},
		{"legacy ping", func(h ...string) answered { return g.legacy(session, "ping", "", h...) }, 401, 200},
		{"legacy notification", func(h ...string) answered {
			return g.do("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`, append(h, on)...)
		}, 401, 202},
		{"notification of nobody", func(h ...string) answered {
			return g.do("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, h...)
		}, 401, 202},
		{"modern notification", func(h ...string) answered {
			return g.do("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, append(h, "Mcp-Protocol-Version: 2026-07-28")...)
		}, 401, 202},
		{"answer to a question", func(h ...string) answered {
			return g.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"result":{}}`, append(h, on)...)
		}, 401, 202},
		{"private path", func(h ...string) answered { return g.do("GET", "/private", "", h...) }, 401, 200},
		{"public path", func(h ...string) answered { return g.do("GET", "/public", "", h...) }, 200, 200},
		{"health", func(h ...string) answered { return g.do("GET", "/health", "", h...) }, 200, 200},
		{"ready", func(h ...string) answered { return g.do("GET", "/ready", "", h...) }, 200, 200},
		{"home", func(h ...string) answered { return g.do("GET", "/", "", h...) }, 200, 200},
		{"preflight", func(h ...string) answered {
			return g.do("OPTIONS", "/mcp", "", append(h, "Origin: http://localhost:5173")...)
		}, 204, 204},
		{"stream", func(h ...string) answered {
			if len(h) > 0 {
				return answered{status: 200} // it would stay open
			}
			return g.do("GET", "/mcp", "", on, "Accept: text/event-stream")
		}, 401, 200},
		{"end of a session", func(h ...string) answered { return g.do("DELETE", "/mcp", "", append(h, on)...) }, 401, 204},
	}
	for _, tt := range tests {
		if r := tt.send(); r.status != tt.want {
			t.Errorf("%s without credentials: got %d %s, want %d", tt.name, r.status, r.body, tt.want)
		}
		if r := tt.send(bearer("junk")); tt.want == 401 && r.status != 401 && tt.name != "stream" {
			t.Errorf("%s with junk: got %d %s", tt.name, r.status, r.body)
		}
		if r := tt.send(bearer(g.jwt(token.Grant{}))); r.status != tt.with {
			t.Errorf("%s with a token: got %d %s, want %d", tt.name, r.status, r.body, tt.with)
		}
	}
	if n := served.Load(); n != 4 {
		t.Errorf("the project's pages were served %d times, want 4", n)
	}
}

// TestScopes are decided before the handler, in both eras: a list without what
// the token may not use, and a refusal that says what is missing.
func TestScopes(t *testing.T) {
	g := newGuarded(t, nil, nil)
	uses := []struct{ method, params, list string }{
		{"tools/call", `"name":"admin","arguments":{}`, "tools/list"},
		{"prompts/get", `"name":"admin"`, "prompts/list"},
		{"resources/read", `"uri":"test://admin"`, "resources/list"},
	}
	tokens := []struct {
		name    string
		scopes  []string
		missing string // "" is let in
	}{
		{"none", nil, `["admin","audit"]`},
		{"some", []string{"audit", "read"}, `["admin"]`},
		{"all", []string{"admin", "audit"}, ""},
		{"a longer one", []string{"administrator", "audit"}, `["admin"]`},
	}
	for _, tok := range tokens {
		auth := bearer(g.jwt(token.Grant{Scopes: tok.scopes}))
		session := g.session(auth)
		for era, send := range map[string]func(method, params string) answered{
			"modern": func(method, params string) answered { return g.modern(method, params, auth) },
			"legacy": func(method, params string) answered { return g.legacy(session, method, params, auth) },
		} {
			for _, use := range uses {
				r := send(use.method, use.params)
				list := send(use.list, "")
				listed := strings.Contains(list.body, `admin"`)
				if tok.missing == "" {
					if r.status != 200 || !strings.Contains(r.body, "secret") || !listed {
						t.Errorf("%s %s %s: got %d %s, listed %t", tok.name, era, use.method, r.status, r.body, listed)
					}
					continue
				}
				if r.status != 403 || r.code() != -32000 || listed || strings.Contains(r.body, "secret") ||
					!strings.Contains(r.body, `"missing":`+tok.missing) || !strings.Contains(r.body, `"reason":"insufficient_scope"`) || !strings.Contains(r.body, `"field":"scope"`) {
					t.Errorf("%s %s %s: got %d %s, listed %t", tok.name, era, use.method, r.status, r.body, listed)
				}
			}
		}
		r := g.legacy(session, "resources/subscribe", `"uri":"test://admin"`, auth)
		if (r.status == 403) != (tok.missing != "") {
			t.Errorf("%s: subscribing: got %d %s", tok.name, r.status, r.body)
		}
	}
	if r := g.modern("tools/list", "", bearer(g.jwt(token.Grant{}))); !strings.Contains(r.body, `"cacheScope":"private"`) {
		t.Errorf("a filtered list: %s", r.body)
	}
	// Everybody else's scopes are their own: one session, two tokens of one subject.
	session := g.session(bearer(g.jwt(token.Grant{})))
	for scopes, want := range map[string]int{"": 403, "admin audit": 200} {
		if r := g.legacy(session, "tools/call", `"name":"admin","arguments":{}`, bearer(g.jwt(token.Grant{Scopes: strings.Fields(scopes)}))); r.status != want {
			t.Errorf("one session, scopes %q: got %d %s, want %d", scopes, r.status, r.body, want)
		}
	}
}

// TestStepUp: where the metadata is served a missing scope is answered with all
// that the client has to ask for.
func TestStepUp(t *testing.T) {
	g := newGuarded(t, func(c *famcp.Config) {
		c.WebServer.Auth.JWT.Mode = "embedded"
		c.WebServer.Auth.JWT.KeyStoragePath = t.TempDir()
		c.WebServer.Auth.JWT.ExpectedIssuer = "https://mcp.example.com"
		c.WebServer.PublicURL = "https://mcp.example.com"
	}, nil)
	auth := bearer(g.jwt(token.Grant{Scopes: []string{"read", "audit"}}))
	session := g.session(auth)
	const metadata = `Bearer realm="sample", resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"`
	for era, r := range map[string]answered{
		"modern": g.modern("tools/call", `"name":"admin","arguments":{}`, auth, "X-Forwarded-Host: evil.example", "X-Forwarded-Proto: http"),
		"legacy": g.legacy(session, "tools/call", `"name":"admin","arguments":{}`, auth),
	} {
		if got, want := r.header.Get("Www-Authenticate"), metadata+`, error="insufficient_scope", scope="read audit admin"`; r.status != 403 || got != want {
			t.Errorf("%s: got %d %q, want %q", era, r.status, got, want)
		}
	}
	if got := g.modern("tools/list", "").header.Get("Www-Authenticate"); got != metadata {
		t.Errorf("without credentials: got %q, want %q", got, metadata)
	}
}

// TestSessionsHaveOwners: to anybody else a session is not there, and without
// credentials nobody is anybody.
func TestSessionsHaveOwners(t *testing.T) {
	g := newGuarded(t, func(c *famcp.Config) { c.WebServer.Auth.AnonymousDiscovery = true }, nil)
	alice, bob := bearer(g.jwt(token.Grant{})), bearer(g.jwt(token.Grant{Subject: "bob"}))
	open := map[string]func() string{
		"opened": func() string { return g.session(alice) },
		"adopted": func() string {
			id := g.session()
			if r := g.legacy(id, "tools/list", ""); r.status != 200 {
				t.Errorf("an anonymous session: %d %s", r.status, r.body)
			}
			if r := g.legacy(id, "tools/list", "", alice); r.status != 200 {
				t.Errorf("adopting a session: %d %s", r.status, r.body)
			}
			return id
		},
	}
	for name, open := range open {
		id := open()
		on := "Mcp-Session-Id: " + id
		for _, tt := range []struct {
			who  string
			auth []string
			want int
		}{{"another subject", []string{bob}, 404}, {"a permanent token", []string{bearer(permanent1)}, 404}, {"nobody", nil, 401}} {
			for what, r := range map[string]answered{
				"POST":         g.legacy(id, "tools/list", "", tt.auth...),
				"ping":         g.legacy(id, "ping", "", tt.auth...),
				"notification": g.do("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, append(tt.auth, on)...),
				"GET":          g.do("GET", "/mcp", "", append(tt.auth, on, "Accept: text/event-stream")...),
				"DELETE":       g.do("DELETE", "/mcp", "", append(tt.auth, on)...),
			} {
				if r.status != tt.want {
					t.Errorf("%s session, %s by %s: got %d %s, want %d", name, what, tt.who, r.status, r.body, tt.want)
				}
			}
		}
		if r := g.legacy(id, "tools/list", "", bearer(g.jwt(token.Grant{ID: "another token"}))); r.status != 200 {
			t.Errorf("%s session, by its owner's other token: %d %s", name, r.status, r.body)
		}
	}
	// The owner of nobody's session may end it without credentials.
	id := g.session()
	if r := g.do("DELETE", "/mcp", "", "Mcp-Session-Id: "+id); r.status != 204 {
		t.Errorf("ending an anonymous session: %d %s", r.status, r.body)
	}
}

// TestAnonymousDiscovery opens what it names, for those who bring nothing.
func TestAnonymousDiscovery(t *testing.T) {
	g := newGuarded(t, func(c *famcp.Config) { c.WebServer.Auth.AnonymousDiscovery = true }, nil)
	for method, want := range map[string]string{
		"server/discover": "capabilities", "tools/list": `"public"`, "prompts/list": "agent_brief",
		"resources/list": "use://auth", "resources/templates/list": "resourceTemplates",
	} {
		r := g.modern(method, "")
		if r.status != 200 || !strings.Contains(r.body, want) || strings.Contains(r.body, "admin") || strings.Contains(r.body, `"open"`) {
			t.Errorf("%s: got %d %s", method, r.status, r.body)
		}
		if r := g.modern(method, "", bearer("junk")); r.status != 401 {
			t.Errorf("%s with a bad token: got %d, want 401", method, r.status)
		}
	}
	for _, use := range []struct{ method, params string }{
		{"tools/call", `"name":"public","arguments":{}`},
		{"tools/call", callOpen},
		{"resources/read", `"uri":"test://admin"`},
		{"prompts/get", `"name":"admin"`},
		{"completion/complete", `"ref":{"type":"ref/prompt","name":"tool_prompt"},"argument":{"name":"tool","value":""}`},
		{"subscriptions/listen", `"notifications":{"toolsListChanged":true}`},
	} {
		if r := g.modern(use.method, use.params, "Accept: application/json, text/event-stream"); r.status != 401 {
			t.Errorf("%s: got %d %s, want 401", use.method, r.status, r.body)
		}
	}
	if got := g.modern("tools/list", "", bearer(g.jwt(token.Grant{}))).body; !strings.Contains(got, `"open"`) {
		t.Errorf("with a token: %s", got)
	}
}

// TestFailuresAreCounted by address, and never keep a valid token out.
func TestFailuresAreCounted(t *testing.T) {
	g := newGuarded(t, func(c *famcp.Config) { c.WebServer.Auth.Failures.MaxPerAddress = 3 }, nil)
	good := bearer(g.jwt(token.Grant{}))
	for i := range 3 {
		if r := g.modern("tools/list", "", bearer("junk")); r.status != 401 {
			t.Fatalf("failure %d: got %d", i+1, r.status)
		}
	}
	r := g.modern("tools/list", "", basicAuth("operator", "guess"))
	if r.status != 429 || r.header.Get("Retry-After") == "" || r.code() != -32003 || r.header.Get("Www-Authenticate") != "" {
		t.Errorf("one more: got %d %v %s", r.status, r.header, r.body)
	}
	if r := g.modern("tools/list", "", good); r.status != 200 {
		t.Errorf("a valid token: got %d %s", r.status, r.body)
	}
	if r := g.modern("tools/list", ""); r.status != 401 {
		t.Errorf("no credentials, which is no failure: got %d", r.status)
	}
}

// TestRevocation by token id, token and subject.
func TestRevocation(t *testing.T) {
	// The lists are part of the configuration, so the tokens come first.
	before := newGuarded(t, nil, nil)
	stolen := before.jwt(token.Grant{Subject: "mallory-a"})
	g := newGuarded(t, func(c *famcp.Config) {
		c.WebServer.Auth.Revoked = famcp.RevokedConfig{JTI: []string{"lost"}, JWTTokens: []famcp.Secret{famcp.Secret(stolen)}, Users: []string{"leaver"}}
	}, nil)
	for name, raw := range map[string]string{
		"jti": g.jwt(token.Grant{ID: "lost"}), "token": stolen, "user": g.jwt(token.Grant{Subject: "leaver"}),
	} {
		if r := g.modern("tools/list", "", bearer(raw)); r.status != 401 || !strings.Contains(r.body, "revoked") {
			t.Errorf("%s: got %d %s", name, r.status, r.body)
		}
	}
	if r := g.modern("tools/list", "", bearer(g.jwt(token.Grant{}))); r.status != 200 {
		t.Errorf("another: got %d %s", r.status, r.body)
	}
}

// TestTokenOfAnAddress is good from there only, also behind a trusted proxy.
func TestTokenOfAnAddress(t *testing.T) {
	for _, trust := range []bool{false, true} {
		g := newGuarded(t, func(c *famcp.Config) {
			c.WebServer.Auth.JWT.IsCheckIP = true
			c.WebServer.TrustProxy = trust
		}, nil)
		here := bearer(g.jwt(token.Grant{IPs: []string{"127.0.0.0/8", "::1"}}))
		there := bearer(g.jwt(token.Grant{IPs: []string{"203.0.113.7"}}))
		const forwarded = "X-Forwarded-For: 203.0.113.7"
		for _, tt := range []struct {
			name string
			send []string
			want int
		}{
			{"here", []string{here}, 200},
			{"there", []string{there}, 401},
			{"there, says the header", []string{there, forwarded}, map[bool]int{true: 200, false: 401}[trust]},
			{"here, through the proxy", []string{here, forwarded}, map[bool]int{true: 401, false: 200}[trust]},
		} {
			if r := g.modern("tools/list", "", tt.send...); r.status != tt.want {
				t.Errorf("trust %t, %s: got %d %s, want %d", trust, tt.name, r.status, r.body, tt.want)
			}
		}
	}
}

// TestOwnValidator: what it says, and what it must not do.
func TestOwnValidator(t *testing.T) {
	g := newGuarded(t, nil, func(s *famcp.Server) {
		s.Authenticate(func(_ context.Context, r *http.Request) (famcp.Identity, error) {
			switch key := r.Header.Get("X-Api-Key"); key {
			case "":
				return famcp.Identity{}, famcp.ErrNoCredentials
			case "good":
				return famcp.Identity{Subject: "robot", Scopes: []string{"admin", "audit"}, Claims: map[string]any{"team": "red"}}, nil
			case "old":
				return famcp.Identity{Subject: "robot", Expires: time.Now().Add(-time.Second)}, nil
			case "nobody":
				return famcp.Identity{}, nil
			case "banned":
				return famcp.Identity{}, fmt.Errorf("robot 7: %w", famcp.ErrForbidden)
			case "down":
				return famcp.Identity{}, errors.New("dial tcp 10.0.0.5: connection refused")
			default:
				return famcp.Identity{}, famcp.ErrBadCredentials
			}
		})
	})
	for key, want := range map[string]struct {
		status int
		body   string
	}{
		"good": {200, `robot [admin audit] red`}, "old": {401, "expired"}, "nobody": {503, "unavailable"},
		"banned": {403, "forbidden"}, "down": {503, "unavailable"}, "wrong": {401, "validator"},
	} {
		r := g.modern("tools/call", callOpen, "X-Api-Key: "+key)
		if r.status != want.status || !strings.Contains(r.body, want.body) || strings.Contains(r.body, "10.0.0.5") || strings.Contains(r.body, "robot 7") {
			t.Errorf("%s: got %d %s, want %d %s", key, r.status, r.body, want.status, want.body)
		}
	}
	if r := g.modern("tools/call", callOpen, bearer(g.jwt(token.Grant{}))); r.status != 200 {
		t.Errorf("a JWT beside it: got %d %s", r.status, r.body)
	}
	if r := g.modern("tools/call", callOpen, bearer("junk")); r.status != 401 || !strings.Contains(r.body, "malformed") {
		t.Errorf("junk that the validator knows nothing of: got %d %s", r.status, r.body)
	}
}

// TestProviderDown: the process serves, says that it is not ready, tells callers
// nothing of the inside, and is there again when the provider is.
func TestProviderDown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close() // nobody is there yet
	g := newRemote(t, "http://"+address+"/jwks")
	embedded, err := token.GenerateKeyPair(token.ES256)
	if err != nil {
		t.Fatal(err)
	}
	raw, _, err := embedded.Signer().Sign(token.Grant{
		Subject: "alice", Audience: []string{"sample"}, Issuer: "https://id.example.com", TTL: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := g.modern("tools/list", "", bearer(raw))
	if r.status != 503 || r.header.Get("Retry-After") == "" || strings.Contains(r.body, address) || r.header.Get("Www-Authenticate") != "" {
		t.Errorf("while it is down: got %d %v %s", r.status, r.header, r.body)
	}
	if r := g.do("GET", "/ready", ""); r.status != 503 || strings.Contains(r.body, address) {
		t.Errorf("/ready: got %d %s", r.status, r.body)
	}
	if r := g.do("GET", "/health", ""); r.status != 200 {
		t.Errorf("/health: got %d", r.status)
	}
	l, err = net.Listen("tcp", address)
	if err != nil {
		t.Skipf("the port was taken meanwhile: %v", err)
	}
	keys, err := embedded.JWKS()
	if err != nil {
		t.Fatal(err)
	}
	provider := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(keys)
	})}
	go func() { _ = provider.Serve(l) }()
	defer provider.Close()
	for end := time.Now().Add(15 * time.Second); ; {
		if r = g.do("GET", "/ready", ""); r.status == 200 || time.Now().After(end) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if r.status != 200 {
		t.Fatalf("/ready once it is back: %d %s", r.status, r.body)
	}
	if r := g.modern("tools/list", "", bearer(raw)); r.status != 200 {
		t.Errorf("once it is back: %d %s", r.status, r.body)
	}
}

// newRemote serves with the keys of a provider.
func newRemote(t *testing.T, keys string) *guarded {
	t.Helper()
	s := newServer(t, func(c *famcp.Config) {
		c.WebServer.Auth.Enabled = true
		c.WebServer.Auth.JWT.Mode, c.WebServer.Auth.JWT.JWKSURI = "remoteJwks", keys
		c.WebServer.Auth.JWT.ExpectedIssuer = "https://id.example.com"
		c.WebServer.Auth.JWT.JWKSCooldown = time.Second
	})
	h, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h)
	t.Cleanup(func() {
		web.Close()
		_ = s.Close(context.Background())
	})
	return &guarded{Server: s, t: t, url: web.URL}
}

// TestBatchesAskOnce who calls, and one element's panic is its own.
func TestBatchesAskOnce(t *testing.T) {
	var asked atomic.Int64
	g := newGuarded(t, nil, func(s *famcp.Server) {
		s.Authenticate(func(_ context.Context, r *http.Request) (famcp.Identity, error) {
			if r.Header.Get("X-Api-Key") == "" {
				return famcp.Identity{}, famcp.ErrNoCredentials
			}
			asked.Add(1)
			r.Header.Set("X-Seen", "yes") // of a request of its own
			return famcp.Identity{Subject: "robot"}, nil
		})
	})
	const key = "X-Api-Key: good"
	r := g.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, key)
	id := r.header.Get("Mcp-Session-Id")
	g.do("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, key, "Mcp-Session-Id: "+id)
	asked.Store(0)
	batch := "[" + strings.TrimSuffix(strings.Repeat(`{"jsonrpc":"2.0","id":NUMBER,"method":"tools/list"},`, 20), ",") + "]"
	for n := 0; strings.Contains(batch, "NUMBER"); n++ {
		batch = strings.Replace(batch, "NUMBER", strconv.Itoa(n), 1)
	}
	if r := g.do("POST", "/mcp", batch, key, "Mcp-Session-Id: "+id); r.status != 200 || strings.Count(r.body, `"result"`) != 20 {
		t.Errorf("got %d %s", r.status, r.body)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the validator was asked %d times", n)
	}
}

// TestGuessingPasswords ends at the limit, even with the right one.
func TestGuessingPasswords(t *testing.T) {
	g := newGuarded(t, func(c *famcp.Config) { c.WebServer.Auth.Failures.MaxPerAddress = 3 }, nil)
	for range 3 {
		g.modern("tools/list", "", basicAuth("operator", "guess"))
	}
	if r := g.modern("tools/list", "", basicAuth("operator", "correct horse battery")); r.status != 429 {
		t.Errorf("the right password after too many wrong ones: got %d", r.status)
	}
	if r := g.modern("tools/list", "", bearer(g.jwt(token.Grant{}))); r.status != 200 {
		t.Errorf("a token: got %d", r.status)
	}
}

// TestRevokedIsFinal: a project's own validator does not let a revoked caller
// in, and is not asked about a revoked token, whatever else that lacks.
func TestRevokedIsFinal(t *testing.T) {
	g := newGuarded(t, func(c *famcp.Config) { c.WebServer.Auth.Revoked.Users = []string{"mallory"} }, func(s *famcp.Server) {
		s.Authenticate(func(_ context.Context, r *http.Request) (famcp.Identity, error) {
			if r.Header.Get("Authorization") != "" {
				return famcp.Identity{Subject: "anybody"}, nil
			}
			return famcp.Identity{Subject: "mallory"}, nil
		})
	})
	for name, headers := range map[string][]string{
		"by the validator":        nil,
		"with a foreign audience": {bearer(g.jwt(token.Grant{Subject: "mallory", Audience: []string{"other"}}))},
	} {
		if r := g.modern("tools/list", "", headers...); r.status != 401 || !strings.Contains(r.body, "revoked") {
			t.Errorf("%s: got %d %s", name, r.status, r.body)
		}
	}
}

// TestAddressWithoutPath is no way to anything.
func TestAddressWithoutPath(t *testing.T) {
	g := newGuarded(t, nil, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET http://localhost HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	answer, err := io.ReadAll(conn)
	if err != nil || !bytes.Contains(answer, []byte(" 404 ")) {
		t.Errorf("got %s, %v", answer, err)
	}
}
