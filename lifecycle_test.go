package famcp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/famcptest"
)

// TestRegistrationFaults that used to panic, vanish or win in silence.
func TestRegistrationFaults(t *testing.T) {
	read := func(context.Context, *famcp.Call) (famcp.Contents, error) { return famcp.Contents{}, nil }
	fine := func(context.Context) error { return nil }
	tests := []struct {
		name     string
		register func(*famcp.Server)
		want     string
	}{
		{"a URI with a space", func(s *famcp.Server) { s.AddResource(famcp.Resource{URI: "note://a b/", Name: "n"}, read) }, "cannot be parsed"},
		{"a URI with an open bracket", func(s *famcp.Server) { s.AddResource(famcp.Resource{URI: "note://[x", Name: "n"}, read) }, "cannot be parsed"},
		{"a URI with a lone percent", func(s *famcp.Server) { s.AddResource(famcp.Resource{URI: "note://%", Name: "n"}, read) }, "cannot be parsed"},
		{"a template that is none", func(s *famcp.Server) {
			famcp.AddResourceTemplate(s, famcp.ResourceTemplate{URITemplate: "note://{id", Name: "n"},
				func(context.Context, *famcp.Call, struct{}) (famcp.Contents, error) { return famcp.Contents{}, nil })
		}, "note://{id"},
		{"two checks of one name", func(s *famcp.Server) {
			s.Check("db", famcp.Readiness, fine)
			s.Check("db", famcp.Readiness, fine)
		}, `check "db": registered twice`},
		{"a check without function", func(s *famcp.Server) { s.Check("db", famcp.Liveness, nil) }, `check "db"`},
		{"a handler with scopes", func(s *famcp.Server) {
			s.Handle("/x", http.NotFoundHandler(), famcp.Access{Scopes: []string{"admin"}})
		}, `handler "/x": Scopes`},
		{"a completion without function", func(s *famcp.Server) { s.Complete("p", "a", nil) }, "the function is nil"},
		{"a middleware that is nil", func(s *famcp.Server) { s.Use(nil) }, "middleware: one is nil"},
		{"a handler that is nil", func(s *famcp.Server) { s.Handle("/x", nil, famcp.Access{}) }, `handler "/x"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t, nil)
			tt.register(s)
			if err := s.Err(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if _, err := s.Handler(); err == nil {
				t.Error("the server starts all the same")
			}
		})
	}
}

// TestCompletionOfNothing is a fault that shows only once everything is
// registered.
func TestCompletionOfNothing(t *testing.T) {
	for _, ref := range [][2]string{{"absent", "a"}, {"tool_prompt", "absent"}, {"note://{id}", "absent"}} {
		s := newNotes(t, false, nil)
		s.Complete("note://{id}", "id", func(context.Context, *famcp.Call, string) ([]string, error) { return nil, nil })
		s.Complete(ref[0], ref[1], func(context.Context, *famcp.Call, string) ([]string, error) { return nil, nil })
		if _, err := s.Handler(); err == nil || !strings.Contains(err.Error(), ref[0]) || strings.Contains(err.Error(), "\"id\"") {
			t.Errorf("%v: got %v", ref, err)
		}
	}
}

// TestMiddlewareIsComposedOnce for each tool, around all of its calls.
func TestMiddlewareIsComposedOnce(t *testing.T) {
	s := newServer(t, nil)
	var composed, called atomic.Int32
	famcp.AddTool(s, reader("some"), func(context.Context, *famcp.Call, nothing) (string, error) { return "x", nil })
	s.Use(func(next famcp.Handler) famcp.Handler {
		composed.Add(1)
		return func(ctx context.Context, c *famcp.Call, args any) (any, error) {
			called.Add(1)
			return next(ctx, c, args)
		}
	})
	c := famcptest.Connect(t, s, famcptest.Modern)
	for range 3 {
		famcptest.Call[string](t, c, "some", nil)
	}
	if composed.Load() != 1 || called.Load() != 3 {
		t.Errorf("composed %d times, called %d times, want 1 and 3", composed.Load(), called.Load())
	}
}

func TestTwoProbesMayShareAName(t *testing.T) {
	s := newServer(t, nil)
	s.Check("db", famcp.Readiness, func(context.Context) error { return nil })
	s.Check("db", famcp.Liveness, func(context.Context) error { return nil })
	if err := s.Err(); err != nil {
		t.Error(err)
	}
}

func TestLateRegistrationIsAFault(t *testing.T) {
	s := newServer(t, nil)
	famcptest.Connect(t, s, famcptest.Modern)
	fine := func(context.Context) error { return nil }
	s.Go("late worker", fine)
	s.OnStop("late stop", fine)
	s.Check("late check", famcp.Readiness, fine)
	s.Handle("/late", http.NotFoundHandler(), famcp.Access{})
	s.Use(func(next famcp.Handler) famcp.Handler { return next })
	for _, want := range []string{"middleware", "late worker", "late stop", "late check", "/late"} {
		if err := s.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to name %s", err, want)
		}
	}
}

func TestNameIsAScheme(t *testing.T) {
	for name, ok := range map[string]bool{"clock": true, "my-server": true, "a.b": true, "my_server": false, "my server": false, "9x": false} {
		if _, err := famcp.New(nil, famcp.Info{Name: name, Version: "1"}); (err == nil) != ok {
			t.Errorf("%q: got %v, want it accepted: %t", name, err, ok)
		}
	}
}

func TestWithDoesNotChangeAnError(t *testing.T) {
	busy := famcp.Conflictf("busy")
	one := busy.With(errors.New("one"))
	if busy.Cause != nil || one.Cause == nil || one.Message != "busy" {
		t.Errorf("got %v from %v", one, busy)
	}
}

// TestStopAnswersCallsThatTakeTooLong: their clients are told, stop functions
// can still work, and the stop is no failure.
func TestStopAnswersCallsThatTakeTooLong(t *testing.T) {
	started := make(chan struct{})
	s := newServer(t, nil)
	famcp.AddTool(s, reader("slow"), func(ctx context.Context, _ *famcp.Call, _ nothing) (string, error) {
		close(started)
		<-ctx.Done()
		return "", ctx.Err()
	})
	flushed := make(chan error, 1)
	s.OnStop("flush", func(ctx context.Context) error {
		flushed <- ctx.Err()
		return nil
	})
	s.OnStop("bad", func(context.Context) error { panic("oh") })
	c := famcptest.Connect(t, s, famcptest.Modern)
	answered := make(chan *famcptest.Result, 1)
	go func() { answered <- c.CallTool("slow", nil) }()
	<-started
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := s.Close(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "stopping bad: panic: oh") {
		t.Errorf("Close: got %v, want the deadline and the panic", err)
	}
	if err := <-flushed; err != nil {
		t.Errorf("the stop function had a context that was over: %v", err)
	}
	select {
	case res := <-answered:
		if res.Err == nil || res.Err.Status != http.StatusServiceUnavailable {
			t.Errorf("got %+v, want 503", res)
		}
	case <-time.After(10 * time.Second):
		t.Error("the client was not answered")
	}
}

// TestInvalidUTF8IsRefused: it would come back in what is not JSON.
func TestInvalidUTF8IsRefused(t *testing.T) {
	famcptest.Eras(t, func(t testing.TB) *famcp.Server { return newServer(t, nil) }, func(t *testing.T, c *famcptest.Client) {
		status, _, body := c.Raw("{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"tools/list\"}")
		if status != http.StatusBadRequest || !bytes.Contains(body, []byte("-32700")) || bytes.ContainsRune(body, '\uFFFD') {
			t.Errorf("got %d %q", status, body)
		}
	})
}

// TestProgressTokensAreStringsOrIntegers: for anything else nothing is sent.
func TestProgressTokensAreStringsOrIntegers(t *testing.T) {
	s := newServer(t, nil)
	famcp.AddTool(s, reader("step"), func(_ context.Context, c *famcp.Call, _ nothing) (string, error) {
		c.Progress(1, 2, "")
		return "", nil
	})
	handler, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: handler}
	go func() { _ = web.Serve(listener) }()
	defer func() { _ = errors.Join(s.Close(t.Context()), web.Close()) }()
	for token, sent := range map[string]bool{`"t"`: true, `7`: true, `null`: false, `{}`: false, `1.5`: false, `true`: false} {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"step","_meta":{"progressToken":` + token +
			`,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+listener.Addr().String()+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "step",
		} {
			r.Header.Set(name, value)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if got := bytes.Contains(answer, []byte("notifications/progress")); got != sent || res.StatusCode != http.StatusOK {
			t.Errorf("token %s: progress sent %t, want %t: %d %s", token, got, sent, res.StatusCode, answer)
		}
	}
}
