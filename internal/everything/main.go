// Command everything is the fixture that the official conformance suite runs
// against: a server on the public API with each tool, prompt and resource the
// suite calls by name.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof" // #nosec G108 -- served only where -pprof says
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/internal/runtime/collector"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:3001", "address to listen on")
	limits := flag.String("limits", "default", "limits in force: default, bench for all of them with thresholds above a benchmark's load and metrics on, or off for no limits, log or metrics")
	debug := flag.Bool("debug", false, "add the tools of mcp.debug.builtinTools")
	profiles := flag.String("pprof", "", "address to serve net/http/pprof at; none when empty")
	flag.Parse()
	if *profiles != "" {
		go func() {
			srv := &http.Server{Addr: *profiles, ReadHeaderTimeout: 5 * time.Second} // the default mux has them
			fmt.Fprintln(os.Stderr, "everything: pprof:", srv.ListenAndServe())
		}()
	}
	if os.Getenv("GOGC") == "" {
		collector.Pace() // as famcp.Main does, so that a benchmark measures what ships
	}
	if err := run(*addr, *limits, *debug); err != nil {
		fmt.Fprintln(os.Stderr, "everything:", err)
		os.Exit(1)
	}
}

// run serves on addr until a signal stops it.
func run(addr, limits string, debug bool) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg, err := configure(addr, limits)
	if err != nil {
		return err
	}
	cfg.MCP.Debug.BuiltinTools = debug
	s, err := newServer(cfg)
	if err != nil {
		return err
	}
	return s.RunHTTP(ctx)
}

func configure(addr, limits string) (*famcp.Config, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("flag -addr: %w", err)
	}
	cfg := famcp.DefaultConfig()
	cfg.WebServer.Host = host
	if cfg.WebServer.Port, err = strconv.Atoi(port); err != nil {
		return nil, fmt.Errorf("flag -addr: port %q is not a number", port)
	}
	cfg.MCP.Resources.SubscribeEnabled = true
	cfg.MCP.Tasks.Enabled = true
	cfg.MCP.RateLimit.MaxRequests = 10_000 // the suite sends hundreds in a minute, from one address
	switch limits {
	case "default":
	case "bench":
		cfg.MCP.RateLimit.MaxRequests, cfg.MCP.RateLimit.MaxConcurrentPerSubject = 1_000_000_000, 100_000
		cfg.MCP.Streams.MaxPerSubject = 100_000
		cfg.MCP.Sessions.Max = 1_000_000
		cfg.MCP.Ask.MaxPendingPerSubject = 10_000
		cfg.WebServer.Metrics.Enabled = true
	case "off":
		cfg.MCP.RateLimit.MaxRequests, cfg.MCP.RateLimit.MaxConcurrentPerSubject, cfg.MCP.Streams.MaxPerSubject = 0, 0, 0
		cfg.MCP.Limits.ToolTimeout, cfg.MCP.Limits.MaxToolResultBytes = 0, 0
		cfg.Logger.Level = "error"
	default:
		return nil, fmt.Errorf("flag -limits: %q is neither default, bench nor off", limits)
	}
	return cfg, nil
}

// newServer returns the server with all its features.
func newServer(cfg *famcp.Config) (*famcp.Server, error) {
	s, err := famcp.New(cfg, famcp.Info{
		Name:        "everything",
		Version:     "1.0.0",
		Title:       "Everything",
		Description: "Exercises every feature of the protocol, for the conformance suite.",
	})
	if err != nil {
		return nil, err
	}
	addTools(s)
	addAskingTools(s)
	addTaskTools(s)
	addPrompts(s)
	addResources(s)
	return s, s.Err()
}
