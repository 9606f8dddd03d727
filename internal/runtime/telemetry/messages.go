package telemetry

import (
	"encoding/json"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Messages writes the messages of the protocol to a file, a JSON object a line,
// for finding out what a client really sends. Arguments, answers to questions,
// sealed states and whatever looks like a secret are hidden. A nil *Messages
// writes nothing. It is safe for concurrent use.
type Messages struct {
	out  io.Writer
	most int // bytes of a message
	now  func() time.Time

	mu sync.Mutex
}

// NewMessages returns what writes messages to out, each in one write and cut
// at most bytes; zero cuts none.
func NewMessages(out io.Writer, most int) *Messages {
	return &Messages{out: out, most: most, now: time.Now}
}

type tracedMessage struct {
	Time      string          `json:"time"`
	Direction string          `json:"direction"` // in or out
	RequestID string          `json:"requestId,omitempty"`
	Bytes     int             `json:"bytes"`
	Message   json.RawMessage `json:"message,omitempty"`
	Text      string          `json:"text,omitempty"` // the beginning of a message that is cut
}

// In writes a message of the client.
func (t *Messages) In(requestID string, message []byte) { t.write("in", requestID, message) }

// Out writes a message to the client.
func (t *Messages) Out(requestID string, message []byte) { t.write("out", requestID, message) }

func (t *Messages) write(direction, requestID string, message []byte) {
	if t == nil || len(message) == 0 {
		return
	}
	line := tracedMessage{Time: t.now().UTC().Format(time.RFC3339Nano), Direction: direction, RequestID: requestID, Bytes: len(message)}
	masked := maskMessage(message)
	if t.most > 0 && len(masked) > t.most {
		line.Text = cut(string(masked), t.most)
	} else {
		line.Message = masked
	}
	b, err := json.Marshal(line)
	if err != nil { // impossible: plain data and encoded JSON
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	// There is nobody to tell: the log may be on the same full disk.
	_, _ = t.out.Write(append(b, '\n'))
}

// cut returns at most n bytes of a text and says so.
func cut(s string, n int) string {
	s = s[:n]
	for len(s) > 0 && !utf8.ValidString(s[max(0, len(s)-utf8.UTFMax):]) {
		s = s[:len(s)-1]
	}
	return s + "…"
}

// argued are the members of params and result that hold what a user or a model
// said: all of them is hidden but the names.
var argued = map[string]bool{"arguments": true, "inputResponses": true, "requestState": true, "argument": true}

// maskMessage returns a message, or a batch of them, with what is secret hidden. What is no
// JSON is not repeated at all.
func maskMessage(message []byte) json.RawMessage {
	if !json.Valid(message) {
		return json.RawMessage(`"not valid JSON"`)
	}
	v := decode(message)
	for _, m := range elements(v) {
		maskOne(m)
	}
	out, err := json.Marshal(noRules.walk(v))
	if err != nil { // impossible: it was decoded from JSON
		return json.RawMessage(`"not valid JSON"`)
	}
	return out
}

func elements(v any) []map[string]any {
	var out []map[string]any
	switch v := v.(type) {
	case map[string]any:
		out = append(out, v)
	case []any:
		for _, e := range v {
			if m, ok := e.(map[string]any); ok {
				out = append(out, m)
			}
		}
	}
	return out
}

func maskOne(m map[string]any) {
	_, called := m["method"]
	for _, part := range []string{"params", "result"} {
		members, ok := m[part].(map[string]any)
		if !ok {
			continue
		}
		for name, member := range members {
			if argued[name] {
				members[name] = blank(member)
			}
		}
		// A client's answer to elicitation/create has what a person typed.
		if !called && members["action"] != nil && members["content"] != nil {
			members["content"] = blank(members["content"])
		}
	}
}

// blank hides the values of an object and keeps the names, in their order of
// depth one; anything else is hidden as a whole.
func blank(v any) any {
	members, ok := v.(map[string]any)
	if !ok {
		return hidden(v)
	}
	out := make(map[string]any, len(members))
	for name, member := range members {
		if len(name) > 64 || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
			name = Masked
		}
		out[name] = hidden(member)
	}
	return out
}
