package oauth

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp/internal/runtime/token"
)

func TestDocuments(t *testing.T) {
	s := newServer(t, true)
	resource := func(name string) map[string]any {
		return map[string]any{
			"resource": name, "authorization_servers": []any{publicURL}, "scopes_supported": []any{"read", "write"},
			"bearer_methods_supported": []any{"header"}, "resource_name": "Test server",
		}
	}
	authorization := map[string]any{
		"issuer":                                         publicURL,
		"authorization_endpoint":                         publicURL + "/oauth/authorize",
		"token_endpoint":                                 publicURL + "/oauth/token",
		"jwks_uri":                                       publicURL + "/.well-known/jwks.json",
		"scopes_supported":                               []any{"read", "write"},
		"response_types_supported":                       []any{"code"},
		"response_modes_supported":                       []any{"query"},
		"grant_types_supported":                          []any{"authorization_code", "client_credentials", "password"},
		"token_endpoint_auth_methods_supported":          []any{"none", "client_secret_basic", "client_secret_post"},
		"code_challenge_methods_supported":               []any{"S256"},
		"subject_types_supported":                        []any{"public"},
		"id_token_signing_alg_values_supported":          []any{"ES256"},
		"client_id_metadata_document_supported":          true,
		"authorization_response_iss_parameter_supported": true,
	}
	documents := map[string]map[string]any{
		"/.well-known/oauth-protected-resource":           resource(publicURL),
		"/.well-known/oauth-protected-resource/mcp":       resource(publicURL + "/mcp"),
		"/.well-known/oauth-protected-resource/tools":     resource(publicURL),
		"/.well-known/oauth-protected-resource/tools/mcp": resource(publicURL + "/mcp"),
		"/.well-known/oauth-authorization-server":         authorization,
		"/.well-known/oauth-authorization-server/tools":   authorization,
		"/.well-known/openid-configuration":               authorization,
		"/.well-known/openid-configuration/tools":         authorization,
	}
	for path, want := range documents {
		resp, body := s.do(http.MethodGet, path, nil)
		var got map[string]any
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatalf("%s: %v in %s", path, err, body)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", path, d)
		}
		if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/json" || resp.Header.Get("Cache-Control") != "public, max-age=300" {
			t.Errorf("%s: %d %v", path, resp.StatusCode, resp.Header)
		}
		// Nothing that a request says changes what it is answered.
		_, spoofed := s.do(http.MethodGet, path, nil, "Host", "evil.test", "X-Forwarded-Host", "evil.test", "X-Forwarded-Proto", "http",
			"X-Forwarded-Prefix", "/evil", "Forwarded", "host=evil.test;proto=http", "X-Original-URL", "/evil", "Origin", "https://evil.test")
		if spoofed != body {
			t.Errorf("%s: request headers change the answer to %s", path, spoofed)
		}
		if resp, _ := s.do(http.MethodPost, path, url.Values{}); resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != "GET" {
			t.Errorf("%s: POST is %d", path, resp.StatusCode)
		}
	}
}

func TestKeys(t *testing.T) {
	s := newServer(t, false)
	_, body := s.do(http.MethodGet, "/.well-known/jwks.json", nil)
	var set struct{ Keys []map[string]string }
	if err := json.Unmarshal([]byte(body), &set); err != nil || len(set.Keys) != 1 {
		t.Fatalf("%v in %s", err, body)
	}
	if _, private := set.Keys[0]["d"]; private || set.Keys[0]["alg"] != "ES256" || set.Keys[0]["use"] != "sig" || set.Keys[0]["kid"] == "" {
		t.Errorf("key set %s", body)
	}
}

// A mode whose tokens come from elsewhere names that provider and serves
// nothing of its own.
func TestForeignIssuer(t *testing.T) {
	tokens, err := token.New(token.Config{Mode: token.RemoteJWKS, JWKSURL: "https://id.test/keys", ExpectedIssuer: "https://id.test", ServerName: "srv"})
	if err != nil {
		t.Fatal(err)
	}
	routes, err := Routes(Config{Tokens: tokens, PublicURL: "https://mcp.test/"})
	if err != nil {
		t.Fatal(err)
	}
	var patterns []string
	for _, r := range routes {
		patterns = append(patterns, r.Pattern)
	}
	slices.Sort(patterns)
	if d := cmp.Diff([]string{wellKnownResource, wellKnownResource + "/mcp"}, patterns); d != "" {
		t.Error(d)
	}
	if _, err := Routes(Config{Tokens: tokens, PublicURL: "https://mcp.test", Server: true, Provider: &Provider{}}); err == nil {
		t.Error("a provider without keys was accepted")
	}
}

func TestResourceMetadataURL(t *testing.T) {
	for public, want := range map[string]string{
		"http://localhost:3000":      "http://localhost:3000/.well-known/oauth-protected-resource/mcp",
		"https://MCP.test/tools/":    "https://mcp.test/.well-known/oauth-protected-resource/tools/mcp",
		"https://user@mcp.test":      "",
		"https://mcp.test/?x=1":      "",
		"ftp://mcp.test":             "",
		"https://mcp.test/#fragment": "",
	} {
		got, err := ResourceMetadataURL(public)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v; want %q", public, got, err, want)
		}
	}
}

func TestLogin(t *testing.T) {
	for _, password := range []bool{false, true} {
		s := newServer(t, password)
		form := s.consent(query("scope", "read openid"))
		subject := "ann"
		if password {
			form.Set("user", "ann")
			form.Set("password", "right")
		} else {
			form.Set("user", "")
			subject = anonymous
		}
		resp, _ := s.do(http.MethodPost, authorizePath, form, "Sec-Fetch-Site", "same-origin")
		u := s.location(resp)
		got := u.Query()
		if u.Scheme+"://"+u.Host+u.Path != redirect || got.Get("state") != "st&te" || got.Get("iss") != publicURL || len(got) != 3 {
			t.Fatalf("redirected to %s", u)
		}
		if h := resp.Header; h.Get("Cache-Control") != "no-store" || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("headers %v", h)
		}
		status, a := s.token(redemption(got.Get("code"), "resource", publicURL+"/mcp"))
		if status != http.StatusOK || a.Type != "Bearer" || a.Scope != "read" || a.Life != 1800 {
			t.Fatalf("%d %+v", status, a)
		}
		c := s.claims(a.Token)
		if c.Subject != subject || !slices.Equal(c.Audience, []string{publicURL + "/mcp"}) || c.Issuer != publicURL ||
			!c.Has("client_id", DevClient) || !slices.Equal(c.Services, []string{"srv"}) {
			t.Errorf("claims %v", c.Map())
		}
	}
}

func TestConsentPage(t *testing.T) {
	s := newServer(t, true)
	resp, page := s.do(http.MethodGet, authorizePath+"?"+query("state", `"><script>alert(1)</script>`).Encode(), nil)
	policy := resp.Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self' http://127.0.0.1:4711"} {
		if !strings.Contains(policy, want) {
			t.Errorf("policy %q has no %q", policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(page, "<script") || strings.Contains(page, " style=") {
		t.Errorf("policy %q, page\n%s", policy, page)
	}
	if resp.Header.Get("X-Frame-Options") != "DENY" || resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", resp.Header)
	}
	for _, want := range []string{"Development client", "http://127.0.0.1:4711", "Test server", `type="password"`, "On this computer."} {
		if !strings.Contains(page, want) {
			t.Errorf("page has no %q", want)
		}
	}
}

func TestRefusedByPerson(t *testing.T) {
	s := newServer(t, false)
	form := s.consent(query())
	form.Set("answer", "deny")
	resp, _ := s.do(http.MethodPost, authorizePath, form)
	if q := s.location(resp).Query(); q.Get("error") != "access_denied" || q.Get("iss") != publicURL || q.Has("code") {
		t.Errorf("answer %v", q)
	}
}

// Only what was ticked is granted, and only what was asked for can be ticked.
func TestScopesChosen(t *testing.T) {
	s := newServer(t, false)
	form := s.consent(query("scope", "read"))
	form["scope"] = []string{"read", "write", "root"}
	resp, _ := s.do(http.MethodPost, authorizePath, form)
	if _, a := s.token(redemption(s.location(resp).Query().Get("code"))); a.Scope != "read" {
		t.Errorf("scope %q, want read", a.Scope)
	}
	form = s.consent(query())
	form.Del("scope")
	resp, _ = s.do(http.MethodPost, authorizePath, form)
	if _, a := s.token(redemption(s.location(resp).Query().Get("code"))); a.Scope != "" || a.Token == "" {
		t.Errorf("scope %q, want none", a.Scope)
	}
}

func TestGrantsWithPassword(t *testing.T) {
	s := newServer(t, true)
	client := url.Values{"grant_type": {grantClient}, "scope": {"write"}}
	basic := []string{"Authorization", "Basic YW5uOnJpZ2h0"} // ann:right
	status, a := s.token(client, basic...)
	if c := s.claims(a.Token); status != http.StatusOK || c.Subject != "ann" || a.Scope != "write" {
		t.Errorf("client_credentials: %d %+v", status, a)
	}
	post := url.Values{"grant_type": {grantClient}, "client_id": {"ann"}, "client_secret": {"right"}}
	if status, a := s.token(post); status != http.StatusOK || a.Scope != "read write" {
		t.Errorf("client_credentials in the body: %d %+v", status, a)
	}
	password := url.Values{"grant_type": {grantPassword}, "username": {"ann"}, "password": {"right"}, "client_id": {DevClient}}
	if status, a := s.token(password); status != http.StatusOK || s.claims(a.Token).Subject != "ann" {
		t.Errorf("password: %d %+v", status, a)
	}
	password.Set("password", "wrong")
	if status, a := s.token(password); status != http.StatusBadRequest || a.Error != "invalid_grant" {
		t.Errorf("wrong password: %d %+v", status, a)
	}
	post.Set("client_secret", "wrong")
	if status, a := s.token(post); status != http.StatusUnauthorized || a.Error != "invalid_client" {
		t.Errorf("wrong secret: %d %+v", status, a)
	}
	// Who may log in unasked cannot do so without a person.
	open := newServer(t, false)
	for _, form := range []url.Values{client, password} {
		if status, a := open.token(form); status != http.StatusBadRequest || a.Error != "unsupported_grant_type" {
			t.Errorf("%s without a password: %d %+v", form.Get("grant_type"), status, a)
		}
	}
}
