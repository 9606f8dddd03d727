package invoke

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/protocol"
	"github.com/famcp/famcp/internal/runtime/tasks"
	"github.com/famcp/famcp/internal/runtime/telemetry"
)

// Middleware is the outermost receiving middleware of the server. It brings
// the facts of the request into the context, recovers panics, keeps what the
// SDK would choke on away from it, and makes every answer one of its era.
func (e *Engine) Middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		facts := e.takeFacts(ctx, method, req)
		if facts.ID == nil && strings.HasPrefix(method, "notifications/") {
			return e.notification(ctx, method, req, next)
		}
		if facts.Done != nil {
			defer facts.Done()
		}
		ctx, span := e.trace(ctx, method, facts, req)
		ctx = call.NewContext(ctx, facts)
		c := &Call{Facts: facts, engine: e, ctx: ctx}
		defer func() {
			if p := recover(); p != nil {
				res, err = nil, e.sanitize(ctx, c, panicFault(c, p))
			}
			endSpan(span, res, err)
		}()
		var task created
		if method == "tools/call" && e.cfg.Tasks != nil {
			ctx = context.WithValue(ctx, createdKey{}, &task)
		}
		if runsHandler(method) {
			e.cfg.Metrics.Call()
			defer e.cfg.Metrics.CallDone()
		}
		res, err = e.dispatch(ctx, c, method, req, next)
		if err == nil && task.task != nil {
			res = e.createdResult(c, task.task)
		}
		if err != nil {
			if name, ok := unknownTool(req, err); ok {
				e.cfg.Metrics.UnknownTool()
				e.logCall(ctx, &Call{Facts: facts, Name: clip(name)}, e.cfg.Now(), slog.String("status", telemetry.StatusError))
			}
			err = reread(req, err)
		}
		if err == nil && nilResult(res) {
			err = &Fault{Kind: Internal, Message: internalMessage, Cause: fmt.Errorf("%s answered without a result", method)}
		}
		if err != nil {
			return nil, e.sanitize(ctx, c, err)
		}
		return res, nil
	}
}

// runsHandler reports whether requests of a method end in a handler of the
// server: those that hold a slot of their caller.
func runsHandler(method string) bool {
	switch method {
	case "tools/call", "prompts/get", "resources/read", "completion/complete":
		return true
	}
	return false
}

// notification passes one on; nothing answers it, so a panic is only logged.
func (e *Engine) notification(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	defer func() {
		if p := recover(); p != nil {
			e.cfg.Metrics.Panic()
			e.cfg.Logger.Error("panic in a notification handler", "method", method, "panic", fmt.Sprint(p))
		}
	}()
	if method == "notifications/roots/list_changed" {
		e.roots.changed(req.GetSession())
	}
	return next(ctx, method, req)
}

// takeFacts finds what the transport knows of a request, by the key in its
// header or in the context, and hides the key from handlers.
func (e *Engine) takeFacts(ctx context.Context, method string, req mcp.Request) *call.Facts {
	extra := req.GetExtra()
	if extra != nil && extra.Header != nil && e.cfg.Calls != nil {
		if key := extra.Header.Get(call.Header); key != "" {
			extra.Header = withoutKey(extra.Header)
			if facts := e.cfg.Calls.Take(key); facts != nil {
				return facts
			}
			// The transport gave the request up in the meantime: nobody waits
			// for an answer, and nothing is known that could be allowed.
			facts := localFacts(ctx, method, protocol.EraOf(versionOf(req)))
			facts.Scopes, facts.AllScopes, facts.Authenticated, facts.CanAsk = nil, false, false, false
			return facts
		}
	}
	if facts := call.FromContext(ctx); facts != nil {
		return facts
	}
	return localFacts(ctx, method, protocol.EraOf(versionOf(req)))
}

func withoutKey(h http.Header) http.Header {
	out := h.Clone()
	out.Del(call.Header)
	return out
}

func (e *Engine) dispatch(ctx context.Context, c *Call, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	switch method {
	case "initialize":
		return e.initialize(ctx, method, req, next)
	case "server/discover":
		res, err := next(ctx, method, req)
		if d, ok := res.(*mcp.DiscoverResult); ok && err == nil {
			d.SupportedVersions = e.cfg.Eras.Versions()
			d.Capabilities = e.capabilities(d.Capabilities)
			if e.cfg.Tasks != nil {
				d.Capabilities.Extensions = maps.Clone(d.Capabilities.Extensions)
				d.Capabilities.AddExtension(tasks.Extension, nil)
			}
		}
		return res, err
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list":
		return e.list(ctx, e.newCall(ctx, method, "", req), method, req, next)
	case "resources/read":
		if r, ok := req.(*mcp.ReadResourceRequest); ok && !nilParams(req) && r.Params.URI == "" {
			return nil, &Fault{Kind: Malformed, Field: "uri", Message: "is required"}
		}
		res, err := next(ctx, method, req)
		if r, ok := res.(*mcp.ReadResourceResult); ok && err == nil && c.Facts.Era == protocol.EraLegacy {
			return &rawResult{ResultBase: mcp.ResultBase{Meta: r.Meta}, members: map[string]any{"contents": r.Contents}}, nil
		}
		return res, err
	case "logging/setLevel":
		if err := e.checkLevel(req); err != nil {
			return nil, err
		}
	case "completion/complete":
		if !e.completes() {
			return nil, newError(protocol.CodeMethodNotFound, "no completions are served", protocol.ErrorData{})
		}
	case "resources/subscribe", "resources/unsubscribe":
		if !e.cfg.LegacySubscriptions {
			return nil, newError(protocol.CodeMethodNotFound, "subscriptions are switched off", protocol.ErrorData{})
		}
	case "subscriptions/listen":
		if c.Facts.Era == protocol.EraLegacy {
			return nil, newError(protocol.CodeMethodNotFound, "subscriptions/listen needs revision "+protocol.Modern, protocol.ErrorData{})
		}
		return e.listen(ctx, c, method, req, next)
	case "tasks/get", "tasks/update", "tasks/cancel", "tasks/list", "tasks/result":
		return e.task(ctx, e.newCall(ctx, method, "", req), method, req)
	}
	return next(ctx, method, req)
}

// initialize negotiates: the SDK would keep a version it does not speak on
// this session and then serve it by the rules of that version.
func (e *Engine) initialize(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	r, ok := req.(*mcp.ServerRequest[*mcp.InitializeParams])
	if !ok || r.Params == nil {
		return nil, &Fault{Kind: Invalid, Field: "params", Message: "initialize needs params with protocolVersion, capabilities and clientInfo"}
	}
	r.Params.ProtocolVersion = protocol.Negotiate(r.Params.ProtocolVersion)
	res, err := next(ctx, method, req)
	if err != nil {
		return nil, err
	}
	if out, ok := res.(*mcp.InitializeResult); ok {
		out.Capabilities = e.capabilities(out.Capabilities)
		if r := out.Capabilities.Resources; r != nil && !e.cfg.LegacySubscriptions {
			out.Capabilities.Resources = &mcp.ResourceCapabilities{ListChanged: r.ListChanged}
		}
	}
	if r.Params.ProtocolVersion == protocol.NewestLegacy && e.cfg.Tasks != nil {
		if res, err = e.withTasks(call.FromContext(ctx), res); err != nil {
			return nil, err
		}
	}
	if !e.cfg.LogNotifications || e.cfg.DefaultLogLevel == "" {
		return res, nil
	}
	// A session has no level until its client sets one, and the SDK sends
	// nothing then: set the server's default as if the client had.
	_, err = next(ctx, "logging/setLevel", &mcp.ServerRequest[*mcp.SetLoggingLevelParams]{
		Session: r.Session, Extra: r.Extra,
		Params: &mcp.SetLoggingLevelParams{Level: mcp.LoggingLevel(e.cfg.DefaultLogLevel)},
	})
	return res, err
}

// capabilities advertises only what is served.
func (e *Engine) capabilities(caps *mcp.ServerCapabilities) *mcp.ServerCapabilities {
	if caps == nil {
		caps = &mcp.ServerCapabilities{}
	}
	out := *caps
	if !e.completes() {
		out.Completions = nil
	}
	if !e.cfg.LogNotifications {
		out.Logging = nil
	}
	return &out
}

func (e *Engine) checkLevel(req mcp.Request) error {
	if !e.cfg.LogNotifications {
		return newError(protocol.CodeMethodNotFound, "log messages are switched off", protocol.ErrorData{})
	}
	r, ok := req.(*mcp.ServerRequest[*mcp.SetLoggingLevelParams])
	if !ok || r.Params == nil || !slices.Contains(protocol.Levels(), string(r.Params.Level)) {
		return &Fault{Kind: Invalid, Field: "level", Message: "must be one of " + strings.Join(protocol.Levels(), ", ")}
	}
	return nil
}

// Cacheable is the server's SetCacheable: the hints of the configuration
// where a handler gave none.
func (e *Engine) Cacheable(_ context.Context, req mcp.Request, hints *mcp.Cacheable) {
	if hints.CacheScope == "" {
		hints.CacheScope = e.cfg.CacheScope
	}
	if hints.TTLMs == 0 {
		ttl := e.cfg.ListTTL
		if _, read := req.(*mcp.ReadResourceRequest); read {
			ttl = e.cfg.ReadTTL
		}
		hints.TTLMs = int(ttl.Milliseconds())
	}
}

func nilParams(req mcp.Request) bool {
	p := req.GetParams()
	if p == nil {
		return true
	}
	v := reflect.ValueOf(p)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

func nilResult(res mcp.Result) bool {
	if res == nil {
		return true
	}
	v := reflect.ValueOf(res)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
