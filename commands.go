package famcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/famcp/famcp/internal/runtime/config"
	"github.com/famcp/famcp/internal/runtime/protocol"
)

// commands is the table of what a program can do.
func commands() []command {
	return []command{
		{
			name: "http", summary: "serve over HTTP",
			about: `
Serves both protocol eras at /mcp on webServer.host and webServer.port (WS_HOST,
WS_PORT), with /health and /ready beside it. The log goes to standard error.
SIGINT and SIGTERM stop it: /ready fails, running calls get 8 s to finish. A
second signal leaves at once.`,
			setup: (*program).httpCommand,
		},
		{
			name: "stdio", summary: "serve one client on standard input and output",
			about: `
Serves both protocol eras, one message a line, until the input ends. Nothing else
is written to standard output: the log, and whatever the program prints, goes to
standard error.`,
			setup: (*program).stdioCommand,
		},
		{
			name: "call", params: "TOOL [NAME=VALUE | NAME:=JSON]...", summary: "call one tool, without a client, and print its result",
			about: `
Makes the server, calls the tool in this process and leaves. VALUE is taken as the
type that the tool gives the argument; JSON is taken as it is:

  NAME call search query='two words' limit=5 tags='["a","b"]'
  NAME call search query:='"text"' --json '{"limit": 5}'
  echo '{"query": "text"}' | NAME call search --json -

The result goes to standard output; progress, log messages and the text of a
failed call to standard error. What the tool asks is asked on the terminal;
without one it is declined, but for what --yes accepts.`,
			setup: (*program).callCommand,
		},
		{
			name: "tools", params: "[TOOL]", summary: "list the tools, or show one with its arguments",
			setup: (*program).toolsCommand,
		},
		{
			name: "config", summary: "show the configuration and where each value came from",
			about: `
Secrets are masked. When the configuration is at fault, what is wrong follows on
standard error and the exit status is 1.`,
			setup: (*program).configCommand,
		},
		{
			name: "health", summary: "ask the running server whether it is healthy",
			about: `
Asks the server at the configured webServer.host and webServer.port, on this
machine if it listens on all addresses, and prints its answer. The exit status is
0 when it is healthy, else 1: the health check of a container.`,
			setup: (*program).healthCommand,
		},
		{
			name: "version", summary: "show the versions of server, runtime, Go and protocol",
			about: `
A configuration at fault does not hide them: the server is then made with the
built-in one.`,
			setup: (*program).versionCommand,
		},
	}
}

// load reads the configuration.
func (p *program) load() (Configured, *config.Report, error) {
	return p.configure(p.source)
}

// server builds the server and finds every fault of its registrations.
func (p *program) server(ctx context.Context, cfg Configured) (*Server, error) {
	s, err := p.assemble(ctx, cfg)
	if s == nil {
		return nil, cmp.Or(err, errors.New("the function given to famcp.Main made no server"))
	}
	if p.defaults.FS != nil {
		s.docs = p.defaults.FS
	}
	return s, errors.Join(err, s.Err())
}

func (p *program) httpCommand(*flag.FlagSet) func(context.Context, []string) error {
	return func(ctx context.Context, _ []string) error {
		cfg, report, err := p.load()
		if report != nil {
			err = errors.Join(err, cfg.config().checkListen(report.Source))
		}
		if err != nil {
			return err
		}
		s, err := p.server(ctx, cfg)
		if err != nil {
			return err
		}
		return s.RunHTTP(ctx)
	}
}

func (p *program) stdioCommand(*flag.FlagSet) func(context.Context, []string) error {
	return func(ctx context.Context, _ []string) error {
		cfg, _, err := p.load()
		if err != nil {
			return err
		}
		s, err := p.server(ctx, cfg)
		if err != nil {
			return err
		}
		return s.serveStdio(ctx, p.in, p.out)
	}
}

func (p *program) configCommand(options *flag.FlagSet) func(context.Context, []string) error {
	forms := []struct {
		name, usage string
		write       func(*config.Report) error
		documents   bool // the keys, whatever their values
		chosen      bool
	}{
		{name: "json", usage: "print values and keys as JSON", write: func(r *config.Report) error {
			return printJSON(p.out, r)
		}},
		{name: "schema", usage: "print the JSON Schema of a configuration file, for editors", documents: true, write: func(r *config.Report) error {
			schema, err := config.JSONSchema(keys(r))
			if err != nil {
				return err
			}
			_, err = p.out.Write(schema)
			return err
		}},
		{name: "env-example", usage: "print every environment variable with its default", documents: true, write: func(r *config.Report) error {
			return config.WriteEnvExample(p.out, keys(r))
		}},
		{name: "markdown", usage: "print a table of the keys, for documentation", documents: true, write: func(r *config.Report) error {
			return config.WriteMarkdown(p.out, keys(r))
		}},
	}
	for i := range forms {
		options.BoolVar(&forms[i].chosen, forms[i].name, false, forms[i].usage)
	}
	return func(context.Context, []string) error {
		write, documents, chosen := func(r *config.Report) error { return r.WriteText(p.out) }, false, ""
		for _, f := range forms {
			if !f.chosen {
				continue
			}
			if chosen != "" {
				return usagef("config", "config: --%s and --%s exclude each other", chosen, f.name)
			}
			write, documents, chosen = f.write, f.documents, f.name
		}
		cfg, report, err := p.load()
		if report == nil {
			return err
		}
		if writing := write(report); documents || writing != nil {
			return writing
		}
		if err == nil {
			if listen := cfg.config().checkListen(report.Source); listen != nil {
				fmt.Fprintf(p.err, "note: the command http would refuse this: %v\n", listen)
			}
		}
		return err
	}
}

func keys(r *config.Report) []config.Key {
	keys := make([]config.Key, len(r.Values))
	for i, v := range r.Values {
		keys[i] = v.Key
	}
	return keys
}

// healthTimeout bounds the health command, all addresses included.
const healthTimeout = 3 * time.Second

func (p *program) healthCommand(options *flag.FlagSet) func(context.Context, []string) error {
	ready := options.Bool("ready", false, "ask for readiness, /ready, instead")
	return func(ctx context.Context, _ []string) error {
		cfg, _, err := p.load()
		if err != nil {
			return err
		}
		path := "/health"
		if *ready {
			path = "/ready"
		}
		ctx, cancel := context.WithTimeout(ctx, healthTimeout)
		defer cancel()
		return p.health(ctx, cfg.config().WebServer, path)
	}
}

func (p *program) health(ctx context.Context, web WebServerConfig, path string) error {
	if web.Port == 0 {
		return errors.New("webServer.port is 0, any free port: set one (WS_PORT) to ask for the health of the server there")
	}
	// No proxy: the server is on this machine or named by its own address.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var failed error
	for _, host := range reachable(web.Host) {
		url := "http://" + net.JoinHostPort(host, strconv.Itoa(web.Port)) + path
		status, body, err := get(ctx, client, url)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if _, err := fmt.Fprintf(p.out, "%s: %s %s\n", url, status, body); err != nil {
			return err
		}
		if !strings.HasPrefix(status, "200 ") {
			return errReported
		}
		return nil
	}
	return failed
}

// get returns the status and the beginning of the body in one line.
func get(ctx context.Context, client *http.Client, url string) (status, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", "", err
	}
	res, err := client.Do(req)
	if err != nil {
		return "", "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 4<<10))
	return res.Status, strings.Join(strings.Fields(string(text)), " "), err
}

// reachable lists the addresses at which a server that listens on host is to
// be asked.
func reachable(host string) []string {
	addr, err := netip.ParseAddr(host)
	switch {
	case err != nil || !addr.IsUnspecified():
		return []string{host}
	case addr.Is4():
		return []string{"127.0.0.1"}
	default: // both families, where the system has both
		return []string{"::1", "127.0.0.1"}
	}
}

// versions is what the command version knows.
type versions struct {
	Schema    int      `json:"schema"`
	Name      string   `json:"name"`
	Version   string   `json:"version"`
	Runtime   string   `json:"runtime"` // version of this module
	Go        string   `json:"go"`
	Platform  string   `json:"platform"`
	Revisions []string `json:"revisions"` // of the protocol, newest first
}

func (p *program) versionCommand(options *flag.FlagSet) func(context.Context, []string) error {
	asJSON := options.Bool("json", false, "print it as JSON")
	return func(ctx context.Context, _ []string) error {
		s, err := p.makeSomehow(ctx)
		if err != nil {
			return err
		}
		v := versions{
			Schema: 1, Name: s.info.Name, Version: s.info.Version,
			Runtime: runtimeVersion(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
			Revisions: protocol.Eras(s.cfg.MCP.Eras).Versions(),
		}
		if *asJSON {
			return printJSON(p.out, v)
		}
		_, err = fmt.Fprintf(p.out, "%s %s\nruntime   %s %s\ngo        %s %s\nprotocol  %s\n",
			v.Name, v.Version, modulePath, v.Runtime, v.Go, v.Platform, strings.Join(v.Revisions, " "))
		return err
	}
}

// makeSomehow makes the server to read its name from, in spite of faults: what
// is installed must be told where its configuration is broken.
func (p *program) makeSomehow(ctx context.Context) (*Server, error) {
	cfg, _, err := p.load()
	if err == nil {
		hush(cfg)
		var s *Server
		if s, err = p.server(ctx, cfg); s != nil {
			return s, nil
		}
	}
	cfg, _, builtIn := p.configure(config.Source{Defaults: p.defaults.Config})
	if builtIn != nil {
		return nil, err
	}
	hush(cfg)
	if s, _ := p.server(ctx, cfg); s != nil {
		return s, nil
	}
	return nil, err
}

// modulePath is this module, whose version build information knows.
const modulePath = "github.com/famcp/famcp"

func runtimeVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return moduleVersion(info, modulePath)
}

// moduleVersion is the version required of a module, with the place of its
// source if another one stands in for it.
func moduleVersion(info *debug.BuildInfo, path string) string {
	if info.Main.Path == path {
		return cmp.Or(info.Main.Version, "(devel)")
	}
	for _, m := range info.Deps {
		if m.Path != path {
			continue
		}
		if m.Replace != nil {
			return fmt.Sprintf("%s (%s)", m.Version, strings.TrimSpace(m.Replace.Path+" "+m.Replace.Version))
		}
		return m.Version
	}
	return "unknown"
}

// printJSON prints v indented, for people and programs alike.
func printJSON(w io.Writer, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(readable(raw), '\n'))
	return err
}

// readable writes <, > and & in JSON as themselves, which encoding/json
// escapes for HTML. An escaped backslash begins nothing.
func readable(raw []byte) []byte {
	return []byte(strings.NewReplacer(`\\`, `\\`, `\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(raw)))
}
