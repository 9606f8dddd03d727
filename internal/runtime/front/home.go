package front

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
)

//go:embed home.html
var homeHTML string

// renderHome returns the home page. It says nothing that server/discover does
// not say to everyone.
func renderHome(cfg *Config) ([]byte, error) {
	page, err := template.New("home").Parse(homeHTML)
	if err != nil {
		return nil, fmt.Errorf("home page: %w", err)
	}
	title := cmp.Or(cfg.Info.Title, cfg.Info.Name)
	var b bytes.Buffer
	err = page.Execute(&b, struct {
		Name, Title, Version, Description, Path string
		Versions                                []string
	}{cfg.Info.Name, title, cfg.Info.Version, cfg.Info.Description, Path, cfg.Eras.Versions()})
	if err != nil {
		return nil, fmt.Errorf("home page: %w", err)
	}
	return b.Bytes(), nil
}

func (f *Front) serveHome(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		writeJSON(w, http.StatusMethodNotAllowed, map[string]string{"error": "only GET and HEAD are served here"})
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	_, _ = w.Write(f.home)
}
