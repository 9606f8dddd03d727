package famcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/famcptest"
)

// TestContractCapabilities: advertised only when served, per era.
func TestContractCapabilities(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*famcp.Config)
		want   map[string][2]string // modern, legacy; "" is not there
	}{
		"all": {nil, map[string][2]string{
			"tools": {`{"listChanged":true}`, `{"listChanged":true}`}, "prompts": {`{"listChanged":true}`, `{"listChanged":true}`},
			"resources": {`{"listChanged":true,"subscribe":true}`, `{"listChanged":true,"subscribe":true}`},
			"logging":   {`{}`, `{}`}, "completions": {`{}`, `{}`},
		}},
		"without": {func(c *famcp.Config) { c.MCP.Resources.SubscribeEnabled, c.MCP.Logging.Enabled = false, false }, map[string][2]string{
			"tools": {`{"listChanged":true}`, `{"listChanged":true}`}, "prompts": {`{"listChanged":true}`, `{"listChanged":true}`},
			"resources": {`{"listChanged":true,"subscribe":true}`, `{"listChanged":true}`}, "completions": {`{}`, `{}`},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			url := newContract(t, tt.change)
			s := open(t, url, "2025-11-25")
			for i, got := range []map[string]json.RawMessage{modern(t, url, "server/discover", "", "").Result.Capabilities, s.opened.Result.Capabilities} {
				want, text := map[string]string{}, map[string]string{}
				for name, both := range tt.want {
					want[name] = both[i]
				}
				for name, raw := range got {
					text[name] = string(raw)
				}
				if diff := cmp.Diff(want, text); diff != "" {
					t.Errorf("era %d (-want +got):\n%s", i, diff)
				}
			}
			if a := s.request(t, "logging/setLevel", `"level":"info"`); (a.Error.Code == -32601) != (name == "without") {
				t.Errorf("logging/setLevel: %s", a.Body)
			}
			if a := s.request(t, "resources/subscribe", `"uri":"doc://a"`); (a.Error.Code == -32601) != (name == "without") {
				t.Errorf("resources/subscribe: %s", a.Body)
			}
			s.alive(t)
		})
	}
}

// TestContractPages: sorted, paged with an opaque cursor, a bad one refused,
// one past the end an empty page, in both eras.
func TestContractPages(t *testing.T) {
	url := newContract(t, func(c *famcp.Config) { c.MCP.Pagination.PageSize, c.MCP.Debug.BuiltinTools = 3, false }, func(s *famcp.Server) {
		for i := range 7 {
			famcp.AddTool(s, reader(fmt.Sprintf("tool_%d", 6-i)), func(context.Context, *famcp.Call, nothing) (string, error) { return "", nil })
		}
	})
	s := open(t, url, "2025-11-25")
	for era, page := range map[string]func(params string) *reply{
		"modern": func(params string) *reply {
			if params != "" {
				params = "," + params
			}
			return modern(t, url, "tools/list", params, "")
		},
		"legacy": func(params string) *reply { return s.request(t, "tools/list", params) },
	} {
		var names []string
		var sizes []int
		cursor := ""
		for first := true; first || cursor != ""; first = false {
			params := ""
			if cursor != "" {
				params = `"cursor":"` + cursor + `"`
			}
			a := page(params)
			for _, tool := range a.Result.Tools {
				names = append(names, tool.Name)
			}
			sizes = append(sizes, len(a.Result.Tools))
			cursor = a.Result.NextCursor
			if strings.Contains(cursor, "tool_") {
				t.Errorf("%s: the cursor %q is not opaque", era, cursor)
			}
		}
		if !slices.IsSorted(names) || len(names) != 7 || !slices.Equal(sizes, []int{3, 3, 1}) {
			t.Errorf("%s: %v in pages of %v", era, names, sizes)
		}
		for _, bad := range []string{`"nonsense"`, `"!"`, `5`, `"djI6eA"`, `""`} {
			a := page(`"cursor":` + bad)
			if (a.Error.Code == -32602) == (bad == `""`) {
				t.Errorf("%s: cursor %s: %s", era, bad, a.Body)
			}
		}
		// Past the end: base64url of "v1:zzz", which only a client with a former
		// list can have.
		if a := page(`"cursor":"djE6enp6"`); a.Error.Code != 0 || len(a.Result.Tools) != 0 || !strings.Contains(a.Body, `"tools":[]`) || a.Result.NextCursor != "" {
			t.Errorf("%s: past the end: %s", era, a.Body)
		}
	}
}

// TestContractCompletion: at most a hundred with total and hasMore, empty
// without a provider, -32602 for what there is not.
func TestContractCompletion(t *testing.T) {
	url := newContract(t, nil)
	s := open(t, url, "2025-11-25")
	for _, tt := range []struct {
		row, params string
		values      int
		more        bool
		code        int64
	}{
		{"a provider", `"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":"a"}`, 100, true, 0},
		{"no provider for the argument", `"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"other","value":""}`, 0, false, 0},
		{"a template without provider", `"ref":{"type":"ref/resource","uri":"note://{id}"},"argument":{"name":"id","value":""}`, 0, false, 0},
		{"an unknown prompt", `"ref":{"type":"ref/prompt","name":"nope"},"argument":{"name":"name","value":""}`, 0, false, -32602},
		{"an unknown template", `"ref":{"type":"ref/resource","uri":"nope://{id}"},"argument":{"name":"id","value":""}`, 0, false, -32602},
		{"a reference of no kind", `"ref":{"type":"ref/tool","name":"greet"},"argument":{"name":"name","value":""}`, 0, false, -32602},
		{"no argument", `"ref":{"type":"ref/prompt","name":"greet"}`, 0, false, -32602},
	} {
		for era, a := range map[string]*reply{
			"modern": modern(t, url, "completion/complete", ","+tt.params, ""), "legacy": s.request(t, "completion/complete", tt.params),
		} {
			c := a.Result.Completion
			if a.Error.Code != tt.code || len(c.Values) != tt.values || c.HasMore != tt.more || tt.more && c.Total != 150 {
				t.Errorf("%s, %s: %d %s", tt.row, era, a.Status, a.Body)
			}
			if tt.code == 0 && tt.values == 0 && !strings.Contains(a.Body, `"values":[]`) {
				t.Errorf("%s, %s: no empty list: %s", tt.row, era, a.Body)
			}
		}
	}
	s.alive(t)
}

// TestContractLogLevels: by session and by request; without a level a modern
// request gets nothing (A9: two at once do not mix, which TestClientsNeverMix
// shows with a thousand).
func TestContractLogLevels(t *testing.T) {
	url := newContract(t, nil)
	levels := []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
	for i, level := range levels {
		a := modern(t, url, "tools/call", `,"name":"debug_log","arguments":{}`, `,"io.modelcontextprotocol/logLevel":"`+level+`"`)
		if got := strings.Count(a.Body, "notifications/message"); got != len(levels)-i {
			t.Errorf("modern, %s: %d messages, want %d", level, got, len(levels)-i)
		}
		s := open(t, url, "2025-11-25")
		if got := strings.Count(s.call(t, "debug_log", `{}`).Body, "notifications/message"); got != 7 {
			t.Errorf("session before setLevel: %d messages, want those from info on", got)
		}
		if a := s.request(t, "logging/setLevel", `"level":"`+level+`"`); a.Error.Code != 0 {
			t.Errorf("setLevel %s: %s", level, a.Body)
		}
		if got := strings.Count(s.call(t, "debug_log", `{}`).Body, "notifications/message"); got != len(levels)-i {
			t.Errorf("session, %s: %d messages, want %d", level, got, len(levels)-i)
		}
	}
	if a := callModern(t, url, "debug_log", `{}`); strings.Contains(a.Body, "notifications/message") {
		t.Errorf("modern without a level: %s", a.Body)
	}
	s := open(t, url, "2025-11-25")
	if a := s.request(t, "logging/setLevel", `"level":"loud"`); a.Error.Code != -32602 {
		t.Errorf("an unknown level: %s", a.Body)
	}
	s.alive(t)
}

// TestContractState: the sealed state of a question opens for nobody but who
// was asked, for nothing but what was asked, unchanged and not for ever.
func TestContractState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(c *famcp.Config) { c.MCP.MRTR.StateTTL = time.Minute })
		type input struct {
			What string `json:"what"`
		}
		ran := 0
		confirm := func(_ context.Context, c *famcp.Call, in input) (string, error) {
			ran++
			yes, err := c.Confirm("sure", "Sure?")
			return fmt.Sprintf("%s %t", in.What, yes), err
		}
		famcp.AddTool(s, reader("one"), confirm)
		famcp.AddTool(s, reader("two"), confirm)
		handler, err := s.Handler()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close(t.Context()) }()
		call := func(tool, what, more string) *reply {
			return serve(t, handler, "tools/call", tool, `,"arguments":{"what":"`+what+`"}`+more)
		}
		state := call("one", "a", "").Result.RequestState
		if state == "" {
			t.Fatal("no question")
		}
		yes := func(state string) string {
			return `,"inputResponses":{"sure":{"action":"accept","content":{"confirm":true}}},"requestState":"` + state + `"`
		}
		tampered := []byte(state)
		tampered[len(tampered)/2] ^= 1
		before := ran
		for row, a := range map[string]*reply{
			"tampered": call("one", "a", yes(string(tampered))), "cut": call("one", "a", yes(state[:20])), "made up": call("one", "a", yes("AAAA")),
			"another tool": call("two", "a", yes(state)), "other arguments": call("one", "b", yes(state)),
		} {
			if a.Error.Code != -32602 || a.Error.Data["field"] != "requestState" {
				t.Errorf("%s: %s", row, a.Body)
			}
		}
		if ran != before {
			t.Errorf("a handler ran %d times for a forged state", ran-before)
		}
		if a := call("one", "a", yes(state)); a.text() != "a true" {
			t.Errorf("unchanged: %s", a.Body)
		}
		time.Sleep(2 * time.Minute)
		if a := call("one", "a", yes(state)); a.Error.Code != -32602 || !strings.Contains(a.Error.Message, "expired") {
			t.Errorf("expired: %s", a.Body)
		}
	})
	// Another subject, as with tokens.
	s := newServer(t, nil)
	famcp.AddTool(s, reader("ask"), func(_ context.Context, c *famcp.Call, _ nothing) (string, error) {
		yes, err := c.Confirm("sure", "Sure?")
		return strconv.FormatBool(yes), err
	})
	base := famcptest.Connect(t, s, famcptest.Modern)
	body := func(more string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":{},"_meta":{` +
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}` + more + `}}`
	}
	_, _, raw := base.AsSubject("ann").Raw(body(""))
	var asked reply
	if err := json.Unmarshal(raw, &asked); err != nil || asked.Result.RequestState == "" {
		t.Fatalf("%v %s", err, raw)
	}
	retry := body(`,"inputResponses":{"sure":{"action":"accept","content":{"confirm":true}}},"requestState":"` + asked.Result.RequestState + `"`)
	if status, _, raw := base.AsSubject("bob").Raw(retry); status != http.StatusBadRequest || !strings.Contains(string(raw), "requestState") {
		t.Errorf("another subject: %d %s", status, raw)
	}
	if _, _, raw := base.AsSubject("ann").Raw(retry); !strings.Contains(string(raw), `"text":"true"`) {
		t.Errorf("who was asked: %s", raw)
	}
}

// TestContractDynamic: entries that come and go are told to clients of both
// eras that asked, one that was not there to nobody, and a running call is in
// nobody's way.
func TestContractDynamic(t *testing.T) {
	s := newServer(t, nil)
	release := make(chan struct{})
	running := make(chan struct{})
	famcp.AddTool(s, reader("running"), func(context.Context, *famcp.Call, nothing) (string, error) {
		close(running)
		<-release
		return "done", nil
	})
	caller := famcptest.Connect(t, s, famcptest.Modern)
	listener := famcptest.Connect(t, s, famcptest.Modern)
	changes := listener.Listen()
	done := make(chan *famcptest.Result, 1)
	go func() { done <- caller.CallTool("running", nil) }()
	<-running
	if s.Remove(famcp.Tools, "nobody") {
		t.Error("a removal of nothing removed something")
	}
	famcp.AddTool(s, reader("late"), func(context.Context, *famcp.Call, nothing) (string, error) { return "", nil })
	if n := changes.Next(); n.Method != "notifications/tools/list_changed" {
		t.Errorf("got %s first", n.Method)
	}
	famcp.AddPrompt(s, famcp.Prompt{Name: "late", Description: "x"}, func(context.Context, *famcp.Call, nothing) ([]famcp.Message, error) { return nil, nil })
	if n := changes.Next(); n.Method != "notifications/prompts/list_changed" {
		t.Errorf("got %s second", n.Method)
	}
	s.AddResource(famcp.Resource{URI: "late://x", Name: "late", Contents: &famcp.Contents{}}, nil)
	if n := changes.Next(); n.Method != "notifications/resources/list_changed" {
		t.Errorf("got %s third", n.Method)
	}
	if !s.Remove(famcp.Tools, "late") {
		t.Error("a removal removed nothing")
	}
	if n := changes.Next(); n.Method != "notifications/tools/list_changed" {
		t.Errorf("got %s fourth", n.Method)
	}
	close(release)
	if res := <-done; res.Text() != "done" {
		t.Errorf("the running call: %v %s", res.Err, res.Raw)
	}
}

// TestContractModernResults: resultType and serverInfo on every one, cache
// hints on those that can be kept.
func TestContractModernResults(t *testing.T) {
	url := newContract(t, nil)
	cacheable := map[string]string{
		"server/discover": "", "tools/list": "", "prompts/list": "", "resources/list": "", "resources/templates/list": "",
		"resources/read": `,"uri":"doc://a"`,
	}
	plain := map[string]string{
		"tools/call": `,"name":"debug_content","arguments":{"kind":"text"}`, "prompts/get": `,"name":"greet","arguments":{"name":"x"}`,
		"completion/complete": `,"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":""}`,
	}
	all := maps.Clone(cacheable)
	maps.Copy(all, plain)
	for method, params := range all {
		a := modern(t, url, method, params, "")
		if a.Result.ResultType != "complete" || a.Result.Meta["io.modelcontextprotocol/serverInfo"] == nil {
			t.Errorf("%s: %d %s", method, a.Status, a.Body)
		}
		_, hinted := cacheable[method]
		if (a.Result.TTLMs != nil) != hinted || hinted && a.Result.CacheScope == "" {
			t.Errorf("%s: cache hints: %s", method, a.Body)
		}
		want := 60_000
		if method == "resources/read" {
			want = 0
		}
		if hinted && method != "server/discover" && (*a.Result.TTLMs != want || a.Result.CacheScope != "private") {
			t.Errorf("%s: ttlMs %d, scope %s", method, *a.Result.TTLMs, a.Result.CacheScope)
		}
	}
}
