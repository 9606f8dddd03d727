// Package admin serves the endpoints by which people and programs check and make
// tokens: /ct, /gen-jwt and the page /admin.
//
// A token travels in a body only. It is in no URL, no log line and no error,
// and no answer that holds one is stored by a cache.
package admin

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/front"
	"github.com/famcp/famcp/internal/runtime/limits"
	"github.com/famcp/famcp/internal/runtime/respond"
	"github.com/famcp/famcp/internal/runtime/token"
)

// Paths of the endpoints.
const (
	checkPath = "/ct"
	issuePath = "/gen-jwt"
	pagePath  = "/admin"
)

// The claim that lets a token make others: allow, which contains gen-token.
const (
	allowClaim = "allow"
	genToken   = "gen-token"
)

const (
	maxBody      = 64 << 10
	maxPerMinute = 60 // requests of an address to /ct and /admin
)

// Config configures [Routes].
type Config struct {
	Tokens  *token.Tokens                  // required
	Name    string                         // of the server; the realm
	Title   string                         // of the server, for people
	Scopes  func() []string                // what registered features require, sorted; nil means none
	Address func(*http.Request) netip.Addr // where a request comes from; required
	Logger  *slog.Logger                   // required

	Issue bool  // serves /gen-jwt
	Page  *Page // nil serves no /admin
}

// Page configures /admin.
type Page struct {
	// Operator reports whether a user may use the page: the user of
	// webServer.auth.basic. With nil the page asks for a token instead, as the
	// password of any user, and the token needs the claim allow: gen-token.
	Operator func(user, password string) bool

	// Authenticate returns the facts of a request by its Authorization header,
	// or why there are none. It is required without Operator.
	Authenticate func(*http.Request) (*call.Facts, *front.Refusal)
}

// Routes returns the endpoints.
func Routes(cfg Config) ([]front.Route, error) {
	if cfg.Tokens == nil || cfg.Address == nil || cfg.Logger == nil {
		return nil, errors.New("admin: Tokens, Address and Logger are required")
	}
	if cfg.Scopes == nil {
		cfg.Scopes = func() []string { return nil }
	}
	e := &endpoints{
		cfg: cfg, foreign: http.NewCrossOriginProtection(),
		limit: limits.New(limits.Config{MaxRequests: maxPerMinute, Window: time.Minute, ByAddress: true}),
	}
	routes := []front.Route{{Pattern: checkPath, Handler: http.HandlerFunc(e.serveCheck), Public: true}}
	if cfg.Issue {
		routes = append(routes, front.Route{Pattern: issuePath, Handler: http.HandlerFunc(e.serveIssue)})
	}
	if cfg.Page != nil {
		if cfg.Page.Operator == nil && cfg.Page.Authenticate == nil {
			return nil, errors.New("admin: the page needs Operator or Authenticate")
		}
		p, err := newPage(e)
		if err != nil {
			return nil, err
		}
		// It authenticates by itself: a browser needs another challenge than a client.
		routes = append(routes, front.Route{Pattern: pagePath, Handler: http.HandlerFunc(p.serve), Public: true})
	}
	return routes, nil
}

type endpoints struct {
	cfg     Config
	limit   *limits.Limits
	foreign *http.CrossOriginProtection
}

// admit counts a request of its address; if it may not go on, it has been
// answered.
func (e *endpoints) admit(w http.ResponseWriter, r *http.Request) bool {
	a := e.cfg.Address(r)
	retry, ok := e.limit.Request(&call.Facts{Subject: a.String(), Address: a})
	if !ok {
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int((retry+time.Second-1)/time.Second))))
		respond.Error(w, http.StatusTooManyRequests, "too many requests came from this address; try again in a minute")
	}
	return ok
}

// readJSON decodes a body into v; if it cannot, it has answered.
func readJSON(w http.ResponseWriter, r *http.Request, v any) bool {
	if r.URL.RawQuery != "" {
		respond.Error(w, http.StatusBadRequest, "parameters belong into the JSON body: a URL ends up in logs")
		return false
	}
	// Forms of other pages can send no JSON.
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		respond.Error(w, http.StatusUnsupportedMediaType, "the body must be sent as Content-Type application/json")
		return false
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	d.UseNumber()
	err := d.Decode(v)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("more than one value")
		}
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		respond.Error(w, http.StatusRequestEntityTooLarge, "the body is over 64 KiB")
	case err != nil: // its text could repeat what was sent
		respond.Error(w, http.StatusBadRequest, "the body is not a JSON object of the documented members")
	}
	return err == nil
}

// serveCheck says whether a token is accepted here: POST /ct {"t": "…"}.
func (e *endpoints) serveCheck(w http.ResponseWriter, r *http.Request) {
	if !respond.Methods(w, r, http.MethodPost) || !e.admit(w, r) {
		return
	}
	respond.NoStore(w.Header())
	var in struct {
		Token string `json:"t"`
	}
	if !readJSON(w, r, &in) {
		return
	}
	c, err := e.cfg.Tokens.Verify(r.Context(), strings.TrimSpace(in.Token), token.Facts{IP: e.cfg.Address(r)})
	switch reason := token.ReasonOf(err); {
	case reason == token.ReasonUnavailable:
		e.cfg.Logger.Warn("token not checked", "error", errors.Unwrap(err))
		respond.Error(w, http.StatusServiceUnavailable, "tokens cannot be checked now; try again later")
	case err != nil:
		respond.JSON(w, http.StatusOK, struct {
			Valid  bool         `json:"valid"`
			Reason token.Reason `json:"reason"`
			Text   string       `json:"message"`
		}{false, reason, err.Error()})
	default:
		respond.JSON(w, http.StatusOK, struct {
			Valid   bool      `json:"valid"`
			Subject string    `json:"subject"`
			Scopes  []string  `json:"scopes,omitempty"`
			Expires time.Time `json:"expires"`
			Seconds int64     `json:"expiresIn"`
		}{true, c.Subject, c.Scopes, c.ExpiresAt.UTC(), int64(max(0, time.Until(c.ExpiresAt)/time.Second))})
	}
}

// order is a token to be made, as /gen-jwt takes it.
type order struct {
	User    string          `json:"username"`
	TTL     json.RawMessage `json:"ttl"`     // "30d", or whole seconds; absent is the configured life
	Service string          `json:"service"` // names, separated by spaces or commas
	Scope   string          `json:"scope"`   // separated by spaces
	IP      string          `json:"ip"`      // addresses and CIDRs, separated by spaces or commas
	Params  map[string]any  `json:"params"`  // further claims
}

// errAllow keeps a token that makes tokens from outliving itself.
var errAllow = errors.New("the claim allow cannot be given here; make such a token with famcp token --claim allow=" + genToken)

// grant returns what o asks for. The error is safe to show.
func (o *order) grant() (token.Grant, error) {
	g := token.Grant{
		Subject: strings.TrimSpace(o.User), Scopes: strings.Fields(o.Scope),
		Services: names(o.Service), IPs: names(o.IP), Extra: o.Params,
	}
	if _, ok := o.Params[allowClaim]; ok {
		return g, errAllow
	}
	if g.Subject == "" {
		return g, errors.New("username is missing")
	}
	var err error
	g.TTL, err = ttl(o.TTL)
	return g, err
}

func names(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' || r == '\n' || r == '\r' || r == '\t' })
}

func ttl(raw json.RawMessage) (time.Duration, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return 0, nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw) + "s"
	}
	return token.ParseTTL(text)
}

// mayIssue reports whether the caller's token has the claim for it.
func mayIssue(f *call.Facts) bool {
	if f == nil {
		return false
	}
	switch v := f.Claims[allowClaim].(type) {
	case string:
		for word := range strings.FieldsSeq(v) {
			if word == genToken {
				return true
			}
		}
	case []any:
		for _, word := range v {
			if word == genToken {
				return true
			}
		}
	}
	return false
}

// serveIssue makes a token: POST /gen-jwt. The front has authenticated the
// caller.
func (e *endpoints) serveIssue(w http.ResponseWriter, r *http.Request) {
	if !respond.Methods(w, r, http.MethodPost) {
		return
	}
	respond.NoStore(w.Header())
	caller := call.FromContext(r.Context())
	switch {
	case !mayIssue(caller):
		respond.Error(w, http.StatusForbidden, "the token needs the claim allow: "+genToken)
		return
	case !e.cfg.Tokens.CanIssue():
		respond.Error(w, http.StatusNotImplemented, token.ErrCannotIssue.Error())
		return
	}
	var o order
	if !readJSON(w, r, &o) {
		return
	}
	raw, c, err := e.issue(&o, caller.Subject)
	if err != nil {
		respond.Error(w, http.StatusBadRequest, err.Error())
		return
	}
	respond.JSON(w, http.StatusOK, struct {
		Token   string    `json:"token"`
		ID      string    `json:"jti"`
		Expires time.Time `json:"expires"`
		Seconds int64     `json:"expiresIn"`
	}{raw, c.ID, c.ExpiresAt.UTC(), int64(c.ExpiresAt.Sub(c.IssuedAt) / time.Second)})
}

// issue makes the token that o asks for and logs who has made it for whom.
func (e *endpoints) issue(o *order, by string) (string, *token.Claims, error) {
	g, err := o.grant()
	if err != nil {
		return "", nil, err
	}
	raw, c, err := e.cfg.Tokens.Issue(g)
	if err != nil {
		return "", nil, err
	}
	e.cfg.Logger.Info("token made", "subject", c.Subject, "by", by, "jti", c.ID, "expires", c.ExpiresAt.UTC())
	return raw, c, nil
}
