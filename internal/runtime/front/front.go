// Package front is the HTTP front of a server: it guards, routes and answers
// every request before and after the engines that speak MCP.
//
// # Two eras on one endpoint
//
// A request on /mcp is read once, under the body cap, and parsed. What the
// headers and the body say decides the era (contract §1): sessions go to
// go-sdk's stateful handler, everything since 2026-07-28 to the engine of
// package wire. Both serve the same *mcp.Server. What they cannot know is decided
// here, before delegation: which revision is spoken, whether headers and body
// agree, who owns a session, whether a batch is allowed.
//
// # Answers
//
// Engines answer into an exchange, never to the client. It sends messages the
// way the client accepts them: whole as JSON, or as a stream that lives as long
// as it has something to say. What the SDK's handler writes is read back as
// messages first, and what it refuses in its own words is turned into the
// contract's errors.
package front

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/limits"
	"github.com/famcp/famcp/internal/runtime/protocol"
	"github.com/famcp/famcp/internal/runtime/telemetry"
	"github.com/famcp/famcp/internal/runtime/wire"
)

// Path is where the protocol is served.
const Path = "/mcp"

// Config configures a [Front]. It is copied by [New].
type Config struct {
	Server *mcp.Server // required; serves both eras
	Calls  *call.Table // required; the key of each request's facts is sent in [call.Header]

	Info *mcp.Implementation // required; in every modern result, on the home page and in /health

	// ParamHeaders finds the arguments of a tool that modern clients repeat as
	// headers; nil checks none.
	ParamHeaders func(tool string) protocol.ParamHeaders

	Eras  protocol.Eras // zero serves both
	Tasks bool          // the server has the methods of the tasks extension

	MaxBody     int64         // bytes of a request body; zero is 1 MiB
	MaxSessions int           // live legacy sessions; zero is without limit
	SessionIdle time.Duration // a legacy session without request or stream ends after it; zero never

	Hosts     []string // names served besides the loopback ones: webServer.allowedHosts
	Origins   []string // browser origins served besides loopback ones: webServer.originHosts
	CheckHost bool     // check Host on every address; on loopback it is always checked

	Checks []Check // of /health and /ready
	Routes []Route // the project's own handlers, behind the same guards

	// Authorize decides on a request after its body is parsed and its method
	// is known to exist, before anything is delegated; nil lets everyone in.
	// The message is nil for GET, DELETE and the project's routes. It may
	// change the facts' subject, scopes and claims.
	Authorize func(context.Context, *http.Request, *call.Facts, *protocol.Message) *Refusal
	// Unclaimed refuses a caller without credentials on a session that belongs
	// to a subject; required where Authorize lets such callers in.
	Unclaimed func(context.Context, *call.Facts) *Refusal
	// StepUp returns the WWW-Authenticate header of a caller who lacks scopes,
	// or ""; nil is none.
	StepUp func(granted, missing []string) string

	Limits  *limits.Limits // of each caller; nil is without limits
	Proxies limits.Proxies // believed about where a request comes from

	Metrics     *telemetry.Metrics // nil counts nothing
	MetricsPath string             // where they are served beside [Path]; "" not here

	Messages *telemetry.Messages // writes what goes in and out; nil writes nothing

	Logger *slog.Logger // nil logs nothing
}

// Route is a handler of the project. Pattern is one of [http.ServeMux]. A
// route that is not Public passes [Config].Authorize first.
type Route struct {
	Pattern string
	Handler http.Handler
	Public  bool
}

// Refusal is an answer instead of a delegation.
type Refusal struct {
	Status  int // HTTP status; zero follows from Code
	Code    int64
	Message string
	Data    protocol.ErrorData // RequestID is filled in
	Header  http.Header        // added to the response, such as WWW-Authenticate
}

// Front is the HTTP handler of a server. It is safe for concurrent use.
type Front struct {
	cfg      Config
	log      *slog.Logger
	hosts    hostSet
	origins  originSet
	routes   *http.ServeMux
	public   map[string]bool // by pattern of routes
	own      map[string]bool // paths that the server itself serves
	metrics  http.Handler
	home     []byte
	started  time.Time
	liveness prober
	ready    prober

	legacy http.Handler // sessions
	engine *wire.Engine // everything else

	sessions sessionTable
	running  exchanges
}

// New returns a front. It starts nothing.
func New(cfg Config) (*Front, error) {
	if cfg.Server == nil || cfg.Calls == nil || cfg.Info == nil {
		return nil, errors.New("front: Server, Calls and Info are required")
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = 1 << 20
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	f := &Front{
		cfg: cfg, log: cfg.Logger, routes: http.NewServeMux(), public: map[string]bool{}, started: time.Now(),
		own:      map[string]bool{},
		sessions: sessionTable{limit: cfg.MaxSessions, idle: cfg.SessionIdle},
		liveness: newProber(Liveness, cfg.Checks, cfg.Logger), ready: newProber(Readiness, cfg.Checks, cfg.Logger),
	}
	var err error
	if f.hosts, err = newHostSet(cfg.Hosts); err != nil {
		return nil, err
	}
	if f.origins, err = newOriginSet(cfg.Origins); err != nil {
		return nil, err
	}
	if f.home, err = renderHome(&cfg); err != nil {
		return nil, err
	}
	for _, path := range OwnPaths() {
		f.own[path] = true
	}
	if cfg.MetricsPath != "" {
		f.metrics = cfg.Metrics.Handler()
		f.own[cfg.MetricsPath] = true
	}
	cfg.Metrics.Sessions(f.sessions.count)
	for _, r := range cfg.Routes {
		if err := f.addRoute(r); err != nil {
			return nil, err
		}
	}
	server := func(*http.Request) *mcp.Server { return cfg.Server }
	// Host and body size are checked here; the idle time is ours too, because
	// an open stream counts as use.
	f.legacy = mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
		Logger: cfg.Logger, MaxRequestBodyBytes: -1, DisableLocalhostProtection: true,
	})
	f.engine, err = wire.NewEngine(wire.EngineConfig{Tasks: cfg.Tasks, Server: cfg.Server, Calls: cfg.Calls, Info: cfg.Info, Logger: cfg.Logger})
	if err != nil {
		return nil, err
	}
	f.sessions.end = f.endSession
	return f, nil
}

// OwnPaths are the paths that a project's routes cannot have, but for
// [Config].MetricsPath.
func OwnPaths() []string { return []string{Path, "/health", "/healthz", "/ready", "/readyz"} }

// addRoute registers r. ServeMux panics on a bad or conflicting pattern, which
// here is the project's input.
func (f *Front) addRoute(r Route) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("route %q: %v", r.Pattern, p)
		}
	}()
	if slash := strings.IndexByte(r.Pattern, '/'); slash >= 0 && f.own[r.Pattern[slash:]] {
		return fmt.Errorf("route %q: the server itself serves this path; choose another", r.Pattern)
	}
	f.routes.Handle(r.Pattern, r.Handler)
	f.public[r.Pattern] = r.Public
	return nil
}

// Drain makes readiness fail and refuses new sessions and calls with 503;
// what runs goes on, and clients can still answer its questions.
func (f *Front) Drain() { f.running.drain() }

// Close drains, ends the streams that would last for ever, and waits for the
// calls that run. When ctx ends first they are cancelled and its error is
// returned. Sessions are closed in either case, so that
// [http.Server.Shutdown] finds nothing to wait for.
func (f *Front) Close(ctx context.Context) error {
	err := f.running.close(ctx)
	f.sessions.closeAll()
	f.engine.Close()
	return err
}

// ServerDefaults sets the limits of s that protect it from slow clients
// without cutting streams: there is no write timeout, and bodies are timed by
// the front.
func ServerDefaults(s *http.Server) {
	s.ReadHeaderTimeout = 10 * time.Second
	s.IdleTimeout = 2 * time.Minute
	s.MaxHeaderBytes = 64 << 10
}
