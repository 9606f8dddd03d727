package front

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSessionVersions(t *testing.T) {
	url := newFixture(t, nil).serve(t)
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			a := send(t, "POST", url+Path, initializeBody(version))
			var r struct{ ProtocolVersion string }
			if err := json.Unmarshal(a.message(t).Result, &r); err != nil || r.ProtocolVersion != version {
				t.Errorf("negotiated %q, %v", r.ProtocolVersion, err)
			}
		})
	}
}

// TestTwoSessions: two initializes are two sessions; DELETE ends one of them.
func TestTwoSessions(t *testing.T) {
	fx := newFixture(t, nil)
	url := fx.serve(t)
	one, two := newSession(t, url, "2025-11-25"), newSession(t, url, "2025-11-25")
	if one == two {
		t.Fatal("one session")
	}
	if a := send(t, "DELETE", url+Path, "", one); a.status != 204 {
		t.Fatalf("DELETE: %d %s", a.status, a.body)
	}
	ping := legacyRequest("7", "ping", "")
	if a := send(t, "POST", url+Path, ping, one); a.status != 404 || a.code() != -32001 {
		t.Errorf("after DELETE: %d %s", a.status, a.body)
	}
	if a := send(t, "DELETE", url+Path, "", one); a.status != 404 {
		t.Errorf("second DELETE: %d %s", a.status, a.body)
	}
	if a := send(t, "POST", url+Path, ping, two); a.status != 200 {
		t.Errorf("the other session: %d %s", a.status, a.body)
	}
}

func TestDeleteEndsRunningCallAndStream(t *testing.T) {
	fx := newFixture(t, nil)
	url := fx.serve(t)
	session := newSession(t, url, "2025-11-25")
	stream := open(t, "GET", url+Path, "", session, "Accept: text/event-stream")
	defer stream.Body.Close()
	answered := make(chan answer, 1)
	go func() {
		answered <- send(t, "POST", url+Path, legacyRequest("7", "tools/call", `"name":"block"`), session)
	}()
	<-fx.enter
	if a := send(t, "DELETE", url+Path, "", session); a.status != 204 {
		t.Fatalf("DELETE: %d %s", a.status, a.body)
	}
	if err := <-fx.left; err == nil {
		t.Error("the call was not cancelled")
	}
	if a := <-answered; strings.Contains(a.body, "unblocked") {
		t.Errorf("got %s", a.body)
	}
	if _, err := io.ReadAll(stream.Body); err != nil {
		t.Errorf("stream: %v", err)
	}
}

func TestSecondStreamIsRefused(t *testing.T) {
	url := newFixture(t, nil).serve(t)
	session := newSession(t, url, "2025-11-25")
	res := open(t, "GET", url+Path, "", session, "Accept: text/event-stream")
	defer res.Body.Close()
	if a := send(t, "GET", url+Path, "", session, "Accept: text/event-stream"); a.status != 409 || a.code() != -32007 {
		t.Errorf("got %d %s", a.status, a.body)
	}
}

func TestSessionLimit(t *testing.T) {
	fx := newFixture(t, func(c *Config) { c.MaxSessions = 2 })
	url := fx.serve(t)
	one := newSession(t, url, "2025-11-25")
	newSession(t, url, "2025-11-25")
	a := send(t, "POST", url+Path, initializeBody("2025-11-25"))
	if a.status != 503 || a.code() != -32006 || a.header.Get("Retry-After") == "" || a.header.Get("Mcp-Session-Id") != "" {
		t.Fatalf("third: %d %v %s", a.status, a.header, a.body)
	}
	send(t, "DELETE", url+Path, "", one)
	newSession(t, url, "2025-11-25")
}

// TestFailedInitialize leaves no session behind, here or in the SDK.
func TestFailedInitialize(t *testing.T) {
	fx := newFixture(t, nil)
	url := fx.serve(t)
	a := send(t, "POST", url+Path, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":5}}`)
	if m := a.message(t); m.Error == nil || a.header.Get("Mcp-Session-Id") != "" {
		t.Errorf("got %d %v %s", a.status, a.header, a.body)
	}
	if n := fx.sessions.count(); n != 0 {
		t.Errorf("%d sessions", n)
	}
	if n := len(slices.Collect(fx.server.Sessions())) - 1; n != 0 /* besides the engine's */ {
		t.Errorf("%d sessions in the SDK", n)
	}
}

func TestSessionIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := newFixture(t, func(c *Config) { c.SessionIdle = time.Minute })
		session := fx.sessionInBubble(t)
		ping := func() int {
			r, cancel, done := fx.inBubble(t, "POST", legacyRequest("7", "ping", ""), session)
			defer cancel()
			<-done
			status, _ := r.read()
			return status
		}
		for range 3 { // use keeps it alive
			time.Sleep(50 * time.Second)
			if got := ping(); got != 200 {
				t.Fatalf("in use: %d", got)
			}
		}
		// So does an open stream.
		_, cancel, done := fx.inBubble(t, "GET", "", session, "Accept: text/event-stream")
		time.Sleep(10 * time.Minute)
		if got := ping(); got != 200 {
			t.Fatalf("with a stream: %d", got)
		}
		cancel()
		<-done
		time.Sleep(61 * time.Second)
		if got := ping(); got != 404 {
			t.Errorf("idle: %d", got)
		}
		synctest.Wait()
		if n := len(slices.Collect(fx.server.Sessions())) - 1; n != 0 /* besides the engine's */ {
			t.Errorf("%d sessions in the SDK", n)
		}
	})
}

func TestDuplicateID(t *testing.T) {
	fx := newFixture(t, nil)
	url := fx.serve(t)
	session := newSession(t, url, "2025-11-25")
	for _, id := range []string{"7", "12345678901234567890"} {
		t.Run(id, func(t *testing.T) {
			first := make(chan answer, 1)
			go func() { first <- send(t, "POST", url+Path, legacyRequest(id, "tools/call", `"name":"block"`), session) }()
			<-fx.enter
			a := send(t, "POST", url+Path, legacyRequest(id, "tools/call", callEcho), session)
			if a.status != 400 || a.code() != -32600 || string(a.message(t).ID) != id {
				t.Errorf("second: %d %s", a.status, a.body)
			}
			// The same id on another session is another call.
			if a := send(t, "POST", url+Path, legacyRequest(id, "tools/call", callEcho), newSession(t, url, "2025-11-25")); a.status != 200 {
				t.Errorf("other session: %d %s", a.status, a.body)
			}
			fx.leave <- struct{}{}
			if a := <-first; a.status != 200 || !strings.Contains(a.body, "unblocked") {
				t.Errorf("first: %d %s", a.status, a.body)
			}
			if err := <-fx.left; err != nil {
				t.Errorf("the first call: %v", err)
			}
			if a := send(t, "POST", url+Path, legacyRequest(id, "tools/call", callEcho), session); a.status != 200 {
				t.Errorf("again: %d %s", a.status, a.body)
			}
		})
	}
}

// TestCancelled: no answer follows notifications/cancelled.
func TestCancelled(t *testing.T) {
	fx := newFixture(t, nil)
	url := fx.serve(t)
	session := newSession(t, url, "2025-11-25")
	for _, id := range []string{"7", "12345678901234567890", `"ü"`} {
		for _, accept := range []string{"application/json, text/event-stream", "application/json"} {
			t.Run(id+" "+accept, func(t *testing.T) {
				answered := make(chan answer, 1)
				go func() {
					answered <- send(t, "POST", url+Path, legacyRequest(id, "tools/call", `"name":"block"`), session, "Accept: "+accept)
				}()
				<-fx.enter
				a := send(t, "POST", url+Path, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`, session)
				if a.status != 202 {
					t.Fatalf("cancel: %d %s", a.status, a.body)
				}
				if err := <-fx.left; err == nil {
					t.Error("the handler was not cancelled")
				}
				got := <-answered
				if accept == "application/json" { // HTTP needs some body here
					if got.status != 200 || got.code() != -32000 {
						t.Errorf("got %d %s", got.status, got.body)
					}
				} else if got.status != 200 || got.body != "" {
					t.Errorf("got %d %q, want nothing", got.status, got.body)
				}
			})
		}
	}
}

func TestBatch(t *testing.T) {
	fx := newFixture(t, nil)
	url := fx.serve(t)
	session := newSession(t, url, "2025-03-26")
	other := newSession(t, url, "2025-06-18")
	call := func(id string) string { return legacyRequest(id, "tools/call", callEcho) }
	const note = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	tests := []struct {
		name   string
		body   string
		accept string
		status int
		want   map[string]int64 // code by id
	}{
		{"calls", "[" + call("1") + "," + call(`"2"`) + "," + note + "]", "", 200, map[string]int64{"1": 0, `"2"`: 0}},
		{"JSON", "[" + call("1") + "]", "application/json", 200, map[string]int64{"1": 0}},
		{"stream", "[" + call("1") + "]", "text/event-stream", 200, map[string]int64{"1": 0}},
		{"notifications", "[" + note + "," + note + "]", "", 202, nil},
		{"faults", `[1,` + call("1") + `,{"jsonrpc":"2.0","id":2},` + legacyRequest("3", "foo", "") + "]", "", 200, map[string]int64{"": -32600, "1": 0, "2": -32600, "3": -32601}},
		{"initialize", "[" + call("9") + "," + initializeBody("2025-03-26") + "]", "", 200, map[string]int64{"9": 0, "1": -32600}},
		{"progress is dropped", "[" + legacyRequest("1", "tools/call", `"name":"progress"`) + "]", "", 200, map[string]int64{"1": 0}},
		{"questions fail", "[" + legacyRequest("1", "tools/call", `"name":"ask"`) + "]", "", 200, map[string]int64{"1": 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			headers := []string{session}
			if tt.accept != "" {
				headers = append(headers, "Accept: "+tt.accept)
			}
			a := send(t, "POST", url+Path, tt.body, headers...)
			if a.status != tt.status {
				t.Fatalf("got %d %s", a.status, a.body)
			}
			if tt.want == nil {
				if a.body != "" {
					t.Errorf("body %q", a.body)
				}
				return
			}
			body := []byte(a.body)
			if tt.accept == "text/event-stream" {
				body = eventData(body)
			}
			var answers []rpc
			if err := json.Unmarshal(body, &answers); err != nil {
				t.Fatalf("%q: %v", a.body, err)
			}
			got := map[string]int64{}
			for _, m := range answers {
				got[string(m.ID)] = 0
				if m.Error != nil {
					got[string(m.ID)] = m.Error.Code
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("codes by id (-want +got):\n%s", diff)
			}
		})
	}
	for name, tt := range map[string]struct{ body, session string }{
		"empty":         {"[]", session},
		"too many":      {"[" + strings.Repeat("1,", maxBatch) + "1]", session},
		"not batchable": {"[" + call("1") + "]", other},
	} {
		if a := send(t, "POST", url+Path, tt.body, tt.session); a.status != 400 || a.code() != -32600 {
			t.Errorf("%s: got %d %s", name, a.status, a.body)
		}
	}
}

func TestSurvives(t *testing.T) {
	for id, want := range map[string]bool{
		"1": true, "-1": true, "999999999999999": true, "9999999999999999": false, "-0": false,
		`"a b"`: true, `"ü"`: false, `"\n"`: false, `"<"`: false, `""`: true,
	} {
		if got := survives(json.RawMessage(id)); got != want {
			t.Errorf("survives(%s) = %v", id, got)
		}
	}
}
