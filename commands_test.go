package famcp

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConfigCommand(t *testing.T) {
	local := map[string]string{"local.yaml": "app:\n  greeting: hi\nmcp:\n  mrtr:\n    stateSecret: 0123456789012345678901234567890123456789\n"}
	tests := []struct {
		name    string
		args    []string
		environ []string
		want    int
		stdout  []string
		stderr  string
	}{
		{
			name: "values and sources", environ: []string{"WS_PORT=4000"},
			stdout: []string{"# environment: development\n", "config/local.yaml:2", "WS_PORT", "********"},
		},
		{
			name:   "built-in default",
			stdout: []string{"config/default.yaml (built in):2"},
		},
		{
			name: "at fault, still printed", environ: []string{"WS_PORT=x", "WS_SERVER_TOKENS=short"}, want: 1,
			stdout: []string{"webServer.port", "config/local.yaml:2"},
			stderr: "tester: WS_PORT: webServer.port: want a whole number, got \"x\"\ntester: WS_SERVER_TOKENS: webServer.auth.permanentServerTokens: ",
		},
		{
			name: "only http refuses", environ: []string{"WS_HOST=0.0.0.0"},
			stdout: []string{"0.0.0.0"}, stderr: "note: the command http would refuse this: WS_HOST: webServer.host: ",
		},
		{name: "JSON", args: []string{"--json"}, stdout: []string{`"schema": 1`, `"path": "app.greeting"`, `"source": "config/local.yaml:2"`}},
		{name: "schema", args: []string{"--schema"}, environ: []string{"WS_PORT=x"}, stdout: []string{`"$schema": "https://json-schema.org/draft/2020-12/schema"`, `"greeting"`}},
		{name: "variables", args: []string{"--env-example"}, stdout: []string{"# APP_GREETING=hello\n", "# WS_PORT=3000\n"}},
		{name: "documentation", args: []string{"--markdown"}, stdout: []string{"### `app`\n", "| `app.greeting` | `APP_GREETING` |"}},
		{name: "two forms", args: []string{"--json", "--schema"}, want: 2, stderr: "config: --json and --schema exclude each other"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, out, errOut := inProcess(t, local, tt.environ...)
			if got := p.run(t.Context(), append([]string{"config"}, tt.args...)); got != tt.want {
				t.Errorf("exit status %d, want %d", got, tt.want)
			}
			for _, part := range tt.stdout {
				checkPart(t, "stdout", out.String(), part)
			}
			checkPart(t, "stderr", errOut.String(), tt.stderr)
			if strings.Contains(out.String()+errOut.String(), "01234567890123456789") {
				t.Error("a secret is printed")
			}
		})
	}
}

func TestVersionCommand(t *testing.T) {
	tests := []struct {
		name    string
		environ []string
		want    string
	}{
		{name: "both eras", want: "2026-07-28 2025-11-25 2025-06-18 2025-03-26 2024-11-05"},
		{name: "one era", environ: []string{"MCP_ERAS=modern"}, want: "2026-07-28"},
		{name: "configuration at fault", environ: []string{"WS_PORT=x", "MCP_ERAS=modern"}, want: "2026-07-28 2025-11-25 2025-06-18 2025-03-26 2024-11-05"},
		{name: "build fails", environ: []string{"APP_FAULT=build"}, want: "2026-07-28 2025-11-25 2025-06-18 2025-03-26 2024-11-05"},
		{name: "registrations at fault", environ: []string{"APP_FAULT=tools", "MCP_ERAS=modern"}, want: "2026-07-28"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, out, errOut := inProcess(t, nil, tt.environ...)
			if got := p.run(t.Context(), []string{"version"}); got != 0 {
				t.Fatalf("exit status %d; stderr:\n%s", got, errOut)
			}
			text := out.String()
			if !strings.HasPrefix(text, "tester 1.2.3\nruntime   github.com/famcp/famcp ") || !strings.HasSuffix(text, "\nprotocol  "+tt.want+"\n") {
				t.Errorf("got:\n%s", text)
			}
			out.Reset()
			if got := p.run(t.Context(), []string{"version", "--json"}); got != 0 {
				t.Fatalf("--json: exit status %d; stderr:\n%s", got, errOut)
			}
			v, err := decode[versions](out.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			if v.Schema != 1 || v.Name != "tester" || v.Version != "1.2.3" || strings.Join(v.Revisions, " ") != tt.want {
				t.Errorf("--json: got:\n%s", out)
			}
		})
	}
}

func TestModuleVersion(t *testing.T) {
	dep := func(m debug.Module) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: "example.com/demo"}, Deps: []*debug.Module{{Path: "other"}, &m}}
	}
	tests := []struct {
		name string
		info *debug.BuildInfo
		want string
	}{
		{"required", dep(debug.Module{Path: modulePath, Version: "v1.2.3"}), "v1.2.3"},
		{"vendored", dep(debug.Module{Path: modulePath, Version: "v1.2.3", Replace: &debug.Module{Path: "./third_party/famcp"}}), "v1.2.3 (./third_party/famcp)"},
		{"forked", dep(debug.Module{Path: modulePath, Version: "v1.2.3", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.2.4"}}), "v1.2.3 (example.com/fork v1.2.4)"},
		{"itself", &debug.BuildInfo{Main: debug.Module{Path: modulePath}}, "(devel)"},
		{"absent", &debug.BuildInfo{}, "unknown"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := moduleVersion(tt.info, modulePath); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestHealthCommand(t *testing.T) {
	healthy := true
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/ready":
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte("{\"status\":\n \"draining\"}\n"))
		case r.URL.Path == "/health" && healthy:
			_, _ = w.Write([]byte(`{"status":"ok"}`))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer srv.Close()
	_, port, err := net.SplitHostPort(srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		args    []string
		environ []string
		want    int
		stdout  string
		stderr  string
	}{
		{name: "healthy", environ: []string{"WS_PORT=" + port}, stdout: "http://127.0.0.1:" + port + "/health: 200 OK {\"status\":\"ok\"}\n"},
		{name: "listening everywhere", environ: []string{"WS_HOST=0.0.0.0", "WS_PORT=" + port}, stdout: "http://127.0.0.1:" + port + "/health: 200 OK"},
		{name: "listening everywhere, both families", environ: []string{"WS_HOST=::", "WS_PORT=" + port}, stdout: ":" + port + "/health: 200 OK"},
		{name: "not ready", args: []string{"--ready"}, environ: []string{"WS_PORT=" + port}, want: 1, stdout: "/ready: 503 Service Unavailable {\"status\": \"draining\"}\n"},
		{name: "nobody there", environ: []string{"WS_PORT=1"}, want: 1, stderr: "http://127.0.0.1:1/health"},
		{name: "any port", environ: []string{"WS_PORT=0"}, want: 1, stderr: "webServer.port is 0"},
		{name: "configuration at fault", environ: []string{"WS_PORT=x"}, want: 1, stderr: "tester: WS_PORT: webServer.port: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, out, errOut := inProcess(t, nil, tt.environ...)
			p.assemble = func(context.Context, Configured) (*Server, error) {
				t.Error("the server is made")
				return nil, nil
			}
			if got := p.run(t.Context(), append([]string{"health"}, tt.args...)); got != tt.want {
				t.Errorf("exit status %d, want %d", got, tt.want)
			}
			checkPart(t, "stdout", out.String(), tt.stdout)
			checkPart(t, "stderr", errOut.String(), tt.stderr)
		})
	}
}

func TestReachable(t *testing.T) {
	for host, want := range map[string][]string{
		"127.0.0.1": {"127.0.0.1"}, "0.0.0.0": {"127.0.0.1"}, "::": {"::1", "127.0.0.1"},
		"::1": {"::1"}, "10.0.0.7": {"10.0.0.7"}, "localhost": {"localhost"},
	} {
		if diff := cmp.Diff(want, reachable(host)); diff != "" {
			t.Errorf("reachable(%q) (-want +got):\n%s", host, diff)
		}
	}
}

func TestToolsCommand(t *testing.T) {
	p, out, errOut := inProcess(t, nil)
	if got := p.run(t.Context(), []string{"tools"}); got != 0 {
		t.Fatalf("exit status %d; stderr:\n%s", got, errOut)
	}
	want := `NAME       EFFECT     DESCRIPTION
collector  read-only  Tells how the collector is set.
echo       read-only  Gives back what it is given.
erase      high risk  Erase
fail       read-only  Fails.
greet      read-only  Greets.
login      read-only  Logs in.
order      low risk   Orders.
wait       read-only  Waits at the gate.
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestToolsCommandJSONIsTheListOfTheEra(t *testing.T) {
	for _, era := range []string{"modern", "legacy"} {
		p, out, errOut := inProcess(t, nil)
		if got := p.run(t.Context(), []string{"tools", "--json", "--era", era}); got != 0 {
			t.Fatalf("%s: exit status %d; stderr:\n%s", era, got, errOut)
		}
		var list struct {
			Tools []struct {
				Name         string          `json:"name"`
				InputSchema  json.RawMessage `json:"inputSchema"`
				Annotations  map[string]any  `json:"annotations"`
				OutputSchema json.RawMessage `json:"outputSchema"`
			} `json:"tools"`
		}
		if err := json.Unmarshal(out.Bytes(), &list); err != nil {
			t.Fatal(err)
		}
		if len(list.Tools) != 8 || list.Tools[1].Name != "echo" || list.Tools[1].InputSchema == nil || list.Tools[1].OutputSchema == nil {
			t.Errorf("%s: got:\n%s", era, out)
		}
	}
}

func TestToolsCommandShowsOne(t *testing.T) {
	p, out, errOut := inProcess(t, nil)
	if got := p.run(t.Context(), []string{"tools", "echo"}); got != 0 {
		t.Fatalf("exit status %d; stderr:\n%s", got, errOut)
	}
	want := `echo (read-only)

Gives back what it is given.
And no more.

Arguments:
  any    any
  count  integer
  loud   boolean
  more   object
  ratio  number
  tags   array
  text   string     what to say
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := p.run(t.Context(), []string{"tools", "eco"}); got != 2 {
		t.Errorf("unknown tool: exit status %d, want 2", got)
	}
	checkPart(t, "stderr", errOut.String(), `there is no tool "eco"; did you mean "echo"?; the tools are collector, echo,`)
}

func TestToolsCommandOfAnEmptyServer(t *testing.T) {
	p, out, errOut := inProcess(t, nil)
	p.assemble = func(_ context.Context, cfg Configured) (*Server, error) {
		return New(cfg.config(), Info{Name: "empty", Version: "1"})
	}
	if got := p.run(t.Context(), []string{"tools"}); got != 0 || out.String() != "This server has no tools.\n" {
		t.Errorf("exit status %d, stdout %q, stderr %q", got, out, errOut)
	}
	if got := p.run(t.Context(), []string{"call", "x"}); got != 2 || !strings.Contains(errOut.String(), "this server has none") {
		t.Errorf("exit status %d, stderr %q", got, errOut)
	}
}

func TestReadable(t *testing.T) {
	for in, want := range map[string]string{
		`"\u003ca\u003e \u0026"`: `"<a> &"`,
		`"\\u003c"`:              `"\\u003c"`,
		`"\\\u003c\""`:           `"\\<\""`,
	} {
		if got := string(readable([]byte(in))); got != want {
			t.Errorf("readable(%s) = %s, want %s", in, got, want)
		}
	}
}
