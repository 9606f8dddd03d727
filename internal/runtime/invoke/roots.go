package invoke

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// rootsCache keeps what legacy clients answered to roots/list until they say
// that it changed. Only clients that promise to say so are remembered. The
// zero value is ready to use.
type rootsCache struct {
	mu       sync.Mutex
	sessions map[*mcp.ServerSession]*cachedRoots
}

type cachedRoots struct {
	answer  json.RawMessage // nil: ask
	changes int             // notifications so far
}

// ask returns the roots of the call's session.
func (r *rootsCache) ask(ctx context.Context, c *Call, q *mcp.ListRootsParams) (json.RawMessage, error) {
	caps := c.capabilities()
	cached := caps.RootsV2 != nil && caps.RootsV2.ListChanged
	before := 0
	if cached {
		r.mu.Lock()
		entry := r.entry(c.session)
		answer := entry.answer
		before = entry.changes
		r.mu.Unlock()
		if answer != nil {
			return answer, nil
		}
	}
	res, err := c.session.ListRoots(ctx, q)
	if err != nil {
		return nil, err
	}
	answer, err := json.Marshal(res)
	if err != nil || !cached {
		return answer, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if entry := r.sessions[c.session]; entry != nil && entry.changes == before { // else it is old already
		entry.answer = answer
	}
	return answer, nil
}

// entry returns what is kept of a session, until its end; r.mu is held.
func (r *rootsCache) entry(ss *mcp.ServerSession) *cachedRoots {
	if entry := r.sessions[ss]; entry != nil {
		return entry
	}
	if r.sessions == nil {
		r.sessions = map[*mcp.ServerSession]*cachedRoots{}
	}
	entry := &cachedRoots{}
	r.sessions[ss] = entry
	go func() {
		_ = ss.Wait()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.sessions, ss)
	}()
	return entry
}

// changed forgets the roots of a session.
func (r *rootsCache) changed(session mcp.Session) {
	ss, _ := session.(*mcp.ServerSession)
	r.mu.Lock()
	defer r.mu.Unlock()
	if entry := r.sessions[ss]; entry != nil {
		entry.answer = nil
		entry.changes++
	}
}
