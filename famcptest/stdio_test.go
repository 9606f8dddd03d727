package famcptest_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/famcptest"
)

// TestConnectStdio: the same client over pipes, in both eras: results, failures,
// notifications, questions, subscriptions, prompts and resources.
func TestConnectStdio(t *testing.T) {
	for _, revision := range []string{famcptest.Modern, famcptest.Legacy, "2025-03-26"} {
		t.Run(revision, func(t *testing.T) {
			cfg := famcp.DefaultConfig()
			cfg.Logger.Level = "error"
			cfg.MCP.Resources.SubscribeEnabled = true
			s, err := famcp.New(cfg, famcp.Info{Name: "piped", Version: "1"})
			if err != nil {
				t.Fatal(err)
			}
			tool := func(name string) famcp.Tool {
				return famcp.Tool{Name: name, Description: "Does " + name + ".", Effect: famcp.ReadOnly()}
			}
			famcp.AddTool(s, tool("who"), func(_ context.Context, c *famcp.Call, _ struct{}) (string, error) {
				c.Notify(famcp.LevelInfo, "here", nil)
				c.Progress(1, 2, "half")
				return c.Subject(), nil
			})
			famcp.AddTool(s, tool("ask"), func(_ context.Context, c *famcp.Call, _ struct{}) (string, error) {
				yes, err := c.Confirm("sure", "Sure?")
				return strconv.FormatBool(yes), err
			})
			famcp.AddTool(s, tool("fail"), func(context.Context, *famcp.Call, struct{}) (string, error) {
				return "", famcp.Failf("no\nluck")
			})
			s.AddResource(famcp.Resource{URI: "doc://a", Name: "a", Contents: &famcp.Contents{Text: "a"}}, nil)
			c := famcptest.ConnectStdio(t, s, revision)
			if got := famcptest.Call[string](t, c, "who", nil); got != "stdio" {
				t.Errorf("subject %q", got)
			}
			if n := c.Notifications(); len(n.Logs()) != 1 || len(n.Progress()) != 1 {
				t.Errorf("notifications %+v", n)
			}
			c.Answer(func(famcptest.Question) famcptest.Answer { return famcptest.Confirm(true) })
			if res := c.CallTool("ask", nil); res.Text() != "true" || res.Asked != 1 {
				t.Errorf("asked %d: %v %q", res.Asked, res.Err, res.Text())
			}
			if res := c.CallTool("fail", nil); !res.IsError || res.Text() != "no\nluck" {
				t.Errorf("got %v %q", res.Err, res.Text())
			}
			if res := c.Read("doc://a"); res.Text() != "a" {
				t.Errorf("read %v %q", res.Err, res.Text())
			}
			if res := c.Read("doc://b"); res.Err == nil {
				t.Error("what is not there was read")
			}
			changes := c.Listen("doc://a")
			s.ResourceUpdated(t.Context(), "doc://a")
			if n := changes.Next(); n.Method != "notifications/resources/updated" {
				t.Errorf("got %s", n.Method)
			}
			famcp.AddTool(s, tool("late"), func(context.Context, *famcp.Call, struct{}) (string, error) { return "", nil })
			if n := changes.Next(); n.Method != "notifications/tools/list_changed" {
				t.Errorf("got %s", n.Method)
			}
			changes.Close()
			if len(c.Tools()) != 4 {
				t.Errorf("%d tools", len(c.Tools()))
			}
			if _, _, answer := c.Raw("{"); string(answer) == "" {
				t.Error("a damaged line has no answer")
			}
			if got := famcptest.Call[string](t, c, "who", nil); got != "stdio" {
				t.Errorf("afterwards: %q", got)
			}
		})
	}
}
