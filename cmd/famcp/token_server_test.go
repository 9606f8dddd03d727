package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/famcp/famcp/internal/scaffold/gomod"
	"github.com/famcp/famcp/internal/testkit"
)

// A new project of each mode starts, makes tokens and takes them, by the
// commands of its own documentation.
func TestAuthentication(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the documented commands are for a POSIX shell")
	}
	for _, tool := range []string{"sh", "curl", "openssl", "git"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the documented commands need %s", tool)
		}
	}
	foreign := map[string]string{} // tokens of the servers before, by mode
	for _, mode := range []string{"none", "hs256", "embedded", "localKey"} {
		t.Run(mode, func(t *testing.T) {
			if mode != "hs256" {
				long(t)
			}
			p, port := protectedProject(t, mode)
			if mode != "embedded" { // whose secret makes itself
				t.Run("page, after a clone", func(t *testing.T) { p.testPageAfterClone(t, mode, port) })
			}
			if mode == "none" {
				return
			}
			t.Run("page", func(t *testing.T) { p.testPage(t, mode, port) })
			t.Run("tokens", func(t *testing.T) { foreign[mode] = p.testTokens(t, foreign) })
		})
	}
}

// The blocks of commands in docs/authentication.md, by how they begin.
const (
	callCommand   = "famcp token --subject me --ttl 1h | sed"
	exportCommand = "export GUARDED_TOKEN="
	lookCommand   = "famcp token --subject me --ttl 1h | famcp token inspect"
	secretCommand = "(umask 077; "
	keysCommand   = "famcp token keys --alg ES256 --out keys\n"
)

const listed = `"search_docs"` // in the answer to callCommand

// testPage runs the commands as they stand, with the server running as they
// ask for. What makes secrets is left to testPageAfterClone.
func (p project) testPage(t *testing.T, mode, port string) {
	want := map[string]string{callCommand: listed, exportCommand: "", lookCommand: "The server guarded accepts it"}
	blocks := p.page(t)
	p.serveAt(t, port)
	ran := 0
	for _, command := range blocks {
		for begin, text := range want {
			if !strings.HasPrefix(command, begin) {
				continue
			}
			ran++
			if out := p.run(t, "sh", "-ec", command); !strings.Contains(out, text) {
				t.Errorf("%s\nprints %q, want %q in it", command, out, text)
			}
		}
	}
	secrets := map[string]int{"hs256": 1, "localKey": 1}[mode]
	if ran != len(want) || ran+secrets != len(blocks) {
		t.Errorf("%d of %d blocks of commands were run, want %d", ran, len(blocks), len(want))
	}
}

// testPageAfterClone makes the secret of another machine, as the page says.
func (p project) testPageAfterClone(t *testing.T, mode, port string) {
	clone := p
	clone.dir = filepath.Join(t.TempDir(), "clone")
	p.run(t, "git", "clone", "--quiet", p.dir, clone.dir)
	if mode != "none" {
		clone.mustNotStart(t)
	}
	for _, command := range clone.page(t) {
		if strings.HasPrefix(command, secretCommand) || strings.HasPrefix(command, keysCommand) {
			clone.run(t, "sh", "-ec", command)
		}
	}
	secret := "config/local.yaml"
	if mode == "localKey" {
		secret = "keys/private.pem"
	}
	info, err := os.Stat(filepath.Join(clone.dir, secret))
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("%s has mode %o, want 600", secret, mode)
	}
	if status := clone.run(t, "git", "status", "--porcelain"); status != "" {
		t.Errorf("git would commit:\n%s", status)
	}
	url := clone.serveAt(t, port) + "/mcp"
	if got := listTools(t, url, ""); got != http.StatusUnauthorized {
		t.Errorf("without a token: HTTP %d, want 401", got)
	}
	for _, command := range clone.page(t) {
		if strings.HasPrefix(command, callCommand) {
			if out := clone.run(t, "sh", "-ec", command); !strings.Contains(out, listed) {
				t.Errorf("%s\nprints %q, want %s in it", command, out, listed)
			}
			return
		}
	}
	t.Error("the page has no call")
}

func (p project) page(t *testing.T) []string {
	t.Helper()
	return shellBlocks(t, filepath.Join(p.dir, "docs", "authentication.md"))
}

// testTokens proves that tokens open the server, the wrong ones do not, and
// that they stop at their end. It returns one.
func (p project) testTokens(t *testing.T, foreign map[string]string) string {
	p.env = append(p.env, "WS_JWT_CLOCK_SKEW=0")
	at := project{dir: filepath.Join(p.dir, "internal", "tools"), env: p.env} // any directory will do
	first := at.token(t, "--ttl", "1h")
	url := p.serve(t) + "/mcp"
	for name, tt := range map[string]struct {
		token string
		want  int
	}{
		"made before the start": {first, http.StatusOK},
		"made after it":         {at.token(t, "--ttl", "1h"), http.StatusOK},
		"another audience":      {at.token(t, "--ttl", "1h", "--audience", "elsewhere"), http.StatusUnauthorized},
		"none":                  {"", http.StatusUnauthorized},
		"cut":                   {first[:len(first)-8], http.StatusUnauthorized},
	} {
		if got := listTools(t, url, tt.token); got != tt.want {
			t.Errorf("a token, %s: HTTP %d, want %d", name, got, tt.want)
		}
	}
	for mode, token := range foreign {
		if got := listTools(t, url, token); got != http.StatusUnauthorized {
			t.Errorf("the token of a server in the mode %s: HTTP %d, want 401", mode, got)
		}
	}

	short := at.token(t, "--ttl", "3s")
	made := time.Now()
	if got := listTools(t, url, short); got != http.StatusOK {
		t.Errorf("a fresh token of three seconds: HTTP %d, want 200", got)
	}
	again := time.NewTicker(200 * time.Millisecond) // a faster one would meet the limit of a caller
	defer again.Stop()
	for {
		got := listTools(t, url, short)
		if got == http.StatusUnauthorized {
			break
		}
		if got != http.StatusOK || time.Since(made) > 10*time.Second {
			t.Fatalf("a token of three seconds, after %s: HTTP %d", time.Since(made), got)
		}
		<-again.C
	}
	if lived := time.Since(made); lived < time.Second { // it was made in the middle of a second
		t.Errorf("a token of three seconds lived %s", lived)
	}
	return first
}

// protectedProject makes and builds a project whose documents name a free port,
// which it returns.
func protectedProject(t *testing.T, mode string) (project, string) {
	t.Helper()
	port := freePort(t)
	p := project{dir: filepath.Join(t.TempDir(), "guarded"), env: offline(t)}
	p.make(t, "famcp", "--auth", mode, "--port", port)
	p.useCheckout(t)
	p.build(t, "guarded")
	return p, port
}

// useCheckout lets the project build with the runtime of this checkout, which
// the cache has already.
func (p project) useCheckout(t *testing.T) {
	t.Helper()
	p.run(t, "go", "mod", "edit", "-replace", gomod.Runtime+"="+testkit.Checkout(t))
}

func (p project) token(t *testing.T, flags ...string) string {
	t.Helper()
	return strings.TrimSpace(p.run(t, "famcp", append([]string{"token", "--subject", "alice"}, flags...)...))
}

// listTools asks a server for its tools and returns the status of the answer.
func listTools(t *testing.T, url, token string) int {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + modernMeta + `}}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json"},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/list"},
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if ok := strings.Contains(string(text), `"tools":[`); ok != (resp.StatusCode == http.StatusOK) {
		t.Errorf("HTTP %d: %s", resp.StatusCode, text)
	}
	if token != "" && strings.Contains(string(text), token) {
		t.Errorf("HTTP %d repeats the token: %s", resp.StatusCode, text)
	}
	return resp.StatusCode
}

// shellBlocks are the blocks of shell commands of a page.
func shellBlocks(t *testing.T, file string) []string {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, m := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// mustNotStart starts the server, which has to refuse and to say which key is
// missing.
func (p project) mustNotStart(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	out, err := p.command(ctx, p.binary, "http").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "webServer.auth.") {
		t.Errorf("without its secrets the server ends with %v and says %q, want a refusal that names the key", err, out)
	}
}
