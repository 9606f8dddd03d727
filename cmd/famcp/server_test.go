package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The messages of a client of each era, as they are on the wire.
const (
	legacyInitialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"old","version":"1"}}}`
	legacyReady      = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	legacyCall       = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"search_docs","arguments":{"query":"health"}}}`
	legacyFailing    = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"search_docs","arguments":{"query":"health","limit":-1}}}`
	modernMeta       = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	modernCall       = `{"jsonrpc":"2.0","id":"new","method":"tools/call","params":{"name":"search_docs","arguments":{"query":"health"},` + modernMeta + `}}`
	modernFailing    = `{"jsonrpc":"2.0","id":"fails","method":"tools/call","params":{"name":"search_docs","arguments":{"query":"health","limit":-1},` + modernMeta + `}}`
)

// answer is any message of a server.
type answer struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  *struct {
		ProtocolVersion string `json:"protocolVersion"`
		ResultType      string `json:"resultType"`
		IsError         bool   `json:"isError"`
		Content         []struct {
			Text string `json:"text"`
		} `json:"content"`
		StructuredContent struct {
			Total int `json:"total"`
		} `json:"structuredContent"`
	} `json:"result"`
	Error *struct {
		Code int `json:"code"`
	} `json:"error"`
}

// outcome is an answer in a word or two.
func (a answer) outcome() string {
	switch {
	case a.Error != nil:
		return "error " + strconv.Itoa(a.Error.Code)
	case a.Result == nil:
		return "nothing"
	case a.Result.ProtocolVersion != "":
		return a.Result.ProtocolVersion
	case a.Result.IsError:
		return "failed: " + a.Result.Content[0].Text
	default:
		return fmt.Sprintf("found=%v", a.Result.StructuredContent.Total > 0)
	}
}

// Clients of both eras use one URL of one process, at the same time.
func (p project) testHTTP(t *testing.T) {
	url := p.serve(t) + "/mcp"

	hello, header := post(t, url, legacyInitialize, nil)
	if got := hello.outcome(); got != "2025-11-25" {
		t.Errorf("initialize: %s, want revision 2025-11-25", got)
	}
	session := header.Get("Mcp-Session-Id")
	if session == "" {
		t.Fatal("initialize opened no session")
	}
	inSession := http.Header{"Mcp-Session-Id": {session}, "Mcp-Protocol-Version": {"2025-11-25"}}
	post(t, url, legacyReady, inSession)

	modern := http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"search_docs"}}
	const failed = "failed: limit: must not be negative"
	for _, tt := range []struct {
		name, message string
		header        http.Header
		want          string
		resultType    string
	}{
		{"legacy", legacyCall, inSession, "found=true", ""},
		{"modern", modernCall, modern, "found=true", "complete"},
		{"legacy, the tool fails", legacyFailing, inSession, failed, ""},
		{"modern, the tool fails", modernFailing, modern, failed, "complete"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, header := post(t, url, tt.message, tt.header)
			if got.outcome() != tt.want {
				t.Errorf("outcome = %s, want %s", got.outcome(), tt.want)
			}
			if got.Result.ResultType != tt.resultType {
				t.Errorf("resultType = %q, want %q", got.Result.ResultType, tt.resultType)
			}
			if id := header.Get("Mcp-Session-Id"); tt.resultType != "" && id != "" {
				t.Errorf("a modern answer carries the session id %s", id)
			}
		})
	}
}

// post sends a message as curl would. A notification has no answer.
func post(t *testing.T, url, message string, header http.Header) (answer, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s: %s", resp.Status, body)
	}
	if len(body) == 0 {
		return answer{}, resp.Header
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		_, data, _ := bytes.Cut(body, []byte("\ndata:")) // a short answer is one event
		body, _, _ = bytes.Cut(data, []byte("\n"))
	}
	return parse(t, body), resp.Header
}

func parse(t *testing.T, message []byte) answer {
	t.Helper()
	var a answer
	if err := json.Unmarshal(message, &a); err != nil || a.Version != "2.0" {
		t.Fatalf("%q is no JSON-RPC message: %v", message, err)
	}
	return a
}

// serve starts the server and returns its base URL once it is healthy. At the
// end of the test it gets SIGTERM and must end in peace.
func (p project) serve(t *testing.T) string {
	t.Helper()
	return p.serveAt(t, freePort(t))
}

// serveAt is serve at the port.
func (p project) serveAt(t *testing.T, port string) string {
	t.Helper()
	c := p.command(context.WithoutCancel(t.Context()), p.binary, "http")
	c.Env = append(c.Env, "WS_PORT="+port)
	var log bytes.Buffer // read after ended alone
	c.Stdout, c.Stderr = &log, &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	t.Cleanup(func() {
		windows := runtime.GOOS == "windows" // cannot ask a process to end
		if windows {
			_ = c.Process.Kill()
		} else if err := c.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		kill := time.AfterFunc(20*time.Second, func() { _ = c.Process.Kill() })
		defer kill.Stop()
		if err := <-ended; err != nil && !windows {
			t.Errorf("after SIGTERM: %v, want exit status 0\n%s", err, &log)
		}
	})

	base := "http://" + net.JoinHostPort("127.0.0.1", port)
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for tries := 0; ; tries++ {
		resp, err := http.Get(base + "/health")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return base
			}
		}
		if tries == 1000 {
			t.Fatalf("the server is not healthy: %v", err)
		}
		<-again.C
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// One process on standard input and output serves both eras, whichever comes
// first. With every log message on, a tool that fails and a line that is no
// message, standard output still carries messages alone.
func (p project) testStdio(t *testing.T) {
	legacy := []string{legacyInitialize, legacyReady, legacyCall, legacyFailing}
	modern := []string{modernCall, modernFailing}
	want := map[string]string{
		`1`: "2025-11-25", `2`: "found=true", `3`: "failed: limit: must not be negative",
		`"new"`: "found=true", `"fails"`: "failed: limit: must not be negative",
	}
	for name, messages := range map[string][]string{
		"legacy first": append(append([]string{}, legacy...), modern...),
		"modern first": append(append([]string{}, modern...), legacy...),
		"in turns":     {modernCall, legacyInitialize, legacyReady, modernFailing, legacyCall, legacyFailing},
	} {
		t.Run(name, func(t *testing.T) {
			got := p.talk(t, messages)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("answers by id (-want +got):\n%s", diff)
			}
		})
		t.Run(name+", all at once", func(t *testing.T) {
			broken := append([]string{`{"jsonrpc":`}, messages...)
			got := p.pipe(t, strings.Join(broken, "\n")+"\n")
			if got[""] != "error -32700" {
				t.Errorf("the broken line: %q, want error -32700 without an id", got[""])
			}
			delete(got, "")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("answers by id (-want +got):\n%s", diff)
			}
		})
	}
}

// talk sends one message after the other, each when the one before has its
// answer, and returns the outcomes by id.
func (p project) talk(t *testing.T, messages []string) map[string]string {
	t.Helper()
	c := p.stdio(t)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	got := map[string]string{}
	for _, m := range messages {
		if _, err := io.WriteString(in, m+"\n"); err != nil {
			t.Fatal(err)
		}
		if m == legacyReady {
			continue
		}
		if !lines.Scan() {
			t.Fatalf("no answer to %s: %v\n%s", m, lines.Err(), c.Stderr)
		}
		a := parse(t, lines.Bytes())
		if want := parse(t, []byte(m)).ID; !bytes.Equal(a.ID, want) {
			t.Errorf("answer to id %s, want %s", a.ID, want)
		}
		got[string(a.ID)] = a.outcome()
	}
	in.Close()
	for lines.Scan() {
		t.Errorf("after all answers: %s", lines.Bytes())
	}
	if err := c.Wait(); err != nil {
		t.Errorf("%v, want exit status 0\n%s", err, c.Stderr)
	}
	return got
}

// pipe sends everything at once, as a shell would, and returns the outcomes by id.
func (p project) pipe(t *testing.T, input string) map[string]string {
	t.Helper()
	c := p.stdio(t)
	c.Stdin = strings.NewReader(input)
	out, err := c.Output()
	if err != nil {
		t.Errorf("%v, want exit status 0\n%s", err, c.Stderr)
	}
	got := map[string]string{}
	for line := range bytes.Lines(out) {
		a := parse(t, line)
		if before, twice := got[string(a.ID)]; twice {
			t.Errorf("id %s is answered twice: %s, %s", a.ID, before, a.outcome())
		}
		got[string(a.ID)] = a.outcome()
	}
	if log := c.Stderr.(*bytes.Buffer).String(); !strings.Contains(log, "level=DEBUG") {
		t.Errorf("the log has no debug messages, which could have got on standard output:\n%s", log)
	}
	return got
}

func (p project) stdio(t *testing.T) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	c := p.command(ctx, p.binary, "stdio")
	c.Env = append(c.Env, "LOGGER_LEVEL=debug")
	c.Stderr = new(bytes.Buffer)
	return c
}

// The official client lists and calls the tools over both transports.
func (p project) testClient(t *testing.T) {
	for name, transport := range map[string]mcp.Transport{
		"HTTP":  &mcp.StreamableClientTransport{Endpoint: p.serve(t) + "/mcp"},
		"stdio": &mcp.CommandTransport{Command: p.stdio(t)},
	} {
		t.Run(name, func(t *testing.T) {
			client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil)
			session, err := client.Connect(t.Context(), transport, nil)
			if err != nil {
				t.Fatal(err)
			}
			list, err := session.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, tool := range list.Tools {
				names = append(names, tool.Name)
			}
			if diff := cmp.Diff([]string{"delete_note", "import_notes", "search_docs"}, names); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "search_docs", Arguments: map[string]any{"query": "health"}})
			if err != nil {
				t.Fatal(err)
			}
			if out, ok := result.StructuredContent.(map[string]any); result.IsError || !ok || out["total"] == 0.0 {
				t.Errorf("result = %+v, want hits", result)
			}
			if err := session.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// The server is its own client, documentation and probe.
func (p project) testCommands(t *testing.T) {
	base := p.serve(t)
	_, port, _ := strings.Cut(strings.TrimPrefix(base, "http://"), ":")
	tests := []struct {
		name   string
		args   []string
		env    string
		code   int
		stdout string // patterns; an empty one is for no output
		stderr string
	}{
		{"call", []string{"call", "search_docs", "query=health"}, "", 0, `(?s)"total": [1-9].*docs://operations`, ``},
		{"call with several values", []string{"call", "search_docs", "query=health", "limit:=1", "-o", "structured"}, "", 0, `"total": ?[1-9]`, ``},
		{"call that fails", []string{"call", "search_docs", "query=health", "limit=-1"}, "", 1, ``, `limit: must not be negative`},
		{"call of a misspelt tool", []string{"call", "serch_docs", "query=x"}, "", 2, ``, `search_docs`},
		{"tools", []string{"tools"}, "", 0, `(?m)^delete_note +medium risk +`, ``},
		{"config", []string{"config"}, "", 0, `(?m)^webServer\.port +65535 +.*default\.yaml`, ``},
		{"config from the environment", []string{"config"}, "WS_PORT=4000", 0, `(?m)^webServer\.port +4000 +.*WS_PORT`, ``},
		{"health", []string{"health"}, "WS_PORT=" + port, 0, `200 OK`, ``},
		{"health without a server", []string{"health"}, "WS_PORT=" + freePort(t), 1, ``, `connection refused|refused it`},
		{"version", []string{"version"}, "", 0, `(?s)^weather-9 0\.1\.0\n.*github\.com/famcp/famcp.*2026-07-28.*2024-11-05`, ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := p.command(t.Context(), p.binary, tt.args...)
			c.Env = append(c.Env, tt.env)
			var stdout, stderr bytes.Buffer
			c.Stdout, c.Stderr = &stdout, &stderr
			_ = c.Run() // the code says more
			if got := c.ProcessState.ExitCode(); got != tt.code {
				t.Errorf("code = %d, want %d", got, tt.code)
			}
			for name, s := range map[string]struct{ pattern, text string }{
				"stdout": {tt.stdout, stdout.String()}, "stderr": {tt.stderr, stderr.String()},
			} {
				if s.pattern == "" && s.text != "" || !regexp.MustCompile(s.pattern).MatchString(s.text) {
					t.Errorf("%s = %q, want %q", name, s.text, s.pattern)
				}
			}
		})
	}
}

// A setting that would protect a server is never ignored in silence.
func (p project) testAuthSettings(t *testing.T) {
	const secret = "a-token-that-nobody-should-read-in-a-log"
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "config"), 0o755); err != nil {
		t.Fatal(err)
	}
	local := "webServer:\n  auth:\n    permanentServerTokens: [" + secret + "]\n"
	if err := os.WriteFile(filepath.Join(dir, "config", "local.yaml"), []byte(local), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name      string
		transport string
		dir       string
		env       string
		code      int
		want      string
	}{
		{"nobody could get in, HTTP", "http", p.dir, "WS_AUTH_ENABLED=true", 1, "webServer.auth.enabled"},
		{"nobody could get in, stdio, which asks for no credentials", "stdio", p.dir, "WS_AUTH_ENABLED=true", 0, ""},
		{"credentials in a variable, and off", "http", p.dir, "WS_SERVER_TOKENS=" + secret, 1, "authentication is configured and off"},
		{"credentials in a file, and off", "http", dir, "", 1, "authentication is configured and off"},
		{"a weak secret", "http", p.dir, "WS_TOKEN_ENCRYPT_KEY=" + secret[:20], 1, "webServer.auth.jwtToken.encryptKey"},
	}
	// A server that gets as far as listening ends there: the port is taken.
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			c := p.command(ctx, p.binary, tt.transport) // whose standard input is at its end
			c.Dir = tt.dir
			c.Env = append(c.Env, "WS_PORT="+port, tt.env)
			if strings.HasPrefix(tt.env, "WS_TOKEN") {
				c.Env = append(c.Env, "WS_AUTH_ENABLED=true")
			}
			out, _ := c.CombinedOutput()
			if code := c.ProcessState.ExitCode(); code != tt.code {
				t.Errorf("code = %d, want %d", code, tt.code)
			}
			if !strings.Contains(string(out), tt.want) || strings.Contains(string(out), secret[:20]) {
				t.Errorf("it said %q, want %q and no secret", out, tt.want)
			}
		})
	}
}
