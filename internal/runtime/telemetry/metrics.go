// Package telemetry is what a server says of itself to those who operate it:
// metrics, traces and the trace file of messages.
//
// Whatever is off is a nil pointer whose methods do nothing, so that the code
// which reports needs no conditions. Names and labels of metrics are contract
// §8. Labels come from registered names and fixed lists only; anything else is
// [Other], so that no client can make series.
package telemetry

import (
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Other is the value of a label whose true value is not one of those known.
const Other = "other"

// Statuses of tool calls, the values of the label status.
const (
	StatusOK            = "ok"
	StatusFailed        = "failed"         // a result with isError
	StatusError         = "error"          // a JSON-RPC error
	StatusCancelled     = "cancelled"      // by the client, or the server stopped
	StatusInputRequired = "input_required" // answered by a question
)

var (
	toolStatuses = []string{StatusOK, StatusFailed, StatusError, StatusCancelled, StatusInputRequired}
	taskStatuses = []string{"completed", "failed", "cancelled"}
	methods      = []string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut,
		http.MethodPatch, http.MethodDelete, http.MethodOptions,
	}
)

// Scopes of limits that callers hit, the values of the label scope.
const (
	ScopeSubject     = "subject"     // mcp.rateLimit.maxRequests of a subject or, without one, an address
	ScopeAddress     = "ip"          // the same with mcp.rateLimit.scope ip
	ScopeConcurrency = "concurrency" // mcp.rateLimit.maxConcurrentPerSubject
	ScopeStreams     = "streams"     // mcp.streams.maxPerSubject
)

// MetricsConfig configures [NewMetrics].
type MetricsConfig struct {
	// Registry takes the metrics; required. It is the server's own: nothing is
	// registered globally.
	Registry *prometheus.Registry
	// Process adds the metrics of the Go runtime and the process.
	Process bool
	// AuthReasons are the reasons that authentication may fail for.
	AuthReasons []string
}

// Metrics are the metrics of one server. All methods work on a nil *Metrics,
// which counts nothing, and are safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry

	calls      *prometheus.CounterVec
	duration   *prometheus.HistogramVec
	requests   *prometheus.CounterVec
	auth       labelled
	limits     labelled
	tasks      labelled
	concurrent prometheus.Gauge
	streams    prometheus.Gauge
	payload    prometheus.Histogram
	result     prometheus.Histogram
	panics     prometheus.Counter

	unknown prometheus.Counter

	mu    sync.RWMutex
	exits map[exit]prometheus.Counter // handles of requests, so that no request hashes labels
}

// exit is how a request went out.
type exit struct {
	method, path string
	status       int
}

// labelled is a counter for each of a fixed list of labels and for [Other],
// all of them there from the start: a series that begins at 1 hides its first
// increase from rate().
type labelled map[string]prometheus.Counter

func newLabelled(vec *prometheus.CounterVec, known []string) labelled {
	l := make(labelled, len(known)+1)
	for _, label := range known {
		l[label] = vec.WithLabelValues(label)
	}
	l[Other] = vec.WithLabelValues(Other)
	return l
}

func (l labelled) inc(label string) {
	c, ok := l[label]
	if !ok {
		c = l[Other]
	}
	c.Inc()
}

// NewMetrics registers the metrics of a server. It panics when the registry
// has one of them already.
func NewMetrics(cfg MetricsConfig) *Metrics {
	counter := func(name, help string) prometheus.CounterOpts { return prometheus.CounterOpts{Name: name, Help: help} }
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	sizes := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(256, 4, 9)})
	}
	m := &Metrics{
		registry: cfg.Registry,
		calls:    prometheus.NewCounterVec(counter("mcp_tool_calls_total", "Tool calls that ended, by tool and outcome."), []string{"tool", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "mcp_tool_duration_seconds", Help: "Time from a tool call's arrival to its outcome.",
			Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
		}, []string{"tool"}),
		requests: prometheus.NewCounterVec(counter("mcp_http_requests_total",
			"HTTP requests that ended, by method, path and status; paths are those of the server and the patterns of its routes."),
			[]string{"method", "path", "status"}),
		concurrent: gauge("mcp_concurrent_calls", "Calls of tools, prompts, resources and completions that run."),
		streams:    gauge("mcp_streams", "Streams of sessions and subscriptions that are open."),
		payload:    sizes("mcp_payload_bytes", "Size of request bodies."),
		result:     sizes("mcp_result_bytes", "Size of answers to requests."),
		panics:     prometheus.NewCounter(counter("mcp_panics_total", "Panics of handlers, routes, workers and the server itself.")),
		exits:      map[exit]prometheus.Counter{},
	}
	auth := prometheus.NewCounterVec(counter("mcp_auth_failures_total", "Requests whose authentication failed, by reason."), []string{"reason"})
	limits := prometheus.NewCounterVec(counter("mcp_rate_limit_hits_total", "Requests refused by a limit of their caller."), []string{"scope"})
	tasks := prometheus.NewCounterVec(counter("mcp_tasks_total", "Tasks that ended, by how."), []string{"status"})
	cfg.Registry.MustRegister(m.calls, m.duration, m.requests, auth, limits, tasks,
		m.concurrent, m.streams, m.payload, m.result, m.panics)
	if cfg.Process {
		cfg.Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	m.auth = newLabelled(auth, cfg.AuthReasons)
	m.limits = newLabelled(limits, []string{ScopeSubject, ScopeAddress, ScopeConcurrency, ScopeStreams})
	m.tasks = newLabelled(tasks, taskStatuses)
	m.unknown = m.calls.WithLabelValues(Other, StatusError)
	return m
}

// Handler serves the metrics in the formats that Prometheus asks for.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// Sessions takes the number of open sessions from count whenever it is asked
// for.
func (m *Metrics) Sessions(count func() int) {
	if m == nil {
		return
	}
	m.registry.MustRegister(prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: "mcp_sessions", Help: "Legacy sessions that are open."},
		func() float64 { return float64(count()) }))
}

// Tool counts the calls of one tool. A nil *Tool counts nothing.
type Tool struct {
	duration prometheus.Observer
	statuses labelled
}

// Tool returns what counts the calls of a registered tool.
func (m *Metrics) Tool(name string) *Tool {
	if m == nil {
		return nil
	}
	return &Tool{
		duration: m.duration.WithLabelValues(name),
		statuses: newLabelled(m.calls.MustCurryWith(prometheus.Labels{"tool": name}), toolStatuses),
	}
}

// UnknownTool counts the call of a tool that there is not.
func (m *Metrics) UnknownTool() {
	if m != nil {
		m.unknown.Inc()
	}
}

// Forget drops the series of a tool that was removed, so that a server whose
// tools come and go does not gather them.
func (m *Metrics) Forget(tool string) {
	if m == nil || tool == Other {
		return
	}
	m.calls.DeletePartialMatch(prometheus.Labels{"tool": tool})
	m.duration.DeleteLabelValues(tool)
}

// Done counts a call that ended with one of the Status constants.
func (t *Tool) Done(status string, took time.Duration) {
	if t == nil {
		return
	}
	t.duration.Observe(took.Seconds())
	t.statuses.inc(status)
}

// Request counts an HTTP request that was answered. Path is one of the
// server's own or the pattern of a route, never what a client wrote.
func (m *Metrics) Request(method, path string, status int) {
	if m == nil {
		return
	}
	key := exit{method, path, status}
	m.mu.RLock()
	c, ok := m.exits[key]
	m.mu.RUnlock()
	if !ok {
		c = m.newExit(key)
	}
	c.Inc()
}

func (m *Metrics) newExit(key exit) prometheus.Counter {
	known := false
	for _, method := range methods {
		known = known || key.method == method
	}
	status := statusText(key.status)
	if !known || status == Other {
		// Not kept: a method is any word that a client likes.
		method := key.method
		if !known {
			method = Other
		}
		return m.requests.WithLabelValues(method, key.path, status)
	}
	c := m.requests.WithLabelValues(key.method, key.path, status)
	m.mu.Lock()
	m.exits[key] = c
	m.mu.Unlock()
	return c
}

// statusText returns the digits of an HTTP status.
func statusText(status int) string {
	if status < 100 || status > 599 {
		return Other
	}
	return string([]byte{byte('0' + status/100), byte('0' + status/10%10), byte('0' + status%10)})
}

// AuthFailure counts a failed authentication.
func (m *Metrics) AuthFailure(reason string) {
	if m != nil {
		m.auth.inc(reason)
	}
}

// RateLimitHit counts a refusal by one of the Scope constants.
func (m *Metrics) RateLimitHit(scope string) {
	if m != nil {
		m.limits.inc(scope)
	}
}

// Task counts a task that ended in a status of the tasks extension.
func (m *Metrics) Task(status string) {
	if m != nil {
		m.tasks.inc(status)
	}
}

// Call counts a running call until CallDone.
func (m *Metrics) Call() {
	if m != nil {
		m.concurrent.Inc()
	}
}

// CallDone is the end of a [Metrics.Call].
func (m *Metrics) CallDone() {
	if m != nil {
		m.concurrent.Dec()
	}
}

// Stream counts an open stream until StreamDone.
func (m *Metrics) Stream() {
	if m != nil {
		m.streams.Inc()
	}
}

// StreamDone is the end of a [Metrics.Stream].
func (m *Metrics) StreamDone() {
	if m != nil {
		m.streams.Dec()
	}
}

// Payload notes the size of a request's body.
func (m *Metrics) Payload(bytes int) {
	if m != nil {
		m.payload.Observe(float64(bytes))
	}
}

// Result notes the size of an answer.
func (m *Metrics) Result(bytes int) {
	if m != nil {
		m.result.Observe(float64(bytes))
	}
}

// Panic counts a recovered panic.
func (m *Metrics) Panic() {
	if m != nil {
		m.panics.Inc()
	}
}
