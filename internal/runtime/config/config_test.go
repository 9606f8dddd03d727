package config_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp/internal/runtime/config"
)

// hidden is a type that is secret by its method alone.
type hidden string

func (h hidden) Reveal() string { return string(h) }

type common struct {
	MCP struct {
		Eras    string        `yaml:"eras" default:"both" enum:"both,modern,legacy" doc:"Served eras."`
		Timeout time.Duration `yaml:"timeoutMs" unit:"ms" default:"30000" min:"0" max:"60000"`
		Cache   struct {
			TTL time.Duration `yaml:"listTtl" unit:"s" default:"60"`
		} `yaml:"cacheHints" env:"MCP_CACHE"`
	} `yaml:"mcp"`
	WebServer struct {
		Host     string   `yaml:"host" default:"127.0.0.1"`
		Port     int      `yaml:"port" default:"3000" min:"0" max:"65535"`
		Hosts    []string `yaml:"allowedHosts" max:"3"`
		Insecure bool     `yaml:"allowInsecureBind"`
		Name     bool     `yaml:"checkMCPName" env:"WS_CHECK_MC_NAME"`
	} `yaml:"webServer"`
}

type settings struct {
	common  `yaml:",inline"`
	Skipped string `yaml:"-"`
	App     struct {
		APIKey string   `yaml:"apiKey" secret:"true" min:"8"`
		Token  hidden   `yaml:"token"`
		Tokens []hidden `yaml:"tokens"`
		PIN    string   `yaml:"pin" env:"-"`
		Ratio  float64  `yaml:"ratio" default:"0.5" min:"0" max:"1"`
		Small  uint8    `yaml:"small" default:"7"`
		Ports  []int    `yaml:"ports" default:"1,2"`
		Kinds  []string `yaml:"kinds" enum:"red,green"`
		Code   int      `yaml:"code" secret:"true" max:"99"`
	} `yaml:"app"`
}

// load loads settings from one YAML text and variables.
func load(t *testing.T, yaml string, environ ...string) (*settings, *config.Report, error) {
	t.Helper()
	var s settings
	r, err := config.Load(&s, config.Source{Defaults: []byte(yaml), DefaultsName: "default.yaml", Environ: environ})
	if r == nil {
		t.Fatalf("the test's own struct is at fault: %v", err)
	}
	return &s, r, err
}

func TestLayers(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "default.yaml", "webServer: {port: 3002}\n")
	write(t, dir, "development.yaml", "webServer: {port: 3003}\n")
	write(t, dir, "staging.yaml", "webServer: {port: 3004}\n")
	write(t, dir, "local.yaml", "\nwebServer:\n  port: 3005\n")
	builtIn := []byte("webServer: {port: 3001, host: localhost}\n")

	tests := []struct {
		name    string
		remove  []string
		src     config.Source
		want    int
		source  string
		wantEnv string
	}{
		{name: "tags", src: config.Source{}, want: 3000, source: "default"},
		{name: "built in", src: config.Source{Defaults: builtIn}, want: 3001, source: "config/default.yaml (built in):1"},
		{
			name: "all files", src: config.Source{Defaults: builtIn, Dir: dir},
			want: 3005, source: "config/local.yaml:3",
		},
		{
			name: "variable", src: config.Source{Defaults: builtIn, Dir: dir, Environ: []string{"WS_PORT=1", "WS_PORT=3006"}},
			want: 3006, source: "WS_PORT",
		},
		{
			name: "empty variable is unset", src: config.Source{Dir: dir, Environ: []string{"WS_PORT="}},
			want: 3005, source: "config/local.yaml:3",
		},
		{
			name: "environment file", remove: []string{"local.yaml"},
			src:  config.Source{Dir: dir, Environ: []string{"FAMCP_ENV=staging"}},
			want: 3004, source: "config/staging.yaml:1", wantEnv: "staging",
		},
		{
			name: "development by default", src: config.Source{Dir: dir, Environ: []string{"FAMCP_ENV="}},
			want: 3003, source: "config/development.yaml:1",
		},
		{
			name: "environment without a file", src: config.Source{Defaults: builtIn, Dir: dir, Environ: []string{"FAMCP_ENV=production"}},
			want: 3002, source: "config/default.yaml:1", wantEnv: "production",
		},
		{name: "no directory", src: config.Source{Dir: filepath.Join(dir, "absent")}, want: 3000, source: "default"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, name := range tt.remove { // later cases go without it too
				if err := os.Remove(filepath.Join(dir, "config", name)); err != nil {
					t.Fatal(err)
				}
			}
			var s settings
			r, err := config.Load(&s, tt.src)
			if err != nil {
				t.Fatal(err)
			}
			if s.WebServer.Port != tt.want || r.Source("webServer.port") != tt.source {
				t.Errorf("port = %d from %q, want %d from %q", s.WebServer.Port, r.Source("webServer.port"), tt.want, tt.source)
			}
			if r.Env != tt.wantEnv && (tt.wantEnv != "" || r.Env != config.DefaultEnv) {
				t.Errorf("environment = %q, want %q or the default", r.Env, tt.wantEnv)
			}
			if tt.src.Defaults != nil && s.WebServer.Host != "localhost" {
				t.Errorf("host = %q, want localhost: files lie over the built-in defaults, they do not replace them", s.WebServer.Host)
			}
		})
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "config"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config", name), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestValues(t *testing.T) {
	tests := []struct {
		name    string
		yaml    string
		environ []string
		got     func(*settings) any
		want    any
	}{
		{"digits stay text", "app: {apiKey: 00123456789012345678901234567890}", nil, func(s *settings) any { return s.App.APIKey }, "00123456789012345678901234567890"},
		{"leading zeros", "app: {pin: 0042}", nil, func(s *settings) any { return s.App.PIN }, "0042"},
		{"exponent stays text", "app: {pin: 1e400}", nil, func(s *settings) any { return s.App.PIN }, "1e400"},
		{"date stays text", "app: {pin: 2026-11-30}", nil, func(s *settings) any { return s.App.PIN }, "2026-11-30"},
		{"boolean word stays text", "app: {pin: true}", nil, func(s *settings) any { return s.App.PIN }, "true"},
		{"quoted null is text", `app: {pin: "null"}`, nil, func(s *settings) any { return s.App.PIN }, "null"},
		{"block text", "app:\n  pin: |\n    a\n    b\n", nil, func(s *settings) any { return s.App.PIN }, "a\nb\n"},
		{"empty text empties", `webServer: {host: ""}`, nil, func(s *settings) any { return s.WebServer.Host }, ""},
		{"null keeps", "webServer: {port: null, host: ~}\nmcp:\n", nil, func(s *settings) any { return fmt.Sprint(s.WebServer.Port, s.WebServer.Host, s.MCP.Eras) }, "3000127.0.0.1both"},
		{"comments only", "# nothing\n", nil, func(s *settings) any { return s.WebServer.Port }, 3000},
		{"milliseconds", "mcp: {timeoutMs: 1500}", nil, func(s *settings) any { return s.MCP.Timeout }, 1500 * time.Millisecond},
		{"seconds by prefix", "", []string{"MCP_CACHE_LIST_TTL=5"}, func(s *settings) any { return s.MCP.Cache.TTL }, 5 * time.Second},
		{"kept name", "", []string{"WS_CHECK_MC_NAME=on"}, func(s *settings) any { return s.WebServer.Name }, true},
		{"whole path", "", []string{"APP_RATIO= 0.25 "}, func(s *settings) any { return s.App.Ratio }, 0.25},
		{"no variable", "", []string{"APP_PIN=1"}, func(s *settings) any { return s.App.PIN }, ""},
		{"list by comma", "", []string{"WS_ALLOWED_HOSTS=a, b,"}, func(s *settings) any { return s.WebServer.Hosts }, []string{"a", "b"}},
		{"list replaces", "app: {ports: [9]}", nil, func(s *settings) any { return s.App.Ports }, []int{9}},
		{"empty list", "app: {ports: []}", nil, func(s *settings) any { return len(s.App.Ports) }, 0},
		{"list of secrets", "app: {tokens: [001, b]}", nil, func(s *settings) any { return s.App.Tokens }, []hidden{"001", "b"}},
		{"alias", "app: {pin: &p 007, apiKey: \"long enough\"}\nwebServer: {host: *p}", nil, func(s *settings) any { return s.WebServer.Host }, "007"},
		{"unknown variables", "", []string{"MCP_TIMEOUT=soon", "WS_NOTHING=1", "=C:=x", "broken"}, func(s *settings) any { return s.MCP.Timeout }, 30 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, _, err := load(t, tt.yaml, tt.environ...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, tt.got(s)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	long := strings.Repeat("x, ", 1001)
	tests := []struct {
		name    string
		yaml    string
		environ []string
		want    string
	}{
		{"misspelt key", "webServer:\n  prot: 1", nil, "default.yaml:2: webServer.prot: unknown key; did you mean webServer.port?"},
		{"other case", "web_server: {}", nil, "default.yaml:1: web_server: unknown key; did you mean webServer?"},
		{"misplaced key", "port: 1", nil, "default.yaml:1: port: unknown key; did you mean webServer.port?"},
		{"dotted key", "webServer.port: 1", nil, "default.yaml:1: webServer.port: unknown key; write its parts as nested mappings instead of with dots"},
		{"foreign key", "mcp: {colour: red}", nil, "default.yaml:1: mcp.colour: unknown key; known here: eras, timeoutMs, cacheHints"},
		{"skipped field", "Skipped: x", nil, "default.yaml:1: Skipped: unknown key; known here: mcp, webServer, app"},
		{"duplicate", "webServer: {host: a}\napp: {}\nwebServer: {port: 2}", nil, "default.yaml:3: webServer: set twice; the first time in line 1"},
		{"fraction", "webServer: {port: 1.0}", nil, `default.yaml:1: webServer.port: want a whole number, got "1.0"`},
		{"fraction in a variable", "", []string{"WS_PORT=1.5"}, `WS_PORT: webServer.port: want a whole number, got "1.5"`},
		{"octal look", "webServer: {port: 0755}", nil, `default.yaml:1: webServer.port: want a whole number, got "0755"`},
		{"quoted number", `webServer: {port: "3"}`, nil, "default.yaml:1: webServer.port: want an integer, got a quoted text; remove the quotes"},
		{"old boolean", "webServer: {allowInsecureBind: yes}", nil, `default.yaml:1: webServer.allowInsecureBind: want true or false, got "yes"`},
		{"boolean variable", "", []string{"WS_ALLOW_INSECURE_BIND=maybe"}, `WS_ALLOW_INSECURE_BIND: webServer.allowInsecureBind: want true or false, got "maybe"`},
		{"mapping for a value", "webServer: {port: {a: 1}}", nil, "default.yaml:1: webServer.port: want an integer, got a mapping"},
		{"value for a section", "webServer: 1", nil, "default.yaml:1: webServer: want a mapping of keys, got a single value"},
		{"list at the top", "- a", nil, "default.yaml:1: want a mapping of keys, got a list"},
		{"value for a list", "app: {ports: 3}", nil, "default.yaml:1: app.ports: want a list of integers, got a single value"},
		{"null in a list", "app:\n  ports:\n  - 1\n  -", nil, "default.yaml:3: app.ports: item 2: want an integer, got nothing"},
		{"out of range", "webServer: {port: 65536}", nil, "default.yaml:1: webServer.port: want 0 to 65535, got 65536"},
		{"range of a duration", "", []string{"MCP_TIMEOUT_MS=60001"}, "MCP_TIMEOUT_MS: mcp.timeoutMs: want 0 to 60000, got 60001"},
		{"overflow of a duration", "mcp: {cacheHints: {listTtl: 9223372036854775807}}", nil, `default.yaml:1: mcp.cacheHints.listTtl: want a whole number in range, got "9223372036854775807"`},
		{"overflow of a type", "app: {small: 256}", nil, `default.yaml:1: app.small: want a whole number in range, got "256"`},
		{"negative unsigned", "app: {small: -1}", nil, `default.yaml:1: app.small: want a whole number in range, got "-1"`},
		{"not a number", "app: {ratio: .nan}", nil, `default.yaml:1: app.ratio: want a number, got ".nan"`},
		{"too many items", "webServer: {allowedHosts: [a, b, c, d]}", nil, "default.yaml:1: webServer.allowedHosts: want at most 3 items, got 4"},
		{"huge list", "app: {kinds: [" + long + "]}", nil, "default.yaml:1: app.kinds: a list has at most 1000 items"},
		{"enumeration", "", []string{"MCP_ERAS=modren"}, `MCP_ERAS: mcp.eras: want both or modern or legacy, got "modren"; did you mean modern?`},
		{"enumeration in a list", "app: {kinds: [red, blue]}", nil, `default.yaml:1: app.kinds: want red or green, got "blue"`},
		{"YAML tag", "app: {pin: !!binary aGk=}", nil, "default.yaml:1: app.pin: YAML tags such as !!str are not supported; quote a text instead"},
		{"merge key", "app: &a {pin: x}\nwebServer: {<<: *a}", nil, "default.yaml:2: webServer: merge keys (<<) are not supported; write the keys out"},
		{"self reference", "app: &a\n  pin: *a", nil, "default.yaml:2: app.pin: want a string, got a mapping"},
		{"two documents", "app: {}\n---\napp: {}", nil, "default.yaml:2: a second document; keep one document in a file"},
		{"syntax of a second document", "app: {}\n---\n[", nil, "default.yaml:3: not valid YAML: did not find expected node content"},
		{"syntax", "app:\n  pin: [", nil, "default.yaml:2: not valid YAML: did not find expected node content"},
		{"complex key", "? [a]\n: b", nil, "default.yaml:1: a key must be a plain name, got a list"},
		{"large file", strings.Repeat("#", 256<<10+1), nil, "default.yaml: larger than 262144 bytes"},
		{"environment path", "", []string{"FAMCP_ENV=../secrets"}, `FAMCP_ENV: "../secrets" is not a lower-case name such as production`},
		{"environment layer", "", []string{"FAMCP_ENV=local"}, `FAMCP_ENV: "local" is the name of a layer of its own; choose another`},
		{"environment short", "", []string{"FAMCP_ENV=prod"}, `FAMCP_ENV: "prod" is not an environment; write production`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, _, err := load(t, tt.yaml, tt.environ...)
			if err == nil {
				t.Fatalf("no error, want %q", tt.want)
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if s.WebServer.Port != 3000 || s.MCP.Eras != "both" {
				t.Errorf("a refused value was taken: %+v", s)
			}
		})
	}
}

func TestFaultsAreReportedTogether(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "default.yaml", "webServer:\n  port: x\n  hots: y\n")
	write(t, dir, "local.yaml", "mcp: {eras: none}\n")
	_, err := config.Load(new(settings), config.Source{
		Dir: dir, Defaults: []byte("nothing: 1"), Environ: []string{"APP_SMALL=300", "WS_PORT=-1"},
	})
	if err == nil {
		t.Fatal("no error")
	}
	var got []string
	for _, line := range strings.Split(err.Error(), "\n") {
		where, _, _ := strings.Cut(line, ": ")
		got = append(got, where)
	}
	want := []string{
		"config/default.yaml (built in):1", "config/default.yaml:2", "config/default.yaml:3", "config/local.yaml:1",
		"WS_PORT", "APP_SMALL",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFilesThatAreNotRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "config", "local.yaml"), 0o777); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "development.yml", "webServer: {port: 1}")
	_, err := config.Load(new(settings), config.Source{Dir: dir})
	want := "config/development.yml: is not read; rename it to end in .yaml\nconfig/local.yaml: not a regular file"
	if err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

func TestValuesFromFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key := file("key", " two words \r\n")
	tests := []struct {
		name    string
		environ []string
		want    string // of app.apiKey
		wantErr string
	}{
		{name: "trailing newline", environ: []string{"APP_API_KEY_FILE=" + key}, want: " two words "},
		{name: "empty name is unset", environ: []string{"APP_API_KEY=plain text", "APP_API_KEY_FILE="}, want: "plain text"},
		{
			name: "both", environ: []string{"APP_API_KEY=plain text", "APP_API_KEY_FILE=" + key},
			wantErr: "APP_API_KEY: app.apiKey: set together with APP_API_KEY_FILE; unset one of them",
		},
		{
			name: "empty file", environ: []string{"APP_API_KEY_FILE=" + file("empty", "\n")},
			wantErr: "APP_API_KEY_FILE: app.apiKey: the file it names is empty or not a text",
		},
		{
			name: "binary file", environ: []string{"APP_API_KEY_FILE=" + file("binary", "\xff\xfe")},
			wantErr: "APP_API_KEY_FILE: app.apiKey: the file it names is empty or not a text",
		},
		{
			name: "large file", environ: []string{"APP_API_KEY_FILE=" + file("large", strings.Repeat("x", 64<<10+1))},
			wantErr: "APP_API_KEY_FILE: app.apiKey: reading the file it names: larger than 65536 bytes",
		},
		{
			name: "too short", environ: []string{"APP_API_KEY_FILE=" + file("short", "abc")},
			wantErr: "APP_API_KEY_FILE: app.apiKey: want at least 8 characters",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, r, err := load(t, "", tt.environ...)
			if tt.wantErr != "" {
				if err == nil || err.Error() != tt.wantErr {
					t.Fatalf("error = %v, want %s", err, tt.wantErr)
				}
				return
			}
			if err != nil || s.App.APIKey != tt.want {
				t.Errorf("apiKey = %q, %v; want %q", s.App.APIKey, err, tt.want)
			}
			if source := r.Source("app.apiKey"); !strings.HasPrefix(source, "APP_API_KEY") {
				t.Errorf("source = %q", source)
			}
		})
	}
}

// No report and no error shows a secret, however it is misplaced.
func TestSecretsAreNotShown(t *testing.T) {
	const secret = "hunter2"
	tests := []struct {
		name    string
		yaml    string
		environ []string
		faulty  bool
	}{
		{"set", "app: {apiKey: hunter2hunter2, token: hunter2, tokens: [hunter2]}", nil, false},
		{"from variables", "", []string{"APP_API_KEY=hunter2hunter2", "APP_TOKEN=hunter2", "APP_TOKENS=hunter2,hunter2"}, false},
		{"too short", "app: {apiKey: hunter2}", []string{"APP_API_KEY=hunter2"}, true},
		{"list for a text", "app: {token: [hunter2]}", nil, true},
		{"text for a list", "app: {tokens: hunter2}", nil, true},
		{"nested", "app: {token: {a: hunter2}}", nil, true},
		{"like an alias", "app: {token: *hunter2}", nil, true},
		{"tagged", "app: {token: !!int hunter2}", nil, true},
		{"bad YAML", "app:\n  token: \"hunter2\n  x: 'hunter2", nil, true},
		{"not a number", "app: {code: hunter2}", []string{"APP_CODE=hunter2"}, true},
		{"instead of a file", "", []string{"APP_TOKEN_FILE=/hunter2"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, r, err := load(t, tt.yaml, tt.environ...)
			if (err != nil) != tt.faulty {
				t.Errorf("error = %v, want one: %v", err, tt.faulty)
			}
			var text strings.Builder
			if err := r.WriteText(&text); err != nil {
				t.Fatal(err)
			}
			encoded, jsonErr := json.Marshal(r)
			if jsonErr != nil {
				t.Fatal(jsonErr)
			}
			for name, shown := range map[string]string{"error": fmt.Sprint(err), "text": text.String(), "JSON": string(encoded)} {
				if strings.Contains(shown, secret) {
					t.Errorf("%s shows the secret:\n%s", name, shown)
				}
			}
			if !tt.faulty && strings.Count(text.String(), "********") < 3 {
				t.Errorf("the secrets that are set are not masked:\n%s", text.String())
			}
		})
	}
}

func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		"", "webServer: {port: 1}", "app: &a\n  pin: *a", "a: *b", "app: {tokens: [1, [2]]}", "? {}\n: []", "<<: {}",
		"--- !!map\napp: !!str x\n...\n---\n", "mcp:\n  eras: |\n   both", "app: {ratio: 1e999, small: 0x1}", "\xff\xfe\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var s settings
		r, err := config.Load(&s, config.Source{Defaults: data, DefaultsName: "f"})
		if r == nil {
			t.Fatalf("no report: %v", err)
		}
		// Whatever was read: what was taken is within the tags.
		if err := config.Check(&s); err != nil {
			t.Errorf("a value was taken that the tags refuse: %v", err)
		}
	})
}

// Who knows a part of a configuration passes over the program's own sections,
// and over nothing else.
func TestPartial(t *testing.T) {
	const file = "webServer:\n  port: 80\napp:\n  apiKey: [1]\nmore: text\n"
	var c common
	if _, err := config.Load(&c, config.Source{Defaults: []byte(file), Partial: true}); err != nil || c.WebServer.Port != 80 {
		t.Errorf("port = %d, error = %v, want 80", c.WebServer.Port, err)
	}
	if _, err := config.Load(&c, config.Source{Defaults: []byte(file)}); err == nil {
		t.Error("unknown sections are accepted without Partial")
	}
	if _, err := config.Load(&c, config.Source{Defaults: []byte("webServer:\n  prot: 80\n"), Partial: true}); err == nil {
		t.Error("an unknown key inside of a known section is accepted")
	}
}
