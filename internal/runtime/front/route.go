package front

import (
	"bufio"
	"maps"
	"net"
	"net/http"
	"strings"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/protocol"
)

// serveRoute serves everything but the endpoint and the probes.
func (f *Front) serveRoute(w http.ResponseWriter, r *http.Request) {
	_, pattern := f.routes.Handler(r)
	if isPreflight(r) && !strings.HasPrefix(pattern, http.MethodOptions+" ") {
		preflight(w, r, routeMethods)
		return
	}
	if pattern == "" {
		if r.URL.Path == "/" {
			f.serveHome(w, r)
			return
		}
		writeJSON(w, http.StatusNotFound, map[string]string{"error": "nothing is served at this path; the MCP endpoint is " + Path})
		return
	}
	if !f.public[pattern] {
		facts := f.facts(r, protocol.EraModern, &protocol.Message{})
		if !f.authorize(w, r, nil, facts, nil) {
			return
		}
		r = r.WithContext(call.NewContext(r.Context(), facts))
		if _, ok := r.Header["Authorization"]; ok { // it has done its work
			r.Header = maps.Clone(r.Header)
			r.Header.Del("Authorization")
		}
	}
	rw := &routeWriter{ResponseWriter: w}
	defer f.recover(rw, r.Header.Get(protocol.HeaderRequestID))
	f.routes.ServeHTTP(rw, r)
}

// routeWriter knows whether an answer has begun. It keeps what handlers reach
// by type assertion.
type routeWriter struct {
	http.ResponseWriter
	begun bool
}

func (w *routeWriter) WriteHeader(status int) {
	w.begun = w.begun || status >= 200
	w.ResponseWriter.WriteHeader(status)
}

func (w *routeWriter) Write(b []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(b)
}

func (w *routeWriter) Flush() {
	w.begun = true
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *routeWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.begun = true
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

func (w *routeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
