package invoke

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// warnEvery is how often the use of a deprecated entry is logged.
const warnEvery = time.Hour

// Deprecated says that an entry will go (contract §9). Nothing is refused
// because of it.
type Deprecated struct {
	Until      time.Time // the day from which it may be gone
	ReplacedBy string    // name or URI; "" for none
	Note       string    // "" for none
}

// Describe returns the description to list. A nil d changes nothing.
func (d *Deprecated) Describe(description string) string {
	if d == nil {
		return description
	}
	prefix := "[DEPRECATED until " + d.Until.Format(time.DateOnly)
	if d.ReplacedBy != "" {
		prefix += ", use " + d.ReplacedBy
	}
	prefix += "] "
	if d.Note != "" {
		description += "\n\n" + d.Note
	}
	return prefix + description
}

// Overdue reports whether the day has come.
func (d *Deprecated) Overdue(now time.Time) bool { return d != nil && !now.Before(d.Until) }

// attrs are those of a log line about the entry.
func (d *Deprecated) attrs(kind, name string) []slog.Attr {
	attrs := []slog.Attr{slog.String("kind", kind), slog.String("name", name), slog.String("until", d.Until.Format(time.DateOnly))}
	if d.ReplacedBy != "" {
		attrs = append(attrs, slog.String("use", d.ReplacedBy))
	}
	return attrs
}

// notices remembers when the use of each deprecated entry was last logged.
// Its keys are registered entries, so clients cannot make it grow. The zero
// value is ready to use.
type notices struct {
	mu   sync.Mutex
	last map[[2]string]time.Time
}

func (n *notices) due(kind, name string, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := [2]string{kind, name}
	if last, ok := n.last[key]; ok && now.Sub(last) < warnEvery {
		return false
	}
	if n.last == nil {
		n.last = map[[2]string]time.Time{}
	}
	n.last[key] = now
	return true
}

// used logs that a deprecated entry is in use, once an hour for each.
func (e *Engine) used(ctx context.Context, c *Call, d *Deprecated, kind, name string) {
	if d == nil || !e.notices.due(kind, name, e.cfg.Now()) {
		return
	}
	attrs := append(d.attrs(kind, name), slog.String("requestId", c.Facts.RequestID))
	e.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "a deprecated entry is in use", attrs...)
}

// LogOverdue logs an error for each entry whose day has come: it may be gone
// by now, as far as clients know.
func (e *Engine) LogOverdue(ctx context.Context) {
	now := e.cfg.Now()
	e.mu.RLock()
	defer e.mu.RUnlock()
	log := func(d *Deprecated, kind, name string) {
		if d.Overdue(now) {
			e.cfg.Logger.LogAttrs(ctx, slog.LevelError, "a deprecated entry is past its day; remove it, or give it another", d.attrs(kind, name)...)
		}
	}
	for name, t := range e.tools {
		log(t.Deprecated, "tool", name)
	}
	for name, p := range e.prompts {
		log(p.Deprecated, "prompt", name)
	}
	for uri, r := range e.resources {
		log(r.Deprecated, "resource", uri)
	}
	for uri, t := range e.templates {
		log(t.Deprecated, "template", uri)
	}
}
