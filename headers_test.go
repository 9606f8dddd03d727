package famcp_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/famcptest"
)

// The list of the headers that are read is one, for people and for clients.
func TestUsedHeaders(t *testing.T) {
	build := func(t testing.TB) *famcp.Server {
		return newServer(t, func(c *famcp.Config) { c.WebServer.TrustProxy = true })
	}
	handler, err := build(t).Handler()
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	resp, err := http.Get(srv.URL + "/used-http-headers")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Headers []struct{ Name, Description string }
	}
	if err := json.Unmarshal(body, &got); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %v in %s", resp.StatusCode, err, body)
	}
	var lines strings.Builder
	for _, h := range got.Headers {
		lines.WriteString(h.Name + ": " + h.Description + "\n")
	}
	for _, want := range []string{"Mcp-Session-Id: ", "X-Forwarded-For: ", "X-Request-Id: "} {
		if !strings.Contains(lines.String(), want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		if text := c.Read("use://http-headers").Text(); text != lines.String() {
			t.Errorf("the resource says\n%s\nthe endpoint\n%s", text, lines.String())
		}
	})
}
