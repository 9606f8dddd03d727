package famcp_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/famcptest"
)

// TestSizeIsComputed of what a resource holds at all times.
func TestSizeIsComputed(t *testing.T) {
	build := func(t testing.TB) *famcp.Server {
		s := newServer(t, nil)
		s.AddResource(famcp.Resource{URI: "fix://text", Name: "text", Contents: &famcp.Contents{Text: "größe"}}, nil)
		s.AddResource(famcp.Resource{URI: "fix://blob", Name: "blob", Contents: &famcp.Contents{MIME: "image/png", Blob: []byte{0, 1, 2}}}, nil)
		s.AddResource(famcp.Resource{URI: "fix://told", Name: "told", Size: 99, Contents: &famcp.Contents{Text: "x"}}, nil)
		s.AddResource(famcp.Resource{URI: "fix://read", Name: "read"}, func(context.Context, *famcp.Call) (famcp.Contents, error) {
			return famcp.Contents{Text: "read"}, nil
		})
		return s
	}
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		want := map[string]int64{"fix://text": 7, "fix://blob": 3, "fix://told": 99, "fix://read": 0, "project://version": 5}
		for _, r := range c.Resources() {
			if size, ok := want[r.URI]; ok && r.Size != size {
				t.Errorf("%s: size %d, want %d", r.URI, r.Size, size)
			}
			delete(want, r.URI)
		}
		if len(want) > 0 {
			t.Errorf("not listed: %v", want)
		}
		if res := c.Read("fix://text"); res.Text() != "größe" {
			t.Errorf("text: %v %q", res.Err, res.Text())
		}
		if res := c.Read("fix://blob"); res.Err != nil || string(res.Contents[0].Blob) != "\x00\x01\x02" || res.Contents[0].MIMEType != "image/png" {
			t.Errorf("blob: %v %s", res.Err, res.Raw)
		}
	})
}

// TestRootsAreCached on a session until the client says that they changed,
// if it promised to.
func TestRootsAreCached(t *testing.T) {
	s := newServer(t, nil)
	famcp.AddTool(s, reader("roots"), func(_ context.Context, c *famcp.Call, _ nothing) (string, error) {
		roots, err := c.Roots("roots")
		var text strings.Builder
		for _, r := range roots {
			text.WriteString(r.URI + " ")
		}
		return text.String(), err
	})
	handler, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(handler)
	defer web.Close()
	defer func() { _ = s.Close(t.Context()) }()
	for name, promises := range map[string]bool{"promises": true, "promises nothing": false} {
		t.Run(name, func(t *testing.T) {
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
				Capabilities: &mcp.ClientCapabilities{RootsV2: &mcp.RootCapabilities{ListChanged: promises}},
			})
			client.AddRoots(&mcp.Root{URI: "file:///a"})
			var asked atomic.Int32
			client.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
					if method == "roots/list" {
						asked.Add(1)
					}
					return next(ctx, method, req)
				}
			})
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: web.URL + "/mcp"},
				&mcp.ClientSessionOptions{ProtocolVersion: famcptest.Legacy})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = session.Close() }()
			call := func(want string, questions int32) {
				t.Helper()
				res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "roots"})
				if err != nil || res.IsError {
					t.Fatalf("%v %+v", err, res)
				}
				if text := res.Content[0].(*mcp.TextContent).Text; text != want {
					t.Errorf("got %q, want %q", text, want)
				}
				if got := asked.Load(); got != questions {
					t.Errorf("asked %d times, want %d", got, questions)
				}
			}
			if !promises {
				call("file:///a ", 1)
				call("file:///a ", 2)
				return
			}
			call("file:///a ", 1)
			call("file:///a ", 1)
			client.AddRoots(&mcp.Root{URI: "file:///b"})
			call("file:///a file:///b ", 2)
			call("file:///a file:///b ", 2)
		})
	}
}
