package front

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/limits"
	"github.com/famcp/famcp/internal/runtime/protocol"
)

func limited(cfg limits.Config) func(*Config) {
	return func(c *Config) { c.Limits = limits.New(cfg) }
}

// checkTooMany checks a refusal of contract §6 and returns its reason.
func checkTooMany(t *testing.T, a answer, id string) (reason any) {
	t.Helper()
	m := a.message(t)
	if a.status != http.StatusTooManyRequests || m.Error == nil || m.Error.Code != -32003 || string(m.ID) != id {
		t.Fatalf("got %d %s, want 429 with -32003 for the id %s", a.status, a.body, id)
	}
	after, err := strconv.Atoi(a.header.Get("Retry-After"))
	if err != nil || after < 1 || float64(after) != m.Error.Data["retryAfter"] {
		t.Errorf("Retry-After %q, data %v", a.header.Get("Retry-After"), m.Error.Data)
	}
	if m.Error.Data["requestId"] != a.header.Get("X-Request-Id") {
		t.Errorf("requestId %v, header %q", m.Error.Data["requestId"], a.header.Get("X-Request-Id"))
	}
	return m.Error.Data["reason"]
}

func TestRateLimit(t *testing.T) {
	url := newFixture(t, limited(limits.Config{MaxRequests: 3, Window: time.Hour})).serve(t)
	session := newSession(t, url, "2025-11-25") // the first request
	ping := legacyRequest(`"p"`, "ping", "")
	// Neither notifications nor answers to questions count.
	for range 10 {
		if a := send(t, "POST", url+Path, `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, session); a.status != 202 {
			t.Fatalf("notification: %d %s", a.status, a.body)
		}
		if a := send(t, "POST", url+Path, `{"jsonrpc":"2.0","id":77,"result":{}}`, session); a.status != 202 {
			t.Fatalf("answer: %d %s", a.status, a.body)
		}
	}
	if a := send(t, "POST", url+Path, ping, session); a.status != 200 {
		t.Fatalf("second request: %d %s", a.status, a.body)
	}
	// What is refused before authorization does not count either.
	if a := send(t, "POST", url+Path, modernCall("1", "ping", ""), modernHead, "Mcp-Method: ping"); a.status != 404 {
		t.Fatalf("unknown method: %d %s", a.status, a.body)
	}
	if a := send(t, "POST", url+Path, modernCall("1", "tools/list", ""), modernHead, "Mcp-Method: tools/list"); a.status != 200 {
		t.Fatalf("third request, modern: %d %s", a.status, a.body)
	}
	for range 3 {
		if got := checkTooMany(t, send(t, "POST", url+Path, ping, session), `"p"`); got != "mcp.rateLimit.maxRequests" {
			t.Errorf("reason %v", got)
		}
		checkTooMany(t, send(t, "POST", url+Path, modernCall("9", "tools/list", ""), modernHead, "Mcp-Method: tools/list"), "9")
		checkTooMany(t, send(t, "POST", url+Path, initializeBody("2025-11-25")), "1")
	}
	// The session lives: it takes notifications and its owner can end it.
	if a := send(t, "POST", url+Path, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session); a.status != 202 {
		t.Errorf("notification afterwards: %d %s", a.status, a.body)
	}
	if a := send(t, "DELETE", url+Path, "", session); a.status != 204 {
		t.Errorf("DELETE afterwards: %d %s", a.status, a.body)
	}
}

// TestRateLimitCountsElements: a batch is no way around the limit.
func TestRateLimitCountsElements(t *testing.T) {
	url := newFixture(t, limited(limits.Config{MaxRequests: 3, Window: time.Hour})).serve(t)
	session := newSession(t, url, "2025-03-26")
	var elements []string
	for i := range 5 {
		elements = append(elements, legacyRequest(strconv.Itoa(i), "ping", ""))
	}
	elements = append(elements, `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	a := send(t, "POST", url+Path, "["+strings.Join(elements, ",")+"]", session)
	var answers []rpc
	if err := json.Unmarshal([]byte(a.body), &answers); err != nil || a.status != 200 || len(answers) != 5 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After, although elements were refused")
	}
	refused := 0
	for _, m := range answers {
		if m.Error != nil && m.Error.Code == -32003 && m.Error.Data["retryAfter"] != nil {
			refused++
		}
	}
	if refused != 3 {
		t.Errorf("%d refused, want 3: %s", refused, a.body)
	}
}

// TestRateLimitComesAfterAuthorization: who is refused by it uses nobody's share,
// and what counts is the subject it found.
func TestRateLimitComesAfterAuthorization(t *testing.T) {
	url := newFixture(t, func(c *Config) {
		c.Limits = limits.New(limits.Config{MaxRequests: 1, Window: time.Hour})
		c.Authorize = func(_ context.Context, r *http.Request, f *call.Facts, _ *protocol.Message) *Refusal {
			if f.Subject = r.Header.Get("X-Subject"); f.Subject == "" {
				return &Refusal{Status: 401, Code: protocol.CodeServer, Message: "who are you"}
			}
			return nil
		}
	}).serve(t)
	list := func(subject string) answer {
		return send(t, "POST", url+Path, modernCall("1", "tools/list", ""), modernHead, "Mcp-Method: tools/list", "X-Subject: "+subject)
	}
	for range 5 {
		if a := list(""); a.status != 401 {
			t.Fatalf("nobody: %d %s", a.status, a.body)
		}
	}
	for _, subject := range []string{"ann", "bob"} {
		if a := list(subject); a.status != 200 {
			t.Errorf("%s: %d %s", subject, a.status, a.body)
		}
		checkTooMany(t, list(subject), "1")
	}
}

// ended waits for the end of a "block" and returns why it ended.
func (fx *fixture) ended() error { return <-fx.left }

// call calls a tool in the current bubble.
func (fx *fixture) call(t *testing.T, session, tool, id string) (r *recorder, cancel func(), done chan struct{}) {
	t.Helper()
	params := `"name":"` + tool + `"`
	if session == "" {
		return fx.inBubble(t, "POST", modernCall(id, "tools/call", params), modernHead, methodCall, "Mcp-Name: "+tool)
	}
	return fx.inBubble(t, "POST", legacyRequest(id, "tools/call", params), session)
}

// status is the HTTP status of a call that ends at once.
func (fx *fixture) status(t *testing.T, session, tool, id string) int {
	t.Helper()
	r, cancel, done := fx.call(t, session, tool, id)
	defer cancel()
	<-done
	status, _ := r.read()
	return status
}

// TestCallSlots: one call may run; however it ends, its slot is free then.
func TestCallSlots(t *testing.T) {
	tests := []struct {
		name, tool string
		end        func(fx *fixture, cancel func()) // of a call that runs
	}{
		{"returns", "block", func(fx *fixture, _ func()) { fx.leave <- struct{}{}; _ = fx.ended() }},
		{"is given up", "block", func(fx *fixture, cancel func()) {
			cancel()
			synctest.Wait()
			select {
			case fx.leave <- struct{}{}: // a legacy call goes on
			default:
			}
			_ = fx.ended()
		}},
		{"fails", "fail", nil},
		{"is unknown", "nothing", nil},
	}
	for _, tt := range tests {
		for _, era := range []string{"modern", "legacy"} {
			t.Run(era+" call "+tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					fx := newFixture(t, limited(limits.Config{MaxCalls: 1}))
					session := ""
					if era == "legacy" {
						session = fx.sessionInBubble(t)
					}
					_, cancel, done := fx.call(t, session, tt.tool, "7")
					defer cancel()
					if tt.end != nil {
						<-fx.enter
						if got := fx.status(t, session, "echo", "8"); got != 429 {
							t.Errorf("a second call: status %d, want 429", got)
						}
						tt.end(fx, cancel)
					}
					<-done
					synctest.Wait()
					if got := fx.status(t, session, "echo", "8"); got != 200 {
						t.Errorf("after its end: status %d, want 200", got)
					}
					_ = fx.Close(t.Context())
				})
			})
		}
	}
}

// TestLegacyCallKeepsItsSlot: a call that outlives its client still counts,
// until the client cancels it or it ends.
func TestLegacyCallKeepsItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := newFixture(t, limited(limits.Config{MaxCalls: 1}))
		session := fx.sessionInBubble(t)
		_, cancel, done := fx.call(t, session, "block", "7")
		<-fx.enter
		cancel()
		<-done
		if got := fx.status(t, session, "echo", "8"); got != 429 {
			t.Errorf("while it runs: status %d, want 429", got)
		}
		_, cancel, done = fx.inBubble(t, "POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, session)
		defer cancel()
		<-done
		_ = fx.ended()
		synctest.Wait()
		if got := fx.status(t, session, "echo", "8"); got != 200 {
			t.Errorf("after its end: status %d, want 200", got)
		}
		_ = fx.Close(t.Context())
	})
}

// TestDuplicateGivesItsSlotBack: what never runs holds nothing.
func TestDuplicateGivesItsSlotBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := newFixture(t, limited(limits.Config{MaxCalls: 2}))
		session := fx.sessionInBubble(t)
		_, cancel, done := fx.call(t, session, "block", "7")
		defer cancel()
		<-fx.enter
		for range 5 {
			if got := fx.status(t, session, "echo", "7"); got != 400 {
				t.Errorf("duplicate: status %d, want 400", got)
			}
		}
		if got := fx.status(t, session, "echo", "8"); got != 200 {
			t.Errorf("another: status %d, want 200", got)
		}
		fx.leave <- struct{}{}
		_ = fx.ended()
		<-done
		_ = fx.Close(t.Context())
	})
}

// TestOnlyCallsNeedSlots: a client whose calls are all running can still list,
// and find out that the server is alive.
func TestOnlyCallsNeedSlots(t *testing.T) {
	fx := newFixture(t, limited(limits.Config{MaxCalls: 1}))
	url := fx.serve(t)
	session := newSession(t, url, "2025-11-25")
	answered := make(chan answer, 1)
	go func() {
		answered <- send(t, "POST", url+Path, legacyRequest("7", "tools/call", `"name":"block"`), session)
	}()
	<-fx.enter
	for method, params := range map[string]string{"tools/call": `"name":"echo"`, "prompts/get": `"name":"hello"`, "resources/read": `"uri":"test:///ü"`} {
		if got := checkTooMany(t, send(t, "POST", url+Path, legacyRequest("8", method, params), session), "8"); got != "mcp.rateLimit.maxConcurrentPerSubject" {
			t.Errorf("%s: reason %v", method, got)
		}
	}
	for _, method := range []string{"ping", "tools/list", "prompts/list", "resources/list"} {
		if a := send(t, "POST", url+Path, legacyRequest("8", method, ""), session); a.status != 200 || a.code() != 0 {
			t.Errorf("%s: %d %s", method, a.status, a.body)
		}
	}
	fx.leave <- struct{}{}
	_ = fx.ended()
	<-answered
}

func TestStreamLimit(t *testing.T) {
	fx := newFixture(t, limited(limits.Config{MaxStreams: 2, MaxCalls: 1}))
	url := fx.serve(t)
	session, other := newSession(t, url, "2025-11-25"), newSession(t, url, "2025-11-25")
	stream := open(t, "GET", url+Path, "", session, "Accept: text/event-stream")
	defer stream.Body.Close()
	listen := func(id string) (body string, headers []string) {
		return modernCall(id, "subscriptions/listen", `"notifications":{"toolsListChanged":true}`),
			[]string{modernHead, "Mcp-Method: subscriptions/listen"}
	}
	body, headers := listen("1")
	subscription := open(t, "POST", url+Path, body, headers...)
	if subscription.StatusCode != 200 {
		t.Fatalf("subscription: %d", subscription.StatusCode)
	}
	const reason = "mcp.streams.maxPerSubject"
	body, headers = listen("2")
	if got := checkTooMany(t, send(t, "POST", url+Path, body, headers...), "2"); got != reason {
		t.Errorf("reason %v", got)
	}
	if got := checkTooMany(t, send(t, "GET", url+Path, "", other, "Accept: text/event-stream"), ""); got != reason {
		t.Errorf("reason %v", got)
	}
	if a := send(t, "POST", url+Path, legacyRequest("9", "tools/call", `"name":"echo"`), session); a.status != 200 {
		t.Errorf("streams hold a call's slot: %d %s", a.status, a.body)
	}
	_ = subscription.Body.Close()
	for deadline := time.Now().Add(5 * time.Second); ; {
		res := open(t, "GET", url+Path, "", other, "Accept: text/event-stream")
		_ = res.Body.Close()
		if res.StatusCode == 200 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("a place is not free after the end of a stream: %d", res.StatusCode)
		}
	}
}

// TestAddressBehindProxies: the subject is the right-most hop that is no
// trusted proxy, and each has a share of its own.
func TestAddressBehindProxies(t *testing.T) {
	fx := newFixture(t, func(c *Config) {
		var err error
		if c.Proxies, err = limits.NewProxies(true, nil); err != nil {
			t.Fatal(err)
		}
		c.Limits = limits.New(limits.Config{MaxRequests: 1, Window: time.Hour})
	})
	url := fx.serve(t)
	facts := func(headers ...string) answer {
		headers = append(headers, modernHead, "Mcp-Method: tools/call", "Mcp-Name: facts")
		return send(t, "POST", url+Path, modernCall("1", "tools/call", `"name":"facts"`), headers...)
	}
	for i, chain := range []string{"203.0.113.%d", "1.2.3.4, 203.0.113.%d", "127.0.0.1, 203.0.113.%d, 10.0.0.1"} {
		want := fmt.Sprintf("203.0.113.%d", i)
		header := "X-Forwarded-For: " + fmt.Sprintf(chain, i)
		if a := facts(header); a.status != 200 {
			t.Fatalf("%s: %d %s", header, a.status, a.body)
		}
		if f := <-fx.facts; f.Subject != want || f.Address.String() != want {
			t.Errorf("%s: subject %q, address %s, want %s", header, f.Subject, f.Address, want)
		}
		checkTooMany(t, facts("X-Forwarded-For: 9.9.9.9, "+want), "1")
	}
}
