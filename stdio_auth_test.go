package famcp

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/famcp/famcp/internal/runtime/token"
)

const stdioSecret = "WS_TOKEN_ENCRYPT_KEY=0f7ac1d58e9b42aa93c6d1e07b54f8a2c9d3e6b1"

// run runs the process on input and returns its exit status and output.
func (p *process) run(t *testing.T, input string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	p.Stdin, p.Stdout = strings.NewReader(input), &out
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	code := p.exit(t)
	return code, out.String()
}

// TestLocalClientsNeedNoKeys: a desktop client starts the server of a project with
// authentication in a directory without its files, and where none can be made.
func TestLocalClientsNeedNoKeys(t *testing.T) {
	greet := strings.ReplaceAll(waitCall, `"wait"`, `"greet"`) + "\n"
	for mode, settings := range map[string][]string{
		"hs256":      nil,
		"embedded":   {"WS_JWT_EXPECTED_ISSUER=https://mcp.example.com", "WS_JWT_KEY_STORAGE_PATH=keys"},
		"localKey":   {"WS_JWT_EXPECTED_ISSUER=https://mcp.example.com", "WS_JWT_PUBLIC_KEY_PATH=keys/public.pem"},
		"remoteJwks": {"WS_JWT_EXPECTED_ISSUER=https://id.example.com", "WS_JWT_JWKS_URI=http://127.0.0.1:1/jwks"},
	} {
		settings = append(settings, "WS_AUTH_ENABLED=true", "WS_JWT_MODE="+mode)
		for _, tt := range []struct{ args, input, want string }{
			{args: "stdio", input: greet, want: `"text":"hello over modern"`},
			{args: "call greet", want: "hello over modern\n"},
			{args: "call audit", want: "local []\n"}, // every scope
			{args: "tools", want: "audit "},
		} {
			t.Run(mode+" "+tt.args, func(t *testing.T) {
				p := newProcess(t, settings, strings.Fields(tt.args)...)
				if err := os.Chmod(p.Dir, 0o500); err != nil {
					t.Fatal(err)
				}
				code, out := p.run(t, tt.input)
				if code != 0 || !strings.Contains(out, tt.want) {
					t.Errorf("exit status %d, output %q, want 0 and %q; stderr:\n%s", code, out, tt.want, &p.stderr)
				}
				if made, err := os.ReadDir(p.Dir); err != nil || len(made) > 0 {
					t.Errorf("made %v, %v", made, err)
				}
			})
		}
	}
}

// TestTokenOfStdio: its subject and scopes are those of the client on standard
// input and of the commands, until it expires.
func TestTokenOfStdio(t *testing.T) {
	signer, err := token.NewSecretSigner([]byte(strings.TrimPrefix(stdioSecret, "WS_TOKEN_ENCRYPT_KEY=")))
	if err != nil {
		t.Fatal(err)
	}
	issue := func(ttl time.Duration, scopes ...string) string {
		raw, _, err := signer.Sign(token.Grant{Subject: "desk", Audience: []string{"tester"}, TTL: ttl, Scopes: scopes})
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	expired := issue(time.Second, "audit")
	time.Sleep(1100 * time.Millisecond) // the skew is set to none
	audit := strings.ReplaceAll(waitCall, `"wait"`, `"audit"`) + "\n"
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}` + "\n"
	tests := []struct {
		name, raw, args, input string
		code                   int
		stdout, stderr         string
		without                string // of stdout
	}{
		{name: "good", raw: issue(time.Hour, "audit"), args: "stdio", input: audit, stdout: `"text":"desk [audit]"`},
		{name: "listed", raw: issue(time.Hour, "audit"), args: "stdio", input: list, stdout: `"name":"audit"`},
		{name: "without the scope", raw: issue(time.Hour), args: "stdio", input: audit, stdout: `"missing":["audit"]`, without: "desk"},
		{name: "left out of the list", raw: issue(time.Hour), args: "stdio", input: list, stdout: `"name":"greet"`, without: `"name":"audit"`},
		{name: "expired", raw: expired, args: "stdio", input: audit, code: 1, stderr: "mcp.stdio.token (MCP_STDIO_TOKEN): the token expired "},
		{name: "called", raw: issue(time.Hour, "audit"), args: "call audit", stdout: "desk [audit]\n"},
		{name: "called in a session", raw: issue(time.Hour, "audit"), args: "call audit --era legacy", stdout: "desk [audit]\n"},
		{name: "called without the scope", raw: issue(time.Hour), args: "call audit", code: 2, stderr: `there is no tool "audit"`},
		{name: "called, expired", raw: expired, args: "call audit", code: 1, stderr: "mcp.stdio.token (MCP_STDIO_TOKEN): the token expired "},
		{name: "shown", raw: issue(time.Hour), args: "tools", stdout: "greet ", without: "audit"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newProcess(t, []string{stdioSecret, "MCP_STDIO_TOKEN=" + tt.raw, "LOGGER_LEVEL=debug", "WS_JWT_CLOCK_SKEW=0"}, strings.Fields(tt.args)...)
			code, out := p.run(t, tt.input)
			if code != tt.code || !strings.Contains(out, tt.stdout) || tt.without != "" && strings.Contains(out, tt.without) {
				t.Errorf("exit status %d, output %q, want %d and %q without %q; stderr:\n%s", code, out, tt.code, tt.stdout, tt.without, &p.stderr)
			}
			if !strings.Contains(p.stderr.String(), tt.stderr) {
				t.Errorf("stderr is %q, want %q in it", &p.stderr, tt.stderr)
			}
			if strings.Contains(p.stderr.String()+out, tt.raw) {
				t.Error("the token is shown")
			}
			if tt.args == "stdio" && tt.code == 0 && !json.Valid([]byte(strings.TrimSpace(out))) {
				t.Errorf("not one message: %s", out)
			}
		})
	}
}
