package famcptest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/protocol"
)

// Client is a client of one server in one era. It declares every capability
// and declines what it is asked, until told otherwise. Make one with [Eras] or
// [Connect]. It must be used from one goroutine at a time; for parallel calls
// make more clients.
type Client struct {
	t        testing.TB
	host     *host
	revision string
	can      []famcp.Capability
	identity string // key of host.identities; "" for none
	session  string // legacy session id
	tasks    bool   // declares the tasks extension, in the modern era
	state    *state // shared by the copies of For
}

type state struct {
	lastID  atomic.Int64
	answer  func(Question) Answer
	headers map[string]map[string]string // Mcp-Param header by argument, by tool

	mu   sync.Mutex
	seen Notifications
}

// For returns the client for use in another test, such as a subtest. It
// remains the same client with the same session.
func (c *Client) For(t testing.TB) *Client {
	out := *c
	out.t = t
	return &out
}

// AsSubject returns another client of the same server, whose requests come
// from subject with these scopes only. Other clients have every scope, as
// long as the server runs without authentication.
func (c *Client) AsSubject(subject string, scopes ...string) *Client {
	c.t.Helper()
	if c.host.stdio {
		c.t.Fatalf("there is one subject on stdio; test subjects with Connect")
	}
	key := rand.Text()
	c.host.identities.Store(key, call.Identity{Subject: subject, Scopes: scopes})
	return c.another(func(out *Client) { out.identity = key })
}

// Declaring returns another client of the same server that declares these
// capabilities only.
func (c *Client) Declaring(can ...famcp.Capability) *Client {
	c.t.Helper()
	return c.another(func(out *Client) { out.can = can })
}

func (c *Client) another(change func(*Client)) *Client {
	c.t.Helper()
	out := *c
	out.session, out.state = "", &state{answer: c.state.answer}
	change(&out)
	out.open()
	return &out
}

// Era returns "modern" or "legacy".
func (c *Client) Era() string { return protocol.EraOf(c.revision).String() }

func (c *Client) modern() bool { return protocol.EraOf(c.revision) == protocol.EraModern }

// Answer sets how the client answers what the server asks during a call.
func (c *Client) Answer(f func(Question) Answer) { c.state.answer = f }

// Notifications returns what the server has sent during the requests of this
// client so far.
func (c *Client) Notifications() Notifications {
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	return slices.Clone(c.state.seen)
}

// CallTool calls a tool; args is a struct, a map or JSON. It answers the
// questions of the server and returns the final answer.
func (c *Client) CallTool(name string, args any) *Result {
	c.t.Helper()
	if args == nil {
		args = map[string]any{}
	}
	return c.toolResult(c.converse("tools/call", map[string]any{"name": name, "arguments": args}))
}

// Prompt gets a prompt.
func (c *Client) Prompt(name string, args map[string]string) *Result {
	c.t.Helper()
	res := c.converse("prompts/get", map[string]any{"name": name, "arguments": args})
	var r mcp.GetPromptResult
	c.decode(res, &r)
	res.Messages = r.Messages
	return res
}

// Read reads a resource.
func (c *Client) Read(uri string) *Result {
	c.t.Helper()
	res := c.converse("resources/read", map[string]any{"uri": uri})
	var r mcp.ReadResourceResult
	c.decode(res, &r)
	res.Contents = r.Contents
	return res
}

// Complete returns the values offered for an argument of a prompt, named by
// ref, or for a variable of a resource template, whose text is ref.
func (c *Client) Complete(ref, argument, prefix string) []string {
	c.t.Helper()
	reference := map[string]any{"type": "ref/prompt", "name": ref}
	if strings.Contains(ref, "://") {
		reference = map[string]any{"type": "ref/resource", "uri": ref}
	}
	var r mcp.CompleteResult
	c.must("completion/complete", map[string]any{
		"ref": reference, "argument": map[string]any{"name": argument, "value": prefix},
	}, &r)
	return r.Completion.Values
}

// Tools returns the tools that the client may see, over all pages.
func (c *Client) Tools() []*mcp.Tool {
	c.t.Helper()
	return list(c, "tools/list", func(r *mcp.ListToolsResult) ([]*mcp.Tool, string) { return r.Tools, r.NextCursor })
}

// Prompts returns the prompts that the client may see, over all pages.
func (c *Client) Prompts() []*mcp.Prompt {
	c.t.Helper()
	return list(c, "prompts/list", func(r *mcp.ListPromptsResult) ([]*mcp.Prompt, string) { return r.Prompts, r.NextCursor })
}

// Resources returns the resources that the client may see, over all pages.
func (c *Client) Resources() []*mcp.Resource {
	c.t.Helper()
	return list(c, "resources/list", func(r *mcp.ListResourcesResult) ([]*mcp.Resource, string) { return r.Resources, r.NextCursor })
}

// Templates returns the resource templates that the client may see, over all
// pages.
func (c *Client) Templates() []*mcp.ResourceTemplate {
	c.t.Helper()
	return list(c, "resources/templates/list", func(r *mcp.ListResourceTemplatesResult) ([]*mcp.ResourceTemplate, string) {
		return r.ResourceTemplates, r.NextCursor
	})
}

func list[R, T any](c *Client, method string, page func(*R) ([]T, string)) []T {
	c.t.Helper()
	var all []T
	params := map[string]any{}
	for {
		var r R
		c.must(method, params, &r)
		items, next := page(&r)
		all = append(all, items...)
		if next == "" {
			return all
		}
		params = map[string]any{"cursor": next}
	}
}

// Request sends a request that the other methods do not cover and returns its
// answer, of which only Err, Raw and Asked are set.
func (c *Client) Request(method string, params map[string]any) *Result {
	c.t.Helper()
	return c.converse(method, params)
}

// must is a request that a server may not refuse.
func (c *Client) must(method string, params map[string]any, result any) {
	c.t.Helper()
	res := c.converse(method, params)
	if res.Err != nil {
		c.t.Fatalf("%s: %v", method, res.Err)
	}
	c.decode(res, result)
}

func (c *Client) decode(res *Result, v any) {
	c.t.Helper()
	if res.Err != nil {
		return
	}
	if err := json.Unmarshal(res.Raw, v); err != nil {
		c.t.Fatalf("the answer is not a %T: %v; it is %s", v, err, res.Raw)
	}
}

// maxRounds is more questions in a row than a server may ask.
const maxRounds = 40

// converse sends a request and, in the modern era, sends it again with the
// answers to what the server asks in its place.
func (c *Client) converse(method string, params map[string]any) *Result {
	c.t.Helper()
	total := 0
	for range maxRounds {
		raw, asked, err := c.request(method, params)
		total += asked
		if err != nil {
			return &Result{Err: err, Asked: total}
		}
		var open struct {
			Type      string `json:"resultType"`
			State     string `json:"requestState"`
			Questions map[string]struct {
				Method string          `json:"method"`
				Params json.RawMessage `json:"params"`
			} `json:"inputRequests"`
		}
		if err := json.Unmarshal(raw, &open); err != nil {
			c.t.Fatalf("%s: the result is not an object: %v; it is %s", method, err, raw)
		}
		if open.Type != "input_required" {
			return &Result{Raw: raw, Asked: total}
		}
		answers := map[string]any{}
		for key, q := range open.Questions {
			answer, ok := c.answerTo(readQuestion(key, q.Method, q.Params))
			if !ok {
				c.unanswered(q.Method)
			}
			answers[key] = answer
			total++
		}
		next := maps.Clone(params)
		next["inputResponses"], next["requestState"] = answers, open.State
		params = next
	}
	c.t.Fatalf("%s: the server still asks after %d rounds", method, maxRounds)
	return nil
}

// answerTo returns the result to answer with; ok is false when the test does
// not answer.
func (c *Client) answerTo(q Question) (result any, ok bool) {
	if a := c.state.answer(q); a.result != nil {
		return a.result, true
	}
	if q.Method == "elicitation/create" {
		return Decline().result, true
	}
	return nil, false
}

func (c *Client) unanswered(method string) {
	c.t.Helper()
	c.t.Fatalf("the server asks for %s, which the test does not answer; set Client.Answer", method)
}

// open starts a legacy session; a modern client has nothing to start.
func (c *Client) open() {
	c.t.Helper()
	if c.modern() {
		return
	}
	c.initialize()
	c.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodDelete, c.host.url+path, nil)
		if err != nil {
			c.t.Errorf("ending the session: %v", err)
			return
		}
		r.Header = c.headers()
		// The server may be gone already, with its sessions.
		if res, err := c.host.client.Do(r); err == nil {
			_ = res.Body.Close()
		}
	})
}

// timeout is how long the server may take for one answer.
const timeout = 30 * time.Second
