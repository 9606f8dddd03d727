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
	cmd  *exec.Cmd
	log  *tail
	done chan struct{} // closed when it has ended
	err  error         // of Wait; read after done
}

func start(c *exec.Cmd) (*process, error) {
	p := &process{cmd: c, log: &tail{}, done: make(chan struct{})}
	c.Stderr = p.log
	c.WaitDelay = stopTimeout
	if err := c.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.done)
		p.err = c.Wait()
	}()
	return p, nil
}

// stop asks the process to end, makes it end, and waits for that.
func (p *process) stop() {
	_ = interrupt(p.cmd.Process) // it may have ended by itself
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
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
	port, err := freePort()
	if err != nil {
		return err
	}
	c := exec.Command(p.binary, "http")
	c.Dir = p.dir
	c.Env = append(os.Environ(), "WS_HOST=127.0.0.1", "WS_PORT="+strconv.Itoa(port))
	if p.server, err = start(c); err != nil {
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
			return withOutput(fmt.Errorf("the server ended at once, %s", p.server.cmd.ProcessState), p.server.log.String())
		case <-ctx.Done():
			return withOutput(fmt.Errorf("the server was not healthy after %s", startTimeout), p.server.log.String())
		case <-retry.C:
		}
	}
}

// freePort finds a port that is free now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
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
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c := exec.Command(p.binary, "stdio")
	c.Dir = p.dir
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	s, err := start(c)
	if err != nil {
		return err
	}
	defer s.stop()

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
