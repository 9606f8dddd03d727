package front

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/protocol"
)

// TestPanicInABatch is the answer to its element; the others have theirs, and
// the process goes on.
func TestPanicInABatch(t *testing.T) {
	url := newFixture(t, func(cfg *Config) {
		cfg.Authorize = func(_ context.Context, _ *http.Request, f *call.Facts, m *protocol.Message) *Refusal {
			f.AllScopes = false // a caller without credentials, who is looked at message by message
			if m != nil && m.Method == "ping" {
				panic("a bug")
			}
			return nil
		}
	}).serve(t)
	session := newSession(t, url, "2025-03-26")
	a := send(t, "POST", url+Path, "["+legacyRequest("3", "ping", "")+","+legacyRequest("4", "tools/list", "")+"]", session)
	if a.status != 200 || !strings.Contains(a.body, `"id":3,"error":{"code":-32603`) || !strings.Contains(a.body, `"id":4,"result"`) {
		t.Errorf("got %d %s", a.status, a.body)
	}
}
