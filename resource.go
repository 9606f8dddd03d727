package famcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/invoke"
)

// CacheHint tells modern clients how long they may keep what they read. The
// zero value takes mcp.cacheHints.
type CacheHint struct {
	TTL   time.Duration
	Scope string // private or public
}

func (h CacheHint) pipeline() invoke.Cache {
	return invoke.Cache{TTLMs: int(h.TTL.Milliseconds()), Scope: h.Scope}
}

// Resource describes a resource. URI and Name are required.
type Resource struct {
	URI         string
	Name        string
	Title       string
	Description string
	MIME        string // of the contents, unless they say
	Size        int64  // bytes; 0 is that of Contents, or not known
	Icons       []Icon
	Annotations Annotations
	Access      Access
	Cache       CacheHint
	Deprecated  *Deprecated // nil: it stays

	// Contents is what the resource holds at all times, in place of a function
	// that reads it; nil when there is one.
	Contents *Contents

	// Watch runs from the first subscriber, of either era, to the last, whose
	// leaving ends its context. It calls [Server.ResourceUpdated] on a change.
	Watch func(ctx context.Context, uri string) error
}

// AddResource registers a resource. Read is called for each read; it is nil for
// one that has Resource.Contents. A fault in the registration is kept for
// [Server.Err].
func (s *Server) AddResource(r Resource, read func(context.Context, *Call) (Contents, error)) {
	if r.Contents != nil {
		r, read = r.fixed(read)
	}
	err := errors.Join(checkURI(r.URI), r.Deprecated.check())
	if _, parse := url.Parse(r.URI); parse != nil {
		err = errors.Join(err, errors.New("the URI cannot be parsed"))
	}
	if r.Name == "" {
		err = errors.Join(err, errors.New("no Name"))
	}
	if read == nil {
		err = errors.Join(err, errors.New("it needs either Contents or a function that reads"))
	}
	if err != nil {
		s.fail(fmt.Errorf("resource %q: %w", r.URI, err))
		return
	}
	s.addResource(&invoke.Resource{
		Listed: &mcp.Resource{
			URI: r.URI, Name: r.Name, Title: r.Title, Description: r.Deprecated.pipeline().Describe(r.Description), MIMEType: r.MIME,
			Size: r.Size, Icons: r.Icons, Annotations: annotations(r.Annotations),
		},
		Access: r.Access.pipeline(), Cache: r.Cache.pipeline(), Deprecated: r.Deprecated.pipeline(), Watch: r.Watch,
		Handle: func(ctx context.Context, c *invoke.Call) (*mcp.ResourceContents, error) {
			ctx, call := wrap(ctx, c)
			contents, err := read(ctx, call)
			if err != nil {
				return nil, err
			}
			return contents.wire(r.URI), nil
		},
	})
}

// fixed completes a resource with Contents: its size and what reads it, which
// is nil when there already was a function.
func (r Resource) fixed(read func(context.Context, *Call) (Contents, error)) (Resource, func(context.Context, *Call) (Contents, error)) {
	if read != nil {
		return r, nil
	}
	contents := *r.Contents
	contents.Blob = bytes.Clone(contents.Blob)
	if r.Size == 0 {
		r.Size = int64(max(len(contents.Text), len(contents.Blob)))
	}
	return r, func(context.Context, *Call) (Contents, error) { return contents, nil }
}

// ResourceTemplate describes resources whose URIs follow an RFC 6570 template.
// URITemplate and Name are required.
type ResourceTemplate struct {
	URITemplate string // such as "note://{id}"
	Name        string
	Title       string
	Description string
	MIME        string
	Icons       []Icon
	Annotations Annotations
	Access      Access
	Cache       CacheHint
	Deprecated  *Deprecated                                 // nil: it stays
	Watch       func(ctx context.Context, uri string) error // see [Resource]
}

// AddResourceTemplate registers a template. P is a struct of string fields,
// filled from the template's variables by their json names. A fault in the
// registration is kept for [Server.Err].
func AddResourceTemplate[P any](s *Server, t ResourceTemplate, read func(context.Context, *Call, P) (Contents, error)) {
	err := errors.Join(checkURI(t.URITemplate), t.Deprecated.check())
	if t.Name == "" {
		err = errors.Join(err, errors.New("no Name"))
	}
	if read == nil {
		err = errors.Join(err, errors.New("the function that reads is nil"))
	}
	if reflect.TypeFor[P]().Kind() != reflect.Struct {
		err = errors.Join(err, fmt.Errorf("the parameters are a struct of strings, not %s", reflect.TypeFor[P]()))
	}
	if err != nil {
		s.fail(fmt.Errorf("resource template %q: %w", t.URITemplate, err))
		return
	}
	s.addTemplate(&invoke.Template{
		Listed: &mcp.ResourceTemplate{
			URITemplate: t.URITemplate, Name: t.Name, Title: t.Title, Description: t.Deprecated.pipeline().Describe(t.Description),
			MIMEType: t.MIME, Icons: t.Icons, Annotations: annotations(t.Annotations),
		},
		Access: t.Access.pipeline(), Cache: t.Cache.pipeline(), Deprecated: t.Deprecated.pipeline(), Watch: t.Watch,
		Handle: func(ctx context.Context, c *invoke.Call, params map[string]string) (*mcp.ResourceContents, error) {
			raw, err := json.Marshal(params)
			if err != nil {
				return nil, err
			}
			p, err := decode[P](raw)
			if err != nil {
				return nil, err
			}
			ctx, call := wrap(ctx, c)
			contents, err := read(ctx, call, p)
			if err != nil {
				return nil, err
			}
			return contents.wire(c.Name), nil
		},
	})
}

func annotations(a Annotations) *Annotations {
	if len(a.Audience) == 0 && a.LastModified == "" && a.Priority == 0 {
		return nil
	}
	return &a
}

var uriScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

func checkURI(text string) error {
	if !uriScheme.MatchString(text) {
		return errors.New("the URI needs a scheme, such as note://")
	}
	return nil
}
