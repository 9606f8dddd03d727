package front

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/protocol"
)

func TestDrain(t *testing.T) {
	fx := newFixture(t, nil)
	url := fx.serve(t)
	session := newSession(t, url, "2025-11-25")
	running := make(chan answer, 1)
	go func() {
		running <- send(t, "POST", url+Path, legacyRequest("7", "tools/call", `"name":"block"`), session)
	}()
	<-fx.enter
	fx.Drain()
	tests := []struct {
		name, method, body string
		headers            []string
		status             int
	}{
		{"modern call", "POST", modernCall("1", "tools/call", callEcho), []string{modernHead, methodCall, nameEcho}, 503},
		{"initialize", "POST", initializeBody("2025-11-25"), nil, 503},
		{"legacy call", "POST", legacyRequest("1", "tools/call", callEcho), []string{session}, 503},
		{"stream", "GET", "", []string{session, "Accept: text/event-stream"}, 503},
		{"response", "POST", `{"jsonrpc":"2.0","id":1,"result":{}}`, []string{session}, 202},
		{"notification", "POST", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`, []string{session}, 202},
	}
	for _, tt := range tests {
		a := send(t, tt.method, url+Path, tt.body, tt.headers...)
		if a.status != tt.status {
			t.Errorf("%s: got %d %s, want %d", tt.name, a.status, a.body, tt.status)
		}
		if a.status == 503 && (a.code() != -32006 || a.header.Get("Retry-After") == "") {
			t.Errorf("%s: got %v %s", tt.name, a.header, a.body)
		}
	}
	if a := send(t, "GET", url+"/ready", ""); a.status != 503 || !strings.Contains(a.body, "draining") {
		t.Errorf("ready: %d %s", a.status, a.body)
	}
	if a := send(t, "GET", url+"/health", ""); a.status != 200 {
		t.Errorf("health: %d %s", a.status, a.body)
	}
	fx.leave <- struct{}{}
	if a := <-running; a.status != 200 || !strings.Contains(a.body, "unblocked") {
		t.Errorf("running call: %d %s", a.status, a.body)
	}
}

// TestCloseEndsStreams: with a listen and a session's stream open, a server
// shuts down at once.
func TestCloseEndsStreams(t *testing.T) {
	fx := newFixture(t, nil)
	srv := httptest.NewServer(fx.Front)
	defer srv.Close()
	session := newSession(t, srv.URL, "2025-11-25")
	listen := open(t, "POST", srv.URL+Path, modernCall("7", "subscriptions/listen", bodyListen), modernHead, headListen)
	defer listen.Body.Close()
	stream := open(t, "GET", srv.URL+Path, "", session, "Accept: text/event-stream")
	defer stream.Body.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := fx.Close(ctx); err != nil {
		t.Fatalf("Close: %v", err)
	}
	if err := srv.Config.Shutdown(ctx); err != nil {
		t.Fatalf("Shutdown: %v", err)
	}
	if b, err := io.ReadAll(stream.Body); err != nil {
		t.Errorf("the session's stream did not end cleanly: %q, %v", b, err)
	}
	b, err := io.ReadAll(listen.Body)
	if err != nil {
		t.Fatal(err)
	}
	var end struct {
		ResultType string
		Meta       map[string]any `json:"_meta"`
	}
	m := answer{200, listen.Header, string(b)}.message(t)
	if err := json.Unmarshal(m.Result, &end); err != nil || string(m.ID) != "7" ||
		end.ResultType != "complete" || end.Meta[protocol.MetaSubscription] != 7.0 {
		t.Errorf("listen ended with %q, want its result", b)
	}
}

func TestCloseWaitsThenCancels(t *testing.T) {
	for _, era := range []string{"modern", "legacy"} {
		t.Run(era, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fx := newFixture(t, nil)
				headers := []string{modernHead, methodCall, "Mcp-Name: block"}
				if era == "legacy" {
					headers = []string{fx.sessionInBubble(t)}
				}
				r, cancel, done := fx.inBubble(t, "POST", modernCall("7", "tools/call", `"name":"block"`), append(headers, "Accept: application/json")...)
				defer cancel()
				<-fx.enter
				ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
				defer stop()
				start := time.Now()
				if err := fx.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Close: %v", err)
				}
				if took := time.Since(start); took != 5*time.Second {
					t.Errorf("Close took %s", took)
				}
				if err := <-fx.left; err == nil {
					t.Error("the call was not cancelled")
				}
				<-done
				if status, body := r.read(); status != 503 || !strings.Contains(body, "-32006") {
					t.Errorf("got %d %s", status, body)
				}
				synctest.Wait()
				if n := len(slices.Collect(fx.server.Sessions())); n != 0 {
					t.Errorf("%d sessions in the SDK", n)
				}
			})
		})
	}
}

func TestCloseWaitsForCalls(t *testing.T) {
	fx := newFixture(t, nil)
	url := fx.serve(t)
	answered := make(chan answer, 1)
	go func() {
		answered <- send(t, "POST", url+Path, modernCall("7", "tools/call", `"name":"block"`), modernHead, methodCall, "Mcp-Name: block")
	}()
	<-fx.enter
	closed := make(chan error, 1)
	go func() { closed <- fx.Close(t.Context()) }()
	fx.leave <- struct{}{}
	if a := <-answered; a.status != 200 {
		t.Errorf("got %d %s", a.status, a.body)
	}
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
}

// TestNoLeaks opens and abandons everything that can be, and wants every
// goroutine gone after Close.
func TestNoLeaks(t *testing.T) {
	before := runtime.NumGoroutine()
	fx := newFixture(t, nil)
	srv := httptest.NewServer(fx.Front)
	client := &http.Client{Transport: &http.Transport{}}
	do := func(method, body string, headers ...string) {
		ctx, cancel := context.WithCancel(t.Context())
		res, err := client.Do(newRequest(t, method, srv.URL+Path, body, headers...).WithContext(ctx))
		if err == nil {
			defer res.Body.Close()
		}
		cancel()
	}
	for range 20 {
		do("POST", initializeBody("2025-11-25"))
		session := newSession(t, srv.URL, "2025-03-26")
		do("GET", "", session, "Accept: text/event-stream")
		do("POST", legacyRequest("1", "tools/call", `"name":"progress"`), session)
		do("POST", "["+legacyRequest("2", "tools/call", callEcho)+"]", session)
		do("POST", modernCall("1", "subscriptions/listen", bodyListen), modernHead, headListen)
		do("POST", modernCall("1", "tools/call", callEcho), modernHead, methodCall, nameEcho)
		do("POST", modernCall("1", "server/discover", ""), modernHead, "Mcp-Method: server/discover")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := fx.Close(ctx); err != nil {
		t.Fatal(err)
	}
	client.CloseIdleConnections()
	http.DefaultClient.CloseIdleConnections()
	srv.Close()
	for ctx.Err() == nil && (runtime.NumGoroutine() > before || len(slices.Collect(fx.server.Sessions())) > 0) {
		<-time.After(5 * time.Millisecond) // what ends, ends on its own
	}
	if n := runtime.NumGoroutine(); n > before {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before:\n%s", n, before, buf[:runtime.Stack(buf, true)])
	}
	if n := len(slices.Collect(fx.server.Sessions())); n != 0 {
		t.Errorf("%d sessions in the SDK", n)
	}
}

// TestClient lets the SDK's own client use both eras on one URL, with list
// changes.
func TestClient(t *testing.T) {
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			fx := newFixture(t, nil)
			url := fx.serve(t)
			changed := make(chan struct{}, 8)
			client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
				ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
			})
			cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url + Path},
				&mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			if got := cs.InitializeResult().ProtocolVersion; got != version {
				t.Errorf("negotiated %s", got)
			}
			tools, err := cs.ListTools(t.Context(), nil)
			if err != nil || len(tools.Tools) == 0 {
				t.Fatalf("tools %v, %v", tools, err)
			}
			res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "progress", Meta: mcp.Meta{"progressToken": "p"}})
			if err != nil || res.IsError {
				t.Fatalf("call %+v, %v", res, err)
			}
			if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "nope"}); err == nil {
				t.Error("an unknown tool was called")
			}
			// The client opens its stream in the background; a change before
			// that reaches nobody.
			for heard := false; !heard; {
				fx.server.RemoveTools("fail")
				fx.server.AddTool(&mcp.Tool{Name: "fail", InputSchema: map[string]any{"type": "object"}}, nil)
				select {
				case <-changed:
					heard = true
				case <-time.After(50 * time.Millisecond):
				case <-t.Context().Done():
					t.Fatal("no list change")
				}
			}
			if err := cs.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
}
