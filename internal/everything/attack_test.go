package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// serveVariable makes the test binary the fixture server itself.
const serveVariable = "FAMCP_EVERYTHING"

func TestMain(m *testing.M) {
	if os.Getenv(serveVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// attack is one way of clients to be a nuisance. Size scales it: 1 takes the
// suite's time, FAMCP_ATTACK=10 is for measuring.
type attack struct {
	name string
	run  func(*victim, int)
	// kept is what the server may rightly keep afterwards, in bytes, beside the
	// slack that each attack has.
	kept func(size int) int64
}

const (
	slack    = 24 << 20    // of the live heap after an attack
	mostRSS  = 700 << 20   // at any time; the Go heap may be five times what lives
	patience = time.Minute // on a machine that is busy with other tests
)

var attacks = []attack{
	{name: "garbage instead of HTTP", run: (*victim).garbage},
	{name: "messages of every odd form", run: (*victim).oddMessages},
	{name: "bodies declared too large", run: (*victim).declared},
	{name: "endless chunked bodies", run: (*victim).chunked},
	{name: "chunks of one byte", run: (*victim).oneByteChunks},
	{name: "deep nesting", run: (*victim).deepNesting},
	{name: "headers without end", run: (*victim).headers},
	{name: "half a request, then silence", run: (*victim).silence},
	{name: "half a body, then reset", run: (*victim).reset},
	{name: "panics", run: (*victim).panics},
	{name: "clients that go away", run: (*victim).goAway},
	{name: "readers that do not read", run: (*victim).slowReaders},
	{name: "subscriptions from many addresses", run: (*victim).listens},
	// A caller costs two counters of a window of a minute.
	{name: "many addresses", run: (*victim).addresses, kept: func(size int) int64 { return int64(size) * 2000 * 1024 }},
	{name: "many sessions", run: (*victim).sessions, kept: func(size int) int64 { return int64(min(size*500, 10_000)) * (64 << 10) }},
}

// TestAttacks fires all of it at the fixture as a process of its own, while a
// client of each era goes on working: it notices nothing, the process lives, and
// its memory is bounded. With -v it prints the figures.
func TestAttacks(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads memory from /proc and uses all of 127.0.0.0/8")
	}
	size := 1
	if text := os.Getenv("FAMCP_ATTACK"); text != "" {
		var err error
		if size, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	v := start(t)
	healthy := v.client(t)
	rows := []string{fmt.Sprintf("%-36s %8s %9s %9s %10s %9s", "attack", "took", "peak RSS", "heap +", "goroutines", "slowest")}
	for _, a := range attacks {
		heap, _ := v.state(t)
		peak := v.watch()
		healthy.slowest.Store(0)
		begin := time.Now()
		a.run(v, size)
		took := time.Since(begin)
		rss := peak()
		if v.exited() {
			t.Fatalf("%s ended the process:\n%s", a.name, v.stderr.tail())
		}
		var after int64
		var goroutines int
		limit := int64(slack)
		if a.kept != nil {
			limit += a.kept(size)
		}
		for deadline := time.Now().Add(patience); ; {
			if after, goroutines = v.state(t); after-heap <= limit || time.Now().After(deadline) {
				break
			}
			<-time.After(100 * time.Millisecond) // connections are still being cut
		}
		rows = append(rows, fmt.Sprintf("%-36s %7.1fs %6d MiB %5.1f MiB %10d %7dms", a.name, took.Seconds(), rss>>20, float64(after-heap)/(1<<20),
			goroutines, time.Duration(healthy.slowest.Load()).Milliseconds()))
		if after-heap > limit {
			t.Errorf("%s leaves %d MiB on the heap, want at most %d", a.name, (after-heap)>>20, limit>>20)
		}
		if rss > mostRSS {
			t.Errorf("%s makes the process %d MiB large", a.name, rss>>20)
		}
	}
	if n := healthy.stop(); n < 50 {
		t.Errorf("the healthy clients made %d calls only", n)
	}
	t.Log("\n" + strings.Join(rows, "\n"))
	if err := v.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-v.done:
		if code := v.process.ProcessState.ExitCode(); code != 0 {
			t.Errorf("exit status %d", code)
		}
	case <-time.After(patience):
		t.Error("the server does not stop")
	}
	if text := v.stderr.tail(); strings.Contains(text, "DATA RACE") || strings.Contains(text, "fatal error") {
		t.Errorf("standard error:\n%s", text)
	}
}

// victim is the fixture as a process.
type victim struct {
	address  string
	profiles string
	process  *exec.Cmd
	stderr   *output
	done     chan struct{}
	next     atomic.Uint32 // source address
}

func start(t *testing.T) *victim {
	t.Helper()
	v := &victim{stderr: &output{ready: make(chan string, 1)}, done: make(chan struct{})}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v.profiles = free.Addr().String()
	_ = free.Close()
	v.process = exec.Command(os.Args[0], "-addr", "127.0.0.1:0", "-debug", "-pprof", v.profiles)
	v.process.Env = append(os.Environ(), serveVariable+"=1")
	v.process.Stderr = v.stderr
	if err := v.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = v.process.Wait(); close(v.done) }()
	t.Cleanup(func() { _ = v.process.Process.Kill(); <-v.done })
	select {
	case v.address = <-v.stderr.ready:
	case <-v.done:
		t.Fatalf("the server does not start:\n%s", v.stderr.tail())
	case <-time.After(patience):
		t.Fatal("the server does not listen")
	}
	return v
}

func (v *victim) exited() bool {
	select {
	case <-v.done:
		return true
	default:
		return false
	}
}

// output keeps the end of what the process writes and finds its address.
type output struct {
	mu    sync.Mutex
	text  bytes.Buffer
	found bool
	ready chan string
}

var listening = regexp.MustCompile(`127\.0\.0\.1:\d+`)

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text.Len() > 1<<20 {
		o.text.Reset()
	}
	o.text.Write(b)
	if address := listening.Find(o.text.Bytes()); address != nil && !o.found {
		o.found = true
		o.ready <- string(address)
	}
	return len(b), nil
}

func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := o.text.String()
	return text[max(0, len(text)-4000):]
}

var (
	heapAlloc  = regexp.MustCompile(`# HeapAlloc = (\d+)`)
	goroutines = regexp.MustCompile(`goroutine profile: total (\d+)`)
)

// state returns the live heap and the number of goroutines.
func (v *victim) state(t *testing.T) (heap int64, routines int) {
	t.Helper()
	read := func(path string, what *regexp.Regexp) int64 {
		res, err := http.Get("http://" + v.profiles + path)
		if err != nil {
			t.Fatalf("%v\n%s", err, v.stderr.tail())
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		m := what.FindSubmatch(body)
		if m == nil {
			t.Fatalf("%s has no %s", path, what)
		}
		n, err := strconv.ParseInt(string(m[1]), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return read("/debug/pprof/heap?debug=1&gc=1", heapAlloc), int(read("/debug/pprof/goroutine?debug=1", goroutines))
}

// watch follows the resident set until the returned function is called, which
// returns the peak in bytes.
func (v *victim) watch() (peak func() int64) {
	stop, result := make(chan struct{}), make(chan int64)
	go func() {
		var most int64
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			statm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", v.process.Process.Pid))
			if fields := strings.Fields(string(statm)); len(fields) > 1 {
				pages, _ := strconv.ParseInt(fields[1], 10, 64)
				most = max(most, pages*int64(os.Getpagesize()))
			}
			select {
			case <-tick.C:
			case <-stop:
				result <- most
				return
			}
		}
	}()
	return func() int64 { close(stop); return <-result }
}

// healthy is a client of each era at work.
type healthy struct {
	slowest atomic.Int64 // nanoseconds
	calls   atomic.Int64
	end     chan struct{}
	group   sync.WaitGroup
}

func (h *healthy) stop() int64 {
	close(h.end)
	h.group.Wait()
	return h.calls.Load()
}

// client starts a healthy client at an address of its own.
func (v *victim) client(t *testing.T) *healthy {
	t.Helper()
	h := &healthy{end: make(chan struct{})}
	web := &http.Client{Timeout: patience, Transport: &http.Transport{DialContext: dialer("127.200.0.1").DialContext}}
	send := func(body string, headers ...string) (*http.Response, string, error) {
		r, err := http.NewRequest(http.MethodPost, "http://"+v.address+"/mcp", strings.NewReader(body))
		if err != nil {
			return nil, "", err
		}
		for _, header := range append([]string{"Content-Type: application/json", "Accept: application/json, text/event-stream"}, headers...) {
			name, value, _ := strings.Cut(header, ": ")
			r.Header.Set(name, value)
		}
		res, err := web.Do(r)
		if err != nil {
			return nil, "", err
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		return res, string(text), err
	}
	res, text, err := send(initializeMessage)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("initialize: %v %s", err, text)
	}
	session := "Mcp-Session-Id: " + res.Header.Get("Mcp-Session-Id")
	for _, headers := range [][]string{
		{session},
		{"MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: test_simple_text"},
	} {
		h.group.Go(func() {
			tick := time.NewTicker(15 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-h.end:
					return
				case <-tick.C:
				}
				begin := time.Now()
				res, text, err := send(toolCall("test_simple_text", `{}`), headers...)
				h.slowest.Store(max(h.slowest.Load(), int64(time.Since(begin))))
				h.calls.Add(1)
				if err != nil || res.StatusCode != http.StatusOK || !strings.Contains(text, "simple text response") {
					t.Errorf("a healthy client got %v %s", err, text)
					return
				}
			}
		})
	}
	return h
}

const (
	modernMeta        = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	initializeMessage = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
)

func toolCall(name, args string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + modernMeta + `,"name":"` + name + `","arguments":` + args + `}}`
}

// head is the head of a modern call, without the empty line.
func head(name string) string {
	return "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n" +
		"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: " + name + "\r\n"
}

func whole(name, body string) string {
	return head(name) + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
}

func dialer(from string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
}

// dial connects from an address that nobody had before.
func (v *victim) dial() net.Conn {
	n := v.next.Add(1)
	ip := make(net.IP, 4)
	binary.BigEndian.PutUint32(ip, 127<<24|1<<16+n)
	d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: ip}, Timeout: patience}
	conn, err := d.DialContext(context.Background(), "tcp", v.address)
	if err != nil {
		return dead{}
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}

// dead stands for a connection that was refused, which is the server's right.
type dead struct{ net.Conn }

func (dead) Read([]byte) (int, error)    { return 0, io.EOF }
func (dead) Write([]byte) (int, error)   { return 0, io.ErrClosedPipe }
func (dead) Close() error                { return nil }
func (dead) SetDeadline(time.Time) error { return nil }

// each runs f n times, so many at once.
func each(n, atOnce int, f func(i int)) {
	var wg sync.WaitGroup
	work := make(chan int)
	for range atOnce {
		wg.Go(func() {
			for i := range work {
				f(i)
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	wg.Wait()
}

// exchange writes what can be written and reads what comes.
func (v *victim) exchange(text string) {
	conn := v.dial()
	defer conn.Close()
	go func() { _, _ = io.Copy(conn, strings.NewReader(text)) }()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, 64<<10)
}

func (v *victim) garbage(size int) {
	texts := []string{
		"", "\x00\x01\x02\x03", "GET", "GET / HTTP/9.9\r\n\r\n", "POST /mcp HTTP/1.1\r\n\r\n", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
		"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
		"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"CONNECT evil:443 HTTP/1.1\r\nHost: evil\r\n\r\n", "POST http://evil/mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", "POST /mcp HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET /%00 HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET /mcp HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
	}
	each(len(texts)*size, 8, func(i int) {
		conn := v.dial()
		defer conn.Close()
		_, _ = io.WriteString(conn, texts[i%len(texts)])
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
		_, _ = io.CopyN(io.Discard, conn, 4096)
	})
	conn := tls.Client(v.dial(), &tls.Config{InsecureSkipVerify: true}) // #nosec G402 -- never gets that far
	_ = conn.HandshakeContext(context.Background())
	_ = conn.Close()
}

func (v *victim) oddMessages(size int) {
	bodies := []string{
		``, ` `, `{`, `[]`, `[1]`, `null`, `"x"`, `1e999999`, `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":{},"method":"x"}`, "\xff\xfe", `{"jsonrpc":"2.0","id":1,"method":5}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`, `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1,"error":null}`, initializeMessage + initializeMessage,
		strings.Replace(initializeMessage, `"capabilities":{}`, `"capabilities":[]`, 1), strings.Replace(initializeMessage, `{"name":"c","version":"1"}`, `null`, 1),
		`{"jsonrpc":"2.0","id":1,"method":"initialize"}`, `[` + initializeMessage + `]`, `[` + strings.Repeat(`{},`, 5000) + `{}]`,
		toolCall("test_simple_text", `[]`), toolCall("test_simple_text", `null`), toolCall("nobody", `{}`), toolCall(`\u0000`, `{}`), toolCall("debug_content", `{"kind":`+strings.Repeat("9", 5000)+`}`),
		toolCall("debug_content", `{`+strings.Repeat(`"k":1,`, 5000)+`"k":1}`), strings.Replace(toolCall("test_simple_text", `{}`), `"id":7`, `"id":1e9`, 1),
		strings.Replace(toolCall("test_simple_text", `{}`), modernMeta, `"_meta":{"progressToken":{"a":1}}`, 1), toolCall("test_simple_text", `{},"requestState":"AAAA","inputResponses":{"x":5}`),
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":"x"}}`,
	}
	versions := []string{"2026-07-28", "2025-11-25", "", "1900-01-01", strings.Repeat("9", 4000)}
	each(len(bodies)*len(versions)*size, 8, func(i int) {
		body, version := bodies[i%len(bodies)], versions[i/len(bodies)%len(versions)]
		text := whole("test_simple_text", body)
		v.exchange(strings.Replace(text, "MCP-Protocol-Version: 2026-07-28\r\n", "MCP-Protocol-Version: "+version+"\r\nMcp-Session-Id: x\r\nLast-Event-ID: a_9999999999\r\nX-Request-Id: \x80\r\n", 1))
	})
}

func (v *victim) declared(size int) {
	each(40*size, 20, func(int) {
		v.exchange(head("x") + "Content-Length: 1073741824\r\n\r\n" + strings.Repeat("x", 256<<10))
	})
}

func (v *victim) chunked(size int) {
	chunk := fmt.Sprintf("%x\r\n%s\r\n", 64<<10, strings.Repeat("x", 64<<10))
	each(20*size, 20, func(int) {
		v.exchange(head("x") + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat(chunk, 40))
	})
}

func (v *victim) oneByteChunks(size int) {
	each(10*size, 10, func(int) {
		v.exchange(head("x") + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1\r\nx\r\n", 40_000) + "0\r\n\r\n")
	})
}

func (v *victim) deepNesting(size int) {
	bodies := []string{strings.Repeat("[", 1<<20), toolCall("debug_content", strings.Repeat(`{"a":`, 9000)+"1"+strings.Repeat("}", 9000)), strings.Repeat(`{"a":`, 200_000)}
	each(30*size, 10, func(i int) { v.exchange(whole("debug_content", bodies[i%len(bodies)])) })
}

func (v *victim) headers(size int) {
	texts := []string{head("x") + "X: " + strings.Repeat("x", 4<<20), head("x") + strings.Repeat("X: y\r\n", 300_000), head(strings.Repeat("n", 60_000)) + "Content-Length: 0\r\n\r\n"}
	each(12*size, 6, func(i int) { v.exchange(texts[i%len(texts)]) })
}

func (v *victim) silence(size int) {
	each(200*size, 200*size, func(i int) {
		conn := v.dial()
		text := whole("x", toolCall("x", `{}`))
		_, _ = io.WriteString(conn, text[:(i*7)%len(text)])
		<-time.After(500 * time.Millisecond)
		_ = conn.Close()
	})
}

func (v *victim) reset(size int) {
	each(200*size, 20, func(int) {
		conn := v.dial()
		_, _ = io.WriteString(conn, head("x")+"Content-Length: 100000\r\n\r\n"+strings.Repeat("x", 50_000))
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	})
}

func (v *victim) panics(size int) {
	each(100*size, 10, func(int) { v.exchange(whole("debug_error", toolCall("debug_error", `{"kind":"panic"}`))) })
}

func (v *victim) goAway(size int) {
	each(200*size, 50, func(i int) {
		conn := v.dial()
		_, _ = io.WriteString(conn, whole("debug_slow", toolCall("debug_slow", `{"delayMs":600000}`)))
		<-time.After(time.Duration(i%20) * time.Millisecond)
		_ = conn.Close()
	})
}

func (v *victim) slowReaders(size int) {
	each(30*size, 30*size, func(int) {
		conn := v.dial()
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetReadBuffer(4096)
		}
		_, _ = io.WriteString(conn, whole("debug_large", toolCall("debug_large", `{"bytes":1000000}`)))
		<-time.After(time.Second)
		_ = conn.Close()
	})
}

func (v *victim) listens(size int) {
	each(300*size, 300*size, func(int) {
		conn := v.dial()
		body := `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{` + modernMeta + `,"notifications":{"toolsListChanged":true,"resourcesListChanged":true}}}`
		_, _ = io.WriteString(conn, strings.Replace(strings.Replace(whole("x", body), "tools/call", "subscriptions/listen", 1), "Mcp-Name: x\r\n", "", 1))
		_, _ = io.CopyN(io.Discard, conn, 200)
		<-time.After(500 * time.Millisecond)
		_ = conn.Close()
	})
}

func (v *victim) addresses(size int) {
	each(2000*size, 20, func(int) {
		v.exchange(whole("test_simple_text", toolCall("test_simple_text", `{}`)))
	})
}

func (v *victim) sessions(size int) {
	each(500*size, 20, func(int) {
		v.exchange(strings.Replace(whole("x", initializeMessage), "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: x\r\n", "", 1))
	})
}
