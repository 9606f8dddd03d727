package famcp

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
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp/internal/runtime/config"
)

// asProgram makes the test binary a program on Main, for tests that need a
// process. gate is the URL at which its tool wait announces itself and waits.
const (
	asProgram = "FAMCP_TEST_AS_PROGRAM"
	gate      = "FAMCP_TEST_GATE"
)

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		Main(buildTestServer, testDefaults)
	}
	os.Exit(m.Run())
}

var testDefaults = Defaults{
	Config: []byte("webServer:\n  port: 0\n"),
	FS:     fstest.MapFS{"README.md": {Data: []byte("# Read me\n")}},
}

// testConfig is the configuration of the test program.
type testConfig struct {
	Config `yaml:",inline"`
	App    struct {
		Fault    string `yaml:"fault" doc:"What goes wrong when the server is made."`
		Greeting string `yaml:"greeting" default:"hello" doc:"What echo says first."`
	} `yaml:"app"`
}

type echoIn struct {
	Text  string         `json:"text,omitempty" jsonschema:"what to say"`
	Count int            `json:"count,omitempty"`
	Ratio float64        `json:"ratio,omitempty"`
	Loud  *bool          `json:"loud,omitempty"`
	Tags  []string       `json:"tags,omitempty"`
	More  map[string]any `json:"more,omitempty"`
	Any   any            `json:"any,omitempty"`
}

func buildTestServer(_ context.Context, cfg *testConfig) (*Server, error) {
	stray("printed while building")
	if cfg.App.Fault == "build" {
		return nil, errors.Join(errors.New("no database"), errors.New("no\nqueue"))
	}
	s, err := New(&cfg.Config, Info{Name: "tester", Version: "1.2.3", Title: "Tester"})
	if err != nil {
		return nil, err
	}
	if cfg.App.Fault == "tools" {
		AddTool(s, Tool{Name: "Bad Name"}, func(context.Context, *Call, struct{}) (string, error) { return "", nil })
		AddTool(s, Tool{Name: "undescribed", Effect: ReadOnly()}, func(context.Context, *Call, struct{}) (string, error) { return "", nil })
	}
	if cfg.App.Fault == "stop" {
		s.OnStop("cleaner", func(context.Context) error { return errors.New("stuck") })
	}
	AddTool(s, Tool{Name: "echo", Description: "Gives back what it is given.\nAnd no more.", Effect: ReadOnly()},
		func(_ context.Context, _ *Call, in echoIn) (echoIn, error) { return in, nil })
	AddTool(s, Tool{Name: "greet", Description: "Greets.", Effect: ReadOnly()},
		func(_ context.Context, call *Call, _ struct{}) (string, error) {
			stray("printed while serving")
			call.Notify("info", "about to greet", nil)
			call.Progress(1, 2, "half way")
			return cfg.App.Greeting + " over " + call.Era(), nil
		})
	if cfg.WebServer.Auth.Enabled || cfg.MCP.Stdio.Token != "" {
		AddTool(s, Tool{Name: "audit", Description: "Tells who calls.", Effect: ReadOnly(), Access: Access{Scopes: []string{"audit"}}},
			func(_ context.Context, call *Call, _ struct{}) (string, error) {
				return fmt.Sprint(call.Subject(), " ", call.Scopes()), nil
			})
	}
	AddTool(s, Tool{Name: "fail", Description: "Fails.", Effect: ReadOnly()},
		func(context.Context, *Call, struct{}) (string, error) { return "", Failf("out of paper") })
	AddTool(s, Tool{Name: "erase", Title: "Erase", Description: "Erases.", Effect: Mutates(HighRisk, "everything is gone")},
		func(_ context.Context, call *Call, _ struct{}) (string, error) {
			yes, err := call.Confirm("sure", "Erase everything?")
			if err != nil || !yes {
				return "kept", err
			}
			return "erased", nil
		})
	AddTool(s, Tool{Name: "order", Description: "Orders.", Effect: Mutates(LowRisk, "an order is placed")},
		func(_ context.Context, call *Call, _ struct{}) (order, error) {
			return Elicit[order](call, "order", "What may it be?")
		})
	AddTool(s, Tool{Name: "login", Description: "Logs in.", Effect: ReadOnly()},
		func(_ context.Context, call *Call, _ struct{}) (string, error) {
			return "in", call.Visit("page", "https://example.com/login", "Please log in.")
		})
	AddTool(s, Tool{Name: "wait", Description: "Waits at the gate.", Effect: ReadOnly()},
		func(ctx context.Context, _ *Call, _ struct{}) (string, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, os.Getenv(gate), nil)
			if err != nil {
				return "", err
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				return "", err
			}
			return "waited", res.Body.Close()
		})
	AddTool(s, Tool{Name: "collector", Description: "Tells how the collector is set.", Effect: ReadOnly()},
		func(context.Context, *Call, struct{}) (string, error) {
			percent := debug.SetGCPercent(100)
			debug.SetGCPercent(percent)
			return strconv.Itoa(percent), nil
		})
	return s, nil
}

// stray prints what a program should not, where there is a process to see it.
func stray(text string) {
	if os.Getenv(asProgram) != "" {
		fmt.Println(text)
	}
}

type order struct {
	Dish  string `json:"dish" jsonschema:"what to eat"`
	Count int    `json:"count"`
	Note  string `json:"note,omitempty"`
}

// inProcess returns the test program with its output, in a directory of its
// own that holds files.
func inProcess(t *testing.T, files map[string]string, environ ...string) (p *program, out, errOut *bytes.Buffer) {
	t.Helper()
	p = newProgram(buildTestServer, testDefaults)
	out, errOut = new(bytes.Buffer), new(bytes.Buffer)
	dir := t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(dir+"/config", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/config/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.name, p.in, p.out, p.err, p.interactive = "tester", strings.NewReader(""), out, errOut, false
	p.source = config.Source{Defaults: testDefaults.Config, Dir: dir, Environ: environ}
	return p, out, errOut
}

func TestRunExitStatusAndMessages(t *testing.T) {
	tests := []struct {
		name    string
		args    string
		environ []string
		want    int
		stdout  string // a part; "" means nothing at all
		stderr  string // likewise
	}{
		{name: "no command", want: 0, stdout: "Usage: tester COMMAND"},
		{name: "help", args: "help", want: 0, stdout: "  call     call one tool"},
		{name: "help option", args: "--help", want: 0, stdout: "Usage: tester COMMAND"},
		{name: "help of a command", args: "help call", want: 0, stdout: "Usage: tester call [OPTIONS] TOOL"},
		{name: "help option of a command", args: "tools -h", want: 0, stdout: "Usage: tester tools [OPTIONS] [TOOL]\n"},
		{name: "help of nothing", args: "help cal", want: 2, stderr: "tester: unknown command \"cal\"; did you mean \"call\"?\nSee \"tester help\".\n"},
		{name: "unknown command", args: "serve", want: 2, stderr: "tester: unknown command \"serve\"\n"},
		{name: "misspelt command", args: "stdoi", want: 2, stderr: "did you mean \"stdio\"?"},
		{name: "option first", args: "-x", want: 2, stderr: "unknown option -x; a command comes first"},
		{name: "unknown option", args: "tools --jsn", want: 2, stderr: "tester: tools: unknown option --jsn\nSee \"tester help tools\".\n"},
		{name: "bad option value", args: "call greet --era old", want: 2, stderr: "want modern or legacy"},
		{name: "operand where none is taken", args: "http 3000", want: 2, stderr: "http takes no argument, got \"3000\""},
		{
			name: "configuration at fault", args: "http", environ: []string{"WS_PORT=x", "LOGGER_LEVEL=loud"}, want: 1,
			stderr: "tester: WS_PORT: webServer.port: want a whole number, got \"x\"\ntester: LOGGER_LEVEL: ",
		},
		{
			name: "authentication by nothing", args: "http", environ: []string{"WS_AUTH_ENABLED=true"}, want: 1,
			stderr: "tester: webServer.auth.enabled: nobody could get in; set",
		},
		{
			name: "short token", args: "http", environ: []string{"WS_AUTH_ENABLED=true", "WS_SERVER_TOKENS=abcdefghijklmnopqrs"}, want: 1,
			stderr: "tester: WS_SERVER_TOKENS: webServer.auth.permanentServerTokens: token 1 is shorter than 20 characters",
		},
		{
			name: "nobody checks the token", args: "stdio", environ: []string{"MCP_STDIO_TOKEN=abc"}, want: 1,
			stderr: "tester: mcp.stdio.token (MCP_STDIO_TOKEN): nothing can check it",
		},
		{name: "open to the network", args: "http", environ: []string{"WS_HOST=0.0.0.0"}, want: 1, stderr: "tester: WS_HOST: webServer.host: 0.0.0.0 is reachable"},
		{name: "build fails", args: "http", environ: []string{"APP_FAULT=build"}, want: 1, stderr: "tester: no database\ntester: no queue\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, out, errOut := inProcess(t, nil, tt.environ...)
			if got := p.run(t.Context(), strings.Fields(tt.args)); got != tt.want {
				t.Errorf("exit status %d, want %d", got, tt.want)
			}
			checkPart(t, "stdout", out.String(), tt.stdout)
			checkPart(t, "stderr", errOut.String(), tt.stderr)
		})
	}
}

func TestRunListsEveryRegistrationFault(t *testing.T) {
	p, _, errOut := inProcess(t, nil, "APP_FAULT=tools")
	if got := p.run(t.Context(), []string{"http"}); got != 1 {
		t.Errorf("exit status %d, want 1", got)
	}
	faults := map[string]int{}
	for line := range strings.Lines(errOut.String()) {
		tool, _, _ := strings.Cut(strings.TrimPrefix(line, "tester: tool "), ":")
		faults[tool]++
	}
	want := map[string]int{`"Bad Name"`: 3, `"undescribed"`: 1} // name, description, effect; description
	if diff := cmp.Diff(want, faults); diff != "" {
		t.Errorf("lines by tool (-want +got):\n%s\n%s", diff, errOut)
	}
}

// checkPart wants part in text, or with an empty part an empty text.
func checkPart(t *testing.T, what, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) || part == "" && text != "" {
		t.Errorf("%s is %q, want %q in it", what, text, part)
	}
}

func TestEveryCommandHasHelp(t *testing.T) {
	for _, c := range commands() {
		text := c.help("tester")
		if !strings.HasPrefix(text, "Usage: tester "+c.name+" [OPTIONS]") || strings.Contains(text, "NAME call") {
			t.Errorf("help of %s:\n%s", c.name, text)
		}
	}
}

func TestFaultLines(t *testing.T) {
	a, b := errors.New("a"), errors.New("b")
	tests := []struct {
		name string
		err  error
		want []string
	}{
		{"one", a, []string{"a"}},
		{"said already", errors.Join(errReported, a), []string{"a"}},
		{"joined", errors.Join(a, errors.Join(b, nil)), []string{"a", "b"}},
		{"wrapped", fmt.Errorf("reading: %w", a), []string{"reading: a"}},
		{"joined ones wrapped", fmt.Errorf("tool: %w", errors.Join(a, b)), []string{"tool: a", "tool: b"}},
		{"two in a sentence", fmt.Errorf("%w after %w", a, b), []string{"a after b"}},
		{"wrapped in the middle", fmt.Errorf("<%w>", errors.Join(a, b)), []string{"<a b>"}},
		{"several lines", errors.New("a\n  b"), []string{"a b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, faultLines(tt.err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDidYouMean(t *testing.T) {
	names := []string{"http", "stdio", "call", "tools", "config", "health", "version"}
	for name, want := range map[string]string{
		"htp": "http", "tool": "tools", "versin": "version", "conf": "config", "hp": "", "serve": "", "run": "", "": "", "x": "",
	} {
		if want != "" {
			want = fmt.Sprintf("; did you mean %q?", want)
		}
		if got := didYouMean(name, names); got != want {
			t.Errorf("didYouMean(%q) = %q, want %q", name, got, want)
		}
	}
}

// process is the test program as a process of its own.
type process struct {
	*exec.Cmd
	stderr lines
}

// lines collects what a process writes and tells when a part is there.
type lines struct {
	mu    sync.Mutex
	text  strings.Builder
	grown chan struct{}
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(b)
	if l.grown != nil {
		close(l.grown)
		l.grown = nil
	}
	return len(b), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// waitFor returns the first match of pattern.
func (l *lines) waitFor(t *testing.T, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	deadline := time.After(20 * time.Second)
	for {
		l.mu.Lock()
		text := l.text.String()
		if l.grown == nil {
			l.grown = make(chan struct{})
		}
		grown := l.grown
		l.mu.Unlock()
		if m := re.FindStringSubmatch(text); m != nil {
			return m
		}
		select {
		case <-grown:
		case <-deadline:
			t.Fatalf("no %q in:\n%s", pattern, text)
		}
	}
}

// newProcess prepares the program in an empty directory, with environ and no
// setting of the environment that tests run in.
func newProcess(t *testing.T, environ []string, args ...string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.CommandContext(t.Context(), exe, args...)}
	p.Dir = t.TempDir()
	p.Env = append([]string{asProgram + "=1", "HOME=" + p.Dir}, environ...)
	for _, name := range []string{"SYSTEMROOT", "GOCOVERDIR"} {
		if v := os.Getenv(name); v != "" {
			p.Env = append(p.Env, name+"="+v)
		}
	}
	p.Stderr = &p.stderr
	return p
}

// exit waits for the end of the process and returns its status.
func (p *process) exit(t *testing.T) int {
	t.Helper()
	var exit *exec.ExitError
	if err := p.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return p.ProcessState.ExitCode()
}

// newGate returns the setting for the tool wait, a channel that gets a value
// when the tool has come to the gate, and what opens it.
func newGate(t *testing.T) (environ string, entered <-chan struct{}, open func()) {
	t.Helper()
	came, opened := make(chan struct{}, 1), make(chan struct{})
	open = sync.OnceFunc(func() { close(opened) })
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		came <- struct{}{}
		select {
		case <-opened:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(open)
	return gate + "=" + srv.URL, came, open
}

const waitCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","_meta":{` +
	`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`

func postModern(ctx context.Context, url, tool, body string) (status int, answer string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool,
	} {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}

func skipWithoutSignals(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a test cannot signal a process here")
	}
}

func TestTermFinishesTheRunningCall(t *testing.T) {
	skipWithoutSignals(t)
	environ, entered, open := newGate(t)
	p := newProcess(t, []string{environ}, "http")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	url := p.stderr.waitFor(t, `url=(http://\S+)`)[1]
	answers := make(chan string, 1)
	go func() {
		status, answer, err := postModern(t.Context(), url, "wait", waitCall)
		answers <- fmt.Sprint(status, " ", answer, " ", err)
	}()
	<-entered
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.stderr.waitFor(t, "msg=stopping")
	open()
	if got := <-answers; !strings.HasPrefix(got, "200 ") || !strings.Contains(got, "waited") {
		t.Errorf("the running call got %s", got)
	}
	if got := p.exit(t); got != 0 {
		t.Errorf("exit status %d, want 0; stderr:\n%s", got, &p.stderr)
	}
}

func TestSecondSignalLeavesAtOnce(t *testing.T) {
	skipWithoutSignals(t)
	environ, entered, _ := newGate(t)
	p := newProcess(t, []string{environ}, "http")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	url := p.stderr.waitFor(t, `url=(http://\S+)`)[1]
	go func() { _, _, _ = postModern(t.Context(), url, "wait", waitCall) }() // loses its connection
	<-entered
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.stderr.waitFor(t, "msg=stopping")
	start := time.Now()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := p.exit(t); got != 130 {
		t.Errorf("exit status %d, want 130; stderr:\n%s", got, &p.stderr)
	}
	if took := time.Since(start); took >= grace {
		t.Errorf("it took %s, as long as the grace period", took)
	}
}

func TestInterruptedCallIsCancelled(t *testing.T) {
	skipWithoutSignals(t)
	environ, entered, _ := newGate(t)
	p := newProcess(t, []string{environ}, "call", "wait")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	<-entered
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if got := p.exit(t); got != 130 {
		t.Errorf("exit status %d, want 130", got)
	}
	if got := p.stderr.String(); !strings.HasSuffix(got, ": interrupted\n") {
		t.Errorf("stderr:\n%s", got)
	}
}

func TestTermEndsStdio(t *testing.T) {
	skipWithoutSignals(t)
	p := newProcess(t, nil, "stdio")
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close() // stays open until the process has ended
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	if !bufio.NewScanner(out).Scan() {
		t.Fatalf("no answer; stderr:\n%s", &p.stderr)
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := p.exit(t); got != 0 {
		t.Errorf("exit status %d, want 0; stderr:\n%s", got, &p.stderr)
	}
}

// The program prints while it is made and in a handler; both must miss the
// protocol's stream.
func TestStdioKeepsOutputToTheProtocol(t *testing.T) {
	p := newProcess(t, []string{"LOGGER_LEVEL=debug"}, "stdio")
	p.Stdin = strings.NewReader(strings.Join([]string{
		`not JSON`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"greet"}}`,
		strings.NewReplacer(`"wait"`, `"greet"`, `"id":1`, `"id":3`).Replace(waitCall),
	}, "\n") + "\n")
	var out bytes.Buffer
	p.Stdout = &out
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if got := p.exit(t); got != 0 {
		t.Errorf("exit status %d, want 0; stderr:\n%s", got, &p.stderr)
	}
	var answers []string
	for line := range strings.Lines(out.String()) {
		var m struct {
			JSONRPC string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Result  *struct {
				Content []struct{ Text string } `json:"content"`
			} `json:"result"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.JSONRPC != "2.0" {
			t.Errorf("not a message: %s", line)
		}
		if m.Result != nil && len(m.Result.Content) == 1 {
			answers = append(answers, string(m.ID)+" "+m.Result.Content[0].Text)
		}
	}
	want := map[string]bool{"2 hello over legacy": true, "3 hello over modern": true}
	got := map[string]bool{}
	for _, a := range answers {
		got[a] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s\n%s", diff, &out)
	}
	for _, printed := range []string{"printed while building", "printed while serving"} {
		if !strings.Contains(p.stderr.String(), printed) {
			t.Errorf("%q is not on standard error:\n%s", printed, &p.stderr)
		}
	}
}

func TestProcessExitStatus(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	_, port, err := net.SplitHostPort(busy.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		args    []string
		environ []string
		want    int
		stderr  string
	}{
		{name: "done", args: []string{"config", "--schema"}},
		{name: "address in use", args: []string{"http"}, environ: []string{"WS_PORT=" + port}, want: 1, stderr: "choose another webServer.port (WS_PORT)"},
		{name: "tool fails", args: []string{"call", "fail"}, want: 1, stderr: "out of paper\n"},
		{name: "usage", args: []string{"call"}, want: 2, stderr: "call needs the name of a tool"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newProcess(t, tt.environ, tt.args...)
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			if got := p.exit(t); got != tt.want {
				t.Errorf("exit status %d, want %d", got, tt.want)
			}
			checkPart(t, "stderr", p.stderr.String(), tt.stderr)
		})
	}
}

func TestMainTunesTheCollector(t *testing.T) {
	tests := []struct {
		name, setting, want string
	}{
		{"by itself", "", "400"},
		{"left as set", "GOGC=150", "150"},
		{"left off", "GOGC=off", "-1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newProcess(t, []string{tt.setting}, "call", "collector")
			var out bytes.Buffer
			p.Stdout = &out
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			if code := p.exit(t); code != 0 {
				t.Fatalf("exit status %d; stderr:\n%s", code, &p.stderr)
			}
			if got := out.String(); got != tt.want+"\n" {
				t.Errorf("got %q, want GOGC %s", got, tt.want)
			}
		})
	}
}
