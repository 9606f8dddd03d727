package oauth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/limits"
	"github.com/famcp/famcp/internal/runtime/respond"
	"github.com/famcp/famcp/internal/runtime/token"
)

// Provider configures the development identity provider.
type Provider struct {
	// CheckPassword reports whether a user may log in. With nil nobody has to:
	// whoever reaches the consent page names the subject, so such a provider
	// must be reachable from this machine only. It also serves no grants but
	// authorization_code.
	CheckPassword func(user, password string) bool

	Service string                         // the server's name, for the claim service
	Address func(*http.Request) netip.Addr // where a request comes from; required
	Logger  *slog.Logger                   // required
}

// Grants, as grant_type names them.
const (
	grantCode     = "authorization_code"
	grantClient   = "client_credentials"
	grantPassword = "password"
)

const (
	maxForm      = 32 << 10
	maxState     = 4 << 10
	maxScope     = 4 << 10
	maxSubject   = 128
	maxPerMinute = 60 // requests of an address to the provider: bounds guessing and fetching
	ticketLife   = 10 * time.Minute
	anonymous    = "developer" // who logs in without a name
)

//go:embed consent.html
var consentHTML string

//go:embed refused.html
var refusedHTML string

type provider struct {
	Provider
	endpoints *endpoints
	documents *documents
	codes     codes
	tickets   tickets
	limit     *limits.Limits
	foreign   *http.CrossOriginProtection
	consent   *respond.Page
	refused   *respond.Page
}

func newProvider(cfg Provider, e *endpoints) (*provider, error) {
	if cfg.Address == nil || cfg.Logger == nil {
		return nil, errors.New("oauth: Address and Logger are required")
	}
	p := &provider{
		Provider: cfg, endpoints: e, documents: newDocuments(), tickets: newTickets(), foreign: http.NewCrossOriginProtection(),
		limit: limits.New(limits.Config{MaxRequests: maxPerMinute, Window: time.Minute, ByAddress: true}),
	}
	var err error
	if p.consent, err = respond.NewPage(consentHTML); err != nil {
		return nil, err
	}
	p.refused, err = respond.NewPage(refusedHTML)
	return p, err
}

// request is a checked authorization request.
type request struct {
	Client    string   `json:"c"`
	Name      string   `json:"n"` // of the client
	Redirect  string   `json:"r"`
	State     string   `json:"s,omitempty"`
	Challenge string   `json:"p"`
	Resource  string   `json:"t,omitempty"`
	Scopes    []string `json:"o,omitempty"`
}

// fault is an error of RFC 6749 §4.1.2.1 or §5.2.
type fault struct{ code, text string }

func (p *provider) serveAuthorize(w http.ResponseWriter, r *http.Request) {
	if !respond.Methods(w, r, http.MethodGet, http.MethodPost) {
		return
	}
	if retry, ok := p.admit(r); !ok {
		setRetry(w.Header(), retry)
		p.refuse(w, http.StatusTooManyRequests, "Too many attempts came from your address. Try again in a minute.")
		return
	}
	if p.CheckPassword == nil && !isLocal(r) {
		p.refuse(w, http.StatusForbidden, "Without webServer.auth.basic, only this machine itself may log in.")
		return
	}
	if r.Method == http.MethodPost {
		p.decide(w, r)
		return
	}
	p.ask(w, r)
}

// isLocal reports whether a request was sent on this machine, and by no proxy
// for somebody else.
func isLocal(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() {
		return false
	}
	for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded", "X-Real-Ip", "Via"} {
		if r.Header[name] != nil {
			return false
		}
	}
	return true
}

// admit counts a request of its address.
func (p *provider) admit(r *http.Request) (retry time.Duration, ok bool) {
	a := p.Address(r)
	return p.limit.Request(&call.Facts{Subject: a.String(), Address: a})
}

func setRetry(h http.Header, d time.Duration) {
	h.Set("Retry-After", strconv.Itoa(max(1, int((d+time.Second-1)/time.Second))))
}

// refuse shows why there is no way back to the client.
func (p *provider) refuse(w http.ResponseWriter, status int, text string) {
	p.refused.Write(w, status, "No access", map[string]string{"Text": text})
}

// ask shows the consent page of an authorization request.
func (p *provider) ask(w http.ResponseWriter, r *http.Request) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		p.refuse(w, http.StatusBadRequest, "The address of this page is damaged.")
		return
	}
	// Until the client and its redirect URI are known to belong together,
	// nobody is sent anywhere (RFC 6749 §4.1.2.1).
	if slices.ContainsFunc([]string{"client_id", "redirect_uri"}, func(name string) bool { return len(q[name]) != 1 }) {
		p.refuse(w, http.StatusBadRequest, "The request needs one client_id and one redirect_uri.")
		return
	}
	c, err := p.client(r.Context(), q.Get("client_id"))
	if err != nil {
		status := http.StatusBadRequest
		if errors.Is(err, errBusy) {
			status = http.StatusServiceUnavailable
		}
		p.refuse(w, status, "The client is not accepted: "+err.Error()+".")
		return
	}
	redirect, ok := parseRedirect(q.Get("redirect_uri"))
	if !ok || !c.mayRedirect(q.Get("redirect_uri")) {
		p.refuse(w, http.StatusBadRequest, "The redirect_uri is not one of the client's. "+
			"It must be https or loopback, and registered literally but for a loopback port.")
		return
	}
	req := request{Client: c.id, Name: c.name, Redirect: q.Get("redirect_uri"), State: q.Get("state")}
	if f := p.check(&req, q); f != nil {
		p.back(w, req, url.Values{"error": {f.code}, "error_description": {f.text}})
		return
	}
	p.show(w, http.StatusOK, req, redirect, "")
}

func (p *provider) client(ctx context.Context, id string) (*client, error) {
	if id == DevClient {
		return &client{id: DevClient, name: "Development client"}, nil
	}
	return p.documents.client(ctx, id)
}

// check completes req from the query of a request whose client is known.
func (p *provider) check(req *request, q url.Values) *fault {
	for name, values := range q { // RFC 6749 §3.1
		if len(values) > 1 && name != "resource" {
			return &fault{"invalid_request", "a parameter is there more than once"}
		}
	}
	if len(req.State) > maxState {
		req.State = ""
		return &fault{"invalid_request", "state is too long"}
	}
	switch {
	case q.Has("request") || q.Has("request_uri"):
		return &fault{"invalid_request", "request objects are not served"}
	case q.Get("response_type") != "code":
		return &fault{"unsupported_response_type", "only response_type=code is served"}
	case q.Has("response_mode") && q.Get("response_mode") != "query":
		return &fault{"invalid_request", "only response_mode=query is served"}
	case q.Get("code_challenge_method") != "S256":
		return &fault{"invalid_request", "PKCE is required: send code_challenge_method=S256"}
	}
	// The challenge is a SHA-256 in base64url (RFC 7636 §4.2).
	if sum, err := base64.RawURLEncoding.Strict().DecodeString(q.Get("code_challenge")); err != nil || len(sum) != sha256.Size {
		return &fault{"invalid_request", "code_challenge must be the base64url of a SHA-256"}
	}
	req.Challenge = q.Get("code_challenge")
	var f *fault
	if req.Resource, f = p.resource(q["resource"]); f != nil {
		return f
	}
	req.Scopes, f = p.scopes(q)
	return f
}

// resource returns the one resource asked for (RFC 8707), which must be this
// server, or "".
func (p *provider) resource(values []string) (string, *fault) {
	base := p.endpoints.base
	for _, v := range values {
		own, err := parseBase(v)
		if err != nil || own.String() != base.String() && own.String() != base.mcp() {
			return "", &fault{"invalid_target", "resource must be " + base.mcp()}
		}
	}
	if len(values) == 0 {
		return "", nil
	}
	return base.mcp(), nil
}

// scopes returns those asked for that some feature requires; all when none is
// asked for. Others, such as openid, would open nothing, so they are left out
// and the answer says what was granted (RFC 6749 §3.3).
func (p *provider) scopes(q url.Values) ([]string, *fault) {
	known := p.endpoints.cfg.Scopes()
	if !q.Has("scope") {
		return known, nil
	}
	asked := q.Get("scope")
	if len(asked) > maxScope {
		return nil, &fault{"invalid_scope", "scope is too long"}
	}
	fields := strings.Fields(asked)
	return slices.DeleteFunc(known, func(s string) bool { return !slices.Contains(fields, s) }), nil
}

// show answers with the consent page; problem says why it is shown again.
func (p *provider) show(w http.ResponseWriter, status int, req request, redirect *url.URL, problem string) {
	origin := redirect.Scheme + "://" + redirect.Host
	source := origin
	if strings.Contains(redirect.Host, "[") { // no source of a policy names an IPv6 address
		source = redirect.Scheme + ":"
	}
	p.consent.Write(w, status, "Allow access to "+p.endpoints.cfg.Title+"?", map[string]any{
		"Request": req, "Server": p.endpoints.cfg.Title, "Resource": p.endpoints.base.mcp(), "Origin": origin,
		"Local": isLoopbackURI(req.Redirect), "Known": req.Client == DevClient, "Password": p.CheckPassword != nil,
		"Anonymous": anonymous, "MaxSubject": maxSubject, "Problem": problem, "Ticket": p.tickets.seal(req),
	}, source)
}

// decide takes the answer to the consent page.
func (p *provider) decide(w http.ResponseWriter, r *http.Request) {
	// A page of another origin could press the button for the person, where
	// only the address of this machine stands for a login.
	if err := p.foreign.Check(r); err != nil {
		p.refuse(w, http.StatusForbidden, "The answer did not come from this server's own page.")
		return
	}
	form, f := readForm(w, r)
	if f != nil {
		p.refuse(w, http.StatusBadRequest, "The answer is not complete: "+f.text+".")
		return
	}
	req, ok := p.tickets.open(form.Get("ticket"))
	if !ok {
		p.refuse(w, http.StatusBadRequest, "This page is no longer valid. Go back to the client and start again.")
		return
	}
	if form.Get("answer") != "allow" {
		p.back(w, req, url.Values{"error": {"access_denied"}, "error_description": {"the person refused"}})
		return
	}
	redirect, ok := parseRedirect(req.Redirect)
	if !ok {
		p.refuse(w, http.StatusBadRequest, "The redirect_uri is not one of the client's.")
		return
	}
	subject := form.Get("user")
	switch {
	case p.CheckPassword == nil && strings.TrimSpace(subject) == "":
		subject = anonymous
	case p.CheckPassword != nil && !p.CheckPassword(subject, form.Get("password")):
		p.Logger.Warn("login refused", "client", req.Client, "address", p.Address(r))
		p.show(w, http.StatusForbidden, req, redirect, "User or password is wrong.")
		return
	case len(subject) > maxSubject || readable(subject) != subject:
		p.show(w, http.StatusBadRequest, req, redirect, "Choose a shorter name of plain characters.")
		return
	}
	chosen := form["scope"]
	req.Scopes = slices.DeleteFunc(req.Scopes, func(s string) bool { return !slices.Contains(chosen, s) })
	code, ok := p.codes.put(grant{request: req, subject: subject})
	if !ok {
		p.back(w, req, url.Values{"error": {"temporarily_unavailable"}, "error_description": {"too many logins are under way"}})
		return
	}
	p.back(w, req, url.Values{"code": {code}})
}

// back sends the browser to the client with an answer, which names its issuer
// so that a client of several knows whose it is (RFC 9207).
func (p *provider) back(w http.ResponseWriter, req request, answer url.Values) {
	answer.Set("iss", p.endpoints.cfg.Tokens.Issuer())
	if req.State != "" {
		answer.Set("state", req.State)
	}
	separator := "?"
	if strings.Contains(req.Redirect, "?") {
		separator = "&"
	}
	h := w.Header()
	respond.NoStore(h)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Location", req.Redirect+separator+answer.Encode())
	w.WriteHeader(http.StatusSeeOther)
}

// readForm returns the form in a request's body, never what the URL says.
func readForm(w http.ResponseWriter, r *http.Request) (url.Values, *fault) {
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); !strings.EqualFold(strings.TrimSpace(kind), "application/x-www-form-urlencoded") {
		return nil, &fault{"invalid_request", "the body must be application/x-www-form-urlencoded"}
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return nil, &fault{"invalid_request", "the form is damaged or longer than 32 KiB"}
	}
	return r.PostForm, nil
}

func (p *provider) serveToken(w http.ResponseWriter, r *http.Request) {
	if !respond.Methods(w, r, http.MethodPost) {
		return
	}
	respond.NoStore(w.Header())
	if retry, ok := p.admit(r); !ok {
		setRetry(w.Header(), retry)
		p.fail(w, http.StatusTooManyRequests, fault{"temporarily_unavailable", "too many requests came from this address; try again in a minute"})
		return
	}
	if r.URL.RawQuery != "" {
		p.fail(w, http.StatusBadRequest, fault{"invalid_request", "parameters belong into the body: a URL ends up in logs"})
		return
	}
	form, f := readForm(w, r)
	if f != nil {
		p.fail(w, http.StatusBadRequest, *f)
		return
	}
	for name, values := range form {
		if len(values) > 1 && name != "resource" {
			p.fail(w, http.StatusBadRequest, fault{"invalid_request", "a parameter is there more than once"})
			return
		}
	}
	id, secret, f := clientAuth(r, form)
	if f != nil {
		p.fail(w, http.StatusBadRequest, *f)
		return
	}
	var g grant
	switch kind := form.Get("grant_type"); {
	case kind == grantCode:
		g, f = p.redeem(form, id)
	case kind == grantClient && p.CheckPassword != nil:
		if !p.CheckPassword(id, secret) {
			p.Logger.Warn("client refused", "address", p.Address(r))
			w.Header().Set("WWW-Authenticate", `Basic realm="oauth"`)
			p.fail(w, http.StatusUnauthorized, fault{"invalid_client", "client_id or client_secret is wrong"})
			return
		}
		g.subject, g.Client = id, id
		f = p.complete(&g.request, form)
	case kind == grantPassword && p.CheckPassword != nil:
		if !p.CheckPassword(form.Get("username"), form.Get("password")) {
			p.Logger.Warn("password refused", "address", p.Address(r))
			f = &fault{"invalid_grant", "username or password is wrong"}
			break
		}
		g.subject, g.Client = form.Get("username"), id
		f = p.complete(&g.request, form)
	case kind == grantClient || kind == grantPassword:
		f = &fault{"unsupported_grant_type", "set webServer.auth.basic for this grant: its user and password are what is checked"}
	default:
		f = &fault{"unsupported_grant_type", "grant_type must be one of those in the server's metadata"}
	}
	if f != nil {
		p.fail(w, http.StatusBadRequest, *f)
		return
	}
	p.issue(w, g, form.Get("grant_type"))
}

// clientAuth returns what a client says of itself, in the header or in the body
// (RFC 6749 §2.3.1).
func clientAuth(r *http.Request, form url.Values) (id, secret string, f *fault) {
	id, secret = form.Get("client_id"), form.Get("client_secret")
	user, password, ok := r.BasicAuth()
	if !ok {
		return id, secret, nil
	}
	user, err := url.QueryUnescape(user)
	password, err2 := url.QueryUnescape(password)
	if err != nil || err2 != nil || secret != "" || id != "" && id != user {
		return "", "", &fault{"invalid_request", "the client authenticates in two ways"}
	}
	return user, password, nil
}

// complete reads scope and resource of a grant without a consent page.
func (p *provider) complete(req *request, form url.Values) (f *fault) {
	if req.Resource, f = p.resource(form["resource"]); f != nil {
		return f
	}
	req.Scopes, f = p.scopes(form)
	return f
}

// redeem returns what an authorization code stands for.
func (p *provider) redeem(form url.Values, id string) (grant, *fault) {
	// One answer for all that does not fit: which it was helps only who stole the code.
	refused := &fault{"invalid_grant", "the code is unknown, used, expired, or not for this client, redirect_uri and code_verifier"}
	g, ok := p.codes.take(form.Get("code"))
	if !ok || id != g.Client || form.Get("redirect_uri") != g.Redirect || !verifies(g.Challenge, form.Get("code_verifier")) {
		return grant{}, refused
	}
	if _, f := p.resource(form["resource"]); f != nil {
		return grant{}, f
	}
	return g, nil
}

// verifies reports whether challenge is that of verifier (RFC 7636 §4.6).
func verifies(challenge, verifier string) bool {
	if len(verifier) < 43 || len(verifier) > 128 {
		return false
	}
	sum := sha256.Sum256([]byte(verifier))
	return subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(challenge)) == 1
}

// issue answers with a token for this server alone.
func (p *provider) issue(w http.ResponseWriter, g grant, kind string) {
	audience := p.endpoints.cfg.Tokens.Audiences()[:1]
	if mcp := p.endpoints.base.mcp(); slices.Contains(p.endpoints.cfg.Tokens.Audiences(), mcp) {
		audience = []string{mcp}
	}
	var extra map[string]any
	if g.Client != "" {
		extra = map[string]any{"client_id": g.Client} // RFC 9068 §2.2
	}
	raw, claims, err := p.endpoints.cfg.Tokens.Issue(token.Grant{
		Subject: g.subject, Audience: audience, Scopes: g.Scopes, Services: []string{p.Service}, Extra: extra,
	})
	if err != nil {
		p.Logger.Error("no token made", "error", err)
		p.fail(w, http.StatusInternalServerError, fault{"server_error", "no token can be made now"})
		return
	}
	p.Logger.Info("token made", "grant", kind, "subject", g.subject, "client", g.Client, "jti", claims.ID)
	respond.JSON(w, http.StatusOK, struct {
		Token   string `json:"access_token"`
		Type    string `json:"token_type"`
		Expires int64  `json:"expires_in"`
		Scope   string `json:"scope,omitempty"`
	}{raw, "Bearer", int64(claims.ExpiresAt.Sub(claims.IssuedAt) / time.Second), strings.Join(claims.Scopes, " ")})
}

func (p *provider) fail(w http.ResponseWriter, status int, f fault) {
	respond.JSON(w, status, map[string]string{"error": f.code, "error_description": f.text})
}
