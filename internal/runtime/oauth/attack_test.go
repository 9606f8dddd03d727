package oauth

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Nobody is sent to an address that is not the client's, with an answer or an
// error.
func TestOpenRedirect(t *testing.T) {
	s := newServer(t, false)
	for _, uri := range []string{
		"https://evil.test/", "http://evil.test/callback", "//evil.test", "/callback", "callback", "javascript:alert(1)", "data:text/html,x",
		"http://127.0.0.1@evil.test/callback", "http://user@127.0.0.1/callback", "http://127.0.0.1:80:evil.test/", `http://127.0.0.1\@evil.test/`,
		"http://localhost.evil.test/", "http://127.0.0.1.evil.test/", "http://0.0.0.0/", "http://10.0.0.1/callback", "http://[::]/", "http://2130706433/",
		"http://127.0.0.1/#fragment", "http://127.0.0.1/\r\nLocation: x", "http:127.0.0.1/", "http://127.0.0.1/<b>", `http://127.0.0.1/a\b`, "https://127.0.0.1/callback", "famcp://callback", " http://127.0.0.1/",
		"http://127.0.0.1/" + strings.Repeat("a", maxURI),
	} {
		// A good request, and one at fault in what is checked later.
		for _, q := range []url.Values{query("redirect_uri", uri), query("redirect_uri", uri, "response_type", "token")} {
			resp, body := s.do(http.MethodGet, authorizePath+"?"+q.Encode(), nil)
			if resp.StatusCode != http.StatusBadRequest || resp.Header.Get("Location") != "" || ticketField.MatchString(body) {
				t.Errorf("%q: %d to %q", uri, resp.StatusCode, resp.Header.Get("Location"))
			}
		}
		s.provider.limit = nil
	}
	for _, uri := range []string{"http://127.0.0.1/", "http://localhost:1/a?b=c", "http://[::1]:65535/callback", "http://127.0.0.7:80/"} {
		s.consent(query("redirect_uri", uri))
	}
	twice := query()
	twice.Add("redirect_uri", "https://evil.test/")
	if resp, _ := s.do(http.MethodGet, authorizePath+"?"+twice.Encode(), nil); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("two redirect URIs: %d", resp.StatusCode)
	}
}

func TestRegisteredRedirects(t *testing.T) {
	c := &client{id: "https://client.test/app.json", redirects: []string{"https://client.test/cb?x=1", "http://127.0.0.1/cb", "http://localhost:3000/cb"}}
	for uri, want := range map[string]bool{
		"https://client.test/cb?x=1":      true,
		"https://client.test/cb":          false,
		"https://client.test/cb?x=1&y=2":  false,
		"https://client.test:443/cb?x=1":  false,
		"https://client.test/cb/?x=1":     false,
		"https://CLIENT.test/cb?x=1":      false,
		"https://sub.client.test/cb?x=1":  false,
		"http://127.0.0.1/cb":             true,
		"http://127.0.0.1:5000/cb":        true,
		"http://127.0.0.1:5000/other":     false,
		"http://localhost:5000/cb":        true,
		"http://[::1]:5000/cb":            false,
		"http://localhost:5000/cb?code=1": false,
	} {
		if got := c.mayRedirect(uri); got != want {
			t.Errorf("%s: %v, want %v", uri, got, want)
		}
	}
}

// A faulty request goes back to the client, which learns why, and gets no code.
func TestFaultyRequests(t *testing.T) {
	s := newServer(t, false)
	for name, tt := range map[string]struct {
		change []string
		want   string
	}{
		"implicit":              {[]string{"response_type", "token"}, "unsupported_response_type"},
		"no type":               {[]string{"response_type", ""}, "unsupported_response_type"},
		"no PKCE":               {[]string{"code_challenge", "", "code_challenge_method", ""}, "invalid_request"},
		"plain PKCE":            {[]string{"code_challenge", verifier, "code_challenge_method", "plain"}, "invalid_request"},
		"PKCE method missing":   {[]string{"code_challenge_method", ""}, "invalid_request"},
		"PKCE method in case":   {[]string{"code_challenge_method", "s256"}, "invalid_request"},
		"challenge missing":     {[]string{"code_challenge", ""}, "invalid_request"},
		"challenge too short":   {[]string{"code_challenge", "abc"}, "invalid_request"},
		"challenge not base64":  {[]string{"code_challenge", strings.Repeat("!", 43)}, "invalid_request"},
		"fragment mode":         {[]string{"response_mode", "fragment"}, "invalid_request"},
		"request object":        {[]string{"request", "x"}, "invalid_request"},
		"request by reference":  {[]string{"request_uri", "https://evil.test/"}, "invalid_request"},
		"other resource":        {[]string{"resource", "https://other.test/mcp"}, "invalid_target"},
		"resource with a query": {[]string{"resource", publicURL + "/mcp?x"}, "invalid_target"},
		"resource above":        {[]string{"resource", "https://mcp.test"}, "invalid_target"},
		"long state":            {[]string{"state", strings.Repeat("s", maxState+1)}, "invalid_request"},
		"long scope":            {[]string{"scope", strings.Repeat("s", maxScope+1)}, "invalid_scope"},
	} {
		resp, _ := s.do(http.MethodGet, authorizePath+"?"+query(tt.change...).Encode(), nil)
		got := s.location(resp).Query()
		if got.Get("error") != tt.want || got.Get("iss") != publicURL || got.Has("code") {
			t.Errorf("%s: %v, want %s", name, got, tt.want)
		}
	}
	twice := query()
	twice.Add("code_challenge", challenge("other"))
	resp, _ := s.do(http.MethodGet, authorizePath+"?"+twice.Encode(), nil)
	if got := s.location(resp).Query(); got.Get("error") != "invalid_request" {
		t.Errorf("two challenges: %v", got)
	}
	s.consent(query("resource", "HTTPS://MCP.test/tools/"))
}

func TestUnknownClients(t *testing.T) {
	s := newServer(t, false)
	for _, id := range []string{"", "unknown", "http://client.test/app.json", "https://client.test", "https://client.test/", "https://user@client.test/a", "https://client.test/a/../b", "https://client.test/a#b"} {
		resp, _ := s.do(http.MethodGet, authorizePath+"?"+query("client_id", id).Encode(), nil)
		if resp.StatusCode != http.StatusBadRequest || resp.Header.Get("Location") != "" {
			t.Errorf("%q: %d", id, resp.StatusCode)
		}
	}
}

func TestCodes(t *testing.T) {
	s := newServer(t, false)
	const other = "another-verifier-of-forty-three-characters-at-least"
	for name, change := range map[string][]string{
		"verifier":          {"code_verifier", other},
		"no verifier":       {"code_verifier", ""},
		"challenge sent":    {"code_verifier", challenge(verifier)},
		"redirect URI":      {"redirect_uri", "http://127.0.0.1:4712/callback"},
		"no redirect URI":   {"redirect_uri", ""},
		"client":            {"client_id", "https://client.test/app.json"},
		"no client":         {"client_id", ""},
		"other server":      {"resource", "https://other.test/mcp"},
		"no code":           {"code", ""},
		"code of no one":    {"code", "AAAAAAAAAAAAAAAAAAAAAAAAAA"},
		"other grant type":  {"grant_type", "refresh_token"},
		"no grant type":     {"grant_type", ""},
		"grant of implicit": {"grant_type", "implicit"},
	} {
		code := s.code(query())
		if status, a := s.token(redemption(code, change...)); status != http.StatusBadRequest || a.Token != "" {
			t.Errorf("%s: %d %+v", name, status, a)
		}
		s.provider.limit = nil
	}

	// A code works once, and one that was shown with a wrong verifier never again.
	code := s.code(query())
	if status, _ := s.token(redemption(code)); status != http.StatusOK {
		t.Fatalf("first use: %d", status)
	}
	if status, a := s.token(redemption(code)); status != http.StatusBadRequest || a.Error != "invalid_grant" {
		t.Errorf("replay: %d %+v", status, a)
	}
	code = s.code(query())
	s.token(redemption(code, "code_verifier", other))
	if status, a := s.token(redemption(code)); status != http.StatusBadRequest || a.Error != "invalid_grant" {
		t.Errorf("after a wrong verifier: %d %+v", status, a)
	}
}

func TestCodesExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c codes
		code, _ := c.put(grant{subject: "ann"})
		time.Sleep(codeLife - time.Second)
		if _, ok := c.take(code); !ok {
			t.Error("a fresh code was refused")
		}
		code, _ = c.put(grant{subject: "ann"})
		time.Sleep(codeLife)
		if _, ok := c.take(code); ok {
			t.Error("an old code was taken")
		}
		for range maxCodes {
			if _, ok := c.put(grant{}); !ok {
				t.Fatal("no room")
			}
		}
		if _, ok := c.put(grant{}); ok || len(c.open) != maxCodes {
			t.Errorf("%d codes are open", len(c.open))
		}
		time.Sleep(codeLife)
		if _, ok := c.put(grant{}); !ok || len(c.open) != 1 {
			t.Errorf("%d codes are open after they expired", len(c.open))
		}
	})
}

func TestTickets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newTickets(), newTickets()
		sealed := a.seal(request{Client: DevClient, Redirect: redirect})
		if req, ok := a.open(sealed); !ok || req.Redirect != redirect {
			t.Fatalf("not opened: %+v", req)
		}
		body, sum, _ := strings.Cut(sealed, ".")
		raw, _ := base64.RawURLEncoding.DecodeString(body)
		forged := base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(raw), "127.0.0.1", "evil.test", 1)))
		for name, text := range map[string]string{"forged": forged + "." + sum, "unsigned": body + ".", "bare": body, "empty": "", "dot": ".", "of another process": b.seal(request{})} {
			if _, ok := a.open(text); ok {
				t.Errorf("%s: opened", name)
			}
		}
		time.Sleep(ticketLife)
		if _, ok := a.open(sealed); ok {
			t.Error("an old ticket was opened")
		}
	})
}

// Another page cannot answer for the person, and without the page there is
// nothing to answer.
func TestForgedConsent(t *testing.T) {
	s := newServer(t, false)
	for _, header := range [][]string{
		{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.test"},
		{"Sec-Fetch-Site", "same-site", "Origin", "http://127.0.0.1:5173"},
		{"Sec-Fetch-Site", "cross-site", "Origin", "null"},
		{"Origin", "https://evil.test"},
		{"Origin", "null"},
	} {
		resp, _ := s.do(http.MethodPost, authorizePath, s.consent(query()), header...)
		if resp.StatusCode != http.StatusForbidden || resp.Header.Get("Location") != "" {
			t.Errorf("%v: %d to %q", header, resp.StatusCode, resp.Header.Get("Location"))
		}
	}
	form := query("answer", "allow")
	for _, path := range []string{authorizePath, authorizePath + "?" + query().Encode() + "&ticket=" + url.QueryEscape(s.provider.tickets.seal(request{Redirect: redirect})) + "&answer=allow"} {
		resp, _ := s.do(http.MethodPost, path, form)
		if resp.StatusCode != http.StatusBadRequest || resp.Header.Get("Location") != "" {
			t.Errorf("%s without a ticket: %d", path, resp.StatusCode)
		}
	}
}

// Where no password is asked for, nobody logs in through a proxy.
func TestLoginFromElsewhere(t *testing.T) {
	s := newServer(t, false)
	for _, header := range []string{"X-Forwarded-For", "Forwarded"} {
		for method, form := range map[string]url.Values{http.MethodGet: nil, http.MethodPost: s.consent(query())} {
			if resp, _ := s.do(method, authorizePath+"?"+query().Encode(), form, header, "192.0.2.1"); resp.StatusCode != http.StatusForbidden {
				t.Errorf("%s with %s: %d", method, header, resp.StatusCode)
			}
		}
	}
	for _, remote := range []string{"192.0.2.1:5", "[2001:db8::1]:5", "@", ""} {
		if isLocal(&http.Request{RemoteAddr: remote}) {
			t.Errorf("%q is local", remote)
		}
	}
}

func TestWrongPassword(t *testing.T) {
	s := newServer(t, true)
	for _, login := range [][2]string{{"ann", "wrong"}, {"", ""}, {"bob", "right"}, {"ann", ""}} {
		form := s.consent(query())
		form.Set("user", login[0])
		form.Set("password", login[1])
		resp, page := s.do(http.MethodPost, authorizePath, form)
		if resp.StatusCode != http.StatusForbidden || !strings.Contains(page, "User or password is wrong.") || login[1] != "" && strings.Contains(page, `value="`+login[1]) {
			t.Errorf("%v: %d", login, resp.StatusCode)
		}
	}
}

// Guessing is slow, at each of the endpoints.
func TestBruteForce(t *testing.T) {
	for path, send := range map[string]func(*server) *http.Response{
		tokenPath: func(s *server) *http.Response {
			resp, _ := s.do(http.MethodPost, tokenPath, url.Values{"grant_type": {grantPassword}, "username": {"ann"}, "password": {"wrong"}})
			return resp
		},
		authorizePath: func(s *server) *http.Response {
			resp, _ := s.do(http.MethodPost, authorizePath, url.Values{"ticket": {s.provider.tickets.seal(request{Redirect: redirect})}, "answer": {"allow"}, "user": {"ann"}, "password": {"wrong"}})
			return resp
		},
	} {
		s := newServer(t, true)
		for i := range maxPerMinute {
			if resp := send(s); resp.StatusCode == http.StatusTooManyRequests {
				t.Fatalf("%s: refused after %d", path, i)
			}
		}
		resp := send(s)
		if retry, err := strconv.Atoi(resp.Header.Get("Retry-After")); resp.StatusCode != http.StatusTooManyRequests || err != nil || retry < 1 || retry > 60 {
			t.Errorf("%s: %d, Retry-After %q", path, resp.StatusCode, resp.Header.Get("Retry-After"))
		}
	}
}

func TestFaultyBodies(t *testing.T) {
	s := newServer(t, true)
	good := url.Values{"grant_type": {grantPassword}, "username": {"ann"}, "password": {"right"}}
	large := url.Values{"grant_type": {grantPassword}, "username": {"ann"}, "password": {"right"}, "pad": {strings.Repeat("x", maxForm)}}
	largeConsent := url.Values{
		"ticket": {s.provider.tickets.seal(request{Redirect: redirect})}, "answer": {"deny"}, "pad": {strings.Repeat("x", maxForm)},
	}
	twice := url.Values{"grant_type": {grantPassword, grantPassword}, "username": {"ann"}, "password": {"right"}}
	for name, do := range map[string]func() *http.Response{
		"large token body":   func() *http.Response { r, _ := s.do(http.MethodPost, tokenPath, large); return r },
		"large consent body": func() *http.Response { r, _ := s.do(http.MethodPost, authorizePath, largeConsent); return r },
		"parameters twice":   func() *http.Response { r, _ := s.do(http.MethodPost, tokenPath, twice); return r },
		"parameters in URL": func() *http.Response {
			r, _ := s.do(http.MethodPost, tokenPath+"?"+good.Encode(), url.Values{})
			return r
		},
		"one more in URL": func() *http.Response { r, _ := s.do(http.MethodPost, tokenPath+"?scope=read", good); return r },
		"JSON": func() *http.Response {
			r, _ := s.do(http.MethodPost, tokenPath, good, "Content-Type", "application/json")
			return r
		},
		"two clients": func() *http.Response {
			r, _ := s.do(http.MethodPost, tokenPath, url.Values{"grant_type": {grantClient}, "client_id": {"bob"}}, "Authorization", "Basic YW5uOnJpZ2h0")
			return r
		},
	} {
		if resp := do(); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		if resp, _ := s.do(method, tokenPath, nil); resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, resp.StatusCode)
		}
	}
}
