package famcptest_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/famcp/famcp/famcptest"
)

// ours returns the stacks of the goroutines that serve or speak MCP.
func ours() []string {
	buf := make([]byte, 1<<20)
	var found []string
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, "TestNothingIsLeft") {
			continue // the one that asks
		}
		for _, mark := range []string{"famcp/internal/", "go-sdk/", "net/http.", "httptest."} {
			if strings.Contains(stack, mark) {
				found = append(found, stack)
				break
			}
		}
	}
	return found
}

func TestNothingIsLeft(t *testing.T) {
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		famcptest.Call[addOut](t, c, "add", addIn{1, 2})
		c.Answer(func(famcptest.Question) famcptest.Answer { return famcptest.Confirm(true) })
		famcptest.Call[string](t, c.AsSubject("alice"), "whoami", nil)
		famcptest.Call[string](t, c, "erase", nil)
		famcptest.NewCall(t)
		if len(ours()) == 0 {
			t.Error("the goroutines of a running server are not seen")
		}
	})
	// Goroutines that have nothing left to do still need a moment to end.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for ctx.Err() == nil && len(ours()) > 0 {
		runtime.Gosched()
	}
	for _, stack := range ours() {
		t.Errorf("still running:\n%s", stack)
	}
}
