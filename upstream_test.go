package famcp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/famcptest"
)

// TestFromResponse: an upstream's answer as the contract's table has it (§6),
// over two sockets and in both eras.
func TestFromResponse(t *testing.T) {
	const secret = "password=hunter2"
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var status int
		_, _ = fmt.Sscan(strings.TrimPrefix(r.URL.Path, "/"+secret+"/"), &status)
		w.Header().Set("X-Secret", secret)
		if after := r.URL.Query().Get("after"); after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, secret)
	}))
	defer upstream.Close()
	type input struct {
		Status int    `json:"status"`
		After  string `json:"after,omitempty"`
	}
	fetch := func(ctx context.Context, status int, after string) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/%s/%d?after=%s", upstream.URL, secret, status, strings.ReplaceAll(after, " ", "%20")), nil)
		if err != nil {
			return err
		}
		res, err := upstream.Client().Do(r)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		return famcp.FromResponse(res)
	}
	build := func(t testing.TB) *famcp.Server {
		s := newServer(t, func(c *famcp.Config) { c.MCP.RateLimit.MaxConcurrentPerSubject = 0 })
		famcp.AddTool(s, reader("fetch"), func(ctx context.Context, _ *famcp.Call, in input) (string, error) {
			return "fine", fetch(ctx, in.Status, in.After)
		})
		s.AddResource(famcp.Resource{URI: "up://gone", Name: "gone"}, func(ctx context.Context, _ *famcp.Call) (famcp.Contents, error) {
			return famcp.Contents{}, fetch(ctx, http.StatusNotFound, "")
		})
		return s
	}
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		for _, tt := range []struct {
			status int
			after  string
			want   string // of the result with isError
			code   int64  // of the error
		}{
			{status: 200},
			{status: 204},
			{status: 304},
			{status: 400, want: "refused the request"},
			{status: 401, want: "credentials"},
			{status: 403, want: "does not allow"},
			{status: 404, want: "does not have"},
			{status: 409, want: "in conflict"},
			{status: 410, want: "does not have"},
			{status: 422, want: "refused the request"},
			{status: 502, want: "not available"},
			{status: 503, after: "90", want: "(HTTP 503); retry after 1m30s"},
			{status: 504, want: "in time"},
			{status: 500, code: -32603},
			{status: 418, code: -32603},
			{status: 501, code: -32603},
		} {
			res := c.CallTool("fetch", input{tt.status, tt.after})
			switch {
			case strings.Contains(string(res.Raw), secret) || res.Err != nil && strings.Contains(res.Err.Error(), secret):
				t.Errorf("%d: the secret is out: %s %v", tt.status, res.Raw, res.Err)
			case tt.code != 0:
				if res.Err == nil || res.Err.Code != tt.code || res.Err.Message != "internal error" {
					t.Errorf("%d: got %v %s, want %d", tt.status, res.Err, res.Raw, tt.code)
				}
			case res.Err != nil || res.IsError != (tt.want != "") || !strings.Contains(res.Text(), tt.want):
				t.Errorf("%d: got %v %s, want %q", tt.status, res.Err, res.Raw, tt.want)
			}
		}
		want := map[string]int64{"modern": -32602, "legacy": -32002}[c.Era()]
		if res := c.Read("up://gone"); res.Err == nil || res.Err.Code != want {
			t.Errorf("a resource that the upstream does not have: got %v, want %d", res.Err, want)
		}
		// 429, with the upstream's time to wait however it says so.
		date := time.Now().Add(2 * time.Minute).UTC().Format(http.TimeFormat)
		for _, tt := range []struct{ after, least, most string }{
			{"30", "30", "30"},
			{date, "118", "121"},
			{"", "", ""},
			{"soon", "", ""},
			{"-5", "", ""},
			{"Mon, 02 Jan 2006 15:04:05 GMT", "", ""},
			{"99999999999999", "86400", "86400"},
		} {
			res := c.CallTool("fetch", input{429, tt.after})
			if c.Era() == "legacy" {
				if hint := strings.Contains(res.Text(), "retry after"); !res.IsError || !strings.Contains(res.Text(), "too many requests") || hint != (tt.least != "") {
					t.Errorf("429 after %q: got %v %s", tt.after, res.Err, res.Raw)
				}
				continue
			}
			if res.Err == nil || res.Err.Code != -32003 || res.Err.Status != http.StatusTooManyRequests {
				t.Errorf("429 after %q: got %v", tt.after, res.Err)
				continue
			}
			_, header, _ := c.Raw(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fetch","arguments":{"status":429,"after":"` + tt.after + `"},` + modernMeta + `}}`)
			if got := header.Get("Retry-After"); len(got) != len(tt.least) || got < tt.least || got > tt.most {
				t.Errorf("429 after %q: Retry-After %q, want %s to %s", tt.after, got, tt.least, tt.most)
			}
			if has := strings.Contains(string(res.Err.Data), "retryAfter"); has != (tt.least != "") {
				t.Errorf("429 after %q: data %s", tt.after, res.Err.Data)
			}
		}
	})
	if err := famcp.FromResponse(nil); err == nil {
		t.Error("no response is no error")
	}
}

// modernMeta is what a modern request carries.
const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// TestFromResponseReadsLittle of an endless body.
func TestFromResponseReadsLittle(t *testing.T) {
	endless := &counting{}
	err := famcp.FromResponse(&http.Response{StatusCode: http.StatusBadGateway, Body: io.NopCloser(endless)})
	if err == nil || endless.n > 128<<10 {
		t.Errorf("read %d bytes: %v", endless.n, err)
	}
}

type counting struct{ n int }

func (c *counting) Read(b []byte) (int, error) {
	c.n += len(b)
	return len(b), nil
}
