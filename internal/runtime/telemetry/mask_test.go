package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"
)

const (
	jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl"
	key = "-----BEGIN EC PRIVATE KEY-----\nMHc=\n-----END EC PRIVATE KEY-----"
)

func TestMask(t *testing.T) {
	type login struct {
		User     string `json:"user"`
		Password string `json:"password"`
		Age      int64  `json:"age"`
	}
	rules := MaskRules{Fields: []string{"iban"}, Patterns: []*regexp.Regexp{regexp.MustCompile(`\b\d{16}\b`), nil}}
	cyclic := map[string]any{}
	cyclic["self"] = cyclic
	tests := []struct {
		name  string
		value any
		want  string // as JSON
	}{
		{"nothing", nil, `null`},
		{"plain text", "no secrets here: a.b@c.example", `"no secrets here: a.b@c.example"`},
		{"token in text", "got " + jwt + " from x", `"got ******** from x"`},
		{"header in text", "Authorization: Bearer abcdefgh1234 end", `"Authorization: ******** end"`},
		{"basic", "basic dXNlcjpwYXNz", `"********"`},
		{"address of a database", "dial postgres://app:hunter2@db:5432/x?y=1", `"dial postgres://********@db:5432/x?y=1"`},
		{"URL without user", "https://example.com/a@b", `"https://example.com/a@b"`},
		{"private key", "k " + key + " e", `"k ******** e"`},
		{"cut private key", "k " + key[:40], `"k ********"`},
		{"cloud keys", "AKIAIOSFODNN7EXAMPLE ghp_0123456789abcdefghij0123 sk-abcdefghijklmnop1234 xoxb-1234567890-ab", `"******** ******** ******** ********"`},
		{"own pattern", "card 1234567812345678.", `"card ********."`},
		{"struct", login{"ann", "hunter2", 9007199254740993}, `{"age":9007199254740993,"password":"********","user":"ann"}`},
		{"spellings", map[string]any{"API-Key": "a", "accessToken": []string{"b"}, "Set-Cookie": map[string]any{"x": 1}, "customer_IBAN": "c", "client.secret": true}, `{"API-Key":"********","Set-Cookie":"********","accessToken":"********","client.secret":"********","customer_IBAN":"********"}`},
		{"nothing to hide", map[string]any{"password": "", "secret": nil, "maxTokens": 5, "progressToken": "p"}, `{"maxTokens":5,"password":"","progressToken":"p","secret":null}`},
		{"deep", []any{map[string]any{"a": []any{"x " + jwt}}}, `[{"a":["x ********"]}]`},
		{"raw JSON", json.RawMessage(`{"token":"x","n":1.10}`), `{"n":1.10,"token":"********"}`},
		{"error", errors.New("refused: " + jwt), `"refused: ********"`},
		{"no JSON form", make(chan int), `"********"`},
		{"cyclic", cyclic, `"********"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := json.Marshal(Mask(tt.value, rules))
			if err != nil || string(got) != tt.want {
				t.Errorf("got  %s\nwant %s (%v)", got, tt.want, err)
			}
		})
	}
}

// TestMaskLeavesItsInput: what is masked is a copy.
func TestMaskLeavesItsInput(t *testing.T) {
	in := map[string]any{"password": "x", "in": map[string]any{"token": "y"}, "list": []any{"Bearer abcdefgh"}}
	Mask(in, MaskRules{})
	if in["password"] != "x" || in["in"].(map[string]any)["token"] != "y" || in["list"].([]any)[0] != "Bearer abcdefgh" {
		t.Errorf("changed: %v", in)
	}
}

// TestLogIsMasked: no form of an attribute brings a secret into the log.
func TestLogIsMasked(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			var b bytes.Buffer
			options := &slog.HandlerOptions{ReplaceAttr: MaskAttr}
			var h slog.Handler = slog.NewTextHandler(&b, options)
			if format == "json" {
				h = slog.NewJSONHandler(&b, options)
			}
			slog.New(h).With("apiKey", "s3cret-1").WithGroup("g").Info("m "+"Bearer s3cret-2x",
				"password", "s3cret-3", "error", errors.New("at postgres://u:s3cret-4@h/"),
				"body", map[string]any{"token": "s3cret-5"}, slog.Group("in", "cookie", "s3cret-6"),
				"list", []string{"Bearer s3cret-7"}, "name", "kept-1", "count", 42, "error2", errors.New("kept-2"))
			text := b.String()
			if strings.Contains(text, "s3cret") {
				t.Errorf("secret in %s", text)
			}
			for _, part := range []string{"kept-1", "42", "kept-2"} {
				if !strings.Contains(text, part) {
					t.Errorf("no %s in %s", part, text)
				}
			}
		})
	}
}

func FuzzMask(f *testing.F) {
	f.Add(`{"method":"tools/call","params":{"arguments":{"x":"y"},"_meta":{"progressToken":1}}}`)
	f.Add(`[{"result":{"action":"accept","content":{"a":[1]}}}]`)
	f.Add(`{"params":[],"result":"x"}`)
	f.Add("\xff{")
	f.Fuzz(func(t *testing.T, message string) {
		var b bytes.Buffer
		NewMessages(&b, 100).In("r", []byte(message))
		if message == "" {
			return
		}
		if n := bytes.Count(b.Bytes(), []byte("\n")); n != 1 || !json.Valid(b.Bytes()) || b.Len() > 1500 {
			t.Errorf("%d lines, %d bytes: %q", n, b.Len(), b.Bytes())
		}
	})
}

// TestMessages: what a user or a model said is nowhere, its names are.
func TestMessages(t *testing.T) {
	tests := []struct{ name, message, want string }{
		{"arguments", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"send","arguments":{"to":"s3cret","deep":{"x":"s3cret"},"n":5},"_meta":{"progressToken":"p","traceparent":"00-1"}}}`, `{"id":7,"jsonrpc":"2.0","method":"tools/call","params":{"_meta":{"progressToken":"p","traceparent":"00-1"},"arguments":{"deep":"********","n":"********","to":"********"},"name":"send"}}`},
		{"answers and state", `{"method":"tools/call","params":{"inputResponses":{"k":{"action":"accept","content":"s3cret"}},"requestState":"s3cret"}}`, `{"method":"tools/call","params":{"inputResponses":{"k":"********"},"requestState":"********"}}`},
		{"elicited", `{"id":1,"result":{"action":"accept","content":{"name":"s3cret"}}}`, `{"id":1,"result":{"action":"accept","content":{"name":"********"}}}`},
		{"state of a question", `{"id":1,"result":{"resultType":"input_required","requestState":"s3cret"}}`, `{"id":1,"result":{"requestState":"********","resultType":"input_required"}}`},
		{"batch", `[{"method":"prompts/get","params":{"arguments":{"a":"s3cret"}}},5]`, `[{"method":"prompts/get","params":{"arguments":{"a":"********"}}},5]`},
		{"completion", `{"method":"completion/complete","params":{"argument":{"name":"x","value":"s3cret"}}}`, `{"method":"completion/complete","params":{"argument":{"name":"********","value":"********"}}}`},
		{"result", `{"id":1,"result":{"content":[{"type":"text","text":"Bearer s3cret99"}]}}`, `{"id":1,"result":{"content":[{"text":"********","type":"text"}]}}`},
		{"exact numbers", `{"id":9007199254740993}`, `{"id":9007199254740993}`},
		{"not JSON", `{"s3cret`, `"not valid JSON"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			NewMessages(&b, 0).Out("r1", []byte(tt.message))
			var line struct {
				Direction, RequestID string
				Bytes                int
				Message              json.RawMessage
			}
			if err := json.Unmarshal(b.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			if string(line.Message) != tt.want || line.Direction != "out" || line.RequestID != "r1" || line.Bytes != len(tt.message) {
				t.Errorf("got  %s\nwant %s", b.Bytes(), tt.want)
			}
		})
	}
	var b bytes.Buffer
	NewMessages(&b, 50).In("", []byte(`{"method":"x","params":{"text":"`+strings.Repeat("ü", 5000)+`"}}`))
	if b.Len() > 200 || !strings.Contains(b.String(), `"text":"{\"method`) || !strings.Contains(b.String(), "…") || strings.Contains(b.String(), "\ufffd") {
		t.Errorf("a long message: %s", b.String())
	}
	var off *Messages
	off.In("", []byte("{}"))
}
