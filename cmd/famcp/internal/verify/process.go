package verify

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"time"
)

const (
	startTimeout = 20 * time.Second
	callTimeout  = 30 * time.Second
	stopTimeout  = 5 * time.Second
	maxMessage   = 16 << 20 // bytes of one answer
)

// process is a running server.
type process struct {
	log    *tail // of standard error
	cancel context.CancelFunc
	done   chan struct{} // closed when it has ended
	err    error         // it ended with; read after done
}

// start starts the server with one argument. It runs until stop, or until ctx
// ends. prepare sets what else it needs before it starts.
func (p *project) start(ctx context.Context, argument string, prepare func(*exec.Cmd) error) (*process, error) {
	ctx, cancel := context.WithCancel(ctx)
	c := exec.CommandContext(ctx, p.binary, argument)
	c.Dir = p.dir
	c.Cancel = func() error { return interrupt(c.Process) }
	c.WaitDelay = stopTimeout
	s := &process{log: &tail{}, cancel: cancel, done: make(chan struct{})}
	c.Stderr = s.log
	err := prepare(c)
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	go func() {
		defer close(s.done)
		s.err = c.Wait()
	}()
	return s, nil
}

// stop asks the process to end, makes it end, and waits for that.
func (s *process) stop() {
	s.cancel()
	<-s.done
}

// interrupt asks a process to end where the system can ask.
func interrupt(p *os.Process) error {
	if runtime.GOOS == "windows" {
		return p.Kill()
	}
	return p.Signal(os.Interrupt)
}

// startHTTP starts the server on a free loopback port and waits until it is healthy.
func (p *project) startHTTP(ctx context.Context) error {
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	p.server, err = p.start(ctx, "http", func(c *exec.Cmd) error {
		c.Env = append(os.Environ(), "WS_HOST=127.0.0.1", "WS_PORT="+strconv.Itoa(port))
		return nil
	})
	if err != nil {
		return err
	}
	base := "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	p.url = base + "/mcp"

	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	retry := time.NewTicker(25 * time.Millisecond)
	defer retry.Stop()
	for {
		if healthy(ctx, base+"/health") {
			return nil
		}
		select {
		case <-p.server.done:
			return withOutput(errors.Join(errors.New("the server ended at once"), p.server.err), p.server.log.String())
		case <-ctx.Done():
			return withOutput(fmt.Errorf("the server was not healthy after %s", startTimeout), p.server.log.String())
		case <-retry.C:
		}
	}
}

// freePort finds a port that is free now.
func freePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func healthy(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// callStdio starts the server on pipes, has a conversation and ends it by
// closing its input, which must make the server end by itself.
func (p *project) callStdio(ctx context.Context, talk func(context.Context, link) error) error {
	var in io.WriteCloser
	var out io.Reader
	s, err := p.start(ctx, "stdio", func(c *exec.Cmd) (err error) {
		if in, err = c.StdinPipe(); err != nil {
			return err
		}
		out, err = c.StdoutPipe()
		return err
	})
	if err != nil {
		return err
	}
	defer s.stop()

	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = talk(ctx, &pipeLink{in: in, out: readLines(ctx, out)})
	if err == nil {
		in.Close()
		select {
		case <-s.done:
			err = s.err
		case <-time.After(p.grace):
			err = errors.New("the server did not end when its input did")
		}
	}
	if err != nil {
		return withOutput(err, s.log.String())
	}
	return nil
}

// readLines hands out the lines of r until it, or ctx, ends.
func readLines(ctx context.Context, r io.Reader) <-chan json.RawMessage {
	lines := make(chan json.RawMessage)
	go func() {
		defer close(lines)
		sc := bufio.NewScanner(r)
		sc.Buffer(nil, maxMessage)
		for sc.Scan() {
			select {
			case lines <- bytes.Clone(sc.Bytes()):
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

// tail keeps the last bytes written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	const keep = 16 << 10
	t.buf = append(t.buf, p...)
	t.buf = t.buf[max(0, len(t.buf)-keep):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
