package invoke

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/protocol"
)

// AllEntries is the page size to give the SDK: lists are paged here, after
// what the caller may not see is taken out.
const AllEntries = 1 << 30

// listTries is how often a list is taken anew because entries were removed
// meanwhile.
const listTries = 3

var errRemoved = errors.New("entries were removed while they were listed")

// entry is what the engine keeps of anything that can be listed.
type entry interface{ access() *Access }

func (t *Tool) access() *Access     { return &t.Access }
func (p *Prompt) access() *Access   { return &p.Access }
func (r *Resource) access() *Access { return &r.Access }
func (t *Template) access() *Access { return &t.Access }

// lister makes a page of what the SDK has listed.
type lister struct {
	ctx     context.Context
	call    *Call
	cursor  string
	removed int  // removals before the SDK listed
	last    bool // no further try: what is not known for certain is left out
}

// page takes out what the caller may not see and returns one page of the
// rest, the cursor of the next, and whether other callers may see another
// list. It returns errRemoved when the access of an item is not known any more.
func page[T any, E entry](l *lister, items []T, key func(T) string, entries map[string]E) (kept []T, next string, restricted bool, err error) {
	after, err := openCursor(l.cursor)
	if err != nil {
		return nil, "", false, err
	}
	accesses, err := accessOf(l, items, key, entries)
	if err != nil {
		return nil, "", false, err
	}
	kept = make([]T, 0, len(items))
	for i, item := range items {
		a := accesses[i]
		restricted = restricted || a.restricts(l.call.engine.cfg.Anonymous)
		if l.cursor != "" && key(item) <= after {
			continue
		}
		if missing, visible := a.allowed(l.ctx, l.call); visible && len(missing) == 0 {
			kept = append(kept, item)
		}
	}
	if size := l.call.engine.cfg.PageSize; size > 0 && len(kept) > size {
		next = sealCursor(key(kept[size-1]))
		kept = kept[:size]
	}
	return kept, next, restricted, nil
}

// accessOf returns the access of each item. What the engine does not know was
// registered with the SDK and is open to everyone, unless it has been removed
// since.
func accessOf[T any, E entry](l *lister, items []T, key func(T) string, entries map[string]E) ([]*Access, error) {
	e := l.call.engine
	open, hidden := &Access{}, &Access{Visible: func(context.Context, *Call) bool { return false }}
	out := make([]*Access, len(items))
	e.mu.RLock()
	defer e.mu.RUnlock()
	changed := e.removed != l.removed
	if changed && !l.last {
		return nil, errRemoved
	}
	for i, item := range items {
		known, ok := entries[key(item)]
		switch {
		case ok:
			out[i] = known.access()
		case changed:
			out[i] = hidden
		default:
			out[i] = open
		}
	}
	return out, nil
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

// rawResult is a result that the SDK has no type for, or whose type has members
// of the other era.
type rawResult struct {
	mcp.ResultBase
	members map[string]any
}

// MarshalJSON returns the members and _meta.
func (r *rawResult) MarshalJSON() ([]byte, error) {
	if len(r.Meta) > 0 {
		r.members["_meta"] = r.Meta
	}
	return json.Marshal(r.members)
}

// list serves the four list methods around the SDK's own, which returns all
// entries, sorted, in a result of this request's own.
func (e *Engine) list(ctx context.Context, c *Call, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	l := &lister{ctx: ctx, call: c, cursor: takeCursor(req)}
	for try := 1; ; try++ {
		e.mu.RLock()
		l.removed, l.last = e.removed, try == listTries
		e.mu.RUnlock()
		res, err := next(ctx, method, req)
		if err != nil {
			return nil, err
		}
		res, err = e.listed(l, res)
		if !errors.Is(err, errRemoved) {
			return res, err
		}
	}
}

// listed returns the page to answer with.
func (e *Engine) listed(l *lister, res mcp.Result) (mcp.Result, error) {
	var (
		restricted bool
		member     string
		items      any
		after      string
		hints      *mcp.Cacheable
		err        error
	)
	c := l.call
	switch r := res.(type) {
	case *mcp.ListToolsResult:
		r.Tools, r.NextCursor, restricted, err = page(l, r.Tools, func(t *mcp.Tool) string { return t.Name }, e.tools)
		if c.Facts.Era == protocol.EraLegacy {
			objectOutputs(r.Tools)
		}
		member, items, after, hints = "tools", r.Tools, r.NextCursor, &r.Cacheable
	case *mcp.ListPromptsResult:
		r.Prompts, r.NextCursor, restricted, err = page(l, r.Prompts, func(p *mcp.Prompt) string { return p.Name }, e.prompts)
		member, items, after, hints = "prompts", r.Prompts, r.NextCursor, &r.Cacheable
	case *mcp.ListResourcesResult:
		r.Resources, r.NextCursor, restricted, err = page(l, r.Resources, func(r *mcp.Resource) string { return r.URI }, e.resources)
		member, items, after, hints = "resources", r.Resources, r.NextCursor, &r.Cacheable
	case *mcp.ListResourceTemplatesResult:
		r.ResourceTemplates, r.NextCursor, restricted, err = page(l, r.ResourceTemplates, func(t *mcp.ResourceTemplate) string { return t.URITemplate }, e.templates)
		member, items, after, hints = "resourceTemplates", r.ResourceTemplates, r.NextCursor, &r.Cacheable
	default: // a project's own middleware answered
		return res, nil
	}
	if err != nil {
		return nil, err
	}
	if restricted {
		hints.CacheScope = "private"
	}
	if c.Facts.Era == protocol.EraModern {
		return res, nil
	}
	if r, ok := res.(*mcp.ListToolsResult); ok && e.cfg.Tasks != nil && c.version == protocol.NewestLegacy {
		items = e.withExecution(r.Tools)
	}
	legacy := &rawResult{ResultBase: mcp.ResultBase{Meta: res.GetMeta()}, members: map[string]any{member: items}}
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
