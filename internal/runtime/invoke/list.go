package invoke

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/protocol"
)

// AllEntries is the page size to give the SDK: lists are paged here, after
// what the caller may not see is taken out.
const AllEntries = 1 << 30

// page takes out what the caller may not see and returns one page of the
// rest, the cursor of the next, and whether anything was taken out.
func page[T any](ctx context.Context, c *Call, items []T, cursor string, key func(T) string, access func(string) *Access) (kept []T, next string, filtered bool, err error) {
	after, err := openCursor(cursor)
	if err != nil {
		return nil, "", false, err
	}
	kept = make([]T, 0, len(items))
	for _, item := range items {
		if key(item) <= after && cursor != "" {
			continue
		}
		if a := access(key(item)); a != nil {
			if missing, visible := a.allowed(ctx, c); !visible || len(missing) > 0 {
				filtered = true
				continue
			}
		}
		kept = append(kept, item)
	}
	if size := c.engine.cfg.PageSize; size > 0 && len(kept) > size {
		next = sealCursor(key(kept[size-1]))
		kept = kept[:size]
	}
	return kept, next, filtered, nil
}

const cursorPrefix = "v1:"

func sealCursor(last string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorPrefix + last))
}

func openCursor(cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	last, ok := strings.CutPrefix(string(raw), cursorPrefix)
	if err != nil || !ok {
		return "", &Fault{Kind: Invalid, Field: "cursor", Message: "unknown cursor; start again without one"}
	}
	return last, nil
}

// legacyResult is a result without the members that only the modern era has.
type legacyResult struct {
	mcp.ResultBase
	members map[string]any
}

// MarshalJSON returns the members and _meta.
func (r *legacyResult) MarshalJSON() ([]byte, error) {
	if len(r.Meta) > 0 {
		r.members["_meta"] = r.Meta
	}
	return json.Marshal(r.members)
}

// list serves the four list methods around the SDK's own, which returns all
// entries, sorted, in a result of this request's own.
func (e *Engine) list(ctx context.Context, c *Call, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	cursor := takeCursor(req)
	res, err := next(ctx, method, req)
	if err != nil {
		return nil, err
	}
	var (
		filtered bool
		member   string
		items    any
		after    string
		hints    *mcp.Cacheable
	)
	switch r := res.(type) {
	case *mcp.ListToolsResult:
		r.Tools, r.NextCursor, filtered, err = page(ctx, c, r.Tools, cursor, func(t *mcp.Tool) string { return t.Name }, e.toolAccess)
		if c.Facts.Era == protocol.EraLegacy {
			objectOutputs(r.Tools)
		}
		member, items, after, hints = "tools", r.Tools, r.NextCursor, &r.Cacheable
	case *mcp.ListPromptsResult:
		r.Prompts, r.NextCursor, filtered, err = page(ctx, c, r.Prompts, cursor, func(p *mcp.Prompt) string { return p.Name }, e.promptAccess)
		member, items, after, hints = "prompts", r.Prompts, r.NextCursor, &r.Cacheable
	case *mcp.ListResourcesResult:
		r.Resources, r.NextCursor, filtered, err = page(ctx, c, r.Resources, cursor, func(r *mcp.Resource) string { return r.URI }, e.resourceAccess)
		member, items, after, hints = "resources", r.Resources, r.NextCursor, &r.Cacheable
	case *mcp.ListResourceTemplatesResult:
		r.ResourceTemplates, r.NextCursor, filtered, err = page(ctx, c, r.ResourceTemplates, cursor, func(t *mcp.ResourceTemplate) string { return t.URITemplate }, e.templateAccess)
		member, items, after, hints = "resourceTemplates", r.ResourceTemplates, r.NextCursor, &r.Cacheable
	default: // a project's own middleware answered
		return res, nil
	}
	if err != nil {
		return nil, err
	}
	if filtered {
		hints.CacheScope = "private"
	}
	if c.Facts.Era == protocol.EraModern {
		return res, nil
	}
	legacy := &legacyResult{ResultBase: mcp.ResultBase{Meta: res.GetMeta()}, members: map[string]any{member: items}}
	if after != "" {
		legacy.members["nextCursor"] = after
	}
	return legacy, nil
}

// takeCursor removes and returns the cursor of a list request.
func takeCursor(req mcp.Request) string {
	var cursor *string
	switch r := req.(type) {
	case *mcp.ListToolsRequest:
		if r.Params != nil {
			cursor = &r.Params.Cursor
		}
	case *mcp.ListPromptsRequest:
		if r.Params != nil {
			cursor = &r.Params.Cursor
		}
	case *mcp.ListResourcesRequest:
		if r.Params != nil {
			cursor = &r.Params.Cursor
		}
	case *mcp.ListResourceTemplatesRequest:
		if r.Params != nil {
			cursor = &r.Params.Cursor
		}
	}
	if cursor == nil {
		return ""
	}
	taken := *cursor
	*cursor = ""
	return taken
}

// objectOutputs leaves out output schemas of other types than object, which
// revisions before 2026-07-28 do not have.
func objectOutputs(tools []*mcp.Tool) {
	for i, t := range tools {
		raw, ok := t.OutputSchema.(json.RawMessage)
		if !ok {
			continue
		}
		var s struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(raw, &s) == nil && s.Type != "object" {
			plain := *t
			plain.OutputSchema = nil
			tools[i] = &plain
		}
	}
}

func (e *Engine) toolAccess(name string) *Access {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if t, ok := e.tools[name]; ok {
		return &t.Access
	}
	return nil
}

func (e *Engine) promptAccess(name string) *Access {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if p, ok := e.prompts[name]; ok {
		return &p.Access
	}
	return nil
}

func (e *Engine) resourceAccess(uri string) *Access {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if r, ok := e.resources[uri]; ok {
		return &r.Access
	}
	return nil
}

func (e *Engine) templateAccess(uri string) *Access {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if t, ok := e.templates[uri]; ok {
		return &t.Access
	}
	return nil
}
