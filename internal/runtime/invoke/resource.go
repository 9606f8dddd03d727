package invoke

import (
	"context"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/yosida95/uritemplate/v3"
)

// Cache overrides the server's cache hints for one resource. The zero value
// keeps them.
type Cache struct {
	TTLMs int
	Scope string
}

// Resource is one resource of the server.
type Resource struct {
	Listed *mcp.Resource
	Access Access
	Cache  Cache

	Deprecated *Deprecated // nil: it stays
	Handle     func(ctx context.Context, c *Call) (*mcp.ResourceContents, error)
	// Watch runs from the first subscriber of the resource to the last; nil
	// for none.
	Watch func(ctx context.Context, uri string) error
}

// Template is one resource template of the server.
type Template struct {
	Listed *mcp.ResourceTemplate
	Access Access
	Cache  Cache

	Deprecated *Deprecated // nil: it stays
	Handle     func(ctx context.Context, c *Call, params map[string]string) (*mcp.ResourceContents, error)
	Watch      func(ctx context.Context, uri string) error

	uri *uritemplate.Template
}

// AddResource registers r, or replaces the resource of that URI.
func (e *Engine) AddResource(s *mcp.Server, r *Resource) {
	e.mu.Lock()
	e.resources[r.Listed.URI] = r
	e.mu.Unlock()
	s.AddResource(r.Listed, func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return e.read(ctx, req, r.Access, r.Cache, func(ctx context.Context, c *Call) (*mcp.ResourceContents, error) {
			e.used(ctx, c, r.Deprecated, "resource", r.Listed.URI)
			return r.Handle(ctx, c)
		})
	})
}

// AddTemplate registers t, or replaces the template of that text.
func (e *Engine) AddTemplate(s *mcp.Server, t *Template) error {
	parsed, err := uritemplate.New(t.Listed.URITemplate)
	if err != nil {
		return fmt.Errorf("URI template %q: %w", t.Listed.URITemplate, err)
	}
	t.uri = parsed
	e.mu.Lock()
	e.templates[t.Listed.URITemplate] = t
	e.mu.Unlock()
	s.AddResourceTemplate(t.Listed, func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		params := map[string]string{}
		for name, value := range t.uri.Match(req.Params.URI) {
			params[name] = value.String()
		}
		return e.read(ctx, req, t.Access, t.Cache, func(ctx context.Context, c *Call) (*mcp.ResourceContents, error) {
			e.used(ctx, c, t.Deprecated, "template", t.Listed.URITemplate)
			return t.Handle(ctx, c, params)
		})
	})
	return nil
}

// RemoveResources removes the resources and templates that exist and reports
// whether any did.
func (e *Engine) RemoveResources(s *mcp.Server, uris ...string) bool {
	resources := remove(e, e.resources, uris, s.RemoveResources)
	templates := remove(e, e.templates, uris, s.RemoveResourceTemplates)
	return resources || templates
}

func (e *Engine) read(ctx context.Context, req *mcp.ReadResourceRequest, access Access, cache Cache,
	handle func(context.Context, *Call) (*mcp.ResourceContents, error),
) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	c := e.newCall(ctx, "resources/read", uri, req)
	defer c.finish()
	if err := access.admit(ctx, c, notFound(uri)); err != nil {
		return nil, err
	}
	contents, ask, err := converse(ctx, c, request{
		name: uri, responses: req.Params.InputResponses, state: req.Params.RequestState,
	}, e.cfg.ToolTimeout, func(ctx context.Context) (*mcp.ResourceContents, error) { return handle(ctx, c) })
	if err != nil {
		f := e.fault(err)
		if f.Kind == NotFound {
			f = &Fault{Kind: NotFound, Field: uri, Message: f.Message, Cause: f.Cause}
		}
		return nil, f
	}
	hints := mcp.Cacheable{TTLMs: cache.TTLMs, CacheScope: cache.Scope}
	if access.restricts() {
		hints.CacheScope = "private"
	}
	if ask != nil {
		return &mcp.ReadResourceResult{Cacheable: hints, InputRequests: ask.requests, RequestState: ask.state}, nil
	}
	if contents == nil {
		return nil, notFound(uri)
	}
	out := *contents
	out.URI = uri
	return &mcp.ReadResourceResult{Cacheable: hints, Contents: []*mcp.ResourceContents{&out}}, nil
}

// lookup finds what serves a URI: its access and watch function.
func (e *Engine) lookup(uri string) (access *Access, watch func(context.Context, string) error, ok bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if r, ok := e.resources[uri]; ok {
		return &r.Access, r.Watch, true
	}
	for _, t := range e.templates {
		if t.uri.Regexp().MatchString(uri) {
			return &t.Access, t.Watch, true
		}
	}
	return nil, nil, false
}

// Subscribe starts the watch of a URI with its first subscriber, of whichever
// era. It is the server's SubscribeHandler.
func (e *Engine) Subscribe(ctx context.Context, req *mcp.SubscribeRequest) error {
	uri := req.Params.URI
	access, watch, ok := e.lookup(uri)
	if !ok {
		return notFound(uri)
	}
	c := e.newCall(ctx, "resources/subscribe", uri, req)
	if err := access.admit(ctx, c, notFound(uri)); err != nil {
		return err
	}
	if watch == nil {
		return nil
	}
	e.watch.join(uri, req.Session, func(ctx context.Context) {
		if _, err := run(ctx, c, 0, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, watch(ctx, uri)
		}); err != nil && ctx.Err() == nil {
			e.cfg.Logger.Error("watching a resource ended", "uri", uri, "error", err)
		}
	})
	return nil
}

// Unsubscribe ends the watch of a URI with its last subscriber. It is the
// server's UnsubscribeHandler.
func (e *Engine) Unsubscribe(_ context.Context, req *mcp.UnsubscribeRequest) error {
	e.watch.leave(req.Params.URI, req.Session)
	return nil
}

// watchers holds the running watches and who is subscribed. The zero value is
// ready to use.
type watchers struct {
	mu      sync.Mutex
	byURI   map[string]*watcher
	waiting map[*mcp.ServerSession]bool
}

type watcher struct {
	cancel      context.CancelFunc
	subscribers map[*mcp.ServerSession]bool
}

func (w *watchers) join(uri string, ss *mcp.ServerSession, run func(context.Context)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byURI == nil {
		w.byURI, w.waiting = map[string]*watcher{}, map[*mcp.ServerSession]bool{}
	}
	if !w.waiting[ss] {
		// The SDK forgets a closed session's subscriptions without telling.
		w.waiting[ss] = true
		go func() {
			_ = ss.Wait()
			w.drop(ss)
		}()
	}
	if running, ok := w.byURI[uri]; ok {
		running.subscribers[ss] = true
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.byURI[uri] = &watcher{cancel: cancel, subscribers: map[*mcp.ServerSession]bool{ss: true}}
	go run(ctx)
}

func (w *watchers) leave(uri string, ss *mcp.ServerSession) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leaveLocked(uri, ss)
}

func (w *watchers) leaveLocked(uri string, ss *mcp.ServerSession) {
	running, ok := w.byURI[uri]
	if !ok {
		return
	}
	delete(running.subscribers, ss)
	if len(running.subscribers) == 0 {
		running.cancel()
		delete(w.byURI, uri)
	}
}

func (w *watchers) drop(ss *mcp.ServerSession) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiting, ss)
	for uri := range w.byURI {
		w.leaveLocked(uri, ss)
	}
}

// Close ends every watch.
func (e *Engine) Close() {
	e.watch.mu.Lock()
	defer e.watch.mu.Unlock()
	for uri, running := range e.watch.byURI {
		running.cancel()
		delete(e.watch.byURI, uri)
	}
}
