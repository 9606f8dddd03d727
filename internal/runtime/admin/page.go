package admin

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/famcp/famcp/internal/runtime/protocol"
	"github.com/famcp/famcp/internal/runtime/respond"
	"github.com/famcp/famcp/internal/runtime/token"
)

//go:embed page.html
var pageHTML string

//go:embed refused.html
var refusedHTML string

// page is /admin: a form to make tokens and one to check them.
type page struct {
	*endpoints
	form    *respond.Page
	refused *respond.Page
}

func newPage(e *endpoints) (*page, error) {
	p := &page{endpoints: e}
	var err error
	if p.form, err = respond.NewPage(pageHTML); err != nil {
		return nil, err
	}
	p.refused, err = respond.NewPage(refusedHTML)
	return p, err
}

// units of the life of a token on the page.
var units = []struct{ Unit, Name string }{
	{"m", "minutes"}, {"h", "hours"}, {"d", "days"}, {"w", "weeks"}, {"y", "years"},
}

// view is what the page shows.
type view struct {
	Title    string
	By       string
	CanIssue bool
	Units    any
	Scopes   []string
	Form     url.Values // as it was sent, but for tokens
	Problem  string     // sentence, of making a token
	Made     string     // the token
	Life     string     // in words, of Made
	Checked  *verdict
}

// Chosen reports whether the form had this value.
func (v *view) Chosen(name, value string) bool { return slices.Contains(v.Form[name], value) }

// verdict is what checking a token has found.
type verdict struct {
	Valid    bool
	Problems []string
	Claims   []claim
}

type claim struct{ Name, Value string }

func (p *page) serve(w http.ResponseWriter, r *http.Request) {
	if !respond.Methods(w, r, http.MethodGet, http.MethodPost) || !p.admit(w, r) {
		return
	}
	// A browser sends the login along with whatever another page makes it send.
	if err := p.foreign.Check(r); err != nil {
		p.refuse(w, http.StatusForbidden, "The form did not come from this page.")
		return
	}
	by, ok := p.operator(w, r)
	if !ok {
		return
	}
	v := &view{
		Title: p.cfg.Title, By: by, CanIssue: p.cfg.Tokens.CanIssue(), Units: units, Scopes: p.cfg.Scopes(),
		Form: url.Values{"life": {"30"}, "unit": {"d"}},
	}
	if r.Method != http.MethodPost {
		p.form.Write(w, http.StatusOK, "Tokens of "+v.Title, v)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if r.URL.RawQuery != "" || r.ParseForm() != nil {
		p.refuse(w, http.StatusBadRequest, "The form is damaged or longer than 64 KiB.")
		return
	}
	status := http.StatusOK
	switch r.PostForm.Get("do") {
	case "make":
		v.Form = r.PostForm
		if err := p.make(v, by); err != nil {
			status, v.Problem = http.StatusBadRequest, sentence(err.Error())
		}
	case "check":
		v.Checked = p.check(r, strings.TrimSpace(r.PostForm.Get("token")))
	default:
		p.refuse(w, http.StatusBadRequest, "The form says neither make nor check.")
		return
	}
	p.form.Write(w, status, "Tokens of "+v.Title, v)
}

func (p *page) refuse(w http.ResponseWriter, status int, text string) {
	p.refused.Write(w, status, "No access", map[string]string{"Text": text})
}

// operator returns who may use the page; if nobody, the request has been
// answered.
func (p *page) operator(w http.ResponseWriter, r *http.Request) (string, bool) {
	user, password, basic := r.BasicAuth()
	if check := p.cfg.Page.Operator; check != nil {
		if basic && check(user, password) {
			return user, true
		}
		p.challenge(w, basic, "Sign in with the user and password of webServer.auth.basic.")
		return "", false
	}
	if basic { // how a browser can send a token
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+password)
	}
	if r.Header.Get("Authorization") == "" {
		p.challenge(w, false, "Sign in with any user name and, as the password, a token with the claim allow: "+genToken+".")
		return "", false
	}
	facts, refusal := p.cfg.Page.Authenticate(r)
	switch {
	case refusal != nil && refusal.Header.Get("Retry-After") != "":
		w.Header().Set("Retry-After", refusal.Header.Get("Retry-After"))
		p.refuse(w, cmp.Or(refusal.Status, protocol.Status(refusal.Code)), "Tokens cannot be checked now. Try again in a minute.")
	case refusal != nil:
		p.challenge(w, true, "The token is not accepted.")
	case !mayIssue(facts):
		// Another token may do: the browser is to ask again.
		p.challenge(w, true, "The token needs the claim allow: "+genToken+".")
	default:
		return facts.Subject, true
	}
	return "", false
}

// challenge makes a browser ask for a login.
func (p *page) challenge(w http.ResponseWriter, tried bool, text string) {
	if tried {
		p.cfg.Logger.Warn("no access to the page of tokens", "reason", text)
	}
	w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Basic realm="%s tokens", charset="UTF-8"`, p.cfg.Name))
	p.refuse(w, http.StatusUnauthorized, text)
}

// make makes the token that the form asks for.
func (p *page) make(v *view, by string) error {
	f := v.Form
	life, err := json.Marshal(strings.TrimSpace(f.Get("life")) + f.Get("unit"))
	if err != nil {
		return err
	}
	params, err := furtherClaims(f.Get("claims"))
	if err != nil {
		return err
	}
	raw, c, err := p.issue(&order{
		User: f.Get("user"), TTL: life, Service: f.Get("service"), IP: f.Get("ip"), Params: params,
		Scope: strings.Join(append(slices.Clone(f["scope"]), f.Get("scopes")), " "),
	}, by)
	if err != nil {
		return err
	}
	v.Made, v.Life = raw, when(c.ExpiresAt)
	return nil
}

// furtherClaims reads a claim a line, name=value. A value is JSON where it can
// be, else text.
func furtherClaims(text string) (map[string]any, error) {
	claims := map[string]any{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" {
			return nil, errors.New("further claims: write each line as name=value")
		}
		if _, twice := claims[name]; twice {
			return nil, fmt.Errorf("further claims: %q is there twice", name)
		}
		var v any
		d := json.NewDecoder(strings.NewReader(value))
		d.UseNumber()
		if json.Valid([]byte(value)) && d.Decode(&v) == nil {
			claims[name] = v
		} else {
			claims[name] = value
		}
	}
	return claims, nil
}

// check says what is in a token and why it would be refused.
func (p *page) check(r *http.Request, raw string) *verdict {
	facts := token.Facts{IP: p.cfg.Address(r)}
	_, err := p.cfg.Tokens.Verify(r.Context(), raw, facts)
	v := &verdict{Valid: err == nil}
	in, undecoded := p.cfg.Tokens.Inspect(raw, facts)
	switch {
	case err == nil:
	case undecoded != nil:
		v.Problems = []string{sentence(undecoded.Error())}
		return v
	default:
		v.Problems = []string{sentence(err.Error())}
		for _, problem := range in.Problems {
			if text := sentence(problem.Error()); !slices.Contains(v.Problems, text) {
				v.Problems = append(v.Problems, text)
			}
		}
	}
	v.Claims = listed(in.Claims)
	return v
}

// sentence makes a sentence of an error's text.
func sentence(text string) string {
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// listed returns claims for reading: those with a meaning here first.
func listed(c *token.Claims) []claim {
	all := c.Map()
	var list []claim
	add := func(name, key, value string) {
		if _, ok := all[key]; ok {
			list = append(list, claim{name, value})
		}
		delete(all, key)
	}
	add("User", "sub", c.Subject)
	add("Scopes", "scope", strings.Join(c.Scopes, " "))
	add("Expires", "exp", when(c.ExpiresAt))
	add("Issued", "iat", when(c.IssuedAt))
	add("Not before", "nbf", when(c.NotBefore))
	add("Audience", "aud", strings.Join(c.Audience, " "))
	add("Issuer", "iss", c.Issuer)
	add("Services", "service", strings.Join(c.Services, " "))
	add("Addresses", "ip", strings.Join(c.IPs, " "))
	add("Identifier", "jti", c.ID)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value, ok := all[name].(string)
		if !ok {
			raw, err := json.Marshal(all[name])
			if err != nil {
				continue // it was JSON before
			}
			value = string(raw)
		}
		list = append(list, claim{name, value})
	}
	return list
}

// when says a time in words and in full.
func when(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	d := time.Until(t).Round(time.Second)
	words := "in " + span(d)
	if d < 0 {
		words = span(-d) + " ago"
	}
	return words + " (" + t.UTC().Format("2 Jan 2006 15:04:05 MST") + ")"
}

// span says a duration in the largest unit that it has two of.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	for _, u := range []struct {
		length time.Duration
		name   string
	}{{day, "days"}, {time.Hour, "hours"}, {time.Minute, "minutes"}} {
		if d.Round(u.length) >= 2*u.length {
			return fmt.Sprintf("%d %s", d.Round(u.length)/u.length, u.name)
		}
	}
	if d < 2*time.Second {
		return "1 second"
	}
	return fmt.Sprintf("%d seconds", d/time.Second)
}
