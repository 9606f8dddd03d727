package famcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestSecretIsMasked(t *testing.T) {
	const text = "hunter2"
	secret := Secret(text)
	nested := struct {
		Key  Secret
		Keys []Secret
		Map  map[string]Secret
	}{secret, []Secret{secret}, map[string]Secret{"a": secret}}

	logged := func(handler func(*bytes.Buffer) slog.Handler) string {
		var b bytes.Buffer
		slog.New(handler(&b)).Info("x", "secret", secret, "nested", nested)
		return b.String()
	}
	encoded, err := json.Marshal(nested)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, got string }{
		{"%v", fmt.Sprintf("%v %+v %#v", secret, secret, secret)},
		{"%s %q %x %X %d", fmt.Sprintf("%s %q %x %X %d %10s", secret, secret, secret, secret, secret, secret)},
		{"Sprint", fmt.Sprint(secret, &secret)},
		{"nested %v", fmt.Sprintf("%v %+v %#v", nested, nested, nested)},
		{"error", fmt.Errorf("bad: %w, %v", fmt.Errorf("%s", secret), nested).Error()},
		{"JSON", string(encoded)},
		{"slog text", logged(func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) })},
		{"slog JSON", logged(func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) })},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			hex := fmt.Sprintf("%x", text)
			if strings.Contains(tt.got, text) || strings.Contains(strings.ToLower(tt.got), hex) {
				t.Errorf("shows the secret: %s", tt.got)
			}
			if !strings.Contains(tt.got, masked) {
				t.Errorf("shows no mask: %s", tt.got)
			}
		})
	}
	if secret.Reveal() != text {
		t.Errorf("Reveal() = %q, want %q", secret.Reveal(), text)
	}
	if got := fmt.Sprintf("%v|%s|%q", Secret(""), Secret(""), Secret("")); got != `||""` {
		t.Errorf("an empty secret shows as %s, want empty", got)
	}
	if got := fmt.Sprintf("%#v", secret); got != `famcp.Secret("********")` {
		t.Errorf("%%#v = %s", got)
	}
}
