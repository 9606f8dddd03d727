package oauth

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"
)

const (
	codeLife = time.Minute
	maxCodes = 1000
)

// grant is what a person has agreed to.
type grant struct {
	request
	subject string
	expires time.Time
}

// codes are authorization codes that nobody has used yet.
type codes struct {
	mu   sync.Mutex
	open map[[sha256.Size]byte]grant // by the hash of the code
}

// put returns the code for g, and false when too many are open.
func (c *codes) put(g grant) (code string, ok bool) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) >= maxCodes {
		for k, old := range c.open {
			if !now.Before(old.expires) {
				delete(c.open, k)
			}
		}
	}
	if len(c.open) >= maxCodes {
		return "", false
	}
	if c.open == nil {
		c.open = map[[sha256.Size]byte]grant{}
	}
	code, g.expires = rand.Text(), now.Add(codeLife)
	c.open[sha256.Sum256([]byte(code))] = g
	return code, true
}

// take returns what code stands for, once, whatever comes of it: whoever shows
// a stolen code without its verifier does not get to guess.
func (c *codes) take(code string) (grant, bool) {
	key := sha256.Sum256([]byte(code))
	c.mu.Lock()
	defer c.mu.Unlock()
	g, ok := c.open[key]
	delete(c.open, key)
	return g, ok && time.Now().Before(g.expires)
}
