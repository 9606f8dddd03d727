package famcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type portrait struct {
	Client, Subject, Header string
	Sampling                bool
}

// newLoadServer serves whoami, which says who calls in its result, its
// progress and its log message, and wait, which waits for its context.
func newLoadServer(t *testing.T) (s *Server, waiting *atomic.Int64) {
	t.Helper()
	cfg := &Config{Logger: LoggerConfig{Level: "error"}}
	cfg.MCP.RateLimit.MaxRequests, cfg.MCP.RateLimit.MaxConcurrentPerSubject = 1_000_000, 10_000 // above the load
	s, err := New(cfg, Info{Name: "load", Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	waiting = &atomic.Int64{}
	AddTool(s, Tool{Name: "whoami", Description: "Says who calls.", Effect: ReadOnly()},
		func(_ context.Context, c *Call, _ struct{}) (portrait, error) {
			p := portrait{c.Client().Name, c.Subject(), c.Header("X-Client"), c.Can(CanSample)}
			c.Notify(LevelInfo, p.Header, nil)
			c.Progress(1, 2, p.Header)
			runtime.Gosched() // let another call in between
			return p, nil
		})
	AddTool(s, Tool{Name: "wait", Description: "Waits.", Effect: ReadOnly()},
		func(ctx context.Context, _ *Call, _ struct{}) (string, error) {
			waiting.Add(1)
			defer waiting.Add(-1)
			<-ctx.Done()
			return "", ctx.Err()
		})
	return s, waiting
}

func modernRequest(ctx context.Context, url, method, tool, meta string) *http.Request {
	params := ""
	if tool != "" {
		params = fmt.Sprintf(`,"name":%q`, tool)
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"%s}%s}}`, method, meta, params)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		panic(err) // the test's own URL
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": tool,
	} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	return r
}

// TestClientsNeverMix: a thousand clients at once, each different in what it
// says of itself, and each gets only its own back.
func TestClientsNeverMix(t *testing.T) {
	s, _ := newLoadServer(t)
	handler, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(t.Context()) }()
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range 1000 {
		wg.Go(func() {
			<-start
			want := portrait{Subject: fmt.Sprintf("10.0.%d.%d", i/250, i%250), Header: fmt.Sprintf("header-%d", i), Sampling: i%2 == 0}
			meta, events := `,"io.modelcontextprotocol/clientCapabilities":{}`, 0
			if want.Sampling {
				meta = `,"io.modelcontextprotocol/clientCapabilities":{"sampling":{}}`
			}
			if i%3 > 0 { // the others say nothing
				want.Client = fmt.Sprintf("client-%d", i)
				meta += fmt.Sprintf(`,"io.modelcontextprotocol/clientInfo":{"name":%q,"version":"1"}`, want.Client)
			}
			if i%5 == 0 {
				meta += `,"io.modelcontextprotocol/logLevel":"info"`
				events++
			}
			if i%7 == 0 {
				meta += fmt.Sprintf(`,"progressToken":"token-%d"`, i)
				events++
			}
			if i%4 == 0 { // writes its client into a session of the SDK
				handler.ServeHTTP(httptest.NewRecorder(), modernRequest(t.Context(), "http://localhost/mcp", "server/discover", "", meta))
			}
			r := modernRequest(t.Context(), "http://localhost/mcp", "tools/call", "whoami", meta)
			r.Header.Set("X-Client", want.Header)
			r.RemoteAddr = want.Subject + ":1234"
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			got, others := readAnswer(t, w)
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if len(others) != events {
				t.Errorf("client %d got %d notifications, want %d: %q", i, len(others), events, others)
			}
			for _, n := range others {
				if !strings.Contains(n, `"`+want.Header+`"`) {
					t.Errorf("client %d got another's notification: %s", i, n)
				}
			}
		})
	}
	close(start)
	wg.Wait()
}

// readAnswer returns what whoami said, and the notifications before it.
func readAnswer(t *testing.T, w *httptest.ResponseRecorder) (p portrait, others []string) {
	t.Helper()
	messages := []string{w.Body.String()}
	if w.Header().Get("Content-Type") == "text/event-stream" {
		messages = nil
		for line := range strings.Lines(w.Body.String()) {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				messages = append(messages, data)
			}
		}
	}
	var answer struct {
		Result struct{ StructuredContent portrait }
	}
	last := messages[len(messages)-1]
	if err := json.Unmarshal([]byte(last), &answer); err != nil || w.Code != http.StatusOK {
		t.Errorf("answer %d %q: %v", w.Code, w.Body, err)
	}
	return answer.Result.StructuredContent, messages[:len(messages)-1]
}

// TestMixedLoad serves clients of both eras that call, listen, go away and
// come back, while tools come and go; then nothing of them is left. It takes a
// second, or as long as FAMCP_LOAD says.
func TestMixedLoad(t *testing.T) {
	duration := time.Second
	if text := os.Getenv("FAMCP_LOAD"); text != "" {
		var err error
		if duration, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	before := runtime.NumGoroutine()
	s, waiting := newLoadServer(t)
	handler, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(handler)
	url := srv.URL + "/mcp"
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()

	const caps = `,"io.modelcontextprotocol/clientCapabilities":{},"progressToken":1`
	var calls atomic.Int64
	loops := map[string]func(){
		"call": func() {
			res, err := client.Do(modernRequest(ctx, url, "tools/call", "whoami", caps))
			if err != nil {
				return // the time is over
			}
			defer res.Body.Close()
			if body, err := io.ReadAll(res.Body); err == nil && !strings.Contains(string(body), `"resultType":"complete"`) {
				t.Errorf("call: %d %s", res.StatusCode, body)
			}
			calls.Add(1)
		},
		"go away": func() {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
			defer cancel()
			if res, err := client.Do(modernRequest(ctx, url, "tools/call", "wait", caps)); err == nil {
				res.Body.Close()
			}
		},
		"listen": func() {
			ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			r := modernRequest(ctx, url, "subscriptions/listen", "", caps+`},"notifications":{"toolsListChanged":true},"other":{"x":1`)
			if res, err := client.Do(r); err == nil {
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
		},
		"session": func() { talk(ctx, t, url, "2025-11-25", client) },
		"modern":  func() { talk(ctx, t, url, "2026-07-28", client) },
		"tools": func() {
			AddTool(s, Tool{Name: "passing", Description: "Comes and goes.", Effect: ReadOnly()},
				func(context.Context, *Call, struct{}) (string, error) { return "here", nil })
			<-time.After(5 * time.Millisecond)
			s.Remove(Tools, "passing")
		},
	}
	var wg sync.WaitGroup
	for name, loop := range loops {
		workers := 3
		if name == "tools" {
			workers = 1
		}
		for range workers {
			wg.Go(func() {
				for ctx.Err() == nil {
					loop()
				}
			})
		}
	}
	wg.Wait()
	if calls.Load() == 0 {
		t.Error("nothing was served")
	}
	if err := s.Err(); err != nil {
		t.Error(err)
	}
	closing, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	client.CloseIdleConnections()
	if err := s.Close(closing); err != nil {
		t.Error(err)
	}
	client.CloseIdleConnections()
	srv.Close()
	for closing.Err() == nil && (runtime.NumGoroutine() > before || waiting.Load() > 0) {
		<-time.After(10 * time.Millisecond) // what ends, ends on its own
	}
	if n := runtime.NumGoroutine(); n > before || waiting.Load() > 0 {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before, %d handlers:\n%s", n, before, waiting.Load(), buf[:runtime.Stack(buf, true)])
	}
}

// talk is a visit of the SDK's own client.
func talk(ctx context.Context, t *testing.T, url, version string, client *http.Client) {
	c := mcp.NewClient(&mcp.Implementation{Name: "load", Version: "1"}, nil)
	session, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: client, MaxRetries: -1},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		if ctx.Err() == nil {
			t.Errorf("%s: %v", version, err)
		}
		return
	}
	defer func() { _ = session.Close() }()
	for range 5 {
		if _, err := session.ListTools(ctx, nil); err != nil && ctx.Err() == nil {
			t.Errorf("%s: tools: %v", version, err)
		}
		res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "whoami", Arguments: map[string]any{}, Meta: mcp.Meta{"progressToken": "x"}})
		if err == nil && (res.IsError || len(res.Content) == 0) {
			t.Errorf("%s: call: %+v", version, res)
		}
		if err != nil && ctx.Err() == nil {
			t.Errorf("%s: call: %v", version, err)
		}
	}
}
