package front

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestBodyLimit(t *testing.T) {
	const limit = 64 << 10
	url := newFixture(t, func(c *Config) { c.MaxBody = limit }).serve(t)
	padded := func(size int) string {
		body := modernCall("77", "tools/call", `"name":"echo","arguments":{"a":"PAD"}`)
		return strings.Replace(body, "PAD", strings.Repeat("x", size-len(body)+3), 1)
	}
	late := `{"jsonrpc":"2.0","method":"tools/call","params":{"x":"` + strings.Repeat("x", 2*limit) + `"},"id":77}`
	headers := []string{modernHead, methodCall, nameEcho}
	tests := []struct {
		name    string
		body    string
		chunked bool
		status  int
		id      string
	}{
		{"at the limit", padded(limit), false, 200, "77"},
		{"at the limit, chunked", padded(limit), true, 200, "77"},
		{"over", padded(limit + 1), false, 413, "77"},
		{"over, chunked", padded(limit + 1), true, 413, "77"},
		{"far over", padded(5 << 20), false, 413, "77"},
		{"id too late", late, false, 413, ""},
		{"no JSON", strings.Repeat("x", limit+1), false, 413, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRequest(t, "POST", url+Path, tt.body, headers...)
			if tt.chunked {
				r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader(tt.body))), -1
			}
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			b, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			a := answer{res.StatusCode, res.Header, string(b)}
			if a.status != tt.status || string(a.message(t).ID) != tt.id {
				t.Fatalf("got %d %.200s, want %d and id %q", a.status, a.body, tt.status, tt.id)
			}
			if a.status == 413 && a.code() != -32005 {
				t.Errorf("code %d", a.code())
			}
		})
	}
}

func TestFindID(t *testing.T) {
	for head, want := range map[string]string{
		`{"id":7,"x":`:                     "7",
		`{"jsonrpc":"2.0","id":"a","x":[`:  `"a"`,
		`{"params":{"id":1},"id":2,"x`:     "2",
		`{"params":{"id":1},"method":"x"}`: "",
		`{"params":{"id":1`:                "",
		`{"id":null}`:                      "",
		`{"id":{"a":1}}`:                   "",
		`[{"id":1}]`:                       "",
		``:                                 "",
		`"id"`:                             "",
	} {
		if got := string(findID([]byte(head))); got != want {
			t.Errorf("findID(%s) = %q, want %q", head, got, want)
		}
	}
}

// TestSlowBody: a client that never ends its body is cut, and the server
// answers in JSON.
func TestSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := newFixture(t, nil)
		client, server := net.Pipe()
		srv := &http.Server{Handler: fx.Front}
		ServerDefaults(srv)
		go func() { _ = srv.Serve(&oneConn{conn: server, done: make(chan struct{})}) }()
		go func() {
			_, _ = fmt.Fprintf(client, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"json")
		}()
		start := time.Now()
		res, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if took := time.Since(start); took != bodyTimeout {
			t.Errorf("cut after %s, want %s", took, bodyTimeout)
		}
		b, err := io.ReadAll(res.Body)
		if res.StatusCode != 400 || res.Header.Get("Content-Type") != "application/json" || err != nil {
			t.Errorf("got %d %s %v", res.StatusCode, b, err)
		}
		client.Close()
		_ = srv.Close()
	})
}

// TestSlowReader: a client that never reads its answer does not keep the
// request for ever.
func TestSlowReader(t *testing.T) {
	for _, accept := range []string{"application/json", "text/event-stream"} {
		t.Run(accept, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fx := newFixture(t, nil)
				client, server := net.Pipe()
				srv := &http.Server{Handler: fx.Front}
				ServerDefaults(srv)
				go func() { _ = srv.Serve(&oneConn{conn: server, done: make(chan struct{})}) }()
				body := modernCall("7", "tools/call", `"name":"echo","arguments":{"a":"`+strings.Repeat("x", 100<<10)+`"}`)
				r := newRequest(t, "POST", "http://localhost"+Path, body, modernHead, methodCall, nameEcho, "Accept: "+accept)
				if err := r.Write(client); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if n := fx.running.count(); n != 1 {
					t.Fatalf("%d requests run, want 1", n)
				}
				time.Sleep(writeTimeout + 4*time.Second) // of 128 KiB
				synctest.Wait()
				if n := fx.running.count(); n != 0 {
					t.Errorf("%d requests run, want none", n)
				}
				client.Close()
				_ = srv.Close()
			})
		})
	}
}

// count returns how many requests run.
func (e *exchanges) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.calls)
}

// oneConn is a listener with a single connection.
type oneConn struct {
	conn net.Conn
	done chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.done
	return nil, net.ErrClosed
}
func (l *oneConn) Close() error   { close(l.done); return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
