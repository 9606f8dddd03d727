package invoke

import (
	"context"
	"fmt"

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
	if access.restricts(c.engine.cfg.Anonymous) {
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
