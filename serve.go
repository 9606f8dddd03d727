package famcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/famcp/famcp/internal/runtime/auth"
	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/front"
	"github.com/famcp/famcp/internal/runtime/limits"
	"github.com/famcp/famcp/internal/runtime/protocol"
)

// grace is how long running calls may take to finish once a stop was asked
// for. Docker kills after 10 s.
const grace = 8 * time.Second

// start makes the server ready to serve, once: registration faults stop it,
// built-in entries fill what the project has not taken, workers begin. What HTTP
// needs is made for HTTP only: others check no credentials, and desktop clients
// start them where no key file is.
func (s *Server) start(transport call.Transport) error {
	s.starting.Lock()
	defer s.starting.Unlock()
	s.mu.Lock()
	closed, serving, faults := s.closed, s.serving, errors.Join(s.faults...)
	s.mu.Unlock()
	byHTTP := transport == call.HTTP && s.front == nil
	switch {
	case closed:
		return errors.New("the server is closed; make a new one")
	case serving && !byHTTP:
		return nil
	case !serving && faults != nil:
		return faults
	}
	var authenticator *auth.Authenticator
	if byHTTP {
		var err error
		if authenticator, err = s.startAuth(); err != nil {
			return err
		}
	}
	if !serving {
		s.addBuiltins()
		if s.cfg.MCP.Debug.BuiltinTools {
			s.addDebugTools()
		}
		if err := errors.Join(s.Err(), s.engine.CheckCompletions()); err != nil {
			return err
		}
		s.engine.LogOverdue(context.Background())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !serving { // before the front, which takes the server as it is
		// Last added is outermost: a project's own middleware lies inside.
		s.mcp.AddReceivingMiddleware(s.engine.Middleware)
	}
	if byHTTP {
		f, err := s.newFront(authenticator)
		if err != nil {
			return err
		}
		s.front = f
	}
	if serving {
		return nil
	}
	s.serving = true
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	for _, w := range s.workers {
		s.running.Go(func() { s.work(ctx, w) })
	}
	return nil
}

// newFront returns what serves HTTP; authenticator is nil while authentication
// is off.
func (s *Server) newFront(authenticator *auth.Authenticator) (*front.Front, error) {
	web := &s.cfg.WebServer
	proxies, err := limits.NewProxies(web.TrustProxy, web.TrustedProxies)
	if err != nil {
		return nil, fmt.Errorf("webServer.trustedProxies: %w", err)
	}
	routes, err := s.authRoutes(authenticator, &proxies)
	if err != nil {
		return nil, err
	}
	config := front.Config{
		Server: s.mcp, Calls: s.calls, Info: s.info.implementation(), ParamHeaders: s.engine.ParamHeaders,
		Eras: protocol.Eras(s.cfg.MCP.Eras), Tasks: s.tasks != nil, MaxBody: s.cfg.MCP.Limits.MaxPayloadBytes,
		MaxSessions: s.cfg.MCP.Sessions.Max, SessionIdle: s.cfg.MCP.Sessions.Idle,
		Hosts: web.AllowedHosts, Origins: s.cfg.origins(), CheckHost: !web.Auth.Enabled,
		Checks: s.checks, Routes: slices.Concat(s.routes, routes, []front.Route{s.headersRoute()}), Authorize: authorize(authenticator), Logger: s.log,
		Limits: newLimits(&s.cfg.MCP), Proxies: proxies, Metrics: s.metrics, MetricsPath: web.Metrics.besideMCP(), Messages: s.messages,
	}
	if authenticator != nil {
		config.Unclaimed, config.StepUp = authenticator.Unclaimed, authenticator.StepUp
	}
	return front.New(config)
}

func newLimits(m *MCPConfig) *limits.Limits {
	return limits.New(limits.Config{
		MaxRequests: m.RateLimit.MaxRequests, Window: m.RateLimit.Window, ByAddress: m.RateLimit.Scope == "ip",
		MaxCalls: m.RateLimit.MaxConcurrentPerSubject, MaxStreams: m.Streams.MaxPerSubject,
	})
}

func (s *Server) work(ctx context.Context, w task) {
	defer func() {
		if p := recover(); p != nil {
			s.metrics.Panic()
			s.log.Error("a worker panicked", "worker", w.name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	if err := w.run(ctx); err != nil && ctx.Err() == nil {
		s.log.Error("a worker ended", "worker", w.name, "error", err)
	}
}

// Handler starts the server's workers and returns what serves HTTP, for a
// program that brings its own http.Server. It returns the faults of [Server.Err].
// It opens no listener: with webServer.metrics.listen set, nothing serves the
// metrics. End with Close.
func (s *Server) Handler() (http.Handler, error) {
	if err := s.start(call.HTTP); err != nil {
		return nil, err
	}
	return s.front, nil
}

// RunHTTP serves on the configured address until ctx ends, then stops
// gracefully: readiness fails, running calls get 8 s to finish, streams end.
func (s *Server) RunHTTP(ctx context.Context) error {
	if err := s.cfg.checkListen(nil); err != nil {
		return err
	}
	handler, err := s.Handler()
	if err != nil {
		return err
	}
	address := net.JoinHostPort(s.cfg.WebServer.Host, strconv.Itoa(s.cfg.WebServer.Port))
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return errors.Join(
			fmt.Errorf("listening on %s: %w; choose another webServer.port (WS_PORT)", address, err), s.Close(ctx))
	}
	server := s.httpServer(handler)
	failed := make(chan error, 2)
	stopMetrics, err := s.serveMetrics(ctx, failed)
	if err != nil {
		return errors.Join(err, listener.Close(), s.Close(ctx))
	}
	defer stopMetrics()
	go func() { failed <- server.Serve(listener) }()
	s.log.Info("serving", "url", "http://"+listener.Addr().String()+front.Path, "name", s.info.Name, "version", s.info.Version)
	select {
	case err = <-failed:
	case <-ctx.Done():
		err = nil
	}
	s.log.Info("stopping", "grace", grace)
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	cut, closed := s.shut(stop)
	if cut {
		s.log.Warn("calls were cancelled: they took longer than the grace", "grace", grace)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if server.Shutdown(last) != nil {
		_ = server.Close() // what does not end by now is cut
	}
	return errors.Join(err, closed)
}

func (s *Server) httpServer(handler http.Handler) *http.Server {
	server := &http.Server{Handler: handler, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)}
	front.ServerDefaults(server)
	return server
}

// serveMetrics opens the metrics' own listener, if there is to be one. It
// stays while the server stops: the last figures are of interest.
func (s *Server) serveMetrics(ctx context.Context, failed chan<- error) (stop func(), err error) {
	m := &s.cfg.WebServer.Metrics
	if !m.Enabled || m.Listen == "" {
		return func() {}, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", m.Listen)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w; choose another webServer.metrics.listen (WS_METRICS_LISTEN)", m.Listen, err)
	}
	server := s.httpServer(s.front.MetricsHandler(m.Path))
	server.WriteTimeout = 30 * time.Second
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("serving metrics: %w", err)
		}
	}()
	s.log.Info("serving metrics", "url", "http://"+listener.Addr().String()+m.Path)
	return func() { _ = server.Close() }, nil // a scrape that is cut comes again
}

// besideMCP returns the path at which the main listener serves metrics, or "".
func (m *MetricsConfig) besideMCP() string {
	if !m.Enabled || m.Listen != "" {
		return ""
	}
	return m.Path
}

func (s *Server) awaitWorkers(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return errors.New("workers did not stop in time")
	}
}

// Close stops a server that serves: running calls finish within ctx, streams
// and sessions end, workers are cancelled, and what OnStop registered runs,
// last in, first out. When ctx ends first, calls are cancelled and have a
// second to say so, and its error is among those returned. A second call does
// nothing.
func (s *Server) Close(ctx context.Context) error {
	cut, err := s.shut(ctx)
	if cut {
		err = errors.Join(ctx.Err(), err)
	}
	return err
}

// shut is Close; cut says that calls had to be cancelled.
func (s *Server) shut(ctx context.Context) (cut bool, err error) {
	s.mu.Lock()
	serving := s.serving && !s.closed
	s.closed = true
	stops, workers, web := slices.Clone(s.stops), len(s.workers), s.front
	s.mu.Unlock()
	if !serving {
		return false, nil
	}
	if web != nil {
		web.Drain()
	}
	var ending sync.WaitGroup
	if s.tasks != nil { // meanwhile: a client that waits for a task's result is a running call
		ending.Go(func() { s.tasks.Close(ctx) })
	}
	if web != nil {
		cut = web.Close(ctx) != nil
	}
	ending.Wait()
	s.engine.Close()
	s.cancel()
	if ctx.Err() != nil { // what is left has a second of its own
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
	}
	var errs []error
	if workers > 0 {
		errs = append(errs, s.awaitWorkers(ctx))
	}
	for _, t := range slices.Backward(stops) {
		if err := t.call(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stopping %s: %w", t.name, err))
		}
	}
	return cut, errors.Join(errs...)
}

// call runs the task and returns a panic as an error.
func (t task) call(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return t.run(ctx)
}
