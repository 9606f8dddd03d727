package config_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"github.com/famcp/famcp/internal/runtime/config"
)

type documented struct {
	Name   string `yaml:"name" default:"x"`
	Server struct {
		Mode   string   `yaml:"mode" default:"a" enum:"a,b" doc:"Left | right."`
		Port   int      `yaml:"port" default:"80" min:"1" max:"99" doc:"Where it listens"`
		Key    string   `yaml:"key" secret:"true" min:"4" doc:"The key."`
		Hosts  []string `yaml:"hosts" default:"a,b" max:"3"`
		Silent bool     `yaml:"silent" env:"-"`
		Old    struct {
			Way bool `yaml:"way" doc:"The old way."`
		} `yaml:"old" doc:"Not used."`
	} `yaml:"server"`
}

func keys(t *testing.T) []config.Key {
	t.Helper()
	keys, err := config.Keys(documented{})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func TestWriteMarkdown(t *testing.T) {
	var b strings.Builder
	if err := config.WriteMarkdown(&b, keys(t)); err != nil {
		t.Fatal(err)
	}
	want := `### Top level

| key | variable | type | default | meaning |
|---|---|---|---|---|
| 'name' | 'NAME' | string | 'x' |  |

### 'server'

| key | variable | type | default | meaning |
|---|---|---|---|---|
| 'server.mode' | 'SERVER_MODE' | string | 'a' | Left \| right. One of a, b. |
| 'server.port' | 'SERVER_PORT' | integer | '80' | Where it listens. 1 to 99. |
| 'server.key' | 'SERVER_KEY' | string |  | The key. At least 4 characters. Secret. |
| 'server.hosts' | 'SERVER_HOSTS' | list of strings | 'a,b' | At most 3 items. |
| 'server.silent' |  | boolean | 'false' |  |
| 'server.old.way' | 'SERVER_OLD_WAY' | boolean | 'false' | The old way. Not used. |
`
	if diff := cmp.Diff(strings.ReplaceAll(want, "'", "`"), b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWriteEnvExample(t *testing.T) {
	var b strings.Builder
	if err := config.WriteEnvExample(&b, keys(t)); err != nil {
		t.Fatal(err)
	}
	want := `# The environment: it chooses config/<environment>.yaml; production is strict.
# FAMCP_ENV=development

# name:
# NAME=x

# server.mode: Left | right. One of a, b.
# SERVER_MODE=a

# server.port: Where it listens. 1 to 99.
# SERVER_PORT=80

# server.key: The key. At least 4 characters. Secret.
# SERVER_KEY=

# server.hosts: At most 3 items.
# SERVER_HOSTS=a,b

# server.old.way: The old way. Not used.
# SERVER_OLD_WAY=false
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The schema and Load agree on what a file may hold.
func TestJSONSchema(t *testing.T) {
	data, err := config.JSONSchema(keys(t))
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		yaml string
		want bool
	}{
		{"{}", true},
		{"server: {mode: b, port: 99, key: long enough, hosts: [a], silent: true}", true},
		{"server: {mode: null, port: null, key: null, hosts: null, silent: null}", true},
		{"server:", true},
		{`server: {key: ""}`, true},
		{"server: {mode: c}", false},
		{"server: {port: 0}", false},
		{"server: {port: 1.5}", false},
		{`server: {port: "1"}`, false},
		{"server: {key: abc}", false},
		{"server: {hosts: [a, b, c, d]}", false},
		{"server: {hosts: [[]]}", false},
		{"server: {silent: \"true\"}", false},
		{"sever: {}", false},
		{"server: []", false},
	}
	for _, tt := range tests {
		t.Run(tt.yaml, func(t *testing.T) {
			var instance any
			if err := yaml.Unmarshal([]byte(tt.yaml), &instance); err != nil {
				t.Fatal(err)
			}
			if err := resolved.Validate(instance); (err == nil) != tt.want {
				t.Errorf("schema: %v, want valid: %v", err, tt.want)
			}
			if _, err := config.Load(new(documented), config.Source{Defaults: []byte(tt.yaml)}); (err == nil) != tt.want {
				t.Errorf("Load: %v, want valid: %v", err, tt.want)
			}
		})
	}
}

func TestReport(t *testing.T) {
	var d documented
	r, err := config.Load(&d, config.Source{
		Defaults: []byte("server:\n  mode: b\n  hosts: []"), DefaultsName: "f.yaml",
		Environ: []string{"SERVER_KEY=very secret", "NAME=a\x1b[31m"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	want := `# environment: development
KEY             VALUE        SOURCE
name            "a\x1b[31m"  NAME
server.mode     b            f.yaml:2
server.port     80           default
server.key      ********     SERVER_KEY
server.hosts    ""           f.yaml:3
server.silent   false        default
server.old.way  false        default
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}

	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Schema      int
		Environment string
		Keys        []map[string]any
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if got.Schema != 1 || got.Environment != "development" || len(got.Keys) != 7 {
		t.Fatalf("JSON: %s", data)
	}
	wantKey := map[string]any{
		"path": "server.key", "env": "SERVER_KEY", "type": "string", "default": "", "doc": "The key.", "secret": true,
		"minimum": "4", "value": "********", "source": "SERVER_KEY",
	}
	if diff := cmp.Diff(wantKey, got.Keys[3]); diff != "" {
		t.Errorf("JSON key (-want +got):\n%s", diff)
	}
	if got.Keys[2]["value"] != 80.0 {
		t.Errorf("port in JSON = %v, want a number", got.Keys[2]["value"])
	}
}
