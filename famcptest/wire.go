package famcptest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"

	"github.com/famcp/famcp/internal/runtime/front"
	"github.com/famcp/famcp/internal/runtime/protocol"
)

const path = front.Path

var clientInfo = map[string]any{"name": "famcptest", "version": "1"}

// message is any JSON-RPC message.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// Raw posts body as it is, with the headers that a client of the era sends
// with it, and returns what comes back.
func (c *Client) Raw(body string) (status int, header http.Header, answer []byte) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), timeout)
	defer cancel()
	h := c.headers()
	if c.modern() {
		// What cannot be read has nothing to be repeated in a header.
		if m, err := protocol.Parse([]byte(body)); err == nil {
			nameHeaders(h, m.Method, func(param string) string { return m.ParamString(param) })
		}
	}
	res := c.post(ctx, []byte(body), h)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatalf("reading the answer: %v", err)
	}
	return res.StatusCode, res.Header, answer
}

// headers returns those of every request of the client.
func (c *Client) headers() http.Header {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	if c.identity != "" {
		h.Set(identityHeader, c.identity)
	}
	if c.session != "" {
		h.Set(protocol.HeaderSession, c.session)
	}
	if c.modern() || c.session != "" {
		h.Set(protocol.HeaderVersion, c.revision)
	}
	return h
}

func nameHeaders(h http.Header, method string, param func(string) string) {
	h.Set(protocol.HeaderMethod, method)
	if name, ok := protocol.NameParam(method); ok {
		h.Set(protocol.HeaderName, headerValue(param(name)))
	}
}

// headerValue encodes what a header cannot carry as it is (2026-07-28,
// transports, value encoding).
func headerValue(s string) string {
	plain := s == strings.TrimSpace(s) && !strings.HasPrefix(s, "=?base64?")
	for _, r := range s {
		plain = plain && r >= ' ' && r <= '~'
	}
	if plain {
		return s
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
}

func (c *Client) post(ctx context.Context, body []byte, h http.Header) *http.Response {
	c.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.host.url+path, bytes.NewReader(body))
	if err != nil {
		c.t.Fatalf("making a request: %v", err)
	}
	r.Header = h
	res, err := c.host.client.Do(r)
	if err != nil {
		c.t.Fatalf("the server does not answer: %v", err)
	}
	return res
}

// initialize opens the session.
func (c *Client) initialize() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), timeout)
	defer cancel()
	id := c.nextID()
	res := c.post(ctx, c.encode(message{ID: id, Method: "initialize", Params: c.marshal(map[string]any{
		"protocolVersion": c.revision, "capabilities": declared(c.can), "clientInfo": clientInfo,
	})}), c.headers())
	defer res.Body.Close()
	session := res.Header.Get(protocol.HeaderSession)
	raw, _, wire := c.answer(ctx, res, "initialize", id)
	if wire != nil {
		c.t.Fatalf("initialize: %v", wire)
	}
	var r struct {
		Version      string `json:"protocolVersion"`
		Capabilities struct {
			Logging *struct{} `json:"logging"`
		} `json:"capabilities"`
	}
	if err := json.Unmarshal(raw, &r); err != nil || r.Version != c.revision {
		c.t.Fatalf("initialize: got revision %q, want %q", r.Version, c.revision)
	}
	if session == "" {
		c.t.Fatalf("initialize: the answer has no %s header", protocol.HeaderSession)
	}
	c.session = session
	c.notify(ctx, message{Method: "notifications/initialized"})
	if r.Capabilities.Logging != nil {
		if _, _, wire := c.request("logging/setLevel", map[string]any{"level": "debug"}); wire != nil {
			c.t.Fatalf("logging/setLevel: %v", wire)
		}
	}
}

// notify sends a message that has no answer.
func (c *Client) notify(ctx context.Context, m message) {
	c.t.Helper()
	res := c.post(ctx, c.encode(m), c.headers())
	defer res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		body, _ := io.ReadAll(res.Body)
		c.t.Fatalf("%s: got HTTP %d, want 202: %s", m.Method, res.StatusCode, body)
	}
}

// request sends one request and reads its answer. On the way it answers what
// the server asks, asked times, and keeps the notifications.
func (c *Client) request(method string, params map[string]any) (result json.RawMessage, asked int, wire *Error) {
	c.t.Helper()
	id := c.nextID()
	meta := map[string]any{}
	h := c.headers()
	if c.modern() {
		meta = c.meta()
		nameHeaders(h, method, func(param string) string { s, _ := params[param].(string); return s })
		if method == "tools/call" {
			c.argumentHeaders(h, params)
		}
	}
	meta["progressToken"] = "progress-" + string(id)
	sent := map[string]any{"_meta": meta}
	maps.Copy(sent, params)
	ctx, cancel := context.WithTimeout(c.t.Context(), timeout)
	defer cancel()
	res := c.post(ctx, c.encode(message{ID: id, Method: method, Params: c.marshal(sent)}), h)
	defer res.Body.Close()
	return c.answer(ctx, res, method, id)
}

// argumentHeaders repeats the arguments whose schema asks for it by
// x-mcp-header (2026-07-28, transports, custom headers).
func (c *Client) argumentHeaders(h http.Header, params map[string]any) {
	c.t.Helper()
	if c.state.headers == nil {
		c.state.headers = map[string]map[string]string{}
		for _, tool := range c.Tools() {
			c.state.headers[tool.Name] = headersOf(c.marshal(tool.InputSchema))
		}
	}
	name, _ := params["name"].(string)
	wanted := c.state.headers[name]
	if len(wanted) == 0 {
		return
	}
	var args map[string]json.RawMessage
	if json.Unmarshal(c.marshal(params["arguments"]), &args) != nil {
		return
	}
	for arg, header := range wanted {
		raw, ok := args[arg]
		if !ok || string(raw) == "null" {
			continue
		}
		value := string(raw) // of a number or boolean
		_ = json.Unmarshal(raw, &value)
		h.Set(protocol.HeaderParam+header, headerValue(value))
	}
}

func headersOf(schema json.RawMessage) map[string]string {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	headers := map[string]string{}
	if json.Unmarshal(schema, &s) != nil {
		return headers
	}
	for name, raw := range s.Properties {
		var p struct {
			Header string `json:"x-mcp-header"`
		}
		if json.Unmarshal(raw, &p) == nil && p.Header != "" {
			headers[name] = p.Header
		}
	}
	return headers
}

// answer reads the answer to the request id off a response.
func (c *Client) answer(ctx context.Context, res *http.Response, method string, id json.RawMessage) (result json.RawMessage, asked int, wire *Error) {
	c.t.Helper()
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		body, err := io.ReadAll(res.Body)
		if err != nil {
			c.t.Fatalf("%s: reading the answer: %v", method, err)
		}
		var m message
		if err := json.Unmarshal(body, &m); err != nil || (m.Result == nil && m.Error == nil) {
			c.t.Fatalf("%s: HTTP %d without a JSON-RPC answer: %q", method, res.StatusCode, body)
		}
		return c.final(&m, res.StatusCode, method, id, 0)
	}
	events := bufio.NewReader(res.Body)
	for {
		data, err := nextEvent(events)
		if err != nil {
			c.t.Fatalf("%s: the stream ended without an answer: %v", method, err)
		}
		var m message
		if err := json.Unmarshal(data, &m); err != nil {
			c.t.Fatalf("%s: an event is not JSON: %v; it is %q", method, err, data)
		}
		switch {
		case m.Method == "":
			return c.final(&m, res.StatusCode, method, id, asked)
		case m.ID == nil:
			c.state.mu.Lock()
			c.state.seen = append(c.state.seen, Notification{Method: m.Method, Params: m.Params})
			c.state.mu.Unlock()
		default:
			asked++
			answer, ok := c.answerTo(readQuestion("", m.Method, m.Params))
			if !ok { // the server must not be left waiting
				c.notify(ctx, message{ID: m.ID, Error: &Error{Code: protocol.CodeInvalidRequest, Message: "not answered"}})
				c.unanswered(m.Method)
			}
			c.notify(ctx, message{ID: m.ID, Result: c.marshal(answer)})
		}
	}
}

func (c *Client) final(m *message, status int, method string, id json.RawMessage, asked int) (json.RawMessage, int, *Error) {
	c.t.Helper()
	if m.ID != nil && !bytes.Equal(m.ID, id) {
		c.t.Fatalf("%s: got an answer to id %s, want %s", method, m.ID, id)
	}
	if m.Error != nil {
		m.Error.Status = status
		return nil, asked, m.Error
	}
	return m.Result, asked, nil
}

// nextEvent returns the data of the next event that has any.
func nextEvent(r *bufio.Reader) ([]byte, error) {
	var data []byte
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if d, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(data, bytes.TrimPrefix(d, []byte(" "))...)
		}
		if len(line) == 0 && len(data) > 0 {
			return data, nil
		}
	}
}

func (c *Client) nextID() json.RawMessage {
	return fmt.Appendf(nil, "%d", c.state.lastID.Add(1))
}

func (c *Client) encode(m message) []byte {
	c.t.Helper()
	m.Version = "2.0"
	return c.marshal(m)
}

func (c *Client) marshal(v any) json.RawMessage {
	c.t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		c.t.Fatalf("%T cannot be sent as JSON: %v", v, err)
	}
	return raw
}
