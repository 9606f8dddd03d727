package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp/cmd/famcp/internal/iostreams"
)

// testSecret is long and irregular enough to be taken.
const testSecret = "5b1d0c7e9f2a4863b7d1e0f5a9c8274613de50fb98a7c6d4"

func TestParseClaim(t *testing.T) {
	tests := []struct {
		text    string
		name    string
		value   any
		wantErr string
	}{
		{text: "team=blue", name: "team", value: "blue"},
		{text: "team=", name: "team", value: ""},
		{text: "formula=a=b", name: "formula", value: "a=b"},
		{text: "https://example.com/role=admin", name: "https://example.com/role", value: "admin"},
		{text: "admin=true", name: "admin", value: "true"},
		{text: "admin:=true", name: "admin", value: true},
		{text: "id:=12345678901234567890", name: "id", value: json.Number("12345678901234567890")},
		{text: `groups:=["a","b"]`, name: "groups", value: []any{"a", "b"}},
		{text: "admin", wantErr: "want name=text"},
		{text: "=x", wantErr: "want name=text"},
		{text: ":=1", wantErr: "want name=text"},
		{text: "admin:=yes", wantErr: `the value of "admin" is not JSON`},
		{text: "admin:=1 2", wantErr: "is not JSON"},
		{text: "admin:=", wantErr: "is not JSON"},
		{text: "sub=bob", wantErr: `"sub" is reserved; pass --subject`},
		{text: "exp:=1", wantErr: "pass --ttl"},
		{text: "aud=x", wantErr: "pass --audience"},
		{text: "iss=x", wantErr: "pass --issuer"},
		{text: "scope=x", wantErr: "pass --scope"},
		{text: "scp=x", wantErr: "pass --scope"},
		{text: "service=x", wantErr: "pass --service"},
		{text: "ip=x", wantErr: "pass --ip"},
		{text: "jti=x", wantErr: "pass --jti"},
		{text: "iat:=1", wantErr: `"iat" is reserved: famcp sets it`},
		{text: "nbf:=1", wantErr: "is reserved"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			name, value, err := parseClaim(tt.text)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("error = %v, want %q in it", err, tt.wantErr)
				}
				return
			}
			if err != nil || name != tt.name {
				t.Errorf("name, error = %q, %v, want %q", name, err, tt.name)
			}
			if diff := cmp.Diff(tt.value, value); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
		})
	}
}

// A refused command line prints nothing on standard output, says which flag is
// at fault, and never repeats a secret or a token.
func TestTokenRefusals(t *testing.T) {
	const token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJib2IifQ.c2lnbmF0dXJlLW9mLWEtc2VjcmV0"
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(testSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := "--secret-file " + file + " --subject alice --ttl 1h --audience x"
	tests := []struct {
		name string
		args string
		in   string
		code int
		want string
	}{
		{name: "nobody to ask", args: "token --secret-file " + file, code: 2, want: "no subject and no life, and nobody to ask; pass --subject and --ttl, as in"},
		{name: "nobody to ask for the life", args: "token --subject a --secret-file " + file, code: 2, want: "no life, and nobody to ask; pass --ttl, as in"},
		{name: "no key", args: "token --subject a --ttl 1h", code: 2, want: "pass --secret-file, --secret-env or --key"},
		{name: "two keys", args: "token --subject a --ttl 1h --secret-env A --secret-file B", code: 2, want: "--secret-file and --secret-env exclude each other"},
		{name: "the secret for its file", args: "token --secret-file " + testSecret, code: 2, want: "--secret-file: reading the file it names: no such file"},
		{name: "the secret for its variable", args: "token --secret-env " + testSecret, code: 2, want: "--secret-env: the variable it names is empty"},
		{name: "the secret itself", args: "token --secret " + testSecret, code: 2, want: "unknown flag: --secret"},
		{name: "the secret itself, joined", args: "token --secret=" + testSecret, code: 2, want: "unknown flag: --secret"},
		{name: "a weak secret", args: "token --secret-env WEAK", code: 2, want: "--secret-env: the secret is shorter than 32 bytes"},
		{name: "a key that is not there", args: "token --key nowhere.pem", code: 2, want: "--key: open nowhere.pem"},
		{name: "an algorithm that there is not", args: "token --alg none --key x", code: 2, want: "want ES256 or RS256"},
		{name: "zero", args: "token " + good + " --ttl 0s", code: 2, want: `--ttl: "0s" would expire at once; use digits and one of s, m, h, d, w, y`},
		{name: "negative", args: "token " + good + " --ttl=-1h", code: 2, want: `--ttl: "-1h" is not the life of a token`},
		{name: "a sum", args: "token " + good + " --ttl 1h30m", code: 2, want: "use digits and one of"},
		{name: "overflow", args: "token " + good + " --ttl 99999999999999999999y", code: 2, want: "is more than a clock can hold"},
		{name: "too long", args: "token " + good + " --ttl 366d", code: 2, want: `"366d" is too long: a token lives at most 1y; pass --force to go beyond`},
		{name: "no scope", args: "token " + good + ` --scope "x`, code: 2, want: "is not a scope"},
		{name: "no address", args: "token " + good + " --ip here", code: 2, want: `"here" is neither an address nor a CIDR`},
		{name: "no service", args: "token " + good + " --service a,b", code: 2, want: "is not the name of a service"},
		{name: "reserved claim", args: "token " + good + " --claim sub=b", code: 2, want: `--claim: "sub" is reserved; pass --subject`},
		{name: "claim given twice", args: "token " + good + " --claim a=1 --claim a=2", code: 2, want: `--claim: "a" is given twice`},
		{name: "a token to make", args: "token " + token, code: 2, want: "takes no such argument"},
		{name: "a token for keys", args: "token keys " + token, code: 2, want: "takes no such argument"},
		{name: "two tokens", args: "token inspect " + token + " " + token, code: 2, want: "takes one token, not 2 arguments"},
		{name: "keys without a place", args: "token keys", code: 2, want: "pass --out"},
		{name: "nothing to inspect", args: "token inspect", in: " \n", code: 2, want: "no token; pipe it in"},
		{name: "nonsense to inspect", args: "token inspect -", in: token[:30], code: 1, want: "this cannot be read as a token"},
		{name: "endless input", args: "token inspect -", in: strings.Repeat("x", 1<<20), code: 1, want: "this cannot be read as a token"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			io, out, errOut := iostreams.Test(tt.in)
			env := map[string]string{"WEAK": "secret"}
			if code := Main(strings.Fields(tt.args), &App{IO: io, Getenv: func(name string) string { return env[name] }}); code != tt.code {
				t.Errorf("code = %d, want %d", code, tt.code)
			}
			if !strings.Contains(errOut.String(), tt.want) {
				t.Errorf("stderr = %q, want %q in it", errOut, tt.want)
			}
			for _, secret := range []string{testSecret, token[:40], token[len(token)-20:]} {
				if strings.Contains(errOut.String(), secret) {
					t.Errorf("stderr = %q, want nothing of a secret or token in it", errOut)
				}
			}
			if out.Len() > 0 {
				t.Errorf("stdout = %q, want nothing", out)
			}
		})
	}
}

// What was asked for is in the token, and inspect reads it back.
func TestTokenRoundTrip(t *testing.T) {
	env := map[string]string{"SECRET": testSecret}
	run := func(in, args string) string {
		t.Helper()
		io, out, errOut := iostreams.Test(in)
		if code := Main(strings.Fields(args), &App{IO: io, Getenv: func(name string) string { return env[name] }}); code != 0 {
			t.Fatalf("famcp %s: code %d: %s", args, code, errOut)
		}
		if errOut.Len() > 0 {
			t.Errorf("famcp %s: stderr = %q, want nothing", args, errOut)
		}
		return out.String()
	}
	raw := run("", "token --secret-env SECRET --subject alice --ttl 30d --audience one --audience two --issuer https://i.example"+
		" --scope a --scope b --service s --ip 10.0.0.0/8 --ip ::1 --claim team=blue --claim admin:=true --jti x-1")
	if strings.Count(raw, "\n") != 1 || strings.Count(raw, ".") != 2 || strings.ContainsAny(raw, " \t") {
		t.Errorf("stdout = %q, want a token and a line feed", raw)
	}
	for name, in := range map[string]string{"as it is": raw, "with its scheme": "bearer  " + raw} {
		t.Run(name, func(t *testing.T) {
			var doc struct {
				Header   map[string]any
				Claims   map[string]any
				Expires  time.Time
				Problems []any
			}
			if err := json.Unmarshal([]byte(run(in, "token inspect --json")), &doc); err != nil {
				t.Fatal(err)
			}
			if left := time.Until(doc.Expires); left < 30*24*time.Hour-time.Minute || left > 30*24*time.Hour {
				t.Errorf("it lives %s more, want 30 days", left)
			}
			delete(doc.Claims, "iat")
			delete(doc.Claims, "exp")
			want := map[string]any{
				"sub": "alice", "iss": "https://i.example", "jti": "x-1", "scope": "a b", "team": "blue", "admin": true,
				"aud": []any{"one", "two"}, "service": []any{"s"}, "ip": []any{"10.0.0.0/8", "::1"},
			}
			if diff := cmp.Diff(want, doc.Claims); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]any{"alg": "HS256", "typ": "JWT"}, doc.Header); diff != "" {
				t.Errorf("header (-want +got):\n%s", diff)
			}
			if len(doc.Problems) > 0 {
				t.Errorf("problems = %v, want none", doc.Problems)
			}
		})
	}
	if raw := run("", "token --secret-env SECRET --subject a --ttl 2y --force --audience x"); !strings.Contains(run(raw, "token inspect -"), "in 2 years\n") {
		t.Error("--force makes no token of two years")
	}
}

// A token is a stranger's text: it must not steer the terminal.
func TestInspectIsSafeToShow(t *testing.T) {
	env := map[string]string{"SECRET": testSecret}
	app := func(in string) (*App, func() string) {
		io, out, _ := iostreams.Test(in)
		return &App{IO: io, Getenv: func(name string) string { return env[name] }}, out.String
	}
	a, raw := app("")
	args := []string{"token", "--secret-env", "SECRET", "--subject", "a\x1b[2Jb\u009b\u202e", "--ttl", "1h", "--audience", "x", "--claim", "n\x1b=\x07"}
	if code := Main(args, a); code != 0 {
		t.Fatalf("code = %d", code)
	}
	a, shown := app(raw())
	if code := Main([]string{"token", "inspect"}, a); code != 0 {
		t.Fatalf("code = %d", code)
	}
	if text := shown(); strings.ContainsAny(text, "\x1b\x07\u009b\u202e") || !strings.Contains(text, `"a\x1b[2Jb\u009b\u202e"`) {
		t.Errorf("stdout = %q, want it quoted", text)
	}
}

func TestInWords(t *testing.T) {
	tests := []struct {
		d    time.Duration
		want string
	}{
		{time.Second, "1 second"},
		{59 * time.Second, "59 seconds"},
		{time.Minute, "1 minute"},
		{61 * time.Second, "1 minute 1 second"},
		{time.Hour - time.Second, "1 hour"},
		{time.Hour, "1 hour"},
		{25 * time.Hour, "1 day 1 hour"},
		{48*time.Hour - time.Second, "2 days"},
		{30 * 24 * time.Hour, "30 days"},
		{365 * 24 * time.Hour, "1 year"},
		{366 * 24 * time.Hour, "1 year 1 day"},
		{100*365*24*time.Hour + time.Minute, "100 years"},
	}
	for _, tt := range tests {
		if got := inWords(tt.d); got != tt.want {
			t.Errorf("inWords(%s) = %q, want %q", tt.d, got, tt.want)
		}
	}
}
