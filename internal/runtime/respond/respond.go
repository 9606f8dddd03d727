// Package respond writes the answers of the endpoints beside MCP: JSON and
// pages for people.
//
// Pages share one style sheet and need no script. Their Content-Security-Policy
// allows nothing but that style sheet, by its hash.
package respond

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strings"
)

// JSON answers with v, which must be plain data.
func JSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":"internal error"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// Error answers with an object whose member error is text.
func Error(w http.ResponseWriter, status int, text string) {
	JSON(w, status, map[string]string{"error": text})
}

// NoStore keeps an answer with a secret out of every cache (RFC 6749 §5.1).
func NoStore(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Pragma", "no-cache")
}

// Methods reports whether the request's method is one of allowed; if not, it
// has been answered with 405. HEAD is allowed where GET is.
func Methods(w http.ResponseWriter, r *http.Request, allowed ...string) bool {
	for _, m := range allowed {
		if r.Method == m || r.Method == http.MethodHead && m == http.MethodGet {
			return true
		}
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	Error(w, http.StatusMethodNotAllowed, "only "+strings.Join(allowed, " and ")+" is served here")
	return false
}

//go:embed layout.html
var layoutHTML string

//go:embed style.css
var styleCSS string

// Page is a page for people. It is safe for concurrent use.
type Page struct {
	layout *template.Template
	style  template.CSS
	policy string // but for form-action
}

// NewPage returns the page whose body is text, a template of package
// html/template.
func NewPage(text string) (*Page, error) {
	layout, err := template.New("page").Parse(layoutHTML)
	if err == nil {
		_, err = layout.New("main").Parse(text)
	}
	if err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	sum := sha256.Sum256([]byte(styleCSS))
	return &Page{
		layout: layout, style: template.CSS(styleCSS), //nolint:gosec // embedded above
		policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
			"'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'",
	}, nil
}

// Write answers with the page. Its forms may be sent to this server, and be
// redirected from there to the given origins: browsers hold form-action against
// redirects too.
func (p *Page) Write(w http.ResponseWriter, status int, title string, data any, origins ...string) {
	var b bytes.Buffer
	err := p.layout.ExecuteTemplate(&b, "page", map[string]any{"Title": title, "Style": p.style, "Data": data})
	if err != nil {
		Error(w, http.StatusInternalServerError, "internal error")
		return
	}
	h := w.Header()
	NoStore(h)
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", strings.Join(append([]string{p.policy}, origins...), " "))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	// Not no-referrer: with that, browsers send forms with the Origin null.
	h.Set("Referrer-Policy", "same-origin")
	// Other origins have no use for a page, even those that may call tools.
	h.Del("Access-Control-Allow-Origin")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}
