package invoke

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxSubscriptions is how many resources one session can subscribe to. A
// subscriptions/listen is a session of its own.
const maxSubscriptions = 256

// lookup finds what serves a URI: its access and watch function. The order is
// that of reading.
func (e *Engine) lookup(uri string) (access *Access, watch func(context.Context, string) error, ok bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if r, ok := e.resources[uri]; ok {
		return &r.Access, r.Watch, true
	}
	for _, text := range slices.Sorted(maps.Keys(e.templates)) {
		if t := e.templates[text]; t.uri.Regexp().MatchString(uri) {
			return &t.Access, t.Watch, true
		}
	}
	return nil, nil, false
}

// Subscribe counts a subscription, of whichever era, and starts the watch of
// the resource with its first. It is the server's SubscribeHandler.
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
	if !e.watch.join(uri, req.Session, watch, e.cfg.Logger) {
		return &Fault{Kind: RateLimited, Message: fmt.Sprintf("one client can subscribe to at most %d resources; unsubscribe from one first", maxSubscriptions)}
	}
	return nil
}

// Unsubscribe ends the watch of a URI with its last subscriber. It is the
// server's UnsubscribeHandler.
func (e *Engine) Unsubscribe(_ context.Context, req *mcp.UnsubscribeRequest) error {
	e.watch.leave(req.Params.URI, req.Session)
	return nil
}

// Close ends every watch.
func (e *Engine) Close() {
	e.watch.mu.Lock()
	defer e.watch.mu.Unlock()
	for uri, w := range e.watch.byURI {
		w.stop()
		delete(e.watch.byURI, uri)
	}
}

// watchers holds who is subscribed to what, and the running watches. The zero
// value is ready to use.
type watchers struct {
	mu       sync.Mutex
	byURI    map[string]*watcher
	sessions map[*mcp.ServerSession]map[string]bool // the URIs of each
}

type watcher struct {
	cancel      context.CancelFunc // nil while no watch runs
	subscribers int
}

func (w *watcher) stop() {
	if w.cancel != nil {
		w.cancel()
	}
}

// join subscribes a session and starts watch, which may be nil, unless it runs.
// It returns false when the session has too many subscriptions.
func (w *watchers) join(uri string, ss *mcp.ServerSession, watch func(context.Context, string) error, log *slog.Logger) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byURI == nil {
		w.byURI, w.sessions = map[string]*watcher{}, map[*mcp.ServerSession]map[string]bool{}
	}
	uris, ok := w.sessions[ss]
	if !ok {
		uris = map[string]bool{}
		w.sessions[ss] = uris
		// The SDK forgets a closed session's subscriptions without telling.
		go func() {
			_ = ss.Wait()
			w.drop(ss)
		}()
	}
	running := w.byURI[uri]
	if !uris[uri] {
		if len(uris) >= maxSubscriptions {
			return false
		}
		uris[uri] = true
		if running == nil {
			running = &watcher{}
			w.byURI[uri] = running
		}
		running.subscribers++
	}
	if watch != nil && running.cancel == nil {
		ctx, cancel := context.WithCancel(context.Background())
		running.cancel = cancel
		go func() {
			runWatch(ctx, uri, watch, log)
			w.ended(ctx, running)
		}()
	}
	return true
}

// runWatch runs a watch to its end.
func runWatch(ctx context.Context, uri string, watch func(context.Context, string) error, log *slog.Logger) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("panic while watching a resource", "uri", uri, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	if err := watch(ctx, uri); err != nil && ctx.Err() == nil {
		log.Error("watching a resource ended", "uri", uri, "error", err)
	}
}

// ended lets the next subscriber start the watch again.
func (w *watchers) ended(ctx context.Context, running *watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() == nil {
		running.stop()
		running.cancel = nil
	}
}

func (w *watchers) leave(uri string, ss *mcp.ServerSession) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leaveLocked(uri, ss)
}

func (w *watchers) leaveLocked(uri string, ss *mcp.ServerSession) {
	if !w.sessions[ss][uri] {
		return
	}
	delete(w.sessions[ss], uri)
	running, ok := w.byURI[uri]
	if !ok { // the engine is closed
		return
	}
	if running.subscribers--; running.subscribers == 0 {
		running.stop()
		delete(w.byURI, uri)
	}
}

func (w *watchers) drop(ss *mcp.ServerSession) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for uri := range w.sessions[ss] {
		w.leaveLocked(uri, ss)
	}
	delete(w.sessions, ss)
}
