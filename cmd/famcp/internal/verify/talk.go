package verify

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// The newest revision of each protocol era.
const (
	legacyRevision = "2025-11-25"
	modernRevision = "2026-07-28"
)

// link carries one conversation. Each method may be used by one goroutine.
type link interface {
	// send delivers m and returns the answer to it, or nil for a notification.
	send(ctx context.Context, m message) (json.RawMessage, error)
}

// message is a JSON-RPC request, or a notification without an ID.
type message struct {
	Version string         `json:"jsonrpc"`
	ID      int            `json:"id,omitempty"`
	Method  string         `json:"method"`
	Params  map[string]any `json:"params,omitempty"`
}

// legacy opens a session and makes a call in it.
func legacy(ctx context.Context, l link) error {
	ask := asker(ctx, l, nil)
	var hello struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if err := ask("initialize", map[string]any{
		"protocolVersion": legacyRevision,
		"capabilities":    map[string]any{},
		"clientInfo":      map[string]any{"name": "famcp-verify", "version": "1"},
	}, &hello); err != nil {
		return err
	}
	if hello.ProtocolVersion != legacyRevision {
		return fmt.Errorf("initialize: the server chose revision %q, want %s", hello.ProtocolVersion, legacyRevision)
	}
	if _, err := l.send(ctx, message{Version: "2.0", Method: "notifications/initialized"}); err != nil {
		return fmt.Errorf("notifications/initialized: %w", err)
	}
	return callSomething(ask)
}

// modern makes a call that carries everything with it.
func modern(ctx context.Context, l link) error {
	return callSomething(asker(ctx, l, map[string]any{
		"io.modelcontextprotocol/protocolVersion":    modernRevision,
		"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "famcp-verify", "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": map[string]any{},
	}))
}

// refused makes a call that has to be refused for want of credentials.
func refused(ctx context.Context, l link) error {
	err := modern(ctx, l)
	var status *statusError
	if errors.As(err, &status) && status.code == http.StatusUnauthorized {
		return nil
	}
	return fmt.Errorf("the server does not ask for a token: want HTTP 401, got %w", cmp.Or(err, errAnswered))
}

var errAnswered = errors.New("an answer")

// An ask function sends a request and decodes its result.
type ask func(method string, params map[string]any, result any) error

// asker numbers requests and adds meta, when there is one, to each.
func asker(ctx context.Context, l link, meta map[string]any) ask {
	id := 0
	return func(method string, params map[string]any, result any) error {
		id++
		if params == nil {
			params = map[string]any{}
		}
		if meta != nil {
			params["_meta"] = meta
		}
		raw, err := l.send(ctx, message{Version: "2.0", ID: id, Method: method, Params: params})
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		var answer struct {
			Result json.RawMessage `json:"result"`
			Error  *struct {
				Code    int    `json:"code"`
				Message string `json:"message"`
			} `json:"error"`
		}
		if err := json.Unmarshal(raw, &answer); err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		if answer.Error != nil {
			return fmt.Errorf("%s: error %d: %s", method, answer.Error.Code, answer.Error.Message)
		}
		if err := json.Unmarshal(answer.Result, result); err != nil {
			return fmt.Errorf("%s: result: %w", method, err)
		}
		return nil
	}
}

// tool is a listed tool as far as calling it blindly needs.
type tool struct {
	Name        string `json:"name"`
	Annotations struct {
		ReadOnly bool `json:"readOnlyHint"`
	} `json:"annotations"`
	InputSchema schema `json:"inputSchema"`
}

// callSomething calls the first tool that changes nothing; a server without
// one, as `--no-examples` makes it, is asked for its built-in prompt.
func callSomething(ask ask) error {
	var list struct {
		Tools []tool `json:"tools"`
	}
	if err := ask("tools/list", nil, &list); err != nil {
		return err
	}
	for _, t := range list.Tools {
		if t.Annotations.ReadOnly {
			return callTool(ask, t)
		}
	}
	var prompt struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if err := ask("prompts/get", map[string]any{"name": "agent_brief"}, &prompt); err != nil {
		return err
	}
	if len(prompt.Messages) == 0 {
		return errors.New("prompts/get: agent_brief has no messages")
	}
	return nil
}

func callTool(ask ask, t tool) error {
	var result struct {
		IsError bool `json:"isError"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	args := map[string]any{}
	for _, name := range t.InputSchema.Required {
		args[name] = t.InputSchema.Properties[name].example()
	}
	if err := ask("tools/call", map[string]any{"name": t.Name, "arguments": args}, &result); err != nil {
		return err
	}
	if result.IsError {
		text := ""
		if len(result.Content) > 0 {
			text = result.Content[0].Text
		}
		return fmt.Errorf("tools/call: tool %s failed: %s", t.Name, text)
	}
	return nil
}

// schema is the part of JSON Schema that starter tools use.
type schema struct {
	Type       any               `json:"type"` // a name, or names
	Enum       []any             `json:"enum"`
	Minimum    float64           `json:"minimum"`
	MinLength  int               `json:"minLength"`
	Required   []string          `json:"required"`
	Properties map[string]schema `json:"properties"`
}

// example is a value that the schema allows.
func (s schema) example() any {
	if len(s.Enum) > 0 {
		return s.Enum[0]
	}
	kind := s.Type
	if kinds, ok := kind.([]any); ok && len(kinds) > 0 {
		kind = kinds[len(kinds)-1] // Go's nilable types are inferred as ["null", …]
	}
	switch kind {
	case "integer", "number":
		return max(s.Minimum, 1)
	case "boolean":
		return false
	case "array":
		return []any{}
	case "object":
		return map[string]any{}
	default:
		return strings.Repeat("a", max(s.MinLength, 1))
	}
}

// httpLink posts every message to the endpoint, and keeps the session that the
// server opens.
type httpLink struct {
	url     string
	token   string // empty sends none
	session string
}

// statusError is an answer of HTTP that carries none of the protocol.
type statusError struct {
	code int
	text string // status and body
}

func (e *statusError) Error() string { return "HTTP " + e.text }

func (l *httpLink) send(ctx context.Context, m message) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	body, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	l.setHeaders(req.Header, m)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if s := resp.Header.Get("Mcp-Session-Id"); s != "" {
		l.session = s
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxMessage))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return nil, &statusError{resp.StatusCode, fmt.Sprintf("%s: %s", resp.Status, bytes.TrimSpace(text))}
	}
	if m.ID == 0 {
		return nil, nil
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return lastData(text)
	}
	return text, nil
}

func (l *httpLink) setHeaders(h http.Header, m message) {
	if l.token != "" {
		h.Set("Authorization", "Bearer "+l.token)
	}
	if _, ok := m.Params["_meta"]; ok {
		h.Set("MCP-Protocol-Version", modernRevision)
		h.Set("Mcp-Method", m.Method)
		if name, ok := m.Params["name"].(string); ok {
			h.Set("Mcp-Name", name)
		}
		return
	}
	if l.session != "" {
		h.Set("MCP-Protocol-Version", legacyRevision)
		h.Set("Mcp-Session-Id", l.session)
	}
}

// lastData returns the data of the last event of a stream, the answer.
func lastData(stream []byte) (json.RawMessage, error) {
	var data json.RawMessage
	for line := range bytes.Lines(stream) {
		if rest, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:")); ok && len(bytes.TrimSpace(rest)) > 0 {
			data = bytes.TrimSpace(rest)
		}
	}
	if data == nil {
		return nil, errors.New("the stream ended without an answer")
	}
	return data, nil
}

// pipeLink writes one message a line and reads until the answer comes.
type pipeLink struct {
	in  io.Writer
	out <-chan json.RawMessage
}

func (l *pipeLink) send(ctx context.Context, m message) (json.RawMessage, error) {
	if err := json.NewEncoder(l.in).Encode(m); err != nil {
		return nil, err
	}
	if m.ID == 0 {
		return nil, nil
	}
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case line, ok := <-l.out:
			if !ok {
				return nil, errors.New("the server closed its output")
			}
			var got struct {
				ID     int    `json:"id"`
				Method string `json:"method"`
			}
			if err := json.Unmarshal(line, &got); err != nil {
				return nil, fmt.Errorf("standard output carries something else than messages: %.200q", line)
			}
			if got.Method == "" && got.ID == m.ID {
				return line, nil
			}
		}
	}
}
