package famcptest_test

import (
	"context"
	"testing"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/famcptest"
)

// limited makes a server like a project that left its limits alone, but for
// what change does.
func limited(change func(*famcp.Config)) func(testing.TB) *famcp.Server {
	return func(t testing.TB) *famcp.Server {
		t.Helper()
		cfg := famcp.DefaultConfig()
		cfg.Logger.Level = "error"
		change(cfg)
		s, err := famcp.New(cfg, famcp.Info{Name: "limited", Version: "1.0.0"})
		if err != nil {
			t.Fatal(err)
		}
		tool := func(name string) famcp.Tool {
			return famcp.Tool{Name: name, Description: "Does " + name + ".", Effect: famcp.ReadOnly()}
		}
		famcp.AddTool(s, tool("quick"), func(context.Context, *famcp.Call, noArgs) (string, error) { return "done", nil })
		famcp.AddTool(s, tool("ask"), func(_ context.Context, c *famcp.Call, _ noArgs) (string, error) {
			if _, err := c.Confirm("sure", "Really?"); err != nil {
				return "", err
			}
			return "done", nil
		})
		return s
	}
}

func TestDefaultRateLimitIsOff(t *testing.T) {
	famcptest.Eras(t, limited(func(*famcp.Config) {}), func(t *testing.T, c *famcptest.Client) {
		for range 150 {
			famcptest.Call[string](t, c, "quick", nil)
		}
	})
}

func TestRateLimitOfATestHolds(t *testing.T) {
	build := limited(func(cfg *famcp.Config) { cfg.MCP.RateLimit.MaxRequests = 2 })
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		for range 2 { // a session has used one to open
			if err := c.CallTool("quick", nil).Err; err != nil && err.Code != -32003 {
				t.Fatal(err)
			}
		}
		if err := c.CallTool("quick", nil).Err; err == nil || err.Code != -32003 || err.Status != 429 {
			t.Errorf("got %v, want -32003 with 429", err)
		}
	})
}

// TestWaitingHoldsNoSlot: while a person thinks, their one slot is free.
func TestWaitingHoldsNoSlot(t *testing.T) {
	build := limited(func(cfg *famcp.Config) { cfg.MCP.RateLimit.MaxConcurrentPerSubject = 1 })
	for _, revision := range []string{famcptest.Modern, famcptest.Legacy} {
		t.Run(revision, func(t *testing.T) {
			s := build(t)
			c, other := famcptest.Connect(t, s, revision), famcptest.Connect(t, s, revision)
			meanwhile := ""
			c.Answer(func(famcptest.Question) famcptest.Answer {
				meanwhile = famcptest.Call[string](t, other, "quick", nil)
				return famcptest.Confirm(true)
			})
			if got := famcptest.Call[string](t, c, "ask", nil); got != "done" || meanwhile != "done" {
				t.Errorf("got %q, meanwhile %q", got, meanwhile)
			}
			famcptest.Call[string](t, other, "quick", nil)
		})
	}
}

// TestSlotIsFreeWithTheAnswer: a client that waits for each answer never has
// more than one call.
func TestSlotIsFreeWithTheAnswer(t *testing.T) {
	build := limited(func(cfg *famcp.Config) { cfg.MCP.RateLimit.MaxConcurrentPerSubject = 1 })
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		for range 200 {
			famcptest.Call[string](t, c, "quick", nil)
		}
	})
}
