package famcp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/famcptest"
)

type noteParams struct {
	ID string `json:"id"`
}

// newNotes serves the resources note://ID, which watch watches.
func newNotes(t testing.TB, legacy bool, watch func(context.Context, string) error) *famcp.Server {
	s := newServer(t, func(c *famcp.Config) { c.MCP.Resources.SubscribeEnabled = legacy })
	famcp.AddResourceTemplate(s, famcp.ResourceTemplate{URITemplate: "note://{id}", Name: "notes", Watch: watch},
		func(context.Context, *famcp.Call, noteParams) (famcp.Contents, error) {
			return famcp.Contents{Text: "x"}, nil
		})
	return s
}

// TestSubscriptionsAreBounded, whether anything is watched or not.
func TestSubscriptionsAreBounded(t *testing.T) {
	const most = 256
	for name, watch := range map[string]func(context.Context, string) error{
		"plain":   nil,
		"watched": func(ctx context.Context, _ string) error { <-ctx.Done(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := newNotes(t, true, watch)
			modern := famcptest.Connect(t, s, famcptest.Modern)
			uris := make([]string, most+1)
			for i := range uris {
				uris[i] = fmt.Sprintf("note://%d", i)
			}
			res := modern.Request("subscriptions/listen", map[string]any{"notifications": map[string]any{"resourceSubscriptions": uris}})
			if res.Err == nil || res.Err.Code != -32003 || res.Err.Status != 429 {
				t.Errorf("listen: got %v, want -32003 with 429", res.Err)
			}
			modern.Listen(uris[:most]...) // fails the test when it is refused

			legacy := famcptest.Connect(t, s, famcptest.Legacy)
			subscribe := func(method, uri string) *famcptest.Error {
				return legacy.Request(method, map[string]any{"uri": uri}).Err
			}
			for _, uri := range uris[:most] {
				if err := subscribe("resources/subscribe", uri); err != nil {
					t.Fatalf("%s: %v", uri, err)
				}
			}
			// -32003 would read as a closed connection to go-sdk clients.
			if err := subscribe("resources/subscribe", uris[most]); err == nil || err.Code != -32000 {
				t.Errorf("one more: got %v, want -32000", err)
			}
			if err := subscribe("resources/subscribe", uris[0]); err != nil {
				t.Errorf("the same again: %v", err)
			}
			if err := subscribe("resources/unsubscribe", uris[0]); err != nil {
				t.Errorf("unsubscribe: %v", err)
			}
			if err := subscribe("resources/subscribe", uris[most]); err != nil {
				t.Errorf("one more after one less: %v", err)
			}
		})
	}
}

// TestWatchIsStartedAgain by the next subscriber after it has failed.
func TestWatchIsStartedAgain(t *testing.T) {
	started := make(chan struct{}, 1)
	s := newNotes(t, true, func(context.Context, string) error {
		started <- struct{}{}
		return errors.New("connection lost")
	})
	for range 3 {
		c := famcptest.Connect(t, s, famcptest.Legacy)
		for running := false; !running; {
			if err := c.Request("resources/subscribe", map[string]any{"uri": "note://1"}).Err; err != nil {
				t.Fatal(err)
			}
			select {
			case <-started:
				running = true
			default: // the one before has not quite ended
			}
		}
	}
}

// TestListenNeedsNoKey: mcp.resources.subscribeEnabled is about legacy clients.
func TestListenNeedsNoKey(t *testing.T) {
	s := newNotes(t, false, nil)
	modern := famcptest.Connect(t, s, famcptest.Modern)
	updates := modern.Listen("note://1")
	s.ResourceUpdated(t.Context(), "note://1")
	if n := updates.Next(); n.Method != "notifications/resources/updated" {
		t.Errorf("got %s %s, want the update", n.Method, n.Params)
	}
	legacy := famcptest.Connect(t, s, famcptest.Legacy)
	for _, method := range []string{"resources/subscribe", "resources/unsubscribe"} {
		if err := legacy.Request(method, map[string]any{"uri": "note://1"}).Err; err == nil || err.Code != -32601 {
			t.Errorf("%s: got %v, want -32601", method, err)
		}
	}
	handler, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(handler)
	defer web.Close()
	for version, want := range map[string]bool{famcptest.Modern: true, famcptest.Legacy: false} {
		client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil)
		session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: web.URL + "/mcp"},
			&mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		if got := session.InitializeResult().Capabilities.Resources; got == nil || got.Subscribe != want || !got.ListChanged {
			t.Errorf("%s: got the capability %+v, want subscribe %t", version, got, want)
		}
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}
}
