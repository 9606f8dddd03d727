package front

import (
	"net/http"
	"strings"

	"github.com/famcp/famcp/internal/runtime/protocol"
	"github.com/famcp/famcp/internal/runtime/telemetry"
)

// metered knows the status of an answer.
type metered struct {
	http.ResponseWriter
	status int
	begun  bool
}

func (w *metered) WriteHeader(status int) {
	if !w.begun && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status, w.begun = status, true
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *metered) Write(b []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(b)
}

// Unwrap is for [http.ResponseController].
func (w *metered) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// pathLabel returns what the metrics call the path of r: one of the server's
// own or the pattern that a route was registered with.
func (f *Front) pathLabel(r *http.Request) string {
	if f.own[r.URL.Path] {
		return r.URL.Path
	}
	_, pattern := f.routes.Handler(r)
	switch {
	case pattern != "":
		_, path, found := strings.Cut(pattern, " ")
		if !found {
			path = pattern
		}
		return strings.TrimLeft(path, " \t")
	case r.URL.Path == "/":
		return "/"
	}
	return telemetry.Other
}

// MetricsHandler serves the metrics on a listener of their own, at path, with
// the Host check of loopback addresses. [Config].Metrics must be set.
func (f *Front) MetricsHandler(path string) http.Handler {
	metrics := f.cfg.Metrics.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case onLoopback(r) && !f.hosts.allows(r.Host):
			f.refuse(w, nil, Refusal{Status: http.StatusForbidden, Code: protocol.CodeServer, Message: "this host name is not served"})
		case r.URL.Path != path:
			writeJSON(w, http.StatusNotFound, map[string]string{"error": "nothing is served at this path; the metrics are at " + path})
		default:
			scrape(metrics, w, r)
		}
	})
}

func (f *Front) serveMetrics(w http.ResponseWriter, r *http.Request) { scrape(f.metrics, w, r) }

func scrape(metrics http.Handler, w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		writeJSON(w, http.StatusMethodNotAllowed, map[string]string{"error": "only GET and HEAD are served here"})
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	metrics.ServeHTTP(w, r)
}
