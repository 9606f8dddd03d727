package famcp_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/internal/runtime/token"
)

// openStream opens the stream of a session and returns what tells of its end.
func (g *guarded) openStream(t *testing.T, session string, headers http.Header) <-chan error {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.url+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	if headers != nil {
		r.Header = headers
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Mcp-Session-Id", session)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		t.Fatalf("the stream is answered %d", res.StatusCode)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, res.Body)
		res.Body.Close()
		ended <- err
	}()
	return ended
}

func wantEnd(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the stream does not end")
	}
}

// TestAdoptionEndsTheAnonymousStream: what is sent to the owner of a session
// must not reach who opened it.
func TestAdoptionEndsTheAnonymousStream(t *testing.T) {
	g := newGuarded(t, func(c *famcp.Config) { c.WebServer.Auth.AnonymousDiscovery = true }, nil)
	session := g.session()
	ended := g.openStream(t, session, nil)
	if r := g.legacy(session, "ping", "", bearer(g.jwt(token.Grant{Subject: "ann"}))); r.status != 200 {
		t.Fatalf("adopting: %d %s", r.status, r.body)
	}
	wantEnd(t, ended)
}

// TestStreamsEndWithTheirToken: a stream does not outlive what opened it.
func TestStreamsEndWithTheirToken(t *testing.T) {
	g := newGuarded(t, func(c *famcp.Config) { c.WebServer.Auth.JWT.ClockSkew = 0 }, nil)
	short := g.jwt(token.Grant{Subject: "ann", TTL: 3 * time.Second})
	session := g.session(bearer(short))
	wantEnd(t, g.openStream(t, session, http.Header{"Authorization": {"Bearer " + short}}))
	if r := g.legacy(session, "ping", "", bearer(short)); r.status != 401 {
		t.Errorf("after its end: %d %s", r.status, r.body)
	}
}

// TestBatchesAreGuarded as a whole.
func TestBatchesAreGuarded(t *testing.T) {
	g := newGuarded(t, nil, nil)
	ann, bob := bearer(g.jwt(token.Grant{Subject: "ann"})), bearer(g.jwt(token.Grant{Subject: "bob"}))
	r := g.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, ann)
	session := "Mcp-Session-Id: " + r.header.Get("Mcp-Session-Id")
	const batch = `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`
	for name, tt := range map[string]struct {
		headers []string
		want    int
	}{
		"owner": {[]string{session, ann}, 200}, "another": {[]string{session, bob}, 404},
		"nobody": {[]string{session}, 401}, "junk": {[]string{session, bearer("junk")}, 401},
	} {
		if r := g.do("POST", "/mcp", batch, tt.headers...); r.status != tt.want {
			t.Errorf("%s: %d %s, want %d", name, r.status, r.body, tt.want)
		}
	}
}
