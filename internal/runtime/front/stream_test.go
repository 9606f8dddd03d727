package front

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// recorder is a response writer whose content can be read while it is
// written, inside a synctest bubble.
type recorder struct {
	mu     sync.Mutex
	header http.Header
	status int
	body   bytes.Buffer
	block  <-chan struct{} // when set, writes wait for it
}

func (r *recorder) Header() http.Header {
	if r.header == nil {
		r.header = http.Header{}
	}
	return r.header
}

func (r *recorder) WriteHeader(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status == 0 {
		r.status = status
	}
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.block != nil {
		<-r.block
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status == 0 {
		r.status = 200
	}
	return r.body.Write(b)
}

func (r *recorder) FlushError() error { return nil }

func (r *recorder) read() (status int, body string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status, r.body.String()
}

// inBubble starts a request in the current bubble; done is closed at its end.
func (fx *fixture) inBubble(t *testing.T, method, body string, headers ...string) (r *recorder, cancel context.CancelFunc, done chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, done = &recorder{}, make(chan struct{})
	req := newRequest(t, method, "http://localhost"+Path, body, headers...).WithContext(ctx)
	go func() {
		defer close(done)
		fx.ServeHTTP(r, req)
	}()
	return r, cancel, done
}

const (
	bodyListen = `"notifications":{"toolsListChanged":true}`
	headListen = "Mcp-Method: subscriptions/listen"
)

func TestSilence(t *testing.T) {
	tests := []struct {
		name    string
		session bool
		headers []string
		after   time.Duration // no byte before it
		stream  bool
	}{
		{name: "modern", headers: []string{modernHead, methodCall, "Mcp-Name: block"}, after: modernSilence, stream: true},
		{name: "modern, JSON only", headers: []string{modernHead, methodCall, "Mcp-Name: block", "Accept: application/json"}, after: time.Minute},
		{name: "legacy", session: true, after: legacySilence, stream: true},
		{name: "legacy, JSON only", session: true, headers: []string{"Accept: application/json"}, after: time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fx := newFixture(t, nil)
				if tt.session {
					tt.headers = append(tt.headers, fx.sessionInBubble(t))
				}
				r, cancel, done := fx.inBubble(t, "POST", modernCall("7", "tools/call", `"name":"block"`), tt.headers...)
				defer cancel()
				<-fx.enter
				time.Sleep(tt.after - time.Millisecond)
				if status, body := r.read(); status != 0 {
					t.Fatalf("%d %q before %s", status, body, tt.after)
				}
				time.Sleep(25 * time.Second)
				if status, body := r.read(); tt.stream && (status != 200 || !strings.HasPrefix(body, ": ")) {
					t.Fatalf("got %d %q after the silence, want a stream", status, body)
				}
				fx.leave <- struct{}{}
				<-done
				status, body := r.read()
				kind := "application/json"
				if tt.stream {
					kind = "text/event-stream"
				}
				if status != 200 || r.Header().Get("Content-Type") != kind || !strings.Contains(body, "unblocked") {
					t.Errorf("got %d %v %q, want %s", status, r.Header(), body, kind)
				}
				_ = fx.Close(t.Context())
			})
		})
	}
}

// sessionInBubble opens a legacy session.
func (fx *fixture) sessionInBubble(t *testing.T) string {
	t.Helper()
	r, cancel, done := fx.inBubble(t, "POST", initializeBody("2025-11-25"))
	defer cancel()
	<-done
	id := r.Header().Get("Mcp-Session-Id")
	if id == "" {
		t.Fatalf("initialize: %v", r.body.String())
	}
	_, cancel2, done := fx.inBubble(t, "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id: "+id)
	defer cancel2()
	<-done
	return "Mcp-Session-Id: " + id
}

// TestKeepAlive leaves streams alone for longer than proxies do.
func TestKeepAlive(t *testing.T) {
	for _, era := range []string{"modern", "legacy"} {
		t.Run(era, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fx := newFixture(t, nil)
				method, headers := "POST", []string{modernHead, headListen}
				if era == "legacy" {
					method, headers = "GET", []string{"Accept: text/event-stream", fx.sessionInBubble(t)}
				}
				r, cancel, done := fx.inBubble(t, method, modernCall("7", "subscriptions/listen", bodyListen), headers...)
				defer cancel()
				time.Sleep(65 * time.Second)
				status, body := r.read()
				if status != 200 || strings.Count(body, ": keep-alive\n\n") < 2 {
					t.Errorf("after 65 s: %d %q", status, body)
				}
				for name, want := range map[string]string{
					"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no", "Mcp-Session-Id": "",
				} {
					if got := r.Header().Get(name); got != want {
						t.Errorf("%s is %q, want %q", name, got, want)
					}
				}
				if strings.Contains(body, `"ping"`) {
					t.Error("pings on a stream")
				}
				if err := fx.Close(t.Context()); err != nil {
					t.Error(err)
				}
				<-done
			})
		})
	}
}

func TestStreamDropsSlowClient(t *testing.T) {
	for _, tt := range []struct {
		name  string
		event []byte
		count int
	}{
		{"many events", event([]byte("{}")), 2*maxQueuedEvents + 2},
		{"big events", make([]byte, maxQueuedBytes/4), 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, drop := context.WithCancelCause(t.Context())
			unblock := make(chan struct{})
			s := openStream(&recorder{block: unblock}, drop)
			for range tt.count { // the writer may have taken one full queue
				s.send(tt.event) // never blocks
			}
			if !errors.Is(context.Cause(ctx), errSlow) {
				t.Errorf("cause %v, want %v", context.Cause(ctx), errSlow)
			}
			close(unblock)
			s.close()
		})
	}
}

func TestStreamWritesAllBeforeClose(t *testing.T) {
	r := &recorder{}
	s := openStream(r, func(error) {})
	for range 500 {
		s.send([]byte("x"))
	}
	s.close()
	if _, body := r.read(); len(body) != 500 {
		t.Errorf("got %d bytes, want 500", len(body))
	}
}

// TestAnswerForm: whole as JSON unless a notification comes first.
func TestAnswerForm(t *testing.T) {
	fx := newFixture(t, nil)
	url := fx.serve(t)
	session := newSession(t, url, "2025-11-25")
	tests := []struct {
		name, tool, accept string
		stream             bool
		events             int
	}{
		{"plain", "echo", "application/json, text/event-stream", false, 0},
		{"progress", "progress", "application/json, text/event-stream", true, 2},
		{"progress as JSON", "progress", "application/json", false, 0},
		{"plain as stream", "echo", "text/event-stream", true, 1},
		{"progress as stream", "progress", "text/event-stream", true, 2},
		{"refused question as stream", "ask", "text/event-stream", true, 1},
	}
	for _, tt := range tests {
		for era, headers := range map[string][]string{
			"modern": {modernHead, methodCall, "Mcp-Name: " + tt.tool},
			"legacy": {session},
		} {
			if tt.tool == "ask" && era == "legacy" {
				continue // would wait for the client
			}
			t.Run(tt.name+" "+era, func(t *testing.T) {
				a := send(t, "POST", url+Path, modernCall("7", "tools/call", `"name":"`+tt.tool+`"`), append(headers, "Accept: "+tt.accept)...)
				kind := a.header.Get("Content-Type")
				if a.status != 200 || (kind == "text/event-stream") != tt.stream {
					t.Fatalf("%d %s %s", a.status, kind, a.body)
				}
				if got := strings.Count(a.body, "event: message\n"); got != tt.events {
					t.Errorf("got %d events, want %d: %s", got, tt.events, a.body)
				}
				if m := a.message(t); string(m.ID) != "7" || m.Result == nil {
					t.Errorf("last message %+v", m)
				}
			})
		}
	}
}

// TestLateError: an error after a notification is in the stream; before one it
// has a status.
func TestLateError(t *testing.T) {
	url := newFixture(t, nil).serve(t)
	for accept, status := range map[string]int{"application/json, text/event-stream": 200, "application/json": 400} {
		a := send(t, "POST", url+Path, modernCall("7", "tools/call", `"name":"late"`), modernHead, methodCall, "Mcp-Name: late", "Accept: "+accept)
		m := a.message(t)
		if a.status != status || string(m.ID) != "7" || m.Error == nil || m.Error.Code != -32602 || m.Error.Data["requestId"] == nil {
			t.Errorf("%s: got %d %s", accept, a.status, a.body)
		}
	}
}

// TestEventsAreSentAtOnce reads a notification while the call still runs.
func TestEventsAreSentAtOnce(t *testing.T) {
	fx := newFixture(t, nil)
	url := fx.serve(t)
	for era, headers := range map[string][]string{
		"modern": {modernHead, methodCall, "Mcp-Name: steps"},
		"legacy": {newSession(t, url, "2025-11-25")},
	} {
		t.Run(era, func(t *testing.T) {
			res := open(t, "POST", url+Path, modernCall("7", "tools/call", `"name":"steps"`), headers...)
			defer res.Body.Close()
			<-fx.enter
			lines := bufio.NewReader(res.Body)
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(line, "notifications/progress") {
					break
				}
			}
			fx.leave <- struct{}{}
			rest, err := io.ReadAll(lines)
			if err != nil || !strings.Contains(string(rest), "stepped") {
				t.Errorf("rest %q, %v", rest, err)
			}
		})
	}
}

// TestJSONOnlyCannotBeAsked: the server's own request fails at once.
func TestJSONOnlyCannotBeAsked(t *testing.T) {
	fx := newFixture(t, nil)
	url := fx.serve(t)
	session := newSession(t, url, "2025-11-25")
	a := send(t, "POST", url+Path, legacyRequest("7", "tools/call", `"name":"ask"`), session, "Accept: application/json")
	if err := <-fx.asked; err == nil {
		t.Error("the question was answered")
	}
	if a.status != 200 || !strings.Contains(a.body, "asked") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestDisconnectCancels: a modern client that goes away cancels its call.
func TestDisconnectCancels(t *testing.T) {
	fx := newFixture(t, nil)
	url := fx.serve(t)
	for _, accept := range []string{"application/json", "text/event-stream"} {
		t.Run(accept, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			r := newRequest(t, "POST", url+Path, modernCall("7", "tools/call", `"name":"block"`),
				modernHead, methodCall, "Mcp-Name: block", "Accept: "+accept).WithContext(ctx)
			failed := make(chan error, 1)
			go func() {
				res, err := http.DefaultClient.Do(r)
				if err == nil {
					_, err = io.ReadAll(res.Body)
					res.Body.Close()
				}
				failed <- err
			}()
			<-fx.enter
			cancel()
			select {
			case err := <-fx.left:
				if err == nil {
					t.Error("the call was not cancelled")
				}
			case <-time.After(5 * time.Second):
				t.Fatal("the call goes on")
			}
			if err := <-failed; !errors.Is(err, context.Canceled) {
				t.Errorf("client error %v", err)
			}
		})
	}
}
