package famcp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/famcp/famcp/internal/runtime/config"
	"github.com/famcp/famcp/internal/runtime/front"
	"github.com/famcp/famcp/internal/runtime/limits"
)

// Config is the configuration of a server. A project embeds it and adds its own
// section:
//
//	type Config struct {
//		famcp.Config `yaml:",inline"`
//		App          App `yaml:"app"`
//	}
//
// Get one from [Load], or from [DefaultConfig] and set fields in Go. A literal
// works too: [New] gives each field that holds its zero value the default, so
// that a forgotten limit is never an absent one; to turn something off, start
// from DefaultConfig. A Config is not changed once a server was made of it.
//
// The tags of the fields are documented at docs/configuration.md of a project;
// files, variables and bounds follow from them.
type Config struct {
	// Env is the environment the program runs in, from the variable FAMCP_ENV;
	// it is no key of a file. Empty means development.
	Env string `yaml:"-"`

	MCP        MCPConfig        `yaml:"mcp"`
	WebServer  WebServerConfig  `yaml:"webServer"`
	AdminPanel AdminPanelConfig `yaml:"adminPanel"`
	Logger     LoggerConfig     `yaml:"logger"`

	complete bool // made by Load or DefaultConfig: zero values are meant
}

// MCPConfig is the section mcp: the protocol.
type MCPConfig struct {
	Eras       string           `yaml:"eras" default:"both" enum:"both,modern,legacy" doc:"Protocol eras that are served: modern is revision 2026-07-28, legacy the four before it."`
	Limits     LimitsConfig     `yaml:"limits"`
	RateLimit  RateLimitConfig  `yaml:"rateLimit"`
	Streams    StreamsConfig    `yaml:"streams"`
	Sessions   SessionsConfig   `yaml:"sessions"`
	Pagination PaginationConfig `yaml:"pagination"`
	Progress   ProgressConfig   `yaml:"progress"`
	CacheHints CacheHintsConfig `yaml:"cacheHints" env:"MCP_CACHE"`
	MRTR       MRTRConfig       `yaml:"mrtr"`
	Ask        AskConfig        `yaml:"ask"`
	Resources  ResourcesConfig  `yaml:"resources"`
	Tools      ToolsConfig      `yaml:"tools"`
	Logging    LoggingConfig    `yaml:"logging"`
	Debug      DebugConfig      `yaml:"debug"`
	Tasks      TasksConfig      `yaml:"tasks"`
	Stdio      StdioConfig      `yaml:"stdio"`
}

// StdioConfig is the section mcp.stdio.
type StdioConfig struct {
	Token Secret `yaml:"token" doc:"JWT whose subject and scopes apply to the client on standard input. Empty grants every scope to the subject stdio."`
}

// TasksConfig is the section mcp.tasks: calls that go on after their answer.
type TasksConfig struct {
	Enabled      bool          `yaml:"enabled" default:"false" doc:"Lets calls of tools that allow it become tasks."`
	DefaultTTL   time.Duration `yaml:"defaultTtlMs" unit:"ms" default:"3600000" min:"1" doc:"Life of a task from its creation, when its caller asks for none, in milliseconds."`
	MinTTL       time.Duration `yaml:"minTtlMs" unit:"ms" default:"0" min:"0" doc:"Shortest life a caller can ask for, in milliseconds."`
	MaxTTL       time.Duration `yaml:"maxTtlMs" unit:"ms" default:"86400000" min:"1" doc:"Longest life a caller can ask for, in milliseconds."`
	PollInterval time.Duration `yaml:"pollIntervalMs" unit:"ms" default:"1000" min:"1" doc:"Time between two looks at a task that is suggested to clients, in milliseconds."`
	MaxTasks     int           `yaml:"maxTasks" default:"1000" min:"1" max:"1000000" doc:"Tasks that are kept at once; the one that ended first makes room, and while none has ended more are refused with -32003."`
}

// LimitsConfig is the section mcp.limits.
type LimitsConfig struct {
	MaxPayloadBytes    int64         `yaml:"maxPayloadBytes" default:"1048576" min:"1" max:"1073741824" doc:"Largest request body in bytes; a larger one is refused with -32005."`
	ToolTimeout        time.Duration `yaml:"toolTimeoutMs" unit:"ms" default:"30000" min:"0" doc:"Time a tool may take, in milliseconds, unless the tool sets its own; 0 is no limit."`
	MaxToolResultBytes int64         `yaml:"maxToolResultBytes" default:"10485760" min:"0" max:"1073741824" doc:"Largest tool result in bytes; a larger one is cut with a visible marker. 0 is no limit."`
}

// RateLimitConfig is the section mcp.rateLimit: what one caller may ask of the
// server by HTTP. Callers are told apart by subject, without authentication by
// address.
type RateLimitConfig struct {
	MaxRequests             int           `yaml:"maxRequests" default:"100" min:"0" max:"1000000000" doc:"Requests of one caller in a window; more are refused with -32003. 0 is no limit."`
	Window                  time.Duration `yaml:"windowMs" unit:"ms" default:"60000" min:"1" doc:"Length of the window, in milliseconds."`
	Scope                   string        `yaml:"scope" default:"subject" enum:"subject,ip" doc:"Who counts as one caller for maxRequests: a subject, without authentication an address; or always an address."`
	MaxConcurrentPerSubject int           `yaml:"maxConcurrentPerSubject" default:"16" min:"0" max:"1000000" doc:"Calls of one caller that may run at once; more are refused with -32003. 0 is no limit."`
}

// StreamsConfig is the section mcp.streams: streams of the server's messages,
// which hold no slot of a call.
type StreamsConfig struct {
	MaxPerSubject int `yaml:"maxPerSubject" default:"8" min:"0" max:"1000000" doc:"Streams of one caller that may be open at once: of legacy sessions by GET, and modern subscriptions. 0 is no limit."`
}

// SessionsConfig is the section mcp.sessions.
type SessionsConfig struct {
	Max  int           `yaml:"max" default:"10000" min:"1" max:"1000000" doc:"Legacy sessions that may be open at once."`
	Idle time.Duration `yaml:"idleMs" unit:"ms" default:"1800000" min:"1" doc:"Time without a request after which a legacy session ends, in milliseconds."`
}

// PaginationConfig is the section mcp.pagination.
type PaginationConfig struct {
	PageSize int `yaml:"pageSize" default:"100" min:"1" max:"10000" doc:"Entries in one page of a list."`
}

// ProgressConfig is the section mcp.progress.
type ProgressConfig struct {
	Throttle time.Duration `yaml:"throttleMs" unit:"ms" default:"100" min:"0" doc:"Least time between two progress notifications of a call, in milliseconds; 0 sends them all."`
}

// CacheHintsConfig is the section mcp.cacheHints: what modern results tell
// clients about caching.
type CacheHintsConfig struct {
	ListTTL time.Duration `yaml:"listTtlMs" unit:"ms" default:"60000" min:"0" doc:"Time clients may keep a list, in milliseconds; 0 is not at all."`
	ReadTTL time.Duration `yaml:"readTtlMs" unit:"ms" default:"0" min:"0" doc:"Time clients may keep the contents of a resource, in milliseconds; 0 is not at all."`
	Scope   string        `yaml:"cacheScope" env:"MCP_CACHE_SCOPE" default:"private" enum:"private,public" doc:"Who may share what is cached; private always when entries are filtered by caller."`
}

// MRTRConfig is the section mcp.mrtr: the state of a modern call that asks the
// client for input.
type MRTRConfig struct {
	StateSecret   Secret        `yaml:"stateSecret" min:"32" doc:"Secret that seals the state; the same on every replica. Empty makes a random one for each process."`
	StateTTL      time.Duration `yaml:"stateTtlSeconds" unit:"s" default:"600" min:"1" max:"86400" doc:"Time a state is accepted, in seconds."`
	MaxStateBytes int           `yaml:"maxStateBytes" default:"65536" min:"1024" max:"1048576" doc:"Largest state in bytes, with the answers given so far."`
}

// AskConfig is the section mcp.ask: waiting for a client's answer.
type AskConfig struct {
	Timeout              time.Duration `yaml:"timeoutMs" unit:"ms" default:"600000" min:"1" doc:"Time a person may take to answer, in milliseconds."`
	RequestTimeout       time.Duration `yaml:"requestTimeoutMs" unit:"ms" default:"60000" min:"1" doc:"Time a client may take for sampling or roots, in milliseconds."`
	MaxPendingPerSubject int           `yaml:"maxPendingPerSubject" default:"8" min:"1" max:"10000" doc:"Questions of one subject that may wait at once."`
}

// ResourcesConfig is the section mcp.resources.
type ResourcesConfig struct {
	SubscribeEnabled bool `yaml:"subscribeEnabled" default:"false" doc:"Lets legacy clients subscribe to resources."`
}

// ToolsConfig is the section mcp.tools.
type ToolsConfig struct {
	InputErrors     string `yaml:"inputErrors" default:"era" enum:"era,protocol,result" doc:"How arguments that break a tool's schema are answered: a protocol error, a result the model sees, or as the client's revision wants it."`
	AnswerAs        string `yaml:"answerAs" default:"structuredContent" enum:"structuredContent,text" doc:"Form of structured output: structuredContent with an output schema and the same as JSON text, or the JSON text alone, for clients that stumble over the other."`
	HideAnnotations bool   `yaml:"hideAnnotations" default:"false" doc:"Leaves the annotations, such as readOnlyHint, out of the listed tools."`
	ValidateInput   bool   `yaml:"validateInput" default:"true" doc:"Checks arguments against a tool's schema before it runs. Without it a tool gets whatever fits its Go type."`
}

// DebugConfig is the section mcp.debug: for those who develop a client or
// look for a fault.
type DebugConfig struct {
	LogFile      string `yaml:"logFile" doc:"File that every message of the protocol is written to, a JSON object a line, with arguments and secrets masked. Bounded: 10 MiB and four older files. Empty writes none."`
	BuiltinTools bool   `yaml:"builtinTools" default:"false" doc:"Adds tools that answer in every shape there is: content of each kind, errors, progress, log messages, questions, large and slow results. Refused in production."`
}

// LoggingConfig is the section mcp.logging: log messages sent to clients, and
// how much of the messages of clients is logged.
type LoggingConfig struct {
	Enabled      bool   `yaml:"enabled" default:"true" doc:"Sends log messages to clients that ask for them."`
	DefaultLevel string `yaml:"defaultLevel" default:"info" enum:"debug,info,notice,warning,error,critical,alert,emergency" doc:"Least level sent on a legacy session that has not set one."`
	MaxBodyBytes int    `yaml:"maxBodyBytes" default:"4096" min:"0" max:"1048576" doc:"Most bytes of a message in the file mcp.debug.logFile; a longer one is cut. 0 cuts none."`
}

// WebServerConfig is the section webServer: the HTTP transport.
type WebServerConfig struct {
	Host              string        `yaml:"host" default:"127.0.0.1" doc:"Address or name to listen on; 0.0.0.0 is every address."`
	Port              int           `yaml:"port" default:"3000" min:"0" max:"65535" doc:"Port to listen on; 0 takes a free one."`
	PublicURL         string        `yaml:"publicUrl" doc:"URL clients reach the server at, without /mcp. Empty means http://localhost with the port."`
	AllowedHosts      []string      `yaml:"allowedHosts" max:"1000" doc:"Host names accepted in the Host header beside localhost, such as a proxy's public name."`
	OriginHosts       []string      `yaml:"originHosts" max:"1000" doc:"Origins accepted in the Origin header beside loopback ones, such as https://app.example.com; * is any and refused in production."`
	TrustProxy        bool          `yaml:"trustProxy" default:"false" doc:"Believes proxies on this machine and in private networks about a caller's address (X-Forwarded-For, Forwarded)."`
	TrustedProxies    []string      `yaml:"trustedProxies" max:"1000" doc:"Addresses and networks of proxies believed about a caller's address, such as 203.0.113.7 or 10.1.0.0/16."`
	Metrics           MetricsConfig `yaml:"metrics"`
	GenJWTAPIEnable   bool          `yaml:"genJwtApiEnable" default:"false" doc:"Serves POST /gen-jwt, which makes tokens for callers whose own has the claim allow: gen-token."`
	AllowInsecureBind bool          `yaml:"allowInsecureBind" default:"false" doc:"Allows listening beyond loopback without authentication."`
	Auth              AuthConfig    `yaml:"auth"`
}

// MetricsConfig is the section webServer.metrics: metrics for Prometheus.
type MetricsConfig struct {
	Enabled               bool   `yaml:"enabled" default:"false" doc:"Serves metrics for Prometheus, without authentication."`
	Path                  string `yaml:"path" default:"/metrics" doc:"Path the metrics are served at."`
	Listen                string `yaml:"listen" doc:"Address and port of a listener for metrics alone, such as 127.0.0.1:9090. Empty serves them beside /mcp."`
	IncludeProcessMetrics bool   `yaml:"includeProcessMetrics" default:"true" doc:"Adds the metrics of the process and the Go runtime."`
}

// AuthConfig is the section webServer.auth: who may use the server by HTTP.
type AuthConfig struct {
	Enabled               bool           `yaml:"enabled" default:"false" doc:"Requires credentials on /mcp and on the project's own paths."`
	AnonymousDiscovery    bool           `yaml:"anonymousDiscovery" default:"false" doc:"Lets callers without credentials discover the server and list what is public."`
	PermanentServerTokens []Secret       `yaml:"permanentServerTokens" env:"WS_SERVER_TOKENS" max:"1000" doc:"Tokens that do not expire, of at least 20 characters; each is a subject of its own with every scope."`
	Basic                 BasicConfig    `yaml:"basic"`
	Failures              FailuresConfig `yaml:"failures"`
	Revoked               RevokedConfig  `yaml:"revoked"`
	JWT                   JWTConfig      `yaml:"jwtToken" env:"WS_JWT"`
}

// BasicConfig is the section webServer.auth.basic.
type BasicConfig struct {
	Username string `yaml:"username" doc:"User of the Basic scheme, with every scope; empty switches it off."`
	Password Secret `yaml:"password" doc:"Password of the Basic scheme."`
}

// FailuresConfig is the section webServer.auth.failures.
type FailuresConfig struct {
	MaxPerAddress int `yaml:"maxPerAddress" default:"30" min:"0" doc:"Failed authentications an address may make in a minute; more are refused with 429, a valid token never. 0 is no limit."`
}

// RevokedConfig is the section webServer.auth.revoked.
type RevokedConfig struct {
	JTI       []string `yaml:"jti" max:"1000" doc:"Token identifiers that are refused."`
	JWTTokens []Secret `yaml:"jwtTokens" max:"1000" doc:"Tokens that are refused."`
	Users     []string `yaml:"users" max:"1000" doc:"Users whose tokens are refused."`
}

// JWTConfig is the section webServer.auth.jwtToken.
type JWTConfig struct {
	Mode             string        `yaml:"mode" default:"hs256" enum:"hs256,legacyAesCtr,embedded,localKey,remoteJwks" doc:"How tokens are signed and checked."`
	EncryptKey       Secret        `yaml:"encryptKey" env:"WS_TOKEN_ENCRYPT_KEY" doc:"Shared secret of the mode hs256."`
	Algorithm        string        `yaml:"algorithm" default:"ES256" enum:"ES256,RS256" doc:"Signature of the asymmetric modes."`
	KeyStoragePath   string        `yaml:"keyStoragePath" doc:"Directory of the keys of the mode embedded."`
	PublicKeyPath    string        `yaml:"publicKeyPath" doc:"PEM file of the mode localKey."`
	PrivateKeyPath   string        `yaml:"privateKeyPath" doc:"PEM file that lets the mode localKey issue tokens."`
	JWKSURI          string        `yaml:"jwksUri" doc:"Key set of the mode remoteJwks."`
	Issuer           string        `yaml:"issuer" doc:"Issuer of the tokens made here."`
	ExpectedIssuer   string        `yaml:"expectedIssuer" doc:"Issuer a token must name."`
	ExpectedAudience []string      `yaml:"expectedAudience" max:"1000" doc:"Audiences accepted instead of the server's own."`
	CheckMCPName     bool          `yaml:"checkMCPName" env:"WS_CHECK_MC_NAME" default:"false" doc:"Requires the server's name in the claim service."`
	IsCheckIP        bool          `yaml:"isCheckIP" env:"WS_JWT_CHECK_IP" default:"false" doc:"Enforces the claim ip."`
	JWKSCacheTTL     time.Duration `yaml:"jwksCacheTtl" unit:"s" default:"600" min:"0" max:"600" doc:"Time a key set is kept, in seconds."`
	JWKSCooldown     time.Duration `yaml:"jwksCooldown" unit:"s" default:"30" min:"0" doc:"Least time between two fetches for an unknown key, in seconds."`
	ClockSkew        time.Duration `yaml:"clockSkew" unit:"s" default:"30" min:"0" max:"60" doc:"Clock difference that is forgiven, in seconds."`
	DefaultTTL       time.Duration `yaml:"defaultTtl" unit:"s" default:"1800" min:"1" doc:"Life of a token made here, in seconds."`
}

// AdminPanelConfig is the section adminPanel: the page /admin, which makes and
// checks tokens.
type AdminPanelConfig struct {
	Enabled  bool   `yaml:"enabled" default:"false" doc:"Serves the page /admin, which makes and checks tokens."`
	AuthType string `yaml:"authType" default:"jwtToken" enum:"jwtToken,basic" doc:"Who may use the page: whoever gives a token with the claim allow: gen-token as the password, or the user of webServer.auth.basic."`
}

// LoggerConfig is the section logger: the program's own log on standard error.
type LoggerConfig struct {
	Level         string `yaml:"level" default:"info" enum:"debug,info,warn,error" doc:"Least level that is logged."`
	Format        string `yaml:"format" default:"text" enum:"text,json" doc:"Form of a log line."`
	UseFileLogger bool   `yaml:"useFileLogger" default:"false" doc:"Writes the log to a file as well, readable by the server's user only: NAME.log, at 10 MiB kept as NAME.log.1 to .4."`
	Dir           string `yaml:"dir" default:"logs" doc:"Directory of the log file."`
}

// Configured is satisfied by a pointer to a struct that embeds [Config], and by
// *Config itself.
type Configured interface {
	config() *Config
}

func (c *Config) config() *Config { return c }

// DefaultConfig returns the defaults, read from no file and no variable.
func DefaultConfig() *Config {
	c := &Config{Env: config.DefaultEnv, complete: true}
	if err := config.ApplyDefaults(c); err != nil {
		panic(err) // the tags above are wrong
	}
	return c
}

// Load reads the configuration of the project in the directory dir as [Main]
// does: default tags, dir/config/default.yaml, dir/config/<FAMCP_ENV>.yaml,
// dir/config/local.yaml, then the environment. An empty dir reads no files. The
// error joins everything that is wrong, each with its file and line or variable.
func Load[C any, P interface {
	*C
	Configured
}](dir string) (P, error) {
	p, _, err := load[C, P](config.Source{Dir: dir, Environ: os.Environ()})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// load is Load from any source. The report is there even when the configuration
// is at fault, unless its struct is.
func load[C any, P interface {
	*C
	Configured
}](src config.Source) (P, *config.Report, error) {
	p := P(new(C))
	report, err := config.Load(p, src)
	if report == nil {
		return p, nil, err
	}
	c := p.config()
	c.Env, c.complete = report.Env, true
	return p, report, errors.Join(err, c.rules(report.Source), placeholders(p, c, report.Source))
}

// Production reports whether the environment is production.
func (c *Config) Production() bool { return c.Env == "production" }

// completed returns a copy of c in which the zero fields of a literal have their
// defaults. The zero fields of a loaded configuration are meant.
func (c *Config) completed() (*Config, error) {
	full := *c
	if full.complete {
		return &full, nil
	}
	if full.Env == "" {
		full.Env = config.DefaultEnv
	}
	full.complete = true
	return &full, config.ApplyDefaults(&full)
}

// validate checks the values and the rules between them, for a configuration
// that may have been changed in Go.
func (c *Config) validate() error {
	inGo := func(string) string { return "" }
	return errors.Join(config.Check(c), c.rules(inGo), placeholders(c, c, inGo))
}

// rules are those that no tag can say. source tells where a key was set.
func (c *Config) rules(source func(path string) string) error {
	var errs []error
	fail := func(path, format string, args ...any) {
		errs = append(errs, &config.Error{Where: source(path), Key: path, Problem: fmt.Sprintf(format, args...)})
	}
	web := &c.WebServer
	if problem := checkHost(web.Host); problem != "" {
		fail("webServer.host", "%q %s", web.Host, problem)
	}
	if problem := checkPublicURL(web.PublicURL); problem != "" {
		fail("webServer.publicUrl", "%s", problem)
	}
	for _, host := range web.AllowedHosts {
		if strings.Contains(host, "/") {
			fail("webServer.allowedHosts", "%q is not a host name; leave out scheme and path", host)
		}
	}
	if problem := checkMetricsPath(web.Metrics.Path); problem != "" {
		fail("webServer.metrics.path", "%q %s", web.Metrics.Path, problem)
	}
	if _, problem := metricsHost(web.Metrics.Listen); problem != "" {
		fail("webServer.metrics.listen", "%q %s", web.Metrics.Listen, problem)
	}
	c.makesTokens(fail)
	if _, err := limits.NewProxies(false, web.TrustedProxies); err != nil {
		fail("webServer.trustedProxies", "%v", err)
	}
	for i, permanent := range web.Auth.PermanentServerTokens {
		if len(permanent) < minPermanentToken {
			fail("webServer.auth.permanentServerTokens", "token %d is shorter than %d characters and can be guessed; make one with openssl rand -base64 32", i+1, minPermanentToken)
		}
	}
	switch basic := &web.Auth.Basic; {
	case (basic.Username == "") != (basic.Password == ""):
		fail("webServer.auth.basic", "username and password belong together; set both or none")
	case strings.Contains(basic.Username, ":"):
		fail("webServer.auth.basic.username", "has a colon, which separates it from the password (RFC 7617)")
	}
	if t := c.MCP.Tasks; t.MinTTL > t.MaxTTL {
		fail("mcp.tasks.minTtlMs", "is above mcp.tasks.maxTtlMs")
	}
	for _, origin := range web.OriginHosts {
		if origin == "*" && c.Production() {
			fail("webServer.originHosts", "* is not allowed in production; list the hosts")
		}
	}
	if c.MCP.Debug.BuiltinTools && c.Production() {
		fail("mcp.debug.builtinTools", "true is not allowed in production: anybody could keep calls running and large results coming")
	}
	return errors.Join(errs...)
}

// minPermanentToken is the least length of a permanent token (contract §3).
const minPermanentToken = 20

// checkListen is the rule for serving HTTP only: a stdio process in the same
// image listens nowhere. source is nil for values set in Go.
func (c *Config) checkListen(source func(path string) string) error {
	web := &c.WebServer
	fault := func(key, format string, args ...any) error {
		where := ""
		if source != nil {
			where = source(key)
		}
		return &config.Error{Where: where, Key: key, Problem: fmt.Sprintf(format, args...)}
	}
	if web.Auth.Enabled {
		if web.Auth.asymmetric() && web.PublicURL == "" && !isLoopback(web.Host) {
			return fault("webServer.publicUrl", "is empty, and clients elsewhere could not find out where to get tokens; "+
				"set the URL that they use, such as https://mcp.example.com")
		}
		return nil
	}
	if web.AllowInsecureBind {
		return nil
	}
	open := func(key, host string) error {
		return fault(key, "%s is reachable from other machines and authentication is off; listen on 127.0.0.1, "+
			"or set webServer.allowInsecureBind (WS_ALLOW_INSECURE_BIND=true) when something else protects it", host)
	}
	var errs []error
	if !isLoopback(web.Host) {
		errs = append(errs, open("webServer.host", web.Host))
	}
	if host, _ := metricsHost(web.Metrics.Listen); web.Metrics.Enabled && web.Metrics.Listen != "" && !isLoopback(host) {
		errs = append(errs, open("webServer.metrics.listen", web.Metrics.Listen))
	}
	return errors.Join(errs...)
}

// placeholders refuses example secrets in production, a project's own included:
// v is the whole configuration.
func placeholders(v any, c *Config, source func(path string) string) error {
	if !c.Production() {
		return nil
	}
	paths, err := config.Placeholders(v)
	errs := []error{err}
	for _, path := range paths {
		errs = append(errs, &config.Error{
			Where: source(path), Key: path,
			Problem: "a placeholder is not a secret; set a random value in production",
		})
	}
	return errors.Join(errs...)
}

// checkHost says what is wrong with an address to listen on, or nothing.
func checkHost(host string) string {
	if _, err := netip.ParseAddr(host); err == nil {
		return ""
	}
	switch {
	case host == "":
		return "is empty; write 0.0.0.0 to listen on every address"
	case len(host) > 253 || strings.ContainsAny(host, ":/@[] \t\r\n"):
		return "is not an address or a name; leave out scheme, port and brackets"
	}
	return ""
}

// checkMetricsPath says what is wrong with webServer.metrics.path, or nothing.
func checkMetricsPath(path string) string {
	switch {
	case !strings.HasPrefix(path, "/") || path == "/":
		return "is not a path below /, such as /metrics"
	case strings.ContainsAny(path, "?#{}% \t\r\n") || strings.HasSuffix(path, "/"):
		return "must be a plain path, such as /metrics"
	case slices.Contains(front.OwnPaths(), path):
		return "is served by the server already; choose another"
	}
	return ""
}

// metricsHost returns the host of webServer.metrics.listen, and what is wrong
// with the key, if anything. The empty key is right.
func metricsHost(listen string) (host, problem string) {
	if listen == "" {
		return "", ""
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", "is not an address with a port, such as 127.0.0.1:9090"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return "", "has no port from 0 to 65535"
	}
	return host, checkHost(host)
}

// checkPublicURL says what is wrong with webServer.publicUrl, or nothing. It does
// not echo the URL, which may hold a password.
func checkPublicURL(text string) string {
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "want a URL such as https://mcp.example.com"
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "want a URL without user, query and fragment"
	}
	return ""
}

// isLoopback reports whether only this machine reaches the host.
func isLoopback(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().IsLoopback()
	}
	return strings.EqualFold(host, "localhost")
}
