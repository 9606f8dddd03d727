package famcp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp/internal/runtime/config"
)

// project is the configuration of a generated project.
type project struct {
	Config `yaml:",inline"`
	App    struct {
		APIKey Secret `yaml:"apiKey"`
		Limit  int    `yaml:"limit" default:"5"`
	} `yaml:"app"`
}

func loadProject(yaml string, environ ...string) (*project, *config.Report, error) {
	return load[project](config.Source{Defaults: []byte(yaml), DefaultsName: "default.yaml", Environ: environ})
}

// The table of contract.md, and the names of the variables it keeps.
func TestDefaults(t *testing.T) {
	keys, err := config.Keys(Config{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	env := map[string]string{}
	for _, k := range keys {
		got[k.Path], env[k.Path] = k.Default, k.Env
		if k.Doc == "" {
			t.Errorf("%s is not documented", k.Path)
		}
	}
	for path, want := range map[string]any{
		"mcp.eras":                              "both",
		"mcp.limits.maxPayloadBytes":            int64(1 << 20),
		"mcp.limits.toolTimeoutMs":              int64(30_000),
		"mcp.limits.maxToolResultBytes":         int64(10 << 20),
		"mcp.rateLimit.maxRequests":             int64(100),
		"mcp.rateLimit.windowMs":                int64(60_000),
		"mcp.rateLimit.scope":                   "subject",
		"mcp.rateLimit.maxConcurrentPerSubject": int64(16),
		"mcp.streams.maxPerSubject":             int64(8),
		"mcp.sessions.max":                      int64(10_000),
		"mcp.sessions.idleMs":                   int64(1_800_000),
		"mcp.pagination.pageSize":               int64(100),
		"mcp.progress.throttleMs":               int64(100),
		"mcp.cacheHints.listTtlMs":              int64(60_000),
		"mcp.cacheHints.readTtlMs":              int64(0),
		"mcp.cacheHints.cacheScope":             "private",
		"mcp.mrtr.stateSecret":                  "",
		"mcp.mrtr.stateTtlSeconds":              int64(600),
		"mcp.mrtr.maxStateBytes":                int64(65_536),
		"mcp.ask.timeoutMs":                     int64(600_000),
		"mcp.ask.requestTimeoutMs":              int64(60_000),
		"mcp.ask.maxPendingPerSubject":          int64(8),
		"mcp.resources.subscribeEnabled":        false,
		"mcp.tools.inputErrors":                 "era",
		"mcp.logging.enabled":                   true,
		"mcp.logging.defaultLevel":              "info",
		"webServer.host":                        "127.0.0.1",
		"webServer.port":                        int64(3000),
		"webServer.trustProxy":                  false,
		"webServer.allowInsecureBind":           false,
		"webServer.auth.enabled":                false,
		"webServer.auth.jwtToken.mode":          "hs256",
		"webServer.auth.jwtToken.clockSkew":     int64(30),
		"logger.level":                          "info",
		"logger.format":                         "text",
	} {
		if diff := cmp.Diff(want, got[path]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	for path, want := range map[string]string{
		"mcp.limits.toolTimeoutMs":             "MCP_LIMITS_TOOL_TIMEOUT_MS",
		"mcp.cacheHints.listTtlMs":             "MCP_CACHE_LIST_TTL_MS",
		"mcp.cacheHints.cacheScope":            "MCP_CACHE_SCOPE",
		"webServer.port":                       "WS_PORT",
		"webServer.auth.enabled":               "WS_AUTH_ENABLED",
		"webServer.auth.permanentServerTokens": "WS_SERVER_TOKENS",
		"webServer.auth.jwtToken.encryptKey":   "WS_TOKEN_ENCRYPT_KEY",
		"webServer.auth.jwtToken.mode":         "WS_JWT_MODE",
		"webServer.auth.jwtToken.checkMCPName": "WS_CHECK_MC_NAME",
		"webServer.auth.jwtToken.isCheckIP":    "WS_JWT_CHECK_IP",
		"logger.level":                         "LOGGER_LEVEL",
	} {
		if env[path] != want {
			t.Errorf("variable of %s = %q, want %q", path, env[path], want)
		}
	}
}

func TestDefaultConfigIsWhatNothingLoads(t *testing.T) {
	loaded, _, err := load[Config](config.Source{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(loaded, DefaultConfig(), cmp.AllowUnexported(Config{})); diff != "" {
		t.Errorf("(-loaded +DefaultConfig):\n%s", diff)
	}
	if err := DefaultConfig().validate(); err != nil {
		t.Error(err)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "config"), 0o777); err != nil {
		t.Fatal(err)
	}
	local := "mcp: {limits: {toolTimeoutMs: 0}}\napp: {apiKey: 007, limit: 6}\n"
	if err := os.WriteFile(filepath.Join(dir, "config", "local.yaml"), []byte(local), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FAMCP_ENV", "test")
	t.Setenv("WS_PORT", "4000")
	t.Setenv("APP_LIMIT", "7")

	p, err := Load[project](dir)
	if err != nil {
		t.Fatal(err)
	}
	if p.Env != "test" || p.Production() || p.WebServer.Port != 4000 || p.App.APIKey.Reveal() != "007" || p.App.Limit != 7 {
		t.Errorf("got %+v", p)
	}
	full, err := p.completed()
	if err != nil || full.MCP.Limits.ToolTimeout != 0 {
		t.Errorf("tool timeout = %v, %v; the 0 of a file is meant", full.MCP.Limits.ToolTimeout, err)
	}

	t.Setenv("WS_PORT", "http")
	if p, err := Load[project](dir); p != nil || err == nil {
		t.Errorf("Load = %v, %v; want no configuration and an error", p, err)
	}
}

func TestCompletedLiteral(t *testing.T) {
	c := &Config{WebServer: WebServerConfig{Port: 8080}}
	full, err := c.completed()
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultConfig()
	want.WebServer.Port = 8080
	if diff := cmp.Diff(want, full, cmp.AllowUnexported(Config{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c.MCP.Eras != "" {
		t.Error("the caller's configuration was changed")
	}

	off := DefaultConfig()
	off.MCP.Limits.ToolTimeout = 0
	if full, err = off.completed(); err != nil || full.MCP.Limits.ToolTimeout != 0 {
		t.Errorf("tool timeout = %v, %v; a 0 over DefaultConfig is meant", full.MCP.Limits.ToolTimeout, err)
	}
}

func TestRules(t *testing.T) {
	tests := []struct {
		name    string
		yaml    string
		environ []string
		want    string // empty: no error
	}{
		{name: "nothing set"},
		{name: "IPv6", yaml: `webServer: {host: "::1"}`},
		{
			name: "host with port", environ: []string{"WS_HOST=localhost:3000"},
			want: `WS_HOST: webServer.host: "localhost:3000" is not an address or a name; leave out scheme, port and brackets`,
		},
		{
			name: "empty host", yaml: `webServer: {host: ""}`,
			want: `default.yaml:1: webServer.host: "" is empty; write 0.0.0.0 to listen on every address`,
		},
		{name: "port", environ: []string{"WS_PORT=65536"}, want: "WS_PORT: webServer.port: want 0 to 65535, got 65536"},
		{name: "public URL", environ: []string{"WS_PUBLIC_URL=https://mcp.example.com/base"}},
		{
			name: "public URL without scheme", environ: []string{"WS_PUBLIC_URL=mcp.example.com"},
			want: "WS_PUBLIC_URL: webServer.publicUrl: want a URL such as https://mcp.example.com",
		},
		{
			name: "public URL with a password", environ: []string{"WS_PUBLIC_URL=https://me:hunter2@mcp.example.com"},
			want: "WS_PUBLIC_URL: webServer.publicUrl: want a URL without user, query and fragment",
		},
		{
			name: "allowed host as a URL", environ: []string{"WS_ALLOWED_HOSTS=a.example,https://b.example"},
			want: `WS_ALLOWED_HOSTS: webServer.allowedHosts: "https://b.example" is not a host name; leave out scheme and path`,
		},
		{name: "trusted proxies", environ: []string{"WS_TRUSTED_PROXIES=203.0.113.7,10.1.0.0/16,2001:db8::/32"}},
		{
			name: "trusted proxy by name", environ: []string{"WS_TRUSTED_PROXIES=10.1.0.0/16,proxy.example"},
			want: `WS_TRUSTED_PROXIES: webServer.trustedProxies: "proxy.example" is neither an address nor a network such as 10.1.0.0/16`,
		},
		{name: "any origin in development", environ: []string{"WS_ORIGIN_HOSTS=*"}},
		{
			name: "any origin in production", environ: []string{"WS_ORIGIN_HOSTS=*", "FAMCP_ENV=production"},
			want: "WS_ORIGIN_HOSTS: webServer.originHosts: * is not allowed in production; list the hosts",
		},
		{
			name: "short state secret", environ: []string{"MCP_MRTR_STATE_SECRET=0123456789012345678901234567890"},
			want: "MCP_MRTR_STATE_SECRET: mcp.mrtr.stateSecret: want at least 32 characters",
		},
		{name: "state secret", environ: []string{"MCP_MRTR_STATE_SECRET=01234567890123456789012345678901"}},
		{name: "placeholder in development", environ: []string{"APP_API_KEY=changeme"}},
		{
			name: "placeholder in production", yaml: "app: {apiKey: changeme}", environ: []string{"FAMCP_ENV=production"},
			want: "default.yaml:1: app.apiKey: a placeholder is not a secret; set a random value in production",
		},
		{
			name: "era", yaml: "mcp:\n  eras: modren\n",
			want: `default.yaml:2: mcp.eras: want both or modern or legacy, got "modren"; did you mean modern?`,
		},
		{
			name: "a tag and a rule together", environ: []string{"WS_PORT=x", "WS_HOST=a b"},
			want: "WS_PORT: webServer.port: want a whole number, got \"x\"\n" +
				"WS_HOST: webServer.host: \"a b\" is not an address or a name; leave out scheme, port and brackets",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, report, err := loadProject(tt.yaml, tt.environ...)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if report == nil {
				t.Error("no report")
			}
		})
	}
}

func TestValidateOfAConfigurationSetInGo(t *testing.T) {
	c := DefaultConfig()
	c.Env = "production"
	c.MCP.Eras = "new"
	c.MCP.MRTR.StateSecret = "change-me-change-me-change-me-change-me"
	c.MCP.Ask.Timeout = -time.Second
	c.WebServer.Host = "http://localhost"
	want := `mcp.eras: want both or modern or legacy, got "new"
mcp.ask.timeoutMs: want at least 1, got -1000
webServer.host: "http://localhost" is not an address or a name; leave out scheme, port and brackets
mcp.mrtr.stateSecret: a placeholder is not a secret; set a random value in production`
	if diff := cmp.Diff(want, c.validate().Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCheckListen(t *testing.T) {
	tests := []struct {
		name    string
		environ []string
		refused bool
	}{
		{"default", nil, false},
		{"localhost", []string{"WS_HOST=LOCALHOST"}, false},
		{"loopback network", []string{"WS_HOST=127.1.2.3"}, false},
		{"IPv6 loopback", []string{"WS_HOST=::1"}, false},
		{"mapped loopback", []string{"WS_HOST=::ffff:127.0.0.1"}, false},
		{"every address", []string{"WS_HOST=0.0.0.0"}, true},
		{"every IPv6 address", []string{"WS_HOST=::"}, true},
		{"a name", []string{"WS_HOST=mcp.example.com"}, true},
		{"a name like localhost", []string{"WS_HOST=localhost.example.com"}, true},
		{"allowed", []string{"WS_HOST=0.0.0.0", "WS_ALLOW_INSECURE_BIND=true"}, false},
		{"with authentication", []string{"WS_HOST=0.0.0.0", "WS_AUTH_ENABLED=true"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, report, err := loadProject("", tt.environ...)
			if err != nil {
				t.Fatalf("stdio would not start: %v", err)
			}
			err = p.checkListen(report.Source)
			if (err != nil) != tt.refused {
				t.Fatalf("error = %v, want one: %v", err, tt.refused)
			}
			if err != nil && (!strings.HasPrefix(err.Error(), "WS_HOST: webServer.host: ") ||
				!strings.Contains(err.Error(), "webServer.allowInsecureBind")) {
				t.Errorf("error names neither source nor key: %v", err)
			}
			if (p.checkListen(nil) != nil) != tt.refused {
				t.Error("differs for a configuration set in Go")
			}
		})
	}
}
