package famcp

import (
	"net/http"
	"strings"

	"github.com/famcp/famcp/internal/runtime/front"
	"github.com/famcp/famcp/internal/runtime/respond"
)

// headerRead is a request header that the server looks at.
type headerRead struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// headersRead lists what this server looks at under its configuration. It is
// the resource use://http-headers and the answer of /used-http-headers.
func (s *Server) headersRead() []headerRead {
	list := []headerRead{
		{"Accept", "application/json, text/event-stream, or both"},
		{"Content-Type", "application/json"},
		{"MCP-Protocol-Version", "the revision, on every modern request"},
		{"Mcp-Method", "repeats the method of a modern request"},
		{"Mcp-Name", "repeats the name or URI in a modern request"},
		{"Mcp-Param-*", "repeat arguments of a tool that asks for it"},
		{"Mcp-Session-Id", "the session, on every legacy request after initialize"},
	}
	web := &s.cfg.WebServer
	if web.Auth.Enabled {
		list = append(list, headerRead{"Authorization", "the credentials; see use://auth"})
	}
	list = append(list,
		headerRead{"Host", "checked against the allowed names"},
		headerRead{"Origin", "checked against the allowed names"},
		headerRead{"X-Request-Id", "taken over into logs, errors and the response"},
	)
	if web.TrustProxy || len(web.TrustedProxies) > 0 {
		list = append(list,
			headerRead{"X-Forwarded-For", "the caller's address, from a trusted proxy"},
			headerRead{"Forwarded", "the caller's address, from a trusted proxy"},
		)
	}
	return list
}

func (s *Server) headersText() string {
	var b strings.Builder
	for _, h := range s.headersRead() {
		b.WriteString(h.Name + ": " + h.Description + "\n")
	}
	return b.String()
}

// headersRoute tells everyone what headers are read.
func (s *Server) headersRoute() front.Route {
	list := map[string]any{"headers": s.headersRead()}
	return front.Route{Pattern: "/used-http-headers", Public: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if respond.Methods(w, r, http.MethodGet) {
			respond.JSON(w, http.StatusOK, list)
		}
	})}
}
