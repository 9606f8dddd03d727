// Package famcptest tests MCP servers made with package famcp.
//
// [Eras] serves a fresh server on a loopback socket in each protocol era and
// hands the test a [Client] that speaks plain JSON-RPC over HTTP, so that what
// passes is what any client of that era gets:
//
//	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
//		sum := famcptest.Call[Sum](t, c, "add", map[string]any{"a": 1, "b": 2})
//		…
//	})
//
// [ConnectStdio] serves on pipes instead of a socket, as on standard input and
// output.
//
// [NewCall] makes the call argument of a handler, for unit tests that need no
// server.
//
// Everything here that takes or holds a [testing.TB] fails that test with
// Fatalf and must be used from the test's own goroutine. A client belongs to
// the test that it was made for; in a subtest use [Client.For].
package famcptest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/internal/runtime/call"
)

// Revisions of the protocol for [Connect]: the newest of each era. The older
// legacy ones, such as "2025-03-26", work too.
const (
	Modern = "2026-07-28"
	Legacy = "2025-11-25"
)

// Eras runs f as the subtests "modern" and "legacy", each with a client of a
// server of its own. The server is closed when the subtest ends.
func Eras(t *testing.T, build func(testing.TB) *famcp.Server, f func(*testing.T, *Client)) {
	t.Helper()
	for _, era := range []struct{ name, revision string }{{"modern", Modern}, {"legacy", Legacy}} {
		t.Run(era.name, func(t *testing.T) {
			t.Helper()
			f(t, Connect(t, build(t), era.revision))
		})
	}
}

// Connect serves s and returns a client that speaks the given revision. A
// server may be connected to several times; it is closed with the test. Every
// limit of its configuration holds but for mcp.rateLimit.maxRequests left at its
// default: a test may send more than 100 requests in a minute.
func Connect(t testing.TB, s *famcp.Server, revision string) *Client {
	t.Helper()
	c := &Client{
		t: t, host: serve(t, s), revision: revision,
		can: everything, state: &state{answer: decline},
	}
	c.open()
	return c
}

// closeTimeout is how long calls that are still running may delay the end of a
// test.
const closeTimeout = 5 * time.Second

// identityHeader names an entry of host.identities. It is taken out before
// the server sees the request.
const identityHeader = "Famcptest-Identity"

// host is a served server.
type host struct {
	url        string
	client     *http.Client
	stdio      bool
	identities sync.Map // call.Identity by key
}

func serve(t testing.TB, s *famcp.Server) *host {
	t.Helper()
	if s == nil {
		t.Fatalf("there is no server to connect to: build returned nil")
	}
	famcp.Relax(call.Testing{}, s)
	handler, err := s.Handler()
	if err != nil {
		t.Fatalf("the server does not start: %v", err)
	}
	h := &host{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id, ok := h.identities.Load(r.Header.Get(identityHeader)); ok {
			r = r.WithContext(call.Assume(r.Context(), id.(call.Identity)))
		}
		r.Header.Del(identityHeader)
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Errorf("closing the server: %v", err)
		}
		web.Close()
	})
	h.url, h.client = web.URL, web.Client()
	return h
}

// Call calls a tool and returns its output: the structured content, or for a
// string the text. It fails the test when the call fails, with the server's
// words.
func Call[Out any](t testing.TB, c *Client, tool string, args any) Out {
	t.Helper()
	res := c.For(t).CallTool(tool, args)
	if res.Err != nil {
		t.Fatalf("calling %s: %v", tool, res.Err)
	}
	if res.IsError {
		t.Fatalf("the tool %s failed: %s", tool, res.Text())
	}
	var out Out
	if text, ok := any(&out).(*string); ok && res.Structured == nil {
		*text = res.Text()
		return out
	}
	structured := res.Structured
	if structured == nil { // before 2026-07-28 other values than objects are only in the text
		structured = json.RawMessage(res.Text())
	}
	if err := json.Unmarshal(structured, &out); err != nil {
		t.Fatalf("the output of %s does not fit %T: %v; it is %s", tool, out, err, structured)
	}
	return out
}
