package famcp

import (
	"context"
	"io"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/invoke"
)

// CallFor returns a call made by package famcptest, for tests of handlers.
// Other modules cannot make its argument.
func CallFor(c *invoke.Call) *Call { return &Call{c: c} }

// Relax readies a server for package famcptest: a rate limit that has been
// left at its default is off, or a test of many requests would fail where the
// same project passed with fewer. Other modules cannot make its argument.
func Relax(_ call.Testing, s *Server) {
	s.starting.Lock()
	defer s.starting.Unlock()
	limit, standard := &s.cfg.MCP.RateLimit, &DefaultConfig().MCP.RateLimit
	if limit.MaxRequests == standard.MaxRequests && limit.Window == standard.Window {
		limit.MaxRequests = 0
	}
}

// ServeStreams serves one client on in and out as RunStdio does on standard
// input and output, for package famcptest. Other modules cannot make its
// argument.
func ServeStreams(ctx context.Context, _ call.Testing, s *Server, in io.Reader, out io.Writer) error {
	return s.serveStdio(ctx, in, out)
}

// assumed lets a test in this process act as a subject with scopes. A request
// off the network never carries an assumed identity.
func assumed(ctx context.Context, facts *call.Facts) bool {
	id, ok := call.Assumed(ctx)
	if ok {
		facts.Subject, facts.Scopes, facts.AllScopes, facts.Authenticated = id.Subject, id.Scopes, false, true
		facts.Claims = id.Claims
	}
	return ok
}
