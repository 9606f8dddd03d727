package invoke

import (
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/protocol"
	"github.com/famcp/famcp/internal/runtime/telemetry"
)

// Call is one request to a handler, over all its rounds. Its methods may be
// called from several goroutines of the handler; after the answer is out they
// do nothing.
type Call struct {
	Facts *call.Facts
	Name  string // of the tool or prompt, or the resource's URI

	Completed map[string]string // completions: arguments given so far

	engine  *Engine
	session *mcp.ServerSession
	version string // the revision spoken
	client  clientAccess
	token   any // progress token; nil when none was sent
	ctx     context.Context

	deferral *deferral // nil for a call that cannot become a task

	mu       sync.Mutex
	over     bool
	progress float64
	started  bool // a progress message is out
	sentAt   time.Time
	round    int
	answers  map[string]json.RawMessage
	kept     map[string]json.RawMessage
	pending  map[string]mcp.InputRequest
}

type clientAccess interface {
	ClientInfo() *mcp.Implementation
	ClientCapabilities() *mcp.ClientCapabilities
	ProtocolVersion() string
}

type metaParams interface{ GetProgressToken() any }

// newCall returns the call of a request that reached the middleware, whose
// context carries the facts.
func (e *Engine) newCall(ctx context.Context, method, name string, req mcp.Request) *Call {
	c := &Call{Facts: call.FromContext(ctx), Name: name, engine: e, ctx: ctx}
	c.session, _ = req.GetSession().(*mcp.ServerSession)
	c.client, _ = req.(clientAccess)
	if !nilParams(req) {
		if p, ok := req.GetParams().(metaParams); ok {
			c.token = progressToken(p.GetProgressToken())
		}
	}
	c.version = versionOf(req)
	if c.Facts == nil {
		c.Facts = localFacts(ctx, method, protocol.EraOf(c.version))
	}
	return c
}

// progressToken returns a token that may be sent back, a string or an integer,
// or nil (progress utility).
func progressToken(token any) any {
	switch t := token.(type) {
	case string, int, int64:
		return t
	case json.Number:
		if strings.ContainsAny(t.String(), ".eE") {
			return nil
		}
		return t
	case float64:
		if t != math.Trunc(t) || math.IsInf(t, 0) {
			return nil
		}
		return t
	}
	return nil
}

// localFacts are those of a request over a transport that is not ours, such
// as the SDK's in-memory one of commands and tests.
func localFacts(ctx context.Context, method string, era protocol.Era) *call.Facts {
	f := &call.Facts{
		RequestID: call.NewRequestID(), Method: method, Era: era,
		Subject: "local", AllScopes: true, CanAsk: true,
	}
	if id, ok := call.Assumed(ctx); ok {
		f.Subject, f.Scopes, f.AllScopes, f.Claims, f.Authenticated = id.Subject, id.Scopes, false, id.Claims, true
	}
	return f
}

// versionOf returns the revision a request is served in.
func versionOf(req mcp.Request) string {
	if nilParams(req) { // the accessors of go-sdk v1.8.0 dereference
		if ss, ok := req.GetSession().(*mcp.ServerSession); ok && ss != nil {
			if p := ss.InitializeParams(); p != nil {
				return p.ProtocolVersion
			}
		}
		return protocol.NewestLegacy
	}
	if c, ok := req.(clientAccess); ok {
		if v := c.ProtocolVersion(); v != "" {
			return v
		}
	}
	return protocol.NewestLegacy
}

// Version returns the protocol revision spoken.
func (c *Call) Version() string { return c.version }

// Round returns how often the handler has been run before for this request.
func (c *Call) Round() int { return c.round }

// Client returns what the client says of itself; the zero value when it says
// nothing.
func (c *Call) Client() mcp.Implementation {
	if c.client != nil {
		if info := c.client.ClientInfo(); info != nil {
			return *info
		}
	}
	return mcp.Implementation{}
}

func (c *Call) capabilities() *mcp.ClientCapabilities {
	if c.client != nil {
		if caps := c.client.ClientCapabilities(); caps != nil {
			return caps
		}
	}
	return &mcp.ClientCapabilities{}
}

// Log returns the server's logger with the request id and the name.
func (c *Call) Log() *slog.Logger {
	log := slog.New(telemetry.LogTraces(c.engine.cfg.Logger.Handler(), c.ctx)).With("requestId", c.Facts.RequestID)
	if c.Name != "" {
		log = log.With("name", c.Name)
	}
	return log
}

// Progress sends notifications/progress when the client asked for it. Values
// that are not above the last are dropped (progress utility: they increase),
// and so are messages within the throttle time after another unless they
// complete the total. Once the call is a task its message becomes that of the
// task's status.
func (c *Call) Progress(done, total float64, message string) {
	run := c.deferral.task()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || (run == nil && (c.token == nil || c.session == nil)) || (c.started && done <= c.progress) {
		return
	}
	now := c.engine.cfg.Now()
	final := total > 0 && done >= total
	if c.started && !final && now.Sub(c.sentAt) < c.engine.cfg.ProgressThrottle {
		return
	}
	c.started, c.progress, c.sentAt = true, done, now
	if run != nil {
		if err := run.Say(c.ctx, message); err != nil {
			c.Log().Debug("task message not stored", "error", err)
		}
		return
	}
	err := c.session.NotifyProgress(c.ctx, &mcp.ProgressNotificationParams{
		ProgressToken: c.token, Progress: done, Total: total, Message: message,
	})
	if err != nil {
		c.Log().Debug("progress not delivered", "error", err)
	}
}

// Notify sends notifications/message at the level the client asked for.
func (c *Call) Notify(level, message string, data any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.session == nil || !c.engine.cfg.LogNotifications || c.deferral.task() != nil {
		return
	}
	var payload any = message
	if data != nil {
		payload = map[string]any{"message": message, "data": data}
	}
	if err := c.session.Log(c.ctx, &mcp.LoggingMessageParams{Level: mcp.LoggingLevel(level), Logger: c.Name, Data: payload}); err != nil {
		c.Log().Debug("log message not delivered", "error", err)
	}
}

// finish silences the call: the answer is about to go out.
func (c *Call) finish() {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
}
