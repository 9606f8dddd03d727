package famcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/famcp/famcp"
)

// TestContractPayload: the cap however a body comes (P20), and JSON however
// deep it is nested.
func TestContractPayload(t *testing.T) {
	url := newContract(t, nil)
	const capBytes = 1 << 20
	call := func(text string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + modernMeta + `,"name":"debug_content","arguments":{"kind":` + text + `}}}`
	}
	pad := func(size int) string { return call(`"` + strings.Repeat("x", size-len(call(`""`))) + `"`) }
	deep := func(n int) string { return call(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	headers := []string{headModern, "Mcp-Method: tools/call", "Mcp-Name: debug_content"}
	for _, tt := range []struct {
		row, body string
		chunk     int // 0 is declared
		status    int
		code      int64
	}{
		{"at the cap", pad(capBytes), 0, 200, 0},
		{"over it, declared", pad(capBytes + 1), 0, 413, -32005},
		{"over it, chunked", pad(capBytes + 1), 64 << 10, 413, -32005},
		{"P20: 5 MB", pad(5_000_000), 0, 413, -32005},
		{"5 MB, chunked", pad(5_000_000), 64 << 10, 413, -32005},
		{"small, in chunks of a byte", pad(4000), 1, 200, 0},
		{"nested 1000 deep", deep(1000), 0, 200, 0},
		{"nested 9000 deep", deep(9000), 0, 200, 0},
		{"nested 400 000 deep", deep(400_000), 0, 400, -32700},
		{"open 900 000 deep", strings.Repeat("[", 900_000), 0, 400, -32700},
		{"open objects", strings.Repeat(`{"a":`, 200_000), 0, 400, -32700},
	} {
		t.Run(tt.row, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			if tt.chunk > 0 {
				r.Body, r.ContentLength = io.NopCloser(&chunks{tt.body, tt.chunk}), -1
			}
			for _, h := range append(headers, "Content-Type: application/json") {
				name, value, _ := strings.Cut(h, ": ")
				r.Header.Set(name, value)
			}
			a := send(t, r)
			if a.Status != tt.status || a.Error.Code != tt.code || tt.code == 0 && !a.Result.IsError { // no kind of that name
				t.Errorf("got %d %.300s", a.Status, a.Body)
			}
			if a.Status == http.StatusRequestEntityTooLarge && string(a.ID) != "7" {
				t.Errorf("id %s", a.ID)
			}
		})
	}
}

// chunks is read in pieces of n bytes.
type chunks struct {
	left string
	n    int
}

func (c *chunks) Read(b []byte) (int, error) {
	if c.left == "" {
		return 0, io.EOF
	}
	n := copy(b[:min(c.n, len(b))], c.left)
	c.left = c.left[n:]
	return n, nil
}

// TestContractResults: cut to what is valid and says so; structured content
// goes, images are whole or gone.
func TestContractResults(t *testing.T) {
	const most = 4096
	url := newContract(t, func(c *famcp.Config) { c.MCP.Limits.MaxToolResultBytes = most }, func(s *famcp.Server) {
		famcp.AddTool(s, reader("umlauts"), func(context.Context, *famcp.Call, nothing) (string, error) {
			return strings.Repeat("ü€😀\x00\"", 5000), nil
		})
		famcp.AddTool(s, reader("values"), func(context.Context, *famcp.Call, nothing) ([]string, error) { return make([]string, 5000), nil })
		famcp.AddTool(s, reader("pictures"), func(context.Context, *famcp.Call, nothing) ([]famcp.Content, error) {
			return []famcp.Content{famcp.Image("image/png", make([]byte, 1000)), famcp.Text("between"), famcp.Image("image/png", make([]byte, 5000))}, nil
		})
	})
	s := open(t, url, "2025-11-25")
	for tool, images := range map[string]int{"umlauts": 0, "values": 0, "pictures": 1} {
		for era, a := range map[string]*reply{"modern": callModern(t, url, tool, `{}`), "legacy": s.call(t, tool, `{}`)} {
			found := 0
			for _, c := range a.Result.Content {
				if c.Type == "image" {
					found++
				}
			}
			if a.Status != 200 || len(a.Body) > most+512 || !utf8.ValidString(a.Body) || !strings.Contains(a.text(), "[truncated: the result had") ||
				a.Result.StructuredContent != nil || found != images || a.Result.IsError {
				t.Errorf("%s, %s: %d, %d bytes, %d images: %.200s", tool, era, a.Status, len(a.Body), found, a.Body)
			}
		}
	}
}

// TestContractSlots: each way out of a call gives its slot back: a result, a
// failure, a panic, a timeout, a question, a client that goes away.
func TestContractSlots(t *testing.T) {
	url := newContract(t, func(c *famcp.Config) {
		c.MCP.RateLimit.MaxConcurrentPerSubject, c.MCP.Limits.ToolTimeout = 1, 200*time.Millisecond
	})
	s := open(t, url, "2025-11-25")
	ways := map[string]func(){
		"a result":    func() { callModern(t, url, "debug_content", `{"kind":"text"}`) },
		"a failure":   func() { callModern(t, url, "debug_error", `{"kind":"failed"}`) },
		"a panic":     func() { callModern(t, url, "debug_error", `{"kind":"panic"}`) },
		"bad input":   func() { callModern(t, url, "debug_error", `{"kind":7}`) },
		"a timeout":   func() { callModern(t, url, "debug_error", `{"kind":"timeout"}`) },
		"no question": func() { callModern(t, url, "debug_ask", `{"kind":"all"}`) },
		"no tool":     func() { callModern(t, url, "nobody", `{}`) },
		"no prompt":   func() { modern(t, url, "prompts/get", `,"name":"nobody"`, "") },
		"a session":   func() { s.call(t, "debug_error", `{"kind":"panic"}`) },
		"going away": func() {
			conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp"))
			if err != nil {
				t.Fatal(err)
			}
			body := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + modernMeta + `,"name":"debug_slow","arguments":{"delayMs":60000}}}`
			_, _ = fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n"+
				"Mcp-Method: tools/call\r\nMcp-Name: debug_slow\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			_ = conn.Close()
		},
	}
	for way, leave := range ways {
		for range 3 {
			leave()
			deadline := time.Now().Add(5 * time.Second)
			a := callModern(t, url, "debug_content", `{"kind":"text"}`)
			for way == "going away" && a.Status == http.StatusTooManyRequests && time.Now().Before(deadline) {
				a = callModern(t, url, "debug_content", `{"kind":"text"}`) // the server notices within a second
			}
			if a.Status != http.StatusOK {
				t.Errorf("after %s: %d %s", way, a.Status, a.Body)
			}
		}
	}
}

// TestContractCaps of requests, calls, streams and sessions, refused with the
// key that says how many there may be.
func TestContractCaps(t *testing.T) {
	url := newContract(t, func(c *famcp.Config) {
		c.MCP.RateLimit.MaxRequests = 40
		c.MCP.RateLimit.MaxConcurrentPerSubject, c.MCP.Streams.MaxPerSubject, c.MCP.Sessions.Max = 2, 2, 3
	})
	refused := func(a *reply, status int, key string) {
		t.Helper()
		if a.Status != status || a.Error.Data["reason"] != key || a.Header.Get("Retry-After") == "" || a.Error.Data["retryAfter"] == nil {
			t.Errorf("%s: got %d %v %s", key, a.Status, a.Header, a.Body)
		}
	}
	s := open(t, url, "2025-11-25")
	open(t, url, "2025-11-25")
	open(t, url, "2025-11-25")
	refused(do(t, http.MethodPost, url, initializeBody("2025-11-25", "")), http.StatusServiceUnavailable, "mcp.sessions.max")

	listen := func() *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{`+modernMeta+`,"notifications":{"toolsListChanged":true}}}`))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen",
		} {
			r.Header.Set(name, value)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	var streams []*http.Response
	for range 2 {
		res := listen()
		defer res.Body.Close()
		if line, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil || !strings.HasPrefix(line, "data:") && !strings.HasPrefix(line, "event:") {
			t.Fatalf("a stream begins with %q: %v", line, err)
		}
		streams = append(streams, res)
	}
	refused(modern(t, url, "subscriptions/listen", `,"notifications":{"toolsListChanged":true}`, "", "Accept: text/event-stream"), http.StatusTooManyRequests, "mcp.streams.maxPerSubject")
	for _, res := range streams {
		_ = res.Body.Close()
	}

	var wg sync.WaitGroup
	answers := make([]*reply, 5)
	for i := range answers {
		wg.Go(func() { answers[i] = callModern(t, url, "debug_slow", `{"delayMs":300}`) })
	}
	wg.Wait()
	tooMany := 0
	for _, a := range answers {
		if a.Status == http.StatusTooManyRequests {
			refused(a, http.StatusTooManyRequests, "mcp.rateLimit.maxConcurrentPerSubject")
			tooMany++
		}
	}
	if tooMany != 3 {
		t.Errorf("%d of 5 calls were refused, want 3", tooMany)
	}

	var last *reply
	for range 45 {
		if last = modern(t, url, "tools/list", "", ""); last.Status != http.StatusOK {
			break
		}
	}
	refused(last, http.StatusTooManyRequests, "mcp.rateLimit.maxRequests")
	refused(s.request(t, "ping", ""), http.StatusTooManyRequests, "mcp.rateLimit.maxRequests")
	// Probes are nobody's requests, and the session lives.
	if a := do(t, http.MethodGet, strings.TrimSuffix(url, "/mcp")+"/health", ""); a.Status != http.StatusOK {
		t.Errorf("/health: %d", a.Status)
	}
	if a := do(t, http.MethodDelete, url, "", s.header); a.Status != http.StatusNoContent {
		t.Errorf("DELETE: %d %s", a.Status, a.Body)
	}
}

// TestContractProgress never goes back, is throttled, and says the last.
func TestContractProgress(t *testing.T) {
	for _, throttle := range []time.Duration{0, time.Hour} {
		url := newContract(t, func(c *famcp.Config) { c.MCP.Progress.Throttle = throttle }, func(s *famcp.Server) {
			famcp.AddTool(s, reader("jumpy"), func(_ context.Context, c *famcp.Call, _ nothing) (string, error) {
				for _, done := range []float64{1, 3, 2, 3, 7, 10} {
					c.Progress(done, 10, "")
				}
				return "", nil
			})
		})
		var got []float64
		for line := range strings.Lines(modern(t, url, "tools/call", `,"name":"jumpy","arguments":{}`, `,"progressToken":"t"`).Body) {
			var n struct {
				Params struct {
					Progress float64
					Token    string `json:"progressToken"`
				}
			}
			if data, ok := strings.CutPrefix(line, "data: "); ok && strings.Contains(data, "notifications/progress") {
				if err := json.Unmarshal([]byte(data), &n); err != nil || n.Params.Token != "t" {
					t.Errorf("%v %s", err, data)
				}
				got = append(got, n.Params.Progress)
			}
		}
		want := []float64{1, 3, 7, 10}
		if throttle > 0 {
			want = []float64{1, 10}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("throttle %s: got %v, want %v", throttle, got, want)
		}
	}
}
