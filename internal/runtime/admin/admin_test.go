package admin

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/front"
	"github.com/famcp/famcp/internal/runtime/protocol"
	"github.com/famcp/famcp/internal/runtime/token"
)

const secret = "Zq3t6w9yBxEeHhMcQfTjWnZr4u7xAcDf"

// server listens with the endpoints. A request's bearer token stands for its
// caller.
type server struct {
	*httptest.Server
	t      *testing.T
	tokens *token.Tokens
	log    buffer
}

type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func newServer(t *testing.T, change func(*Config)) *server {
	t.Helper()
	tokens, err := token.New(token.Config{Secret: []byte(secret), ServerName: "srv"})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t}
	cfg := Config{
		Tokens: tokens, Name: "srv", Title: "Test server", Logger: slog.New(slog.NewTextHandler(&s.log, nil)), Issue: true,
		Scopes: func() []string { return []string{"read", "write"} },
		Address: func(r *http.Request) netip.Addr {
			a, _ := netip.ParseAddrPort(r.RemoteAddr)
			return a.Addr()
		},
	}
	authenticate := func(r *http.Request) (*call.Facts, *front.Refusal) {
		c, err := cfg.Tokens.Verify(r.Context(), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), token.Facts{})
		if err != nil {
			return nil, &front.Refusal{Status: http.StatusUnauthorized}
		}
		return &call.Facts{Subject: c.Subject, Claims: c.Map()}, nil
	}
	cfg.Page = &Page{Authenticate: authenticate}
	if change != nil {
		change(&cfg)
	}
	s.tokens = cfg.Tokens
	routes, err := Routes(cfg)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for _, route := range routes {
		mux.HandleFunc(route.Pattern, func(w http.ResponseWriter, r *http.Request) {
			if !route.Public {
				facts, refusal := authenticate(r)
				if refusal != nil {
					w.WriteHeader(refusal.Status)
					return
				}
				r = r.WithContext(call.NewContext(r.Context(), facts))
			}
			route.Handler.ServeHTTP(w, r)
		})
	}
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *server) do(method, path, body string, header ...string) (*http.Response, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
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

func (s *server) issue(g token.Grant) string {
	s.t.Helper()
	raw, _, err := s.tokens.Issue(g)
	if err != nil {
		s.t.Fatal(err)
	}
	return raw
}

// operator is a token that makes tokens.
func (s *server) operator() string {
	return s.issue(token.Grant{Subject: "op", Extra: map[string]any{allowClaim: genToken}})
}

var asJSON = []string{"Content-Type", "application/json"}

func TestCheck(t *testing.T) {
	s := newServer(t, nil)
	good := s.issue(token.Grant{Subject: "ann", Scopes: []string{"read"}})
	resp, body := s.do(http.MethodPost, "/ct", `{"t":"`+good+`"}`, asJSON...)
	var got map[string]any
	if err := json.Unmarshal([]byte(body), &got); err != nil || got["valid"] != true || got["subject"] != "ann" || got["expiresIn"].(float64) < 1700 {
		t.Errorf("%v in %s", err, body)
	}
	if resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", resp.Header)
	}
	for raw, reason := range map[string]token.Reason{"": token.ReasonMissing, "x": token.ReasonMalformed, good[:len(good)-2] + "AA": token.ReasonBadSignature} {
		resp, body := s.do(http.MethodPost, "/ct", `{"t":"`+raw+`"}`, asJSON...)
		if resp.StatusCode != http.StatusOK || !strings.Contains(body, `"valid":false`) || !strings.Contains(body, string(reason)) || len(raw) > 5 && strings.Contains(body, raw[:20]) {
			t.Errorf("%q: %d %s", raw, resp.StatusCode, body)
		}
	}
}

// A token is taken from the body of a POST and from nowhere else.
func TestCheckRefuses(t *testing.T) {
	s := newServer(t, nil)
	good := s.issue(token.Grant{Subject: "ann"})
	for name, tt := range map[string]struct {
		method, path, body, contentType string
		want                            int
	}{
		"by GET":         {http.MethodGet, "/ct?t=" + good, "", "", http.StatusMethodNotAllowed},
		"by PUT":         {http.MethodPut, "/ct", `{"t":"` + good + `"}`, "application/json", http.StatusMethodNotAllowed},
		"in the query":   {http.MethodPost, "/ct?t=" + good, `{}`, "application/json", http.StatusBadRequest},
		"in both":        {http.MethodPost, "/ct?t=" + good, `{"t":"` + good + `"}`, "application/json", http.StatusBadRequest},
		"as a form":      {http.MethodPost, "/ct", "t=" + good, "application/x-www-form-urlencoded", http.StatusUnsupportedMediaType},
		"as text":        {http.MethodPost, "/ct", `{"t":"` + good + `"}`, "text/plain", http.StatusUnsupportedMediaType},
		"another member": {http.MethodPost, "/ct", `{"t":"` + good + `","x":1}`, "application/json", http.StatusBadRequest},
		"two objects":    {http.MethodPost, "/ct", `{"t":"` + good + `"}{}`, "application/json", http.StatusBadRequest},
		"no object":      {http.MethodPost, "/ct", `"` + good + `"`, "application/json", http.StatusBadRequest},
		"too large":      {http.MethodPost, "/ct", `{"t":"` + strings.Repeat("x", maxBody) + `"}`, "application/json", http.StatusRequestEntityTooLarge},
	} {
		resp, body := s.do(tt.method, tt.path, tt.body, "Content-Type", tt.contentType)
		if resp.StatusCode != tt.want || strings.Contains(body, good) || strings.Contains(body, "valid\":") {
			t.Errorf("%s: %d %s, want %d", name, resp.StatusCode, body, tt.want)
		}
	}
}

func TestCheckIsLimited(t *testing.T) {
	for _, path := range []string{"/ct", "/admin"} {
		s := newServer(t, nil)
		for i := range maxPerMinute {
			if resp, _ := s.do(http.MethodPost, path, `{"t":"x"}`, asJSON...); resp.StatusCode == http.StatusTooManyRequests {
				t.Fatalf("%s: refused after %d", path, i)
			}
		}
		resp, _ := s.do(http.MethodPost, path, `{"t":"x"}`, asJSON...)
		if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
}

func TestIssue(t *testing.T) {
	s := newServer(t, nil)
	bearer := append([]string{"Authorization", "Bearer " + s.operator()}, asJSON...)
	resp, body := s.do(http.MethodPost, "/gen-jwt",
		`{"username":"ann","ttl":"2h","service":"srv, other","scope":"read write","ip":"10.0.0.0/8","params":{"team":"a","n":12345678901234567890}}`, bearer...)
	var out struct {
		Token, JTI string
		ExpiresIn  int
	}
	if err := json.Unmarshal([]byte(body), &out); err != nil || resp.StatusCode != http.StatusOK || out.ExpiresIn != 7200 {
		t.Fatalf("%d %v %s", resp.StatusCode, err, body)
	}
	c, err := s.tokens.Verify(t.Context(), out.Token, token.Facts{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Subject != "ann" || c.ID != out.JTI || !slices.Equal(c.Scopes, []string{"read", "write"}) || !slices.Equal(c.Services, []string{"srv", "other"}) ||
		!slices.Equal(c.IPs, []string{"10.0.0.0/8"}) || c.Map()["n"] != json.Number("12345678901234567890") {
		t.Errorf("claims %v", c.Map())
	}
	if resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", resp.Header)
	}
	if log := s.log.String(); strings.Contains(log, out.Token) || !strings.Contains(log, out.JTI) || !strings.Contains(log, "by=op") {
		t.Errorf("log %s", log)
	}
	for ttl, want := range map[string]int{`90`: 90, `"1w"`: 604800, `null`: 1800} {
		_, body := s.do(http.MethodPost, "/gen-jwt", `{"username":"ann","ttl":`+ttl+`}`, bearer...)
		if err := json.Unmarshal([]byte(body), &out); err != nil || out.ExpiresIn != want {
			t.Errorf("ttl %s: %s", ttl, body)
		}
	}
}

func TestIssueRefuses(t *testing.T) {
	s := newServer(t, nil)
	for name, tt := range map[string]struct {
		body string
		want int
	}{
		"no user":         {`{"ttl":"1h"}`, http.StatusBadRequest},
		"blank user":      {`{"username":"  "}`, http.StatusBadRequest},
		"no life":         {`{"username":"ann","ttl":0}`, http.StatusBadRequest},
		"negative life":   {`{"username":"ann","ttl":-5}`, http.StatusBadRequest},
		"part of a life":  {`{"username":"ann","ttl":1.5}`, http.StatusBadRequest},
		"a long life":     {`{"username":"ann","ttl":"2y"}`, http.StatusBadRequest},
		"a life of words": {`{"username":"ann","ttl":"soon"}`, http.StatusBadRequest},
		"a life of lists": {`{"username":"ann","ttl":[1]}`, http.StatusBadRequest},
		"another subject": {`{"username":"ann","params":{"sub":"root"}}`, http.StatusBadRequest},
		"a scope inside":  {`{"username":"ann","params":{"scope":"root"}}`, http.StatusBadRequest},
		"its own right":   {`{"username":"ann","params":{"allow":"gen-token"}}`, http.StatusBadRequest},
		"a bad address":   {`{"username":"ann","ip":"10.0.0.0/99"}`, http.StatusBadRequest},
		"unknown member":  {`{"username":"ann","password":"x"}`, http.StatusBadRequest},
		"too large":       {`{"username":"` + strings.Repeat("x", maxBody) + `"}`, http.StatusRequestEntityTooLarge},
	} {
		resp, body := s.do(http.MethodPost, "/gen-jwt", tt.body, append([]string{"Authorization", "Bearer " + s.operator()}, asJSON...)...)
		if resp.StatusCode != tt.want || strings.Contains(body, `"token"`) {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
	}
	order := `{"username":"ann"}`
	for name, allow := range map[string]any{"nothing": nil, "another right": "read", "part of it": "gen-token-not", "a list of others": []string{"x"}, "true": true} {
		raw := s.issue(token.Grant{Subject: "ann", Extra: map[string]any{allowClaim: allow}})
		if resp, body := s.do(http.MethodPost, "/gen-jwt", order, append([]string{"Authorization", "Bearer " + raw}, asJSON...)...); resp.StatusCode != http.StatusForbidden {
			t.Errorf("a token allowing %s: %d %s", name, resp.StatusCode, body)
		}
	}
	list := s.issue(token.Grant{Subject: "op", Extra: map[string]any{allowClaim: []string{"x", genToken}}})
	if resp, _ := s.do(http.MethodPost, "/gen-jwt", order, append([]string{"Authorization", "Bearer " + list}, asJSON...)...); resp.StatusCode != http.StatusOK {
		t.Errorf("a list with the right: %d", resp.StatusCode)
	}
	if resp, _ := s.do(http.MethodPost, "/gen-jwt", order, "Authorization", "Bearer "+s.operator(), "Content-Type", "text/plain"); resp.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("as text: %d", resp.StatusCode)
	}
	if resp, _ := s.do(http.MethodGet, "/gen-jwt?username=ann", "", "Authorization", "Bearer "+s.operator()); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("by GET: %d", resp.StatusCode)
	}
}

// A server whose tokens come from elsewhere makes none.
func TestCannotIssue(t *testing.T) {
	var signer *token.Tokens
	s := newServer(t, func(c *Config) {
		signer = c.Tokens
		pair, err := token.GenerateKeyPair(token.ES256)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := pair.Write(dir, false); err != nil {
			t.Fatal(err)
		}
		c.Tokens, err = token.New(token.Config{Mode: token.LocalKey, PublicKeyFile: dir + "/" + token.PublicKeyName, ExpectedIssuer: "https://id.test", ServerName: "srv"})
		if err != nil {
			t.Fatal(err)
		}
		signer, err = token.New(token.Config{
			Mode: token.LocalKey, PublicKeyFile: dir + "/" + token.PublicKeyName, PrivateKeyFile: dir + "/" + token.PrivateKeyName, ExpectedIssuer: "https://id.test", ServerName: "srv",
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	raw, _, err := signer.Issue(token.Grant{Subject: "op", Extra: map[string]any{allowClaim: genToken}})
	if err != nil {
		t.Fatal(err)
	}
	if resp, _ := s.do(http.MethodPost, "/gen-jwt", `{"username":"ann"}`, append([]string{"Authorization", "Bearer " + raw}, asJSON...)...); resp.StatusCode != http.StatusNotImplemented {
		t.Errorf("%d, want 501", resp.StatusCode)
	}
	if _, page := s.do(http.MethodGet, "/admin", "", "Authorization", "Bearer "+raw); !strings.Contains(page, "This server makes no tokens") || strings.Contains(page, `value="make"`) {
		t.Errorf("page\n%s", page)
	}
}

func basic(user, password string) string {
	req := http.Request{Header: http.Header{}}
	req.SetBasicAuth(user, password)
	return req.Header.Get("Authorization")
}

var madeToken = regexp.MustCompile(`(?s)<textarea id="made"[^>]*>([^<]+)</textarea>`)

func TestPage(t *testing.T) {
	s := newServer(t, nil)
	login := []string{"Authorization", basic("anyone", s.operator()), "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin"}
	resp, page := s.do(http.MethodGet, "/admin", "", login...)
	if resp.StatusCode != http.StatusOK || !strings.Contains(page, "signed in as op") || !strings.Contains(page, `value="read"`) {
		t.Fatalf("%d\n%s", resp.StatusCode, page)
	}
	h := resp.Header
	if p := h.Get("Content-Security-Policy"); !strings.HasPrefix(p, "default-src 'none'; style-src 'sha256-") || !strings.HasSuffix(p, "form-action 'self'") {
		t.Errorf("policy %q", p)
	}
	if h.Get("Cache-Control") != "no-store" || h.Get("X-Frame-Options") != "DENY" || h.Get("X-Content-Type-Options") != "nosniff" || strings.Contains(page, "<script") {
		t.Errorf("headers %v", h)
	}

	form := url.Values{
		"do": {"make"}, "user": {`ann"><b>`}, "life": {"2"}, "unit": {"h"}, "scope": {"read"}, "scopes": {"more"},
		"ip": {"10.0.0.0/8"}, "claims": {"team=a b\r\nn=5\r\nlist=[1,2]\r\n"},
	}
	resp, page = s.do(http.MethodPost, "/admin", form.Encode(), login...)
	m := madeToken.FindStringSubmatch(page)
	if resp.StatusCode != http.StatusOK || m == nil || strings.Contains(page, "<b>") || !strings.Contains(page, "It expires in 2 hours (") {
		t.Fatalf("%d\n%s", resp.StatusCode, page)
	}
	c, err := s.tokens.Verify(t.Context(), strings.TrimSpace(m[1]), token.Facts{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Subject != `ann"><b>` || !slices.Equal(c.Scopes, []string{"read", "more"}) || c.Map()["team"] != "a b" || c.Map()["n"] != json.Number("5") {
		t.Errorf("claims %v", c.Map())
	}
	if strings.Contains(s.log.String(), m[1]) {
		t.Error("the log holds the token")
	}

	check := url.Values{"do": {"check"}, "token": {" " + m[1] + "\r\n"}}
	_, page = s.do(http.MethodPost, "/admin", check.Encode(), login...)
	for _, want := range []string{"Valid.", "10.0.0.0/8", "[1,2]", "in 2 hours"} {
		if !strings.Contains(page, want) {
			t.Errorf("page has no %q\n%s", want, page)
		}
	}
	if strings.Contains(page, m[1]) {
		t.Error("the page repeats the token that was checked")
	}
	check.Set("token", m[1][:len(m[1])-4]+"AAAA")
	if _, page = s.do(http.MethodPost, "/admin", check.Encode(), login...); !strings.Contains(page, "Not accepted.") {
		t.Errorf("page\n%s", page)
	}
	check.Set("token", "nonsense")
	if resp, page = s.do(http.MethodPost, "/admin", check.Encode(), login...); resp.StatusCode != http.StatusOK || !strings.Contains(page, "Not accepted.") {
		t.Errorf("%d\n%s", resp.StatusCode, page)
	}
}

func TestPageShowsFaults(t *testing.T) {
	s := newServer(t, nil)
	login := []string{"Authorization", basic("", s.operator()), "Content-Type", "application/x-www-form-urlencoded"}
	for name, form := range map[string]url.Values{
		"no user":       {"user": {""}, "life": {"1"}, "unit": {"d"}},
		"a long life":   {"user": {"ann"}, "life": {"2"}, "unit": {"y"}},
		"no life":       {"user": {"ann"}, "life": {""}, "unit": {"y"}},
		"a faulty line": {"user": {"ann"}, "life": {"1"}, "unit": {"d"}, "claims": {"x"}},
		"a claim twice": {"user": {"ann"}, "life": {"1"}, "unit": {"d"}, "claims": {"x=1\nx=2"}},
		"its own right": {"user": {"ann"}, "life": {"1"}, "unit": {"d"}, "claims": {"allow=gen-token"}},
	} {
		form.Set("do", "make")
		form.Set("scopes", "kept")
		resp, page := s.do(http.MethodPost, "/admin", form.Encode(), login...)
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(page, "No token was made.") || !strings.Contains(page, `value="kept"`) || madeToken.MatchString(page) {
			t.Errorf("%s: %d\n%s", name, resp.StatusCode, page)
		}
	}
	for name, tt := range map[string]struct{ path, body string }{
		"nothing to do": {"/admin", "do=x"}, "in the query": {"/admin?do=make&user=ann&life=1&unit=d", ""}, "too large": {"/admin", "do=" + strings.Repeat("x", maxBody)},
	} {
		if resp, page := s.do(http.MethodPost, tt.path, tt.body, login...); resp.StatusCode != http.StatusBadRequest || madeToken.MatchString(page) {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
	}
}

// A browser sends a login with everything: forms of other pages are refused.
func TestPageForgery(t *testing.T) {
	s := newServer(t, nil)
	form := url.Values{"do": {"make"}, "user": {"ann"}, "life": {"1"}, "unit": {"d"}}.Encode()
	for _, header := range [][]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site", "Origin", "http://127.0.0.1:5173"}, {"Origin", "https://evil.test"}, {"Origin", "null"},
	} {
		resp, page := s.do(http.MethodPost, "/admin", form,
			append([]string{"Authorization", basic("x", s.operator()), "Content-Type", "application/x-www-form-urlencoded"}, header...)...)
		if resp.StatusCode != http.StatusForbidden || madeToken.MatchString(page) {
			t.Errorf("%v: %d", header, resp.StatusCode)
		}
	}
}

func TestPageLogin(t *testing.T) {
	s := newServer(t, nil)
	plain := s.issue(token.Grant{Subject: "ann"})
	for name, credentials := range map[string]string{
		"none": "", "no token": basic("op", "x"), "a token without the right": basic("op", plain), "as bearer": "Bearer " + plain, "other scheme": "Digest x",
	} {
		var header []string
		if credentials != "" {
			header = []string{"Authorization", credentials}
		}
		resp, page := s.do(http.MethodGet, "/admin", "", header...)
		if resp.StatusCode != http.StatusUnauthorized || !strings.HasPrefix(resp.Header.Get("WWW-Authenticate"), `Basic realm="srv tokens"`) || strings.Contains(page, "<form") {
			t.Errorf("%s: %d %v", name, resp.StatusCode, resp.Header)
		}
	}
	if resp, _ := s.do(http.MethodGet, "/admin", "", "Authorization", "Bearer "+s.operator()); resp.StatusCode != http.StatusOK {
		t.Errorf("bearer: %d", resp.StatusCode)
	}

	later := newServer(t, func(c *Config) {
		c.Page = &Page{Authenticate: func(*http.Request) (*call.Facts, *front.Refusal) {
			return nil, &front.Refusal{Code: protocol.CodeUnavailable, Header: http.Header{"Retry-After": {"5"}}}
		}}
	})
	resp, _ := later.do(http.MethodGet, "/admin", "", "Authorization", basic("x", "y"))
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "5" || resp.Header.Get("WWW-Authenticate") != "" {
		t.Errorf("keys out of reach: %d %v", resp.StatusCode, resp.Header)
	}

	byPassword := newServer(t, func(c *Config) {
		c.Page = &Page{Operator: func(user, password string) bool { return user == "op" && password == "right" }}
	})
	for credentials, want := range map[string]int{
		basic("op", "right"): http.StatusOK, basic("op", "wrong"): http.StatusUnauthorized,
		basic("x", byPassword.operator()): http.StatusUnauthorized, "Bearer " + byPassword.operator(): http.StatusUnauthorized,
	} {
		if resp, _ := byPassword.do(http.MethodGet, "/admin", "", "Authorization", credentials); resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", credentials[:8], resp.StatusCode, want)
		}
	}
}

func TestOptIn(t *testing.T) {
	s := newServer(t, func(c *Config) { c.Issue, c.Page = false, nil })
	for _, path := range []string{"/gen-jwt", "/admin"} {
		if resp, _ := s.do(http.MethodPost, path, ""); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
}

func TestWhen(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Second: "1 second", 119 * time.Second: "2 minutes", 90 * time.Minute: "2 hours", 36 * time.Hour: "2 days", 30 * 24 * time.Hour: "30 days", 89 * time.Second: "89 seconds",
	} {
		if got := span(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}
