package famcptest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/protocol"
)

// ConnectStdio serves s on a pair of pipes, as a desktop client does that starts
// a server as its child, and returns a client that speaks the given revision. A
// server serves one client on stdio, whose subject is "stdio" with every scope:
// there is no [Client.AsSubject], and a legacy client has no second session. What
// HTTP alone has means nothing here: an [Error] has no Status.
func ConnectStdio(t testing.TB, s *famcp.Server, revision string) *Client {
	t.Helper()
	if s == nil {
		t.Fatalf("there is no server to connect to: it is nil")
	}
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	p := &pipes{out: toServer, open: map[string]*inbox{}}
	ended := make(chan error, 1)
	go func() {
		err := famcp.ServeStreams(context.Background(), call.Testing{}, s, in, out)
		_ = out.Close()
		ended <- err
	}()
	read := make(chan struct{})
	go func() { defer close(read); p.read(fromServer) }()
	t.Cleanup(func() {
		_ = toServer.Close() // the end of input, which ends the server
		select {
		case err := <-ended:
			<-read
			if err != nil {
				t.Errorf("serving stdio: %v", err)
			}
		case <-time.After(timeout):
			t.Errorf("the server goes on %s after the end of its input", timeout)
		}
	})
	h := &host{url: "http://stdio", client: &http.Client{Transport: p}, stdio: true}
	c := &Client{t: t, host: h, revision: revision, can: everything, state: &state{answer: decline}}
	c.open()
	return c
}

// pipes carries the requests of a [Client] as lines. What answers a request is
// given back as the stream that HTTP would have.
type pipes struct {
	writing sync.Mutex
	out     io.Writer

	mu     sync.Mutex
	open   map[string]*inbox // by id
	order  []*inbox          // the same, and streams of a session, oldest first
	closed bool
}

// RoundTrip implements [http.RoundTripper].
func (p *pipes) RoundTrip(r *http.Request) (*http.Response, error) {
	respond := func(status int, body io.ReadCloser) *http.Response {
		return &http.Response{
			StatusCode: status, Request: r, Body: body,
			Header: http.Header{"Content-Type": {"text/event-stream"}, protocol.HeaderSession: {"stdio"}},
		}
	}
	switch r.Method {
	case http.MethodGet:
		return respond(http.StatusOK, p.begin(r.Context(), "")), nil
	case http.MethodDelete: // the session ends with the input
		return respond(http.StatusNoContent, http.NoBody), nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	m, fault := protocol.Parse(body)
	if fault == nil && m.Kind != protocol.Request {
		return respond(http.StatusAccepted, http.NoBody), p.write(body)
	}
	box := p.begin(r.Context(), string(m.ID))
	return respond(http.StatusOK, box), p.write(body)
}

// write sends one line: a message has no line ends that matter.
func (p *pipes) write(message []byte) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	_, err := p.out.Write(append(bytes.Join(bytes.FieldsFunc(message, func(r rune) bool { return r == '\n' || r == '\r' }), []byte(" ")), '\n'))
	return err
}

// begin opens the place for the answer to id, which is "" for a stream of the
// session and for what cannot be read.
func (p *pipes) begin(ctx context.Context, id string) *inbox {
	box := &inbox{pipes: p, id: id}
	box.filled.L = &box.mu
	p.mu.Lock()
	p.open[id] = box
	p.order = append(p.order, box)
	closed := p.closed
	p.mu.Unlock()
	if closed {
		box.end()
	}
	box.stop = context.AfterFunc(ctx, box.end)
	return box
}

func (p *pipes) forget(box *inbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[box.id] == box {
		delete(p.open, box.id)
	}
	for i, other := range p.order {
		if other == box {
			p.order = append(p.order[:i:i], p.order[i+1:]...)
			return
		}
	}
}

// read hands out what the server writes, until it closes its output.
func (p *pipes) read(in io.Reader) {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Meta map[string]json.RawMessage `json:"_meta"`
			} `json:"params"`
		}
		_ = json.Unmarshal(line, &m) // whoever gets it sees what is wrong with it
		p.mu.Lock()
		box := p.open[string(m.ID)]
		if m.Method != "" {
			if box = p.open[string(m.Params.Meta[protocol.MetaSubscription])]; box == nil && len(p.order) > 0 {
				box = p.order[len(p.order)-1]
			}
		}
		p.mu.Unlock()
		if box == nil {
			continue // for a request that was given up
		}
		box.add("data: " + strings.TrimSpace(string(line)) + "\n\n")
		if m.Method == "" {
			box.answered()
		}
	}
	p.mu.Lock()
	p.closed = true
	left := append([]*inbox(nil), p.order...)
	p.mu.Unlock()
	for _, box := range left {
		box.end()
	}
}

// inbox is the body of a response: what the server has said so far, and more.
type inbox struct {
	pipes *pipes
	id    string
	stop  func() bool

	mu     sync.Mutex
	filled sync.Cond
	text   bytes.Buffer
	done   bool // nothing more comes
	final  bool // it was answered
}

func (b *inbox) add(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.WriteString(text)
	b.filled.Broadcast()
}

func (b *inbox) answered() {
	b.mu.Lock()
	b.final = true
	b.mu.Unlock()
	b.end()
}

// end says that nothing more comes.
func (b *inbox) end() {
	b.pipes.forget(b)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done = true
	b.filled.Broadcast()
}

// Read implements [io.Reader].
func (b *inbox) Read(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.text.Len() == 0 && !b.done {
		b.filled.Wait()
	}
	return b.text.Read(data)
}

// Close implements [io.Closer]. A request that is not answered yet is
// cancelled.
func (b *inbox) Close() error {
	b.stop()
	b.mu.Lock()
	pending := b.id != "" && !b.final && !b.done
	b.mu.Unlock()
	b.end()
	if pending {
		_ = b.pipes.write([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + b.id + `}}`))
	}
	return nil
}
