package telemetry

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

func newMetrics(reasons ...string) *Metrics {
	return NewMetrics(MetricsConfig{Registry: prometheus.NewRegistry(), AuthReasons: reasons})
}

func scrape(m *Metrics) string {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// series returns the lines of a metric without those of its help.
func series(text, name string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, name+"{") || strings.HasPrefix(line, name+" ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// TestLabelsAreBounded: whatever is counted, there are only the series of
// known labels and other.
func TestLabelsAreBounded(t *testing.T) {
	m := newMetrics("expired", "missing")
	tool := m.Tool("search")
	for i := range 1000 {
		made := fmt.Sprint("made-up-", i)
		m.AuthFailure(made)
		m.RateLimitHit(made)
		m.Task(made)
		m.Request(made, "/mcp", 200)
		m.Request("POST", "/mcp", 1000+i)
		m.UnknownTool()
		tool.Done(made, time.Second)
	}
	m.AuthFailure("expired")
	m.RateLimitHit(ScopeSubject)
	m.Task("completed")
	m.Request("POST", "/mcp", 200)
	m.Request("POST", "/mcp", 200)
	tool.Done(StatusOK, time.Second)
	text := scrape(m)
	for name, want := range map[string][]string{
		"mcp_auth_failures_total":   {`{reason="expired"} 1`, `{reason="missing"} 0`, `{reason="other"} 1000`},
		"mcp_rate_limit_hits_total": {`{scope="concurrency"} 0`, `{scope="ip"} 0`, `{scope="other"} 1000`, `{scope="streams"} 0`, `{scope="subject"} 1`},
		"mcp_tasks_total":           {`{status="cancelled"} 0`, `{status="completed"} 1`, `{status="failed"} 0`, `{status="other"} 1000`},
		"mcp_http_requests_total":   {`{method="POST",path="/mcp",status="200"} 2`, `{method="POST",path="/mcp",status="other"} 1000`, `{method="other",path="/mcp",status="200"} 1000`},
		"mcp_tool_calls_total": {
			`{status="cancelled",tool="search"} 0`,
			`{status="error",tool="other"} 1000`, `{status="error",tool="search"} 0`, `{status="failed",tool="search"} 0`,
			`{status="input_required",tool="search"} 0`, `{status="ok",tool="search"} 1`, `{status="other",tool="search"} 1000`,
		},
		"mcp_tool_duration_seconds_count": {`{tool="search"} 1001`},
	} {
		got := series(text, name)
		for i := range want {
			want[i] = name + want[i]
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if n := len(m.exits); n != 1 {
		t.Errorf("%d handles are kept, want the one of a known method and status", n)
	}
}

// TestNames holds the names to the rules of the format.
func TestNames(t *testing.T) {
	m := newMetrics()
	m.Sessions(func() int { return 3 })
	problems, err := promlint.New(strings.NewReader(scrape(m))).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, error %v", problems, err)
	}
	if got := series(scrape(m), "mcp_sessions"); len(got) != 1 || got[0] != "mcp_sessions 3" {
		t.Errorf("got %q", got)
	}
}

// TestForget: a removed tool leaves no series, and one that comes back begins
// anew.
func TestForget(t *testing.T) {
	m := newMetrics()
	m.Tool("kept").Done(StatusOK, time.Second)
	running := m.Tool("gone")
	running.Done(StatusOK, time.Second)
	running.Done(StatusFailed, time.Second)
	m.Forget("gone")
	running.Done(StatusOK, time.Second)
	if text := scrape(m); strings.Contains(text, `"gone"`) || !strings.Contains(text, `tool="kept"`) {
		t.Errorf("after Forget:\n%s", text)
	}
	m.Tool("gone").Done(StatusOK, time.Second)
	if got := series(scrape(m), "mcp_tool_calls_total"); !slices.Contains(got, `mcp_tool_calls_total{status="ok",tool="gone"} 1`) {
		t.Errorf("got %q", got)
	}
}

// TestOff: what is switched off is a nil pointer, and works.
func TestOff(t *testing.T) {
	var m *Metrics
	m.Sessions(nil)
	m.Tool("t").Done(StatusOK, 0)
	m.Forget("t")
	m.UnknownTool()
	m.Request("GET", "/", 200)
	m.AuthFailure("x")
	m.RateLimitHit("x")
	m.Task("x")
	m.Call()
	m.CallDone()
	m.Stream()
	m.StreamDone()
	m.Payload(1)
	m.Result(1)
	m.Panic()
	if n := testing.AllocsPerRun(100, func() { m.Tool("t").Done(StatusOK, 0); m.Request("GET", "/", 200) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestCountingAllocatesNothing, once a series is there.
func TestCountingAllocatesNothing(t *testing.T) {
	m := newMetrics("expired")
	tool := m.Tool("search")
	n := testing.AllocsPerRun(100, func() {
		tool.Done(StatusOK, time.Millisecond)
		m.Request("POST", "/mcp", 200)
		m.AuthFailure("expired")
		m.Payload(1)
		m.Result(1)
	})
	if n > 0 {
		t.Errorf("%v allocations", n)
	}
}
