package famcptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/famcptest"
)

type addIn struct {
	A int `json:"a"`
	B int `json:"b"`
}

type addOut struct {
	Sum int `json:"sum"`
}

type noArgs struct{}

type profile struct {
	Name string `json:"name" jsonschema:"how to address you"`
	Age  int    `json:"age,omitempty"`
}

// build makes a server with one tool for each thing that is tested here.
func build(t testing.TB) *famcp.Server {
	t.Helper()
	cfg := famcp.DefaultConfig()
	cfg.Logger.Level = "error"
	cfg.MCP.Progress.Throttle = 0
	cfg.MCP.Pagination.PageSize = 3
	cfg.MCP.Resources.SubscribeEnabled = true
	s, err := famcp.New(cfg, famcp.Info{Name: "sample", Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	tool := func(name string) famcp.Tool {
		return famcp.Tool{Name: name, Description: "Does " + name + ".", Effect: famcp.ReadOnly()}
	}
	famcp.AddTool(s, tool("add"), func(_ context.Context, _ *famcp.Call, in addIn) (addOut, error) {
		return addOut{in.A + in.B}, nil
	})
	famcp.AddTool(s, tool("words"), func(context.Context, *famcp.Call, noArgs) ([]string, error) {
		return []string{"a", "b"}, nil
	})
	famcp.AddTool(s, tool("region"), func(_ context.Context, c *famcp.Call, in struct {
		Region string `json:"region" mcpheader:"Region"`
	},
	) (string, error) {
		return in.Region, nil
	})
	famcp.AddTool(s, tool("fail"), func(context.Context, *famcp.Call, noArgs) (string, error) {
		return "", famcp.Failf("the disk is full")
	})
	famcp.AddTool(s, tool("broken"), func(context.Context, *famcp.Call, noArgs) (string, error) {
		return "", errors.New("password hunter2 refused")
	})
	famcp.AddTool(s, tool("panic"), func(context.Context, *famcp.Call, noArgs) (string, error) {
		panic("boom")
	})
	famcp.AddTool(s, tool("erase"), func(_ context.Context, c *famcp.Call, _ noArgs) (string, error) {
		sure, err := c.Confirm("sure", "Really?")
		if err != nil {
			return "", err
		}
		again, err := c.Confirm("again", "Really, really?")
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%t %t after %d", sure, again, c.Round()), nil
	})
	famcp.AddTool(s, tool("greet"), func(_ context.Context, c *famcp.Call, _ noArgs) (profile, error) {
		return famcp.Elicit[profile](c, "who", "Who are you?")
	})
	famcp.AddTool(s, tool("visit"), func(_ context.Context, c *famcp.Call, _ noArgs) (string, error) {
		return "visited", c.Visit("page", "https://example.com/login", "Log in")
	})
	famcp.AddTool(s, tool("sample"), func(_ context.Context, c *famcp.Call, _ noArgs) (string, error) {
		res, err := c.Sample("poem", &mcp.CreateMessageParams{MaxTokens: 10, Messages: []*mcp.SamplingMessage{
			{Role: "user", Content: &mcp.TextContent{Text: "a poem"}},
		}})
		if err != nil {
			return "", err
		}
		return res.Content.(*mcp.TextContent).Text, nil
	})
	famcp.AddTool(s, tool("roots"), func(_ context.Context, c *famcp.Call, _ noArgs) (string, error) {
		roots, err := c.Roots("roots")
		if err != nil {
			return "", err
		}
		var uris []string
		for _, r := range roots {
			uris = append(uris, r.URI)
		}
		return strings.Join(uris, " "), nil
	})
	famcp.AddTool(s, tool("count"), func(_ context.Context, c *famcp.Call, _ noArgs) (string, error) {
		for i := range 3 {
			c.Progress(float64(i+1), 3, fmt.Sprintf("step %d", i+1))
		}
		c.Notify("debug", "counted", map[string]int{"to": 3})
		return "done", nil
	})
	famcp.AddTool(s, tool("whoami"), func(_ context.Context, c *famcp.Call, _ noArgs) (string, error) {
		return c.Subject() + " " + strings.Join(c.Scopes(), ","), nil
	})
	secret := tool("secret")
	secret.Access.Scopes = []string{"secrets:read"}
	famcp.AddTool(s, secret, func(context.Context, *famcp.Call, noArgs) (string, error) { return "42", nil })
	hidden := tool("hidden")
	hidden.Access.Visible = func(_ context.Context, c *famcp.Call) bool { return c.Subject() == "alice" }
	famcp.AddTool(s, hidden, func(context.Context, *famcp.Call, noArgs) (string, error) { return "seen", nil })

	famcp.AddPrompt(s, famcp.Prompt{Name: "hello", Description: "Greets."},
		func(_ context.Context, _ *famcp.Call, in struct {
			Name string `json:"name"`
		},
		) ([]famcp.Message, error) {
			return []famcp.Message{famcp.UserMessage("Hello " + in.Name)}, nil
		})
	s.Complete("hello", "name", func(_ context.Context, _ *famcp.Call, prefix string) ([]string, error) {
		return []string{prefix + "da"}, nil
	})
	famcp.AddResourceTemplate(s, famcp.ResourceTemplate{URITemplate: "note://{id}", Name: "note"},
		func(_ context.Context, _ *famcp.Call, p struct {
			ID string `json:"id"`
		},
		) (famcp.Contents, error) {
			if p.ID == "none" {
				return famcp.Contents{}, famcp.NotFoundf("there is no such note")
			}
			return famcp.Contents{Text: "note " + p.ID}, nil
		})
	return s
}

func TestCall(t *testing.T) {
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		if got := famcptest.Call[addOut](t, c, "add", addIn{2, 3}); got.Sum != 5 {
			t.Errorf("add: got %d, want 5", got.Sum)
		}
		got := famcptest.Call[[]string](t, c, "words", nil)
		if diff := cmp.Diff([]string{"a", "b"}, got); diff != "" {
			t.Errorf("words (-want +got):\n%s", diff)
		}
		for _, region := range []string{"eu", " spaced ", "Zürich", "=?base64?x?="} {
			if got := famcptest.Call[string](t, c, "region", map[string]string{"region": region}); got != region {
				t.Errorf("region: got %q, want %q", got, region)
			}
		}
	})
}

func TestCallInSubtest(t *testing.T) {
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		for i := range 3 {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				if got := famcptest.Call[addOut](t, c, "add", addIn{i, i}); got.Sum != 2*i {
					t.Errorf("got %d, want %d", got.Sum, 2*i)
				}
			})
		}
	})
}

func TestFailures(t *testing.T) {
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		res := c.CallTool("fail", nil)
		if !res.IsError || res.Text() != "the disk is full" || res.Structured != nil {
			t.Errorf("fail: got %+v", res)
		}
		for _, name := range []string{"broken", "panic"} {
			res = c.CallTool(name, nil)
			if res.Err == nil || res.Err.Code != -32603 || res.Err.Message != "internal error" {
				t.Errorf("%s: got %v, want -32603 internal error", name, res.Err)
			}
			if wantStatus := map[string]int{"modern": 500, "legacy": 200}[c.Era()]; res.Err != nil && res.Err.Status != wantStatus {
				t.Errorf("%s: got HTTP %d, want %d", name, res.Err.Status, wantStatus)
			}
		}
		res = c.CallTool("unknown_tool", nil)
		if res.Err == nil || res.Err.Code != -32602 {
			t.Errorf("unknown tool: got %v, want -32602", res.Err)
		}
		res = c.CallTool("add", map[string]any{"a": "x", "c": 1})
		if !res.IsError || !strings.Contains(res.Text(), "a: must be an integer") {
			t.Errorf("bad arguments: got %v %q", res.Err, res.Text())
		}
	})
}

func TestOlderRevision(t *testing.T) {
	c := famcptest.Connect(t, build(t), "2025-06-18")
	res := c.CallTool("add", map[string]any{"a": "x"})
	if res.Err == nil || res.Err.Code != -32602 {
		t.Errorf("bad arguments in 2025-06-18: got %v, want -32602", res.Err)
	}
}

func TestConfirm(t *testing.T) {
	tests := []struct {
		name   string
		answer famcptest.Answer
		want   string
	}{
		{"yes", famcptest.Confirm(true), "true true after 2"},
		{"no", famcptest.Confirm(false), "false false after 2"},
		{"declined", famcptest.Decline(), "false false after 2"},
		{"cancelled", famcptest.Cancel(), "false false after 2"},
		{"unanswered", famcptest.Answer{}, "false false after 2"},
	}
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				var asked []string
				c.Answer(func(q famcptest.Question) famcptest.Answer {
					asked = append(asked, q.Message)
					return tt.answer
				})
				res := c.For(t).CallTool("erase", nil)
				if res.Text() != tt.want || res.Asked != 2 {
					t.Errorf("got %q after %d questions (%v), want %q after 2", res.Text(), res.Asked, res.Err, tt.want)
				}
				if diff := cmp.Diff([]string{"Really?", "Really, really?"}, asked); diff != "" {
					t.Errorf("questions (-want +got):\n%s", diff)
				}
			})
		}
	})
}

func TestElicit(t *testing.T) {
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		var asked famcptest.Question
		c.Answer(func(q famcptest.Question) famcptest.Answer {
			asked = q
			return famcptest.Accept(profile{Name: "Ada", Age: 36})
		})
		got := famcptest.Call[profile](t, c, "greet", nil)
		if want := (profile{"Ada", 36}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if asked.Method != "elicitation/create" || asked.Message != "Who are you?" || !strings.Contains(string(asked.Schema), `"name"`) {
			t.Errorf("question: got %+v", asked)
		}
		if wantKey := map[string]string{"modern": "who"}[c.Era()]; asked.Key != wantKey {
			t.Errorf("key: got %q, want %q", asked.Key, wantKey)
		}
		c.Answer(func(famcptest.Question) famcptest.Answer { return famcptest.Decline() })
		if res := c.CallTool("greet", nil); !res.IsError || res.Text() != "the user declined" {
			t.Errorf("declined: got %v %q", res.Err, res.Text())
		}
	})
}

func TestOtherQuestions(t *testing.T) {
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		if got := famcptest.Call[string](t, c, "roots", nil); got != "" {
			t.Errorf("roots without an answer: got %q, want none", got)
		}
		c.Answer(func(q famcptest.Question) famcptest.Answer {
			switch q.Method {
			case "sampling/createMessage":
				return famcptest.Completion("roses are red")
			case "roots/list":
				return famcptest.Roots("file:///a", "file:///b")
			}
			if q.URL != "https://example.com/login" {
				t.Errorf("got URL %q", q.URL)
			}
			return famcptest.Accept(nil)
		})
		for tool, want := range map[string]string{"sample": "roses are red", "roots": "file:///a file:///b", "visit": "visited"} {
			if got := famcptest.Call[string](t, c, tool, nil); got != want {
				t.Errorf("%s: got %q, want %q", tool, got, want)
			}
		}
	})
}

func TestCannotAsk(t *testing.T) {
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		mute := c.Declaring(famcp.CanSample)
		for _, tool := range []string{"erase", "greet", "visit", "roots"} {
			res := mute.CallTool(tool, nil)
			if c.Era() == "legacy" {
				if !res.IsError {
					t.Errorf("%s: got %v, want a result with isError", tool, res.Err)
				}
			} else if res.Err == nil || res.Err.Code != -32021 || res.Err.Status != 400 {
				t.Errorf("%s: got %v, want -32021", tool, res.Err)
			}
		}
	})
}

func TestNotifications(t *testing.T) {
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		famcptest.Call[string](t, c, "count", nil)
		var got []string
		for _, p := range c.Notifications().Progress() {
			got = append(got, fmt.Sprintf("%v/%v %s", p.Progress, p.Total, p.Message))
		}
		if diff := cmp.Diff([]string{"1/3 step 1", "2/3 step 2", "3/3 step 3"}, got); diff != "" {
			t.Errorf("progress (-want +got):\n%s", diff)
		}
		logs := c.Notifications().Logs()
		if len(logs) != 1 || logs[0].Level != "debug" || logs[0].Logger != "count" {
			t.Errorf("log messages: got %+v, want one of level debug", logs)
		}
	})
}

func toolNames(c *famcptest.Client) map[string]bool {
	names := map[string]bool{}
	for _, tool := range c.Tools() {
		names[tool.Name] = true
	}
	return names
}

func TestAsSubject(t *testing.T) {
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		alice, bob := c.AsSubject("alice", "secrets:read"), c.AsSubject("bob", "other")
		if got := famcptest.Call[string](t, alice, "whoami", nil); got != "alice secrets:read" {
			t.Errorf("whoami: got %q", got)
		}
		if names := toolNames(alice); !names["secret"] || !names["hidden"] || !names["add"] {
			t.Errorf("tools of alice: got %v, want secret, hidden and add", names)
		}
		if names := toolNames(bob); names["secret"] || names["hidden"] || !names["add"] {
			t.Errorf("tools of bob: got %v, want add, not secret or hidden", names)
		}
		if names := toolNames(c); !names["secret"] || names["hidden"] {
			t.Errorf("tools without a subject: got %v, want secret, not hidden", names)
		}
		if got := famcptest.Call[string](t, alice, "secret", nil); got != "42" {
			t.Errorf("secret for alice: got %q", got)
		}
		res := bob.CallTool("secret", nil)
		if res.Err == nil || res.Err.Code != -32000 || !strings.Contains(string(res.Err.Data), `"missing":["secrets:read"]`) {
			t.Errorf("secret for bob: got %v, want -32000 with the missing scope", res.Err)
		}
		if res := bob.CallTool("hidden", nil); res.Err == nil || res.Err.Code != -32602 {
			t.Errorf("hidden for bob: got %v, want -32602", res.Err)
		}
	})
}

func TestPromptsAndResources(t *testing.T) {
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		if got := c.Prompt("hello", map[string]string{"name": "Ada"}).Text(); got != "Hello Ada" {
			t.Errorf("prompt: got %q", got)
		}
		if res := c.Prompt("nothing", nil); res.Err == nil || res.Err.Code != -32602 {
			t.Errorf("unknown prompt: got %v, want -32602", res.Err)
		}
		if diff := cmp.Diff([]string{"Adda"}, c.Complete("hello", "name", "Ad")); diff != "" {
			t.Errorf("completion (-want +got):\n%s", diff)
		}
		if got := c.Read("note://7").Text(); got != "note 7" {
			t.Errorf("resource: got %q", got)
		}
		wantCode := map[string]int64{"modern": -32602, "legacy": -32002}[c.Era()]
		for _, uri := range []string{"note://none", "nothing://here"} {
			if res := c.Read(uri); res.Err == nil || res.Err.Code != wantCode {
				t.Errorf("%s: got %v, want %d", uri, res.Err, wantCode)
			}
		}
		if n := len(c.Resources()); n < 6 { // more than a page
			t.Errorf("got %d resources, want the built-in ones", n)
		}
		if n := len(c.Prompts()); n != 4 {
			t.Errorf("got %d prompts, want 4", n)
		}
		if templates := c.Templates(); len(templates) != 1 || templates[0].URITemplate != "note://{id}" {
			t.Errorf("templates: got %v", templates)
		}
	})
}

// A modern client carries the state of its request; it must be of no use to
// another subject.
func TestStateBelongsToItsSubject(t *testing.T) {
	c := famcptest.Connect(t, build(t), famcptest.Modern)
	alice, bob := c.AsSubject("alice"), c.AsSubject("bob")
	_, _, body := alice.Raw(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"erase","_meta":{
		"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`)
	var first struct {
		Result struct {
			Type  string `json:"resultType"`
			State string `json:"requestState"`
		} `json:"result"`
	}
	if err := json.Unmarshal(body, &first); err != nil || first.Result.Type != "input_required" || first.Result.State == "" {
		t.Fatalf("first round: got %s, %v; want a question with a state", body, err)
	}
	retry := map[string]any{
		"name": "erase", "requestState": first.Result.State,
		"inputResponses": map[string]any{"sure": map[string]any{"action": "accept", "content": map[string]any{"confirm": true}}},
	}
	if res := bob.Request("tools/call", retry); res.Err == nil || res.Err.Code != -32602 || !strings.Contains(string(res.Err.Data), "requestState") {
		t.Errorf("state of alice, sent by bob: got %v %s, want -32602 on requestState", res.Err, res.Raw)
	}
	if res := alice.Request("tools/call", retry); !strings.Contains(string(res.Raw), "true false after 2") {
		t.Errorf("state of alice, sent by her: got %v %s", res.Err, res.Raw)
	}
}

func TestListen(t *testing.T) {
	for _, revision := range []string{famcptest.Modern, famcptest.Legacy} {
		t.Run(revision, func(t *testing.T) {
			s := build(t)
			c := famcptest.Connect(t, s, revision)
			watch := c.Listen("note://7")
			s.ResourceUpdated(t.Context(), "note://8") // not subscribed to
			s.ResourceUpdated(t.Context(), "note://7")
			if got := watch.Next(); got.Method != "notifications/resources/updated" || !strings.Contains(string(got.Params), "note://7") {
				t.Errorf("got %s %s, want an update of note://7", got.Method, got.Params)
			}
			famcp.AddTool(s, famcp.Tool{Name: "late", Description: "Comes late.", Effect: famcp.ReadOnly()},
				func(context.Context, *famcp.Call, noArgs) (string, error) { return "late", nil })
			if got := watch.Next(); got.Method != "notifications/tools/list_changed" {
				t.Errorf("got %s, want a change of the tools", got.Method)
			}
			if got := famcptest.Call[string](t, c, "late", nil); got != "late" {
				t.Errorf("late: got %q", got)
			}
			if !s.Remove(famcp.Tools, "late") {
				t.Error("late is not there to remove")
			}
			if got := watch.Next(); got.Method != "notifications/tools/list_changed" {
				t.Errorf("got %s, want a change of the tools", got.Method)
			}
			if toolNames(c)["late"] {
				t.Error("late is still listed")
			}
		})
	}
}

func TestRaw(t *testing.T) {
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		status, header, body := c.Raw(`{"jsonrpc":`)
		if status != http.StatusBadRequest || !strings.Contains(string(body), "-32700") {
			t.Errorf("broken JSON: got %d %s, want 400 with -32700", status, body)
		}
		if header.Get("X-Request-Id") == "" || header.Get("Content-Type") != "application/json" {
			t.Errorf("headers: got %v", header)
		}
		status, _, body = c.Raw(`{"jsonrpc":"2.0","id":"x","method":"tools/list"}`)
		if want := map[string]int{"modern": 400, "legacy": 200}[c.Era()]; status != want {
			t.Errorf("no _meta: got %d %s, want %d", status, body, want)
		}
	})
}

func TestParallelClients(t *testing.T) {
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		t.Run("clients", func(t *testing.T) {
			for i := range 8 {
				t.Run(strconv.Itoa(i), func(t *testing.T) {
					mine := c.For(t).AsSubject(fmt.Sprintf("user%d", i))
					t.Parallel()
					mine.Answer(func(famcptest.Question) famcptest.Answer { return famcptest.Confirm(i%2 == 0) })
					for range 5 {
						want := fmt.Sprintf("%t %t after 2", i%2 == 0, i%2 == 0)
						if got := famcptest.Call[string](t, mine, "erase", nil); got != want {
							t.Errorf("erase: got %q, want %q", got, want)
						}
						if got, want := famcptest.Call[string](t, mine, "whoami", nil), fmt.Sprintf("user%d ", i); got != want {
							t.Errorf("whoami: got %q, want %q", got, want)
						}
					}
				})
			}
		})
	})
}

func TestNewCall(t *testing.T) {
	var sent famcptest.Recorder
	call := famcptest.NewCall(t,
		famcptest.WithSubject("alice", "notes:write"),
		famcptest.WithRevision(famcptest.Legacy),
		famcptest.WithHeader("X-Tenant", "acme"),
		famcptest.WithCapabilities(famcp.CanElicit),
		famcptest.WithAnswer("sure", famcptest.Confirm(true)),
		famcptest.WithAnswer("who", famcptest.Accept(profile{Name: "Ada"})),
		famcptest.WithRecorder(&sent),
	)
	if call.Subject() != "alice" || !call.HasScope("notes:write") || call.HasScope("notes:read") {
		t.Errorf("got subject %q with %v", call.Subject(), call.Scopes())
	}
	if call.Era() != "legacy" || call.Version() != famcptest.Legacy || call.Header("x-tenant") != "acme" {
		t.Errorf("got %s %s %q", call.Era(), call.Version(), call.Header("x-tenant"))
	}
	if sure, err := call.Confirm("sure", "Really?"); !sure || err != nil {
		t.Errorf("Confirm: got %t, %v", sure, err)
	}
	if who, err := famcp.Elicit[profile](call, "who", "Who?"); who.Name != "Ada" || err != nil {
		t.Errorf("Elicit: got %+v, %v", who, err)
	}
	if _, err := call.Confirm("other", "Really?"); !errors.Is(err, famcp.ErrAsked) {
		t.Errorf("unanswered: got %v, want ErrAsked", err)
	}
	if _, err := call.Roots("roots"); !errors.Is(err, famcp.ErrCannotAsk) {
		t.Errorf("roots: got %v, want ErrCannotAsk", err)
	}
	call.Progress(1, 2, "half")
	call.Notify("info", "working", nil)
	progress, logs := sent.Notifications().Progress(), sent.Notifications().Logs()
	if len(progress) != 1 || progress[0].Message != "half" {
		t.Errorf("progress: got %+v", progress)
	}
	if len(logs) != 1 || logs[0].Data != "working" {
		t.Errorf("log messages: got %+v", logs)
	}
	call.Log().Info("goes to the output of the test")
}

func TestNewCallPlain(t *testing.T) {
	call := famcptest.NewCall(t)
	if call.Era() != "modern" || !call.HasScope("anything") || !call.Can(famcp.CanSample) || call.ID() == "" {
		t.Errorf("got era %s, id %q", call.Era(), call.ID())
	}
}
