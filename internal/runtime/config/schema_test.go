package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp/internal/runtime/config"
)

func TestKeys(t *testing.T) {
	keys, err := config.Keys(settings{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, k := range keys {
		got = append(got, strings.Join([]string{k.Path, k.Env, k.Type}, " "))
	}
	want := []string{
		"mcp.eras MCP_ERAS string",
		"mcp.timeoutMs MCP_TIMEOUT_MS integer",
		"mcp.cacheHints.listTtl MCP_CACHE_LIST_TTL integer",
		"webServer.host WS_HOST string",
		"webServer.port WS_PORT integer",
		"webServer.allowedHosts WS_ALLOWED_HOSTS list of strings",
		"webServer.allowInsecureBind WS_ALLOW_INSECURE_BIND boolean",
		"webServer.checkMCPName WS_CHECK_MC_NAME boolean",
		"app.apiKey APP_API_KEY string",
		"app.token APP_TOKEN string",
		"app.tokens APP_TOKENS list of strings",
		"app.pin  string",
		"app.ratio APP_RATIO number",
		"app.small APP_SMALL integer",
		"app.ports APP_PORTS list of integers",
		"app.kinds APP_KINDS list of strings",
		"app.code APP_CODE integer",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var secrets []string
	for _, k := range keys {
		if k.Secret {
			secrets = append(secrets, k.Path)
		}
	}
	if diff := cmp.Diff([]string{"app.apiKey", "app.token", "app.tokens", "app.code"}, secrets); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
}

func TestVariableNames(t *testing.T) {
	var v struct {
		App struct {
			A string `yaml:"checkMCPName"`
			B string `yaml:"isCheckIP"`
			C string `yaml:"oauth2URL"`
			D string `yaml:"with-dash"`
			E string `yaml:"HTTPPort"`
		} `yaml:"app"`
		Top string `yaml:"topLevel"`
	}
	keys, err := config.Keys(&v)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, k := range keys {
		got = append(got, k.Env)
	}
	want := []string{"APP_CHECK_MCP_NAME", "APP_IS_CHECK_IP", "APP_OAUTH2_URL", "APP_WITH_DASH", "APP_HTTP_PORT", "TOP_LEVEL"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBadStructs(t *testing.T) {
	type inner struct {
		Key string `yaml:"key"`
	}
	tests := []struct {
		name string
		v    any
		want string
	}{
		{"no struct", 3, "want a struct"},
		{"nil", nil, "want a struct"},
		{"no tag", struct{ Key string }{}, "its yaml tag must name a key"},
		{"pointer embedded", struct{ *inner }{}, "its yaml tag must name a key"},
		{"pointer inline", struct {
			P *inner `yaml:",inline"`
		}{}, "inline needs a struct"},
		{"map", struct {
			M map[string]string `yaml:"m"`
		}{}, "m: a configuration cannot hold a map[string]string"},
		{"list of structs", struct {
			L []inner `yaml:"l"`
		}{}, "a configuration cannot hold a []config_test.inner"},
		{"duration without unit", struct {
			D time.Duration `yaml:"d"`
		}{}, `d: a time.Duration needs the tag unit:"ms" or unit:"s"`},
		{"default out of range", struct {
			N int `yaml:"n" default:"5" max:"4"`
		}{}, "n: its default: want at most 4, got 5"},
		{"default not in enum", struct {
			S string `yaml:"s" default:"c" enum:"a,b"`
		}{}, "s: its default: want a or b"},
		{"enum of numbers", struct {
			N int `yaml:"n" enum:"1,2"`
		}{}, "n: an enum needs texts"},
		{"bad bound", struct {
			N int `yaml:"n" min:"x"`
		}{}, `n: its min: "x" is not a number`},
		{"key twice", struct {
			inner `yaml:",inline"`
			Key   string `yaml:"key"`
		}{}, "key key is already taken"},
		{"variable twice", struct {
			A string `yaml:"aB"`
			B string `yaml:"a_b"`
		}{}, "variable A_B already sets aB"},
		{"variable of a file", struct {
			Log  string `yaml:"log"`
			File string `yaml:"logFile"`
		}{}, "logFile: variable LOG_FILE would also name a file for log"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := config.Keys(tt.v)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want one with %q", err, tt.want)
			}
		})
	}
	if r, err := config.Load(settings{}, config.Source{}); r != nil || err == nil {
		t.Errorf("Load into a struct, not a pointer: report %v, error %v", r, err)
	}
}

func TestApplyDefaultsKeepsWhatIsSet(t *testing.T) {
	var s settings
	s.WebServer.Port = 8080
	s.App.Ports = []int{}
	if err := config.ApplyDefaults(&s); err != nil {
		t.Fatal(err)
	}
	if s.WebServer.Port != 8080 || len(s.App.Ports) != 0 || s.MCP.Timeout != 30*time.Second || s.MCP.Eras != "both" {
		t.Errorf("got %+v", s)
	}
}

func TestDefaultListsAreNotShared(t *testing.T) {
	a, _, _ := load(t, "")
	a.App.Ports[0] = 99
	b, _, _ := load(t, "")
	if b.App.Ports[0] != 1 {
		t.Errorf("ports = %v after another configuration was changed", b.App.Ports)
	}
}

func TestCheck(t *testing.T) {
	s, _, err := load(t, "")
	if err != nil {
		t.Fatal(err)
	}
	s.MCP.Eras, s.WebServer.Port = "old", -1
	want := "mcp.eras: want both or modern or legacy, got \"old\"\nwebServer.port: want 0 to 65535, got -1"
	if err := config.Check(s); err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

func TestChanged(t *testing.T) {
	s, _, err := load(t, "webServer: {port: 3000, allowedHosts: []}\napp: {token: x, ports: [1, 2], kinds: [red]}\nmcp: {timeoutMs: 1}")
	if err != nil {
		t.Fatal(err)
	}
	got, err := config.Changed(s)
	if diff := cmp.Diff([]string{"mcp.timeoutMs", "app.token", "app.kinds"}, got); diff != "" || err != nil {
		t.Errorf("error %v, (-want +got):\n%s", err, diff)
	}
}

func TestPlaceholders(t *testing.T) {
	tests := []struct {
		secret string
		want   bool
	}{
		{"", false},
		{"9f86d081884c7d659a2feaa0c55ad015", false},
		{"correct horse battery staple", false},
		{"changeme", true},
		{"CHANGE-ME-32-characters-long-0000000", true},
		{"<your secret>", true},
		{"${STATE_SECRET}", true},
		{"secret", true},
		{"XXXXXXXX", true},
		{"   ", true},
		{"ÄÄÄ", false},
		{"replace_me", true},
	}
	for _, tt := range tests {
		t.Run(tt.secret, func(t *testing.T) {
			var s settings
			s.App.PIN = "changeme" // no secret: nobody's business
			s.App.APIKey, s.App.Tokens = tt.secret, []hidden{"fine and long", hidden(tt.secret)}
			var want []string
			if tt.want {
				want = []string{"app.apiKey", "app.tokens"}
			}
			got, err := config.Placeholders(&s)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("error %v, (-want +got):\n%s", err, diff)
			}
		})
	}
}
