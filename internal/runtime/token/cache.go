package token

import (
	"container/list"
	"crypto/sha256"
	"sync"
)

// Bounds of the cache: what a token decodes to takes a few times its length.
const (
	cacheEntries    = 4096
	cacheTokenBytes = 4 << 10 // longer tokens are checked anew each time
)

// cache holds the claims of tokens whose signature was good, least recently
// used out first. Whether they are still valid is the reader's business.
type cache struct {
	mu      sync.Mutex
	entries map[digest]*list.Element
	order   *list.List // of *entry, most recently used first
}

type entry struct {
	key        digest
	claims     *Claims
	generation uint64 // of the key set
}

func newCache() *cache {
	return &cache{entries: make(map[digest]*list.Element), order: list.New()}
}

func (c *cache) get(raw string) (*Claims, uint64, bool) {
	if len(raw) > cacheTokenBytes {
		return nil, 0, false
	}
	key := sha256.Sum256([]byte(raw))
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.entries[key]
	if !ok {
		return nil, 0, false
	}
	c.order.MoveToFront(el)
	e := el.Value.(*entry)
	return e.claims, e.generation, true
}

func (c *cache) put(raw string, claims *Claims, generation uint64) {
	if len(raw) > cacheTokenBytes {
		return
	}
	key := sha256.Sum256([]byte(raw))
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.entries[key]; ok {
		el.Value = &entry{key, claims, generation}
		c.order.MoveToFront(el)
		return
	}
	c.entries[key] = c.order.PushFront(&entry{key, claims, generation})
	if c.order.Len() > cacheEntries {
		oldest := c.order.Remove(c.order.Back()).(*entry)
		delete(c.entries, oldest.key)
	}
}
