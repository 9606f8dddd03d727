package famcptest

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/famcp/famcp/internal/runtime/protocol"
	"github.com/famcp/famcp/internal/runtime/tasks"
)

// Subscription hears what the server says on its own. It ends with the test.
type Subscription struct {
	t      testing.TB
	cancel context.CancelFunc
	body   io.Closer
	events *bufio.Reader
}

// Listen hears changes of the lists, and updates of the resources at uris,
// from now on: by subscriptions/listen in the modern era, by resources/subscribe
// and the session's stream in the legacy one, which has one stream only.
func (c *Client) Listen(uris ...string) *Subscription {
	c.t.Helper()
	filter := map[string]any{"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true}
	if len(uris) > 0 {
		filter["resourceSubscriptions"] = uris
	}
	if !c.modern() {
		for _, uri := range uris {
			if res := c.Request("resources/subscribe", map[string]any{"uri": uri}); res.Err != nil {
				c.t.Fatalf("subscribing to %s: %v", uri, res.Err)
			}
		}
	}
	return c.listen(filter)
}

// listen opens a subscription with a filter, or the session's stream.
func (c *Client) listen(filter map[string]any) *Subscription {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.t.Context()))
	stop := time.AfterFunc(timeout, cancel)
	defer stop.Stop()
	var r *http.Request
	var err error
	h := c.headers()
	if c.modern() {
		nameHeaders(h, "subscriptions/listen", nil)
		body := c.encode(message{ID: c.nextID(), Method: "subscriptions/listen", Params: c.marshal(map[string]any{
			"_meta": c.meta(), "notifications": filter,
		})})
		r, err = http.NewRequestWithContext(ctx, http.MethodPost, c.host.url+path, strings.NewReader(string(body)))
	} else {
		h.Set("Accept", "text/event-stream")
		r, err = http.NewRequestWithContext(ctx, http.MethodGet, c.host.url+path, nil)
	}
	if err != nil {
		c.t.Fatalf("making a request: %v", err)
	}
	r.Header = h
	res, err := c.host.client.Do(r) //nolint:bodyclose // Subscription.Close closes it
	if err != nil {
		c.t.Fatalf("the server does not open a stream: %v", err)
	}
	s := &Subscription{t: c.t, cancel: cancel, body: res.Body, events: bufio.NewReader(res.Body)}
	c.t.Cleanup(s.Close)
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		body, _ := io.ReadAll(res.Body)
		c.t.Fatalf("listening: got HTTP %d: %s", res.StatusCode, body)
	}
	if c.modern() {
		if first := s.Next(); first.Method != "notifications/subscriptions/acknowledged" {
			c.t.Fatalf("listening: the first message is %s %s, want an acknowledgement", first.Method, first.Params)
		}
	}
	return s
}

// Next waits for the next notification and returns it.
func (s *Subscription) Next() Notification {
	s.t.Helper()
	stop := time.AfterFunc(timeout, s.cancel)
	defer stop.Stop()
	data, err := nextEvent(s.events)
	if err != nil {
		s.t.Fatalf("no notification within %s: %v", timeout, err)
	}
	var m message
	if err := json.Unmarshal(data, &m); err != nil || m.Method == "" {
		s.t.Fatalf("got %s, want a notification", data)
	}
	return Notification{Method: m.Method, Params: m.Params}
}

// Close stops listening.
func (s *Subscription) Close() {
	s.cancel()
	_ = s.body.Close() // nothing is lost: what was sent is no longer wanted
}

// meta returns params._meta of a modern request.
func (c *Client) meta() map[string]any {
	can := declared(c.can)
	if c.tasks {
		can["extensions"] = map[string]any{tasks.Extension: map[string]any{}}
	}
	return map[string]any{
		protocol.MetaVersion: c.revision, protocol.MetaCapabilities: can,
		protocol.MetaClientInfo: clientInfo, protocol.MetaLogLevel: "debug",
	}
}
