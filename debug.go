package famcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The tools of mcp.debug.builtinTools: each argument is a choice, so that a
// client's developer sees every shape of answer without writing a server.

// debugText is what the debug tools answer with.
const debugText = "This is a result of a debug tool."

// debugBlue is an image of one blue pixel, debugSilence a sound of one sample.
const (
	debugBlue = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00\x90wS\xde" +
		"\x00\x00\x00\x0cIDATx\x9cc`\x60\xf8\x0f\x00\x01\x03\x01\x00\xb9a\x83\x21\x00\x00\x00\x00IEND\xaeB`\x82"
	debugSilence = "RIFF\x26\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00data\x02\x00\x00\x00\x00\x00"
)

const (
	maxDebugBytes = 64 << 20
	maxDebugTime  = 10 * time.Minute
)

// addDebugTools registers the debug tools, unless the project has tools of
// these names.
func (s *Server) addDebugTools() {
	debugTool(s, "debug_content", "Answers with content of one kind, or with several at once.",
		`{"kind":{"enum":["text","image","audio","resource_link","embedded_text","embedded_blob","mixed","annotated","empty"]}}`, debugContent)
	debugTool(s, "debug_structured", "Answers with structured content, alone or beside content of its own.",
		`{"kind":{"enum":["plain","with_content","nested"]}}`, debugStructured)
	debugTool(s, "debug_error", "Fails in one of the ways a tool can fail.",
		`{"kind":{"enum":["failed","invalid","not_found","conflict","rate_limited","unavailable","internal","panic","timeout","bad_output"]}}`, debugError)
	debugTool(s, "debug_progress", "Reports progress step by step.",
		`{"steps":{"type":"integer","minimum":1,"maximum":1000},"delayMs":{"type":"integer","minimum":0,"maximum":60000}}`, debugProgress)
	debugTool(s, "debug_log", "Sends a log message of each level.", `{}`, debugLog)
	debugTool(s, "debug_ask", "Asks the client one question, or all of them in turn.",
		`{"kind":{"enum":["confirm","form","visit","sample","roots","all"]}}`, debugAsk)
	debugTool(s, "debug_large", "Answers with a text of so many bytes.",
		fmt.Sprintf(`{"bytes":{"type":"integer","minimum":0,"maximum":%d}}`, maxDebugBytes), debugLarge)
	debugTool(s, "debug_slow", "Answers after some time; with stubborn it goes on when it is cancelled.",
		fmt.Sprintf(`{"delayMs":{"type":"integer","minimum":0,"maximum":%d},"stubborn":{"type":"boolean","default":false}}`, maxDebugTime.Milliseconds()), debugSlow)
}

// debugInput are the arguments of all debug tools.
type debugInput struct {
	Kind     string `json:"kind"`
	Steps    int    `json:"steps"`
	DelayMs  int64  `json:"delayMs"`
	Bytes    int    `json:"bytes"`
	Stubborn bool   `json:"stubborn"`
}

// debugTool registers one; properties are those of its schema, of which those
// without a default are required.
func debugTool[Out any](s *Server, name, description, properties string, h func(context.Context, *Call, debugInput) (Out, error)) {
	s.mu.Lock()
	_, taken := s.tools[name]
	s.mu.Unlock()
	if taken {
		return
	}
	var members map[string]struct{ Default any }
	if err := json.Unmarshal([]byte(properties), &members); err != nil {
		panic(err) // a constant above is wrong
	}
	required := []string{}
	for name, p := range members {
		if p.Default == nil {
			required = append(required, name)
		}
	}
	AddTool(s, Tool{
		Name: name, Description: description + " For developers of clients; of no use to a model.", Effect: ReadOnly().ClosedWorld(),
		InputSchema: map[string]any{
			"type": "object", "properties": json.RawMessage(properties), "required": required, "additionalProperties": false,
		},
	}, h)
}

func debugContent(_ context.Context, _ *Call, in debugInput) ([]Content, error) {
	kinds := map[string]func() Content{
		"text":          func() Content { return Text(debugText) },
		"image":         func() Content { return Image("image/png", []byte(debugBlue)) },
		"audio":         func() Content { return Audio("audio/wav", []byte(debugSilence)) },
		"resource_link": func() Content { return Link("project://version", "project-version") },
		"embedded_text": func() Content { return Embed("debug://text", Contents{MIME: "text/plain", Text: debugText}) },
		"embedded_blob": func() Content {
			return Embed("debug://blob", Contents{MIME: "application/octet-stream", Blob: []byte{0, 1, 2, 255}})
		},
		"annotated": func() Content {
			return Annotate(Text(debugText), Annotations{Audience: []mcp.Role{"user"}, Priority: 1, LastModified: "2026-07-28T00:00:00Z"})
		},
	}
	switch in.Kind {
	case "mixed":
		var all []Content
		for _, kind := range []string{"text", "image", "audio", "resource_link", "embedded_text", "embedded_blob", "annotated"} {
			all = append(all, kinds[kind]())
		}
		return all, nil
	case "empty":
		return []Content{}, nil
	}
	one, ok := kinds[in.Kind]
	if !ok { // with mcp.tools.validateInput off
		return nil, Invalidf("kind", "is not known")
	}
	return []Content{one()}, nil
}

type debugValue struct {
	Text   string            `json:"text"`
	Number float64           `json:"number"`
	Big    int64             `json:"big"`
	Flag   bool              `json:"flag"`
	List   []string          `json:"list"`
	Map    map[string]int    `json:"map"`
	Nested *debugNestedValue `json:"nested,omitempty"`
}

type debugNestedValue struct {
	When time.Time `json:"when"`
	Any  any       `json:"any"`
}

func debugStructured(_ context.Context, _ *Call, in debugInput) (Result[debugValue], error) {
	out := Result[debugValue]{Value: debugValue{
		Text: debugText, Number: 1.5, Big: 1<<53 + 1, Flag: true, List: []string{"a", "b"}, Map: map[string]int{"one": 1},
	}}
	switch in.Kind {
	case "with_content":
		out.Content = []Content{Text(debugText), Image("image/png", []byte(debugBlue))}
	case "nested":
		out.Value.Nested = &debugNestedValue{When: time.Date(2026, 7, 28, 0, 0, 0, 0, time.UTC), Any: map[string]any{"x": []any{1, "two", nil}}}
	}
	return out, nil
}

type debugBroken struct {
	Even int `json:"even"`
}

// MarshalJSON breaks the output schema.
func (debugBroken) MarshalJSON() ([]byte, error) { return []byte(`{"odd":true}`), nil }

func debugError(ctx context.Context, _ *Call, in debugInput) (debugBroken, error) {
	var none debugBroken
	switch in.Kind {
	case "failed":
		return none, Failf("the tool failed as it was asked to")
	case "invalid":
		return none, Invalidf("kind", "is refused by the tool itself")
	case "not_found":
		return none, NotFoundf("there is nothing to be found")
	case "conflict":
		return none, Conflictf("the state of things is in the way")
	case "rate_limited":
		return none, RateLimited(7 * time.Second)
	case "unavailable":
		return none, Unavailablef("something upstream is down")
	case "panic":
		panic("a debug tool was asked to panic")
	case "timeout":
		<-ctx.Done()
		return none, ctx.Err()
	case "bad_output":
		return none, nil
	}
	return none, errors.New("a debug tool was asked for an internal error")
}

func debugProgress(ctx context.Context, call *Call, in debugInput) (string, error) {
	for i := range in.Steps {
		if i > 0 {
			if err := debugWait(ctx, in.DelayMs); err != nil {
				return "", err
			}
		}
		call.Progress(float64(i+1), float64(in.Steps), fmt.Sprintf("step %d of %d", i+1, in.Steps))
	}
	return debugText, nil
}

func debugWait(ctx context.Context, ms int64) error {
	select {
	case <-time.After(min(time.Duration(ms)*time.Millisecond, maxDebugTime)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func debugLog(_ context.Context, call *Call, _ debugInput) (string, error) {
	for _, level := range []Level{
		LevelDebug, LevelInfo, LevelNotice, LevelWarning, LevelError, LevelCritical, LevelAlert, LevelEmergency,
	} {
		call.Notify(level, "a message of level "+string(level), map[string]any{"level": level})
	}
	return debugText, nil
}

type debugForm struct {
	Name  string `json:"name" jsonschema:"Any name."`
	Count int    `json:"count" jsonschema:"Any whole number."`
	Yes   bool   `json:"yes" jsonschema:"Yes or no."`
}

func debugAsk(_ context.Context, call *Call, in debugInput) (string, error) {
	asks := []struct {
		kind string
		ask  func() (string, error)
	}{
		{"confirm", func() (string, error) {
			yes, err := call.Confirm("confirm", "Is this a test?")
			return fmt.Sprintf("confirmed %t", yes), err
		}},
		{"form", func() (string, error) {
			form, err := Elicit[debugForm](call, "form", "Please fill in the form.")
			return fmt.Sprintf("name %q, count %d, yes %t", form.Name, form.Count, form.Yes), err
		}},
		{"visit", func() (string, error) {
			return "visited", call.Visit("visit", "https://example.com/", "Please open the page.")
		}},
		{"sample", func() (string, error) {
			res, err := call.Sample("sample", &mcp.CreateMessageParams{
				Messages:  []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "Say hello."}}},
				MaxTokens: 20,
			})
			if err != nil {
				return "", err
			}
			return "the model is " + res.Model, nil
		}},
		{"roots", func() (string, error) {
			roots, err := call.Roots("roots")
			return fmt.Sprintf("%d roots", len(roots)), err
		}},
	}
	var said []string
	for _, a := range asks {
		if in.Kind != a.kind && in.Kind != "all" {
			continue
		}
		text, err := a.ask()
		if err != nil {
			return "", err
		}
		said = append(said, a.kind+": "+text)
	}
	return strings.Join(said, "\n"), nil
}

func debugLarge(_ context.Context, _ *Call, in debugInput) (string, error) {
	return strings.Repeat("x", min(max(in.Bytes, 0), maxDebugBytes)), nil
}

func debugSlow(ctx context.Context, _ *Call, in debugInput) (string, error) {
	if in.Stubborn {
		ctx = context.WithoutCancel(ctx)
	}
	if err := debugWait(ctx, in.DelayMs); err != nil {
		return "", err
	}
	return debugText, nil
}
