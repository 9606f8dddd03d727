package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/famcp/famcp/internal/runtime/token"
)

const (
	publicURL = "https://mcp.test/tools"
	verifier  = "a-verifier-of-forty-three-characters-at-least-0"
	redirect  = "http://127.0.0.1:4711/callback"
)

func challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// server is a listening identity provider.
type server struct {
	*httptest.Server
	t        *testing.T
	tokens   *token.Tokens
	provider *provider // the one that listens
}

// newServer starts one whose public URL is not the address it listens on. With
// password, the user is ann and the password right.
func newServer(t *testing.T, password bool) *server {
	t.Helper()
	tokens, err := token.New(token.Config{
		Mode: token.Embedded, KeyDir: t.TempDir(), ServerName: "srv", PublicURL: publicURL, ExpectedIssuer: publicURL,
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Provider{
		Service: "srv", Logger: slog.New(slog.DiscardHandler),
		Address: func(r *http.Request) netip.Addr {
			a, _ := netip.ParseAddrPort(r.RemoteAddr)
			return a.Addr()
		},
	}
	if password {
		cfg.CheckPassword = func(user, password string) bool { return user == "ann" && password == "right" }
	}
	s := &server{t: t, tokens: tokens}
	e, err := newEndpoints(Config{
		Tokens: tokens, PublicURL: publicURL, Title: "Test server", Server: true, Provider: &cfg,
		Scopes: func() []string { return []string{"read", "write"} },
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for _, r := range e.routes() {
		if !r.Public {
			t.Errorf("%s is not public", r.Pattern)
		}
		mux.Handle(r.Pattern, r.Handler)
	}
	s.provider = e.provider
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// do sends a request and returns its answer without following redirects.
func (s *server) do(method, path string, form url.Values, header ...string) (*http.Response, string) {
	s.t.Helper()
	var body io.Reader = http.NoBody
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp, string(data)
}

// query is a good authorization request with changes; an empty value removes.
func query(changes ...string) url.Values {
	q := url.Values{
		"response_type": {"code"}, "client_id": {DevClient}, "redirect_uri": {redirect}, "state": {"st&te"},
		"code_challenge": {challenge(verifier)}, "code_challenge_method": {"S256"}, "resource": {publicURL + "/mcp"},
	}
	for i := 0; i < len(changes); i += 2 {
		if changes[i+1] == "" {
			q.Del(changes[i])
		} else {
			q.Set(changes[i], changes[i+1])
		}
	}
	return q
}

var ticketField = regexp.MustCompile(`name="ticket" value="([^"]+)"`)

// consent opens the consent page and returns its form.
func (s *server) consent(q url.Values) url.Values {
	s.t.Helper()
	resp, page := s.do(http.MethodGet, authorizePath+"?"+q.Encode(), nil)
	m := ticketField.FindStringSubmatch(page)
	if resp.StatusCode != http.StatusOK || m == nil {
		s.t.Fatalf("consent page: %d\n%s", resp.StatusCode, page)
	}
	return url.Values{"ticket": {html.UnescapeString(m[1])}, "answer": {"allow"}, "scope": {"read", "write"}}
}

// location is the address that an answer sends the browser to.
func (s *server) location(resp *http.Response) *url.URL {
	s.t.Helper()
	if resp.StatusCode != http.StatusSeeOther {
		s.t.Fatalf("status %d, want 303", resp.StatusCode)
	}
	u, err := resp.Location()
	if err != nil {
		s.t.Fatal(err)
	}
	return u
}

// code logs in and returns the code.
func (s *server) code(q url.Values) string {
	s.t.Helper()
	resp, _ := s.do(http.MethodPost, authorizePath, s.consent(q))
	return s.location(resp).Query().Get("code")
}

func redemption(code string, changes ...string) url.Values {
	form := url.Values{
		"grant_type": {grantCode}, "code": {code}, "redirect_uri": {redirect},
		"client_id": {DevClient}, "code_verifier": {verifier},
	}
	for i := 0; i < len(changes); i += 2 {
		if changes[i+1] == "" {
			form.Del(changes[i])
		} else {
			form.Set(changes[i], changes[i+1])
		}
	}
	return form
}

// answer is that of the token endpoint.
type answer struct {
	Error string `json:"error"`
	Text  string `json:"error_description"`
	Token string `json:"access_token"`
	Type  string `json:"token_type"`
	Scope string `json:"scope"`
	Life  int    `json:"expires_in"`
}

func (s *server) token(form url.Values, header ...string) (int, answer) {
	s.t.Helper()
	resp, body := s.do(http.MethodPost, tokenPath, form, header...)
	if got := resp.Header.Get("Cache-Control"); got != "no-store" {
		s.t.Errorf("Cache-Control %q, want no-store", got)
	}
	var a answer
	if err := json.Unmarshal([]byte(body), &a); err != nil {
		s.t.Fatalf("%v in %s", err, body)
	}
	return resp.StatusCode, a
}

func (s *server) claims(raw string) *token.Claims {
	s.t.Helper()
	c, err := s.tokens.Verify(context.Background(), raw, token.Facts{})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}
