package famcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/famcptest"
)

type jobInput struct {
	Do string `json:"do" jsonschema:"What the job does: finish, fail, panic, ask, big."`
}

type jobOutput struct {
	Text string `json:"text"`
}

// jobs are tools that wait in the middle, as long as the test wants.
type jobs struct {
	*famcp.Server
	entered chan *famcp.Call
	leave   chan struct{}
	ended   chan error // the cause of each handler's context at its end
}

func newJobs(t testing.TB, change func(*famcp.Config)) *jobs {
	s := newServer(t, func(c *famcp.Config) {
		c.MCP.Tasks.Enabled = true
		if change != nil {
			change(c)
		}
	})
	j := &jobs{Server: s, entered: make(chan *famcp.Call, 100), leave: make(chan struct{}), ended: make(chan error, 100)}
	for _, support := range []famcp.Tasks{famcp.TasksForbidden, famcp.TasksOptional, famcp.TasksRequired} {
		famcp.AddTool(s, famcp.Tool{
			Name: string(support), Description: "A job.", Effect: famcp.ReadOnly(), Tasks: support, TaskGrace: time.Nanosecond,
		}, j.run)
	}
	return j
}

func (j *jobs) run(ctx context.Context, call *famcp.Call, in jobInput) (out jobOutput, err error) {
	defer func() { j.ended <- context.Cause(ctx) }()
	if call.Round() == 0 {
		j.entered <- call
		select {
		case <-j.leave:
		case <-ctx.Done():
			return out, ctx.Err()
		}
	}
	switch in.Do {
	case "fail":
		return out, famcp.Failf("it went wrong")
	case "panic":
		panic("a bug")
	case "internal":
		return out, errors.New("dial tcp 10.0.0.5: password=hunter2")
	case "ask":
		a, err := famcp.Elicit[jobOutput](call, "a", "First?")
		b, err2 := famcp.Elicit[jobOutput](call, "b", "Second?")
		return jobOutput{a.Text + " " + b.Text}, errors.Join(err, err2)
	}
	return jobOutput{"done"}, nil
}

// TestTasks drives tasks to each of their ends, in both eras.
func TestTasks(t *testing.T) {
	tests := []struct {
		do     string
		status map[string]string // by era
		want   string            // in the text or the error
		asked  int
	}{
		{do: "finish", status: map[string]string{"modern": "completed", "legacy": "completed"}, want: `"done"`},
		{do: "fail", status: map[string]string{"modern": "completed", "legacy": "failed"}, want: "it went wrong"},
		{do: "panic", status: map[string]string{"modern": "failed", "legacy": "failed"}, want: "internal error (code -32603"},
		{do: "internal", status: map[string]string{"modern": "failed", "legacy": "failed"}, want: "internal error (code -32603"},
		{do: "ask", status: map[string]string{"modern": "completed", "legacy": "completed"}, want: `"one two"`, asked: 2},
	}
	for _, tt := range tests {
		t.Run(tt.do, func(t *testing.T) {
			var j *jobs
			famcptest.Eras(t, func(t testing.TB) *famcp.Server { j = newJobs(t, nil); return j.Server }, func(t *testing.T, c *famcptest.Client) {
				c.Answer(func(q famcptest.Question) famcptest.Answer {
					return famcptest.Accept(map[string]any{"text": map[string]string{"First?": "one", "Second?": "two"}[q.Message]})
				})
				for _, tool := range []string{"optional", "required"} {
					task := c.StartTask(tool, jobInput{tt.do})
					if task.ID == "" {
						t.Fatalf("%s: the call did not become a task", tool)
					}
					call := <-j.entered
					if id, ok := call.Task(); c.Era() == "legacy" && (!ok || id != task.ID) {
						t.Errorf("%s: the handler's task is %q, want %q", tool, id, task.ID)
					}
					if status, _ := task.Status(); status != "working" {
						t.Errorf("%s: status %q before the end", tool, status)
					}
					j.leave <- struct{}{}
					res := task.Result()
					text := res.Text()
					if res.Err != nil {
						text = res.Err.Error()
					}
					if !strings.Contains(text, tt.want) || res.Asked != tt.asked || strings.Contains(text, "hunter2") {
						t.Errorf("%s: got %q after %d questions, want %q after %d", tool, text, res.Asked, tt.want, tt.asked)
					}
					if status, _ := task.Status(); status != tt.status[c.Era()] {
						t.Errorf("%s: status %q, want %q", tool, status, tt.status[c.Era()])
					}
				}
			})
		})
	}
}

// TestTaskResultsOfAnEra have the members of the era they are read in.
func TestTaskResultsOfAnEra(t *testing.T) {
	var j *jobs
	famcptest.Eras(t, func(t testing.TB) *famcp.Server { j = newJobs(t, nil); return j.Server }, func(t *testing.T, c *famcptest.Client) {
		task := c.StartTask("optional", jobInput{"finish"})
		<-j.entered
		j.leave <- struct{}{}
		raw := string(task.Result().Raw)
		modern := strings.Contains(raw, `"resultType":"complete"`) && !strings.Contains(raw, "related-task")
		legacy := !strings.Contains(raw, "resultType") && strings.Contains(raw, `"io.modelcontextprotocol/related-task":{"taskId":"`+task.ID+`"}`)
		if (c.Era() == "modern" && !modern) || (c.Era() == "legacy" && !legacy) {
			t.Errorf("got %s", raw)
		}
	})
}

// TestTaskPolicy: who can have a task of which tool, and what the others get.
func TestTaskPolicy(t *testing.T) {
	type outcome struct {
		Code  int64
		Needs string
		Task  bool
	}
	const needs = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	tests := []struct {
		name     string
		revision string
		off      bool
		knows    bool // the extension declared, or params.task sent
		tool     string
		want     outcome
	}{
		{"modern forbidden", famcptest.Modern, false, true, "forbidden", outcome{}},
		{"modern optional", famcptest.Modern, false, true, "optional", outcome{Task: true}},
		{"modern required", famcptest.Modern, false, true, "required", outcome{Task: true}},
		{"modern optional, not declared", famcptest.Modern, false, false, "optional", outcome{}},
		{"modern required, not declared", famcptest.Modern, false, false, "required", outcome{Code: -32021, Needs: needs}},
		{"modern optional, off", famcptest.Modern, true, true, "optional", outcome{}},
		{"legacy forbidden", famcptest.Legacy, false, true, "forbidden", outcome{Code: -32601}},
		{"legacy optional", famcptest.Legacy, false, true, "optional", outcome{Task: true}},
		{"legacy required", famcptest.Legacy, false, true, "required", outcome{Task: true}},
		{"legacy optional, not asked", famcptest.Legacy, false, false, "optional", outcome{}},
		{"legacy required, not asked", famcptest.Legacy, false, false, "required", outcome{Code: -32601}},
		{"legacy optional, off", famcptest.Legacy, true, true, "optional", outcome{}},
		{"older optional", "2025-06-18", false, true, "optional", outcome{}},
		{"older required", "2025-06-18", false, true, "required", outcome{Code: -32601}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t, func(c *famcp.Config) { c.MCP.Tasks.Enabled = !tt.off })
			for _, support := range []famcp.Tasks{famcp.TasksForbidden, famcp.TasksOptional, famcp.TasksRequired} {
				if tt.off && support == famcp.TasksRequired {
					continue
				}
				famcp.AddTool(s, famcp.Tool{Name: string(support), Description: "A job.", Effect: famcp.ReadOnly(), Tasks: support, TaskGrace: -1},
					func(context.Context, *famcp.Call, struct{}) (string, error) { return "done", nil })
			}
			c := famcptest.Connect(t, s, tt.revision)
			params := map[string]any{"name": tt.tool, "arguments": map[string]any{}}
			if tt.knows {
				params["task"] = map[string]any{"ttl": 1000}
				if tt.revision == famcptest.Modern {
					params["_meta"] = knowingMeta()
				}
			}
			res := c.Request("tools/call", params)
			var got outcome
			if res.Err != nil {
				got.Code = res.Err.Code
				var data struct {
					Needs json.RawMessage `json:"requiredCapabilities"`
				}
				_ = json.Unmarshal(res.Err.Data, &data)
				got.Needs = string(data.Needs)
				if got.Code == -32601 && !strings.Contains(res.Err.Message, "task") {
					t.Errorf("the message %q does not say what to do", res.Err.Message)
				}
			}
			// A call that ends in no time may be answered plainly in the modern era.
			got.Task = strings.Contains(string(res.Raw), `"taskId"`) || (tt.want.Task && strings.Contains(string(res.Raw), "done"))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s\n%s", diff, res.Raw)
			}
		})
	}
}

func knowingMeta() map[string]any {
	return map[string]any{
		"io.modelcontextprotocol/protocolVersion":    famcptest.Modern,
		"io.modelcontextprotocol/clientCapabilities": map[string]any{"extensions": map[string]any{"io.modelcontextprotocol/tasks": map[string]any{}}},
	}
}

// TestRequiredTasksNeedTasks at registration.
func TestRequiredTasksNeedTasks(t *testing.T) {
	s := newServer(t, nil)
	for _, support := range []famcp.Tasks{famcp.TasksRequired, "sometimes"} {
		famcp.AddTool(s, famcp.Tool{Name: "job", Description: "A job.", Effect: famcp.ReadOnly(), Tasks: support},
			func(context.Context, *famcp.Call, struct{}) (string, error) { return "", nil })
	}
	err := s.Err()
	for _, part := range []string{`tool "job"`, "mcp.tasks.enabled", `"sometimes"`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want %s", err, part)
		}
	}
}

// TestTaskCapabilities are those of each era, and only while tasks are on.
func TestTaskCapabilities(t *testing.T) {
	for _, on := range []bool{true, false} {
		t.Run(fmt.Sprint("on ", on), func(t *testing.T) {
			s := newServer(t, func(c *famcp.Config) { c.MCP.Tasks.Enabled = on })
			famcp.AddTool(s, famcp.Tool{Name: "job", Description: "A job.", Effect: famcp.ReadOnly(), Tasks: famcp.TasksOptional},
				func(context.Context, *famcp.Call, struct{}) (string, error) { return "", nil })
			modern := string(famcptest.Connect(t, s, famcptest.Modern).Request("server/discover", nil).Raw)
			if got := strings.Contains(modern, `"extensions":{"io.modelcontextprotocol/tasks":{}}`); got != on || strings.Contains(modern, `"tasks":`) {
				t.Errorf("modern: %s", modern)
			}
			for _, revision := range []string{famcptest.Legacy, "2025-06-18"} {
				want := on && revision == famcptest.Legacy
				c := famcptest.Connect(t, s, revision)
				if body := initialize(t, s, revision); strings.Contains(body, `"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}`) != want || strings.Contains(body, "extensions") {
					t.Errorf("%s: initialize: %s", revision, body)
				}
				list := string(c.Request("tools/list", nil).Raw)
				if got := strings.Contains(list, `"execution":{"taskSupport":"optional"}`); got != want {
					t.Errorf("%s: tools/list: %s", revision, list)
				}
			}
		})
	}
}

// initialize returns what a client without credentials gets.
func initialize(t *testing.T, s *famcp.Server, revision string) string {
	t.Helper()
	h, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+revision+`","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Body.String()
}

// TestTaskCancel reaches the handler's context, and stays.
func TestTaskCancel(t *testing.T) {
	var j *jobs
	famcptest.Eras(t, func(t testing.TB) *famcp.Server { j = newJobs(t, nil); return j.Server }, func(t *testing.T, c *famcptest.Client) {
		task := c.StartTask("optional", jobInput{"finish"})
		<-j.entered
		task.Cancel()
		if cause := <-j.ended; cause == nil || !strings.Contains(cause.Error(), "cancelled") {
			t.Errorf("the handler's context ended with %v", cause)
		}
		if status, _ := task.Status(); status != "cancelled" {
			t.Errorf("status %q", status)
		}
		again := c.Request("tasks/cancel", withTasks(c, map[string]any{"taskId": task.ID}))
		if refused := again.Err != nil && again.Err.Code == -32602; refused != (c.Era() == "legacy") {
			t.Errorf("a second cancel: %v %s", again.Err, again.Raw)
		}
		if res := task.Result(); res.Err == nil {
			t.Errorf("a cancelled task has the result %s", res.Raw)
		}
	})
}

// withTasks adds the extension to a modern client's request.
func withTasks(c *famcptest.Client, params map[string]any) map[string]any {
	if c.Era() == "modern" {
		params["_meta"] = knowingMeta()
	}
	return params
}

// TestTaskMethods: what a client gets that knows nothing of tasks, or names
// none that it may know of.
func TestTaskMethods(t *testing.T) {
	tests := []struct {
		method         string
		params         map[string]any
		modern, legacy int64
	}{
		{"tasks/get", map[string]any{"taskId": "nosuch"}, -32602, -32602},
		{"tasks/cancel", map[string]any{"taskId": "nosuch"}, -32602, -32602},
		{"tasks/update", map[string]any{"taskId": "nosuch", "inputResponses": map[string]any{}}, -32602, -32601},
		{"tasks/update", map[string]any{"taskId": "nosuch"}, -32602, -32601},
		{"tasks/result", map[string]any{"taskId": "nosuch"}, -32601, -32602},
		{"tasks/list", map[string]any{}, -32601, -32601}, // nobody can be told apart without credentials
		{"tasks/get", map[string]any{"taskId": ""}, -32020, -32602},
		{"tasks/get", nil, -32020, -32602},
	}
	var j *jobs
	famcptest.Eras(t, func(t testing.TB) *famcp.Server { j = newJobs(t, nil); return j.Server }, func(t *testing.T, c *famcptest.Client) {
		for _, tt := range tests {
			want := map[string]int64{"modern": tt.modern, "legacy": tt.legacy}[c.Era()]
			params := map[string]any{}
			for k, v := range tt.params {
				params[k] = v
			}
			res := c.Request(tt.method, withTasks(c, params))
			if res.Err == nil || res.Err.Code != want {
				t.Errorf("%s %v: got %v, want %d", tt.method, tt.params, res.Err, want)
			}
			if c.Era() == "modern" && want != -32601 && want != -32020 {
				if res := c.Request(tt.method, tt.params); res.Err == nil || res.Err.Code != -32021 {
					t.Errorf("%s without the extension: got %v, want -32021", tt.method, res.Err)
				}
			}
		}
	})
}

// TestTasksOfASubject look unknown to another, and are the only ones listed.
func TestTasksOfASubject(t *testing.T) {
	var j *jobs
	famcptest.Eras(t, func(t testing.TB) *famcp.Server {
		j = newJobs(t, func(c *famcp.Config) { c.MCP.Pagination.PageSize = 2 })
		return j.Server
	}, func(t *testing.T, c *famcptest.Client) {
		alice, bob := c.AsSubject("alice"), c.AsSubject("bob")
		var ids []string
		for range 3 {
			task := alice.StartTask("optional", jobInput{"finish"})
			<-j.entered
			ids = append(ids, task.ID)
		}
		bobs := bob.StartTask("optional", jobInput{"finish"})
		<-j.entered
		for _, method := range []string{"tasks/get", "tasks/cancel"} {
			if res := bob.Request(method, withTasks(c, map[string]any{"taskId": ids[0]})); res.Err == nil || res.Err.Code != -32602 {
				t.Errorf("%s of another subject: got %v %s", method, res.Err, res.Raw)
			}
		}
		if status, _ := alice.StartTask("optional", jobInput{"finish"}).Status(); status != "working" {
			t.Errorf("the owner sees %q", status)
		}
		if c.Era() == "modern" {
			return
		}
		var got []string
		params := map[string]any{}
		for {
			var page struct {
				Tasks []struct {
					ID string `json:"taskId"`
				} `json:"tasks"`
				Next string `json:"nextCursor"`
			}
			res := alice.Request("tasks/list", params)
			if res.Err != nil {
				t.Fatal(res.Err)
			}
			if err := json.Unmarshal(res.Raw, &page); err != nil || len(page.Tasks) > 2 {
				t.Fatalf("page %s: %v", res.Raw, err)
			}
			for _, task := range page.Tasks {
				got = append(got, task.ID)
			}
			if params["cursor"] = page.Next; page.Next == "" {
				break
			}
		}
		if len(got) != 4 || slices.Contains(got, bobs.ID) || !slices.Equal(got[:3], ids) {
			t.Errorf("listed %v, want %v and one more, without %s", got, ids, bobs.ID)
		}
		if res := alice.Request("tasks/list", map[string]any{"cursor": "junk"}); res.Err == nil || res.Err.Code != -32602 {
			t.Errorf("a bad cursor: %v", res.Err)
		}
	})
}

// TestTaskTTL is clamped, and over when it is over, for every method.
func TestTaskTTL(t *testing.T) {
	tests := []struct {
		name string
		ttl  any
		want int64 // milliseconds; 0 is refused
	}{
		{"none", nil, 5000},
		{"inside", 7000, 7000},
		{"below", 1, 2000},
		{"above", 1e18, 9000},
		{"null", json.RawMessage("null"), 9000},
		{"negative", -1, 0},
		{"text", "5", 0},
	}
	j := newJobs(t, func(c *famcp.Config) {
		c.MCP.Tasks.DefaultTTL, c.MCP.Tasks.MinTTL, c.MCP.Tasks.MaxTTL = 5*time.Second, 2*time.Second, 9*time.Second
	})
	c := famcptest.Connect(t, j.Server, famcptest.Legacy)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := c.For(t)
			task := map[string]any{}
			if tt.ttl != nil {
				task["ttl"] = tt.ttl
			}
			res := c.Request("tools/call", map[string]any{"name": "optional", "arguments": jobInput{"finish"}, "task": task})
			var r struct {
				Task struct {
					ID  string `json:"taskId"`
					TTL int64  `json:"ttl"`
				} `json:"task"`
			}
			if res.Err == nil {
				if err := json.Unmarshal(res.Raw, &r); err != nil {
					t.Fatal(err)
				}
			}
			if r.Task.TTL != tt.want {
				t.Errorf("ttl %d (%v), want %d", r.Task.TTL, res.Err, tt.want)
			}
		})
	}
}

// TestTaskExpires cancels what still runs, and forgets the task.
func TestTaskExpires(t *testing.T) {
	j := newJobs(t, func(c *famcp.Config) { c.MCP.Tasks.DefaultTTL = 150 * time.Millisecond })
	c := famcptest.Connect(t, j.Server, famcptest.Modern)
	task := c.StartTask("optional", jobInput{"finish"})
	<-j.entered
	if cause := <-j.ended; cause == nil || !strings.Contains(cause.Error(), "time is over") {
		t.Errorf("the handler's context ended with %v", cause)
	}
	for _, method := range []string{"tasks/get", "tasks/cancel", "tasks/update"} {
		res := c.Request(method, withTasks(c, map[string]any{"taskId": task.ID, "inputResponses": map[string]any{}}))
		if res.Err == nil || res.Err.Code != -32602 {
			t.Errorf("%s after its time: got %v", method, res.Err)
		}
	}
}

// TestMaxTasks: one that has ended makes room, running ones do not.
func TestMaxTasks(t *testing.T) {
	var j *jobs
	famcptest.Eras(t, func(t testing.TB) *famcp.Server {
		j = newJobs(t, func(c *famcp.Config) { c.MCP.Tasks.MaxTasks = 2 })
		return j.Server
	}, func(t *testing.T, c *famcptest.Client) {
		first := c.StartTask("optional", jobInput{"finish"})
		<-j.entered
		second := c.StartTask("optional", jobInput{"finish"})
		<-j.entered
		params := map[string]any{"name": "optional", "arguments": jobInput{"finish"}}
		if c.Era() == "legacy" {
			params["task"] = map[string]any{}
		}
		want := map[string]int64{"modern": -32003, "legacy": -32000}[c.Era()] // the other would read as a lost connection
		if res := c.Request("tools/call", withTasks(c, params)); res.Err == nil || res.Err.Code != want {
			t.Errorf("one more: got %v %s, want %d", res.Err, res.Raw, want)
		}
		j.leave <- struct{}{}
		j.leave <- struct{}{}
		first.Result()
		second.Result()
		third := c.StartTask("optional", jobInput{"finish"})
		gone := 0
		for _, task := range []*famcptest.Task{first, second, third} {
			if res := c.Request("tasks/get", withTasks(c, map[string]any{"taskId": task.ID})); res.Err != nil {
				gone++
			}
		}
		if gone != 1 {
			t.Errorf("%d of 3 tasks are gone, want 1", gone)
		}
	})
}

// TestTaskProgress is the message of the status.
func TestTaskProgress(t *testing.T) {
	var j *jobs
	famcptest.Eras(t, func(t testing.TB) *famcp.Server { j = newJobs(t, nil); return j.Server }, func(t *testing.T, c *famcptest.Client) {
		task := c.StartTask("optional", jobInput{"finish"})
		call := <-j.entered
		call.Progress(1, 2, "half way")
		if status, message := task.Status(); status != "working" || message != "half way" {
			t.Errorf("got %s %q", status, message)
		}
		before := len(c.Notifications())
		call.Notify(famcp.LevelError, "not supported on tasks", nil)
		if got := c.Notifications(); len(got) != before {
			t.Errorf("got %v", got[before:])
		}
	})
}

// TestTaskNotifications are heard by listeners in the modern era, on the
// session's stream in the legacy one.
func TestTaskNotifications(t *testing.T) {
	var j *jobs
	famcptest.Eras(t, func(t testing.TB) *famcp.Server { j = newJobs(t, nil); return j.Server }, func(t *testing.T, c *famcptest.Client) {
		c.Answer(func(famcptest.Question) famcptest.Answer { return famcptest.Accept(map[string]any{"text": "x"}) })
		task := c.StartTask("optional", jobInput{"ask"})
		<-j.entered
		events := task.Listen()
		method, want := "notifications/tasks", []string{"working", "input_required", "working", "completed"}
		if c.Era() == "legacy" {
			method, want = "notifications/tasks/status", want[1:]
		}
		var got []string
		next := func() {
			n := events.Next()
			var p struct {
				ID     string          `json:"taskId"`
				Status string          `json:"status"`
				Result json.RawMessage `json:"result"`
				Meta   map[string]any  `json:"_meta"`
			}
			if err := json.Unmarshal(n.Params, &p); err != nil || n.Method != method || p.ID != task.ID {
				t.Fatalf("got %s %s: %v", n.Method, n.Params, err)
			}
			if c.Era() == "modern" && p.Meta["io.modelcontextprotocol/subscriptionId"] == nil {
				t.Errorf("no subscription id in %s", n.Params)
			}
			if (p.Result != nil) != (c.Era() == "modern" && p.Status == "completed") {
				t.Errorf("result in %s", n.Params)
			}
			if len(got) == 0 || got[len(got)-1] != p.Status {
				got = append(got, p.Status)
			}
		}
		if c.Era() == "modern" {
			next()
		}
		j.leave <- struct{}{}
		for len(got) == 0 || got[len(got)-1] != "input_required" {
			next()
		}
		task.Result()
		for got[len(got)-1] != "completed" {
			next()
		}
		// Being told that it works again may be overtaken by its end.
		again := slices.Index(want, "input_required") + 1
		if !slices.Equal(got, want) && !slices.Equal(got, slices.Delete(slices.Clone(want), again, again+1)) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// TestTaskListenersDeclare the extension, and are told which tasks they hear of.
func TestTaskListenersDeclare(t *testing.T) {
	j := newJobs(t, nil)
	c := famcptest.Connect(t, j.Server, famcptest.Modern)
	filter := map[string]any{"notifications": map[string]any{"taskIds": []string{"nosuch"}, "toolsListChanged": true}}
	if res := c.Request("subscriptions/listen", filter); res.Err == nil || res.Err.Code != -32021 || res.Err.Status != 400 {
		t.Errorf("without the extension: got %v, want -32021 with 400", res.Err)
	}
	many := make([]string, 300)
	if res := c.Request("subscriptions/listen", withTasks(c, map[string]any{"notifications": map[string]any{"taskIds": many}})); res.Err == nil || res.Err.Code != -32602 {
		t.Errorf("300 tasks: got %v", res.Err)
	}
	if res := c.Request("subscriptions/listen", withTasks(c, map[string]any{"notifications": map[string]any{"taskIds": 5}})); res.Err == nil || res.Err.Code != -32602 {
		t.Errorf("a number: got %v", res.Err)
	}
}

// TestTaskAnswers: partial ones, unknown ones, unreadable ones and late ones.
func TestTaskAnswers(t *testing.T) {
	j := newJobs(t, nil)
	c := famcptest.Connect(t, j.Server, famcptest.Modern)
	task := c.StartTask("optional", jobInput{"ask"})
	<-j.entered
	j.leave <- struct{}{}
	for status := ""; status != "input_required"; {
		status, _ = task.Status()
	}
	update := func(answers map[string]any) *famcptest.Error {
		return c.Request("tasks/update", withTasks(c, map[string]any{"taskId": task.ID, "inputResponses": answers})).Err
	}
	open := func() (keys []string) {
		var r struct {
			Requests map[string]any `json:"inputRequests"`
		}
		res := c.Request("tasks/get", withTasks(c, map[string]any{"taskId": task.ID}))
		if err := json.Unmarshal(res.Raw, &r); err != nil {
			t.Fatal(err)
		}
		for key := range r.Requests {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		return keys
	}
	accept := func(text string) map[string]any {
		return map[string]any{"action": "accept", "content": map[string]any{"text": text}}
	}
	if err := update(map[string]any{"a": map[string]any{"ignored": true}}); err == nil || err.Code != -32602 {
		t.Errorf("an unreadable answer: %v", err)
	}
	if err := update(map[string]any{"nobody asked": map[string]any{"ignored": true}}); err != nil {
		t.Errorf("an unknown key: %v", err)
	}
	if got := open(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("open: %v, want both", got)
	}
	if err := update(map[string]any{"a": accept("one")}); err != nil {
		t.Errorf("the first: %v", err)
	}
	if err := update(map[string]any{"a": accept("another")}); err != nil {
		t.Errorf("the first again: %v", err)
	}
	if got := open(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("open: %v, want b", got)
	}
	if err := update(map[string]any{"b": accept("two")}); err != nil {
		t.Errorf("the second: %v", err)
	}
	if got := task.Result().Text(); !strings.Contains(got, "one two") {
		t.Errorf("got %s", got)
	}
	if err := update(map[string]any{"a": accept("late")}); err != nil {
		t.Errorf("a late answer: %v", err)
	}
}

// TestTasksHoldSlots as calls do, but not while they wait for a person.
func TestTasksHoldSlots(t *testing.T) {
	var j *jobs
	famcptest.Eras(t, func(t testing.TB) *famcp.Server {
		j = newJobs(t, func(c *famcp.Config) { c.MCP.RateLimit.MaxConcurrentPerSubject = 1 })
		return j.Server
	}, func(t *testing.T, c *famcptest.Client) {
		c.Answer(func(famcptest.Question) famcptest.Answer { return famcptest.Accept(map[string]any{"text": "x"}) })
		task := c.StartTask("optional", jobInput{"ask"})
		<-j.entered
		busy := func() bool {
			res := c.Request("tools/call", map[string]any{"name": "forbidden", "arguments": map[string]any{"do": 1}})
			return res.Err != nil && res.Err.Code == -32003
		}
		if !busy() {
			t.Error("a running task holds no slot")
		}
		j.leave <- struct{}{}
		for status := ""; status != "input_required"; {
			status, _ = task.Status()
		}
		if busy() {
			t.Error("a task that waits for a person holds its slot")
		}
		task.Result()
		for busy() { // given back a moment after the result is there
		}
	})
}

// TestStopFailsTasks, and says so to who waits for them.
func TestStopFailsTasks(t *testing.T) {
	j := newJobs(t, nil)
	c := famcptest.Connect(t, j.Server, famcptest.Legacy)
	task := c.StartTask("optional", jobInput{"finish"})
	<-j.entered
	waiting := make(chan *famcptest.Result, 1)
	go func() { waiting <- task.Result() }()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := j.Close(ctx); err != nil {
		t.Error(err)
	}
	if cause := <-j.ended; cause == nil {
		t.Error("the handler's context is still there")
	}
	<-waiting // answered, with whatever the stop makes of it
}
