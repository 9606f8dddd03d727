package famcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/famcp/famcp/internal/runtime/auth"
	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/front"
	"github.com/famcp/famcp/internal/runtime/invoke"
	"github.com/famcp/famcp/internal/runtime/protocol"
	"github.com/famcp/famcp/internal/runtime/tasks"
	"github.com/famcp/famcp/internal/runtime/telemetry"
	"github.com/famcp/famcp/internal/runtime/token"
)

// Info says who a server is. Name and Version are required.
type Info struct {
	Name        string // letters, digits, + . and -; also the scheme of its own resources: NAME://agent/brief
	Version     string
	Title       string // for people; "" shows the name
	Description string // one line
	WebsiteURL  string
	// Instructions tell a model how to use the server as a whole.
	Instructions string
	// AgentBrief is a line or two by which an agent decides whether this server
	// can help; AgentPrompt is the full text for an agent that uses it. They are
	// the prompts agent_brief and agent_prompt, and resources; "" falls back to
	// Description and Instructions.
	AgentBrief, AgentPrompt string
	Icons                   []Icon
}

func (i Info) implementation() *mcp.Implementation {
	return &mcp.Implementation{
		Name: i.Name, Version: i.Version, Title: i.Title, Description: i.Description, WebsiteURL: i.WebsiteURL, Icons: i.Icons,
	}
}

// Server is an MCP server with its features. Make one with [New], register
// features, then serve it with [Main], RunHTTP, RunStdio or Handler. Features
// may be added and removed while it serves. It is safe for concurrent use.
type Server struct {
	cfg    *Config
	info   Info
	log    *slog.Logger
	mcp    *mcp.Server
	engine *invoke.Engine
	calls  *call.Table
	tasks  *tasks.Manager // nil while tasks are off
	tokens *token.Tokens  // of HTTP; nil where JWTs are not used

	registry *prometheus.Registry
	metrics  *telemetry.Metrics  // nil while webServer.metrics.enabled is false
	messages *telemetry.Messages // nil without mcp.debug.logFile

	starting    sync.Mutex // held while start runs
	registering sync.Mutex // held while an entry comes or goes, so that all maps agree

	mu        sync.Mutex
	faults    []error
	tools     map[string]Tool // registered, by name
	prompts   map[string]bool
	uris      map[string]bool // resources and templates
	chain     []Middleware
	routes    []front.Route
	checks    []front.Check
	workers   []task
	stops     []task
	validator func(context.Context, *http.Request) (auth.Identity, error) // the project's own; nil for none
	docs      fs.FS                                                       // README.md for doc://readme; nil for none

	serving bool
	closed  bool
	front   *front.Front       // nil while HTTP is not served
	cancel  context.CancelFunc // of the workers
	running sync.WaitGroup     // the workers
}

// task is a named piece of a project's own work.
type task struct {
	name string
	run  func(context.Context) error
}

var serverName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*$`)

// New returns a server without features. It starts nothing. A literal Config
// has its zero fields defaulted. It returns every fault of the configuration,
// joined.
func New(cfg *Config, info Info) (*Server, error) {
	if cfg == nil {
		cfg = &Config{}
	}
	full, err := cfg.completed()
	if err != nil {
		return nil, err
	}
	err = full.validate()
	if info.Name == "" || info.Version == "" {
		err = errors.Join(err, errors.New("famcp.Info: Name and Version are required"))
	} else if !serverName.MatchString(info.Name) {
		err = errors.Join(err, fmt.Errorf("famcp.Info: the name %q must match %s, because it is the scheme of the server's own resources", info.Name, serverName))
	}
	if err == nil {
		err = checkTokens(full, info.Name)
	}
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg: full, info: info, calls: &call.Table{},
		tools: map[string]Tool{}, prompts: map[string]bool{}, uris: map[string]bool{}, registry: prometheus.NewRegistry(),
	}
	if err := s.openFiles(os.Stderr); err != nil {
		return nil, err
	}
	if m := &full.WebServer.Metrics; m.Enabled {
		s.metrics = telemetry.NewMetrics(telemetry.MetricsConfig{Registry: s.registry, Process: m.IncludeProcessMetrics, AuthReasons: auth.Reasons()})
	}
	s.tasks = newTasks(full.MCP.Tasks, s.metrics, s.log)
	if s.engine, err = newEngine(full, s.calls, s.tasks, s.metrics, s.log); err != nil {
		return nil, err
	}
	options := &mcp.ServerOptions{
		Instructions: info.Instructions, Logger: quiet(s.log), PageSize: invoke.AllEntries,
		CompletionHandler: s.engine.Complete, SetCacheable: s.engine.Cacheable,
		Capabilities:     &mcp.ServerCapabilities{Logging: &mcp.LoggingCapabilities{}},
		SubscribeHandler: s.engine.Subscribe, UnsubscribeHandler: s.engine.Unsubscribe,
	}
	s.mcp = mcp.NewServer(info.implementation(), options)
	if s.tasks != nil {
		if err := s.engine.AddTasks(s.mcp); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// newTasks returns what keeps tasks, nil while they are off.
func newTasks(cfg TasksConfig, metrics *telemetry.Metrics, log *slog.Logger) *tasks.Manager {
	if !cfg.Enabled {
		return nil
	}
	return tasks.New(tasks.Config{
		DefaultTTL: cfg.DefaultTTL, MinTTL: cfg.MinTTL, MaxTTL: cfg.MaxTTL, Most: cfg.MaxTasks,
		Stopped: json.RawMessage(`{"code":-32006,"message":"the server that ran the task has stopped; start it again"}`), Logger: log,
		Ended: func(status tasks.Status) { metrics.Task(string(status)) },
	})
}

func newEngine(cfg *Config, calls *call.Table, kept *tasks.Manager, metrics *telemetry.Metrics, log *slog.Logger) (*invoke.Engine, error) {
	m := &cfg.MCP
	return invoke.New(invoke.Config{
		Calls: calls, Logger: log, Metrics: metrics, Eras: protocol.Eras(m.Eras),
		ToolTimeout: m.Limits.ToolTimeout, MaxResultBytes: int(m.Limits.MaxToolResultBytes),
		PageSize: m.Pagination.PageSize, ProgressThrottle: m.Progress.Throttle, InputErrors: m.Tools.InputErrors,
		ListTTL: m.CacheHints.ListTTL, ReadTTL: m.CacheHints.ReadTTL, CacheScope: m.CacheHints.Scope,
		LogNotifications: m.Logging.Enabled, DefaultLogLevel: m.Logging.DefaultLevel,
		StateSecret: m.MRTR.StateSecret.Reveal(), StateTTL: m.MRTR.StateTTL, MaxStateBytes: m.MRTR.MaxStateBytes,
		AskTimeout: m.Ask.Timeout, RequestTimeout: m.Ask.RequestTimeout, MaxPending: m.Ask.MaxPendingPerSubject,
		LegacySubscriptions: m.Resources.SubscribeEnabled,
		Anonymous:           cfg.WebServer.Auth.Enabled && cfg.WebServer.Auth.AnonymousDiscovery,
		AnswerAsText:        m.Tools.AnswerAs == "text", HideAnnotations: m.Tools.HideAnnotations, UncheckedInput: !m.Tools.ValidateInput,
		Tasks: kept, TaskPoll: m.Tasks.PollInterval,
		Fault: fault,
	})
}

// openFiles makes the logger, which writes to standard error, and opens the
// files that the configuration asks for.
func (s *Server) openFiles(stderr io.Writer) error {
	w := stderr
	if cfg := &s.cfg.Logger; cfg.UseFileLogger {
		file, err := telemetry.OpenFile(filepath.Join(cfg.Dir, s.info.Name+".log"))
		if err != nil {
			return fmt.Errorf("logger.dir: %w; set it to a directory that can be written to, or logger.useFileLogger to false", err)
		}
		w = both{stderr, file}
	}
	s.log = newLogger(s.cfg.Logger, w)
	if path := s.cfg.MCP.Debug.LogFile; path != "" {
		file, err := telemetry.OpenFile(path)
		if err != nil {
			return fmt.Errorf("mcp.debug.logFile: %w", err)
		}
		s.messages = telemetry.NewMessages(file, s.cfg.MCP.Logging.MaxBodyBytes)
		s.log.Warn("messages of clients are written to a file, with arguments and secrets masked", "file", path)
	}
	return nil
}

// both writes to standard error and to the log file; a failure of one does
// not keep the line from the other.
type both struct{ stderr, file io.Writer }

func (b both) Write(p []byte) (int, error) {
	_, err := b.stderr.Write(p)
	_, err2 := b.file.Write(p)
	return len(p), errors.Join(err, err2)
}

func newLogger(cfg LoggerConfig, w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(cfg.Level)) // the configuration allows only valid ones
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: telemetry.MaskAttr}
	var h slog.Handler = slog.NewTextHandler(w, options)
	if cfg.Format == "json" {
		h = slog.NewJSONHandler(w, options)
	}
	return slog.New(telemetry.LogTraces(h, nil))
}

// demotion makes debug of what the SDK calls an error: clients cause most of
// its lines, and what matters of them is logged elsewhere.
const demotion = slog.LevelError - slog.LevelDebug

// quiet is the logger for the SDK.
func quiet(log *slog.Logger) *slog.Logger {
	return slog.New(demoted{log.Handler()})
}

type demoted struct{ slog.Handler }

func (d demoted) Enabled(ctx context.Context, level slog.Level) bool {
	return d.Handler.Enabled(ctx, level-demotion)
}

func (d demoted) Handle(ctx context.Context, r slog.Record) error {
	r.Level -= demotion
	return d.Handler.Handle(ctx, r)
}

func (d demoted) WithAttrs(attrs []slog.Attr) slog.Handler {
	return demoted{d.Handler.WithAttrs(attrs)}
}
func (d demoted) WithGroup(name string) slog.Handler { return demoted{d.Handler.WithGroup(name)} }

// Err returns every fault of a registration, joined, or nil. [Main] refuses
// to start on one. A registration at fault while the server runs changes
// nothing, is logged and joined here.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.faults...)
}

func (s *Server) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, err)
	if s.serving {
		s.log.Error("registration refused", "error", err)
	}
}

// claim reports whether a name is free and takes it. A taken one is a fault:
// the last registration must not win in silence.
func (s *Server) claim(taken func() bool, take func(), what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if taken() {
		err := fmt.Errorf("%s is registered twice", what)
		s.faults = append(s.faults, err)
		if s.serving {
			s.log.Error("registration refused", "error", err)
		}
		return false
	}
	take()
	return true
}

func (s *Server) addTool(t Tool, p *invoke.Tool) {
	s.registering.Lock()
	defer s.registering.Unlock()
	if s.claim(func() bool { _, ok := s.tools[t.Name]; return ok }, func() { s.tools[t.Name] = t }, fmt.Sprintf("tool %q", t.Name)) {
		s.engine.AddTool(s.mcp, p)
	}
}

func (s *Server) addPrompt(p Prompt, listed *invoke.Prompt) {
	s.registering.Lock()
	defer s.registering.Unlock()
	if s.claim(func() bool { return s.prompts[p.Name] }, func() { s.prompts[p.Name] = true }, fmt.Sprintf("prompt %q", p.Name)) {
		s.engine.AddPrompt(s.mcp, listed)
	}
}

func (s *Server) claimURI(uri string) bool {
	return s.claim(func() bool { return s.uris[uri] }, func() { s.uris[uri] = true }, fmt.Sprintf("resource %q", uri))
}

func (s *Server) addResource(r *invoke.Resource) {
	s.registering.Lock()
	defer s.registering.Unlock()
	if s.claimURI(r.Listed.URI) {
		s.engine.AddResource(s.mcp, r)
	}
}

func (s *Server) addTemplate(t *invoke.Template) {
	s.registering.Lock()
	defer s.registering.Unlock()
	if !s.claimURI(t.Listed.URITemplate) {
		return
	}
	if err := s.engine.AddTemplate(s.mcp, t); err != nil {
		s.mu.Lock()
		delete(s.uris, t.Listed.URITemplate)
		s.mu.Unlock()
		s.fail(fmt.Errorf("resource template %w", err))
	}
}

// What names a kind of feature for [Server.Remove].
type What string

const (
	Tools     What = "tools"
	Prompts   What = "prompts"
	Resources What = "resources" // and templates, by their text
)

// Remove takes features away by name or URI and reports whether any was
// there. Clients of both eras that listen for it are told.
func (s *Server) Remove(what What, names ...string) bool {
	s.registering.Lock()
	defer s.registering.Unlock()
	s.mu.Lock()
	for _, name := range names {
		switch what {
		case Tools:
			delete(s.tools, name)
		case Prompts:
			delete(s.prompts, name)
		case Resources:
			delete(s.uris, name)
		}
	}
	s.mu.Unlock()
	switch what {
	case Tools:
		return s.engine.RemoveTools(s.mcp, names...)
	case Prompts:
		return s.engine.RemovePrompts(s.mcp, names...)
	case Resources:
		return s.engine.RemoveResources(s.mcp, names...)
	}
	return false
}

// ResourceUpdated tells the subscribers of a resource, in both eras, that it
// has changed.
func (s *Server) ResourceUpdated(ctx context.Context, uri string) {
	if err := s.mcp.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri}); err != nil {
		s.log.DebugContext(ctx, "resource update not delivered", "uri", uri, "error", err)
	}
}

// Complete sets the values offered for an argument of a prompt, named by ref,
// or for a variable of a resource template, whose text is ref. The function
// returns those that start with prefix; clients get the first hundred. What is
// completed must be registered when the server starts.
func (s *Server) Complete(ref, argument string, values func(ctx context.Context, call *Call, prefix string) ([]string, error)) {
	if values == nil {
		s.fail(fmt.Errorf("completion of %q of %q: the function is nil", argument, ref))
		return
	}
	s.engine.AddCompletion(ref, argument, func(ctx context.Context, c *invoke.Call, prefix string) ([]string, error) {
		ctx, call := wrap(ctx, c)
		return values(ctx, call, prefix)
	})
}

// Use puts middleware around every tool, the first outermost. Call it before
// serving.
func (s *Server) Use(m ...Middleware) {
	s.early("middleware", func() error {
		if slices.ContainsFunc(m, func(m Middleware) bool { return m == nil }) {
			return errors.New("one is nil")
		}
		s.chain = append(s.chain, m...)
		return nil
	})
}

func (s *Server) wrapped(h Handler) Handler {
	s.mu.Lock()
	chain := s.chain
	s.mu.Unlock()
	for i := len(chain) - 1; i >= 0; i-- {
		h = chain[i](h)
	}
	return h
}

// early runs add while the server does not serve yet. Later it is a fault, as
// is an error of add: what a server starts with does not change.
func (s *Server) early(what string, add func() error) {
	s.mu.Lock()
	err := errors.New("registered after the start")
	if !s.serving && !s.closed {
		err = add()
	}
	s.mu.Unlock()
	if err != nil {
		s.fail(fmt.Errorf("%s: %w", what, err))
	}
}

// Handle serves a project's own HTTP handler beside /mcp, behind the same Host
// and Origin checks. The pattern is one of [http.ServeMux]. Of a, only Public
// applies to a handler; anything else in it is a fault. Call it before serving.
func (s *Server) Handle(pattern string, h http.Handler, a Access) {
	s.early(fmt.Sprintf("handler %q", pattern), func() error {
		if h == nil {
			return errors.New("the handler is nil")
		}
		if len(a.Scopes) > 0 || a.Visible != nil {
			return errors.New("Scopes and Visible are not applied to handlers; check the request in the handler itself")
		}
		s.routes = append(s.routes, front.Route{Pattern: pattern, Handler: h, Public: a.Public})
		return nil
	})
}

// Probe says which probe runs a check.
type Probe string

const (
	Liveness  Probe = "liveness"  // /health: a failure asks for a restart
	Readiness Probe = "readiness" // /ready: a failure takes the server out of rotation
)

// Check adds a condition to /health or /ready. Its error goes to the log, its
// name and status to whoever asks. Call it before serving.
func (s *Server) Check(name string, probe Probe, ok func(context.Context) error) {
	kind := front.Readiness
	if probe == Liveness {
		kind = front.Liveness
	}
	s.early(fmt.Sprintf("check %q", name), func() error {
		if name == "" || ok == nil {
			return errors.New("a check needs a name and a function")
		}
		if slices.ContainsFunc(s.checks, func(c front.Check) bool { return c.Name == name && c.Kind == kind }) {
			return errors.New("registered twice for the same probe")
		}
		s.checks = append(s.checks, front.Check{Name: name, Kind: kind, Func: ok})
		return nil
	})
}

// Go runs a worker from the start of serving until its end, which cancels the
// context. An error or a panic is logged and ends only the worker. Call it
// before serving.
func (s *Server) Go(name string, run func(context.Context) error) {
	s.early(fmt.Sprintf("worker %q", name), func() error {
		s.workers = append(s.workers, task{name, run})
		return nil
	})
}

// OnStop calls f once serving has ended and the running calls are answered,
// last in, first out, also when they took all of the grace: f then has a
// second. Call it before serving.
func (s *Server) OnStop(name string, f func(context.Context) error) {
	s.early(fmt.Sprintf("stop function %q", name), func() error {
		s.stops = append(s.stops, task{name, f})
		return nil
	})
}

// Log returns the server's logger, which writes to standard error.
func (s *Server) Log() *slog.Logger { return s.log }

// Metrics takes metrics of the project's own. They are served beside the
// server's where webServer.metrics.enabled is set, and nowhere else. Names that
// begin with mcp_ are the server's.
func (s *Server) Metrics() prometheus.Registerer { return s.registry }

// MCP returns the SDK's server below, for what this package does not cover.
// Middleware added to it runs inside of this package's own; add it before
// serving, what comes later sees only some of the requests. For tools added to
// it, the headers that repeat their arguments are not checked.
func (s *Server) MCP() *mcp.Server { return s.mcp }
