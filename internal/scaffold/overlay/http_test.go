package overlay_test

import (
	"context"
	"net/http"
)

// guard lets one user through; everybody, when there is none.
func guard(h http.Handler, user, password string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, ok := r.BasicAuth(); user != "" && (!ok || u != user || p != password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// hang tells that a request has come and does not answer it.
func hang(stop <-chan struct{}, came context.CancelFunc) http.Handler {
	return http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		came()
		<-stop
	})
}
