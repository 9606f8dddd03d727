package main

import (
	"context"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestTriggers proves over HTTP that the fixture registers without fault and
// that what the suite uses to change lists changes them each time.
func TestTriggers(t *testing.T) {
	url := serve(t)
	session := connect(t, url)
	for _, trigger := range []string{"test_trigger_tool_change", "test_trigger_prompt_change"} {
		for _, want := range []bool{true, false, true} {
			if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: trigger}); err != nil {
				t.Fatal(err)
			}
			// A client keeps a list for as long as the server allows: ask with a new one.
			if got := slices.Contains(names(t, connect(t, url), trigger), transient); got != want {
				t.Errorf("%s: listed is %t, want %t", trigger, got, want)
			}
		}
	}
}

func TestSilence(t *testing.T) {
	if got := len(silence); got != 46 {
		t.Errorf("the WAV file has %d bytes, want 46", got)
	}
}

func TestConfigure(t *testing.T) {
	for _, tc := range []struct {
		name, addr, limits, want string
	}{
		{"no port", "127.0.0.1", "default", "flag -addr: address 127.0.0.1: missing port in address"},
		{"port name", "127.0.0.1:http", "default", `flag -addr: port "http" is not a number`},
		{"limits", "127.0.0.1:1", "none", `flag -limits: "none" is neither default, bench nor off`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := configure(tc.addr, tc.limits)
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// serve starts the fixture and returns its URL.
func serve(t *testing.T) string {
	t.Helper()
	cfg, err := configure("127.0.0.1:0", "bench")
	if err != nil {
		t.Fatal(err)
	}
	s, err := newServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewServer(handler)
	t.Cleanup(ts.Close)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return ts.URL + "/mcp"
}

func connect(t *testing.T, url string) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// names lists the tools or the prompts, whichever the trigger changes.
func names(t *testing.T, session *mcp.ClientSession, trigger string) []string {
	t.Helper()
	var out []string
	if trigger == "test_trigger_tool_change" {
		for tool, err := range session.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, tool.Name)
		}
		return out
	}
	for prompt, err := range session.Prompts(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, prompt.Name)
	}
	return out
}
