package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/famcp/famcp"
)

// none is the input of a tool or prompt without arguments.
type none struct{}

// pause is the time between two messages of a call: longer than the progress
// throttle, so that none is dropped.
const pause = 120 * time.Millisecond

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fixed adds a read-only tool without arguments that always gives the same.
func fixed(s *famcp.Server, name, description string, content ...famcp.Content) {
	famcp.AddTool(s, famcp.Tool{Name: name, Description: description, Effect: famcp.ReadOnly()},
		func(context.Context, *famcp.Call, none) ([]famcp.Content, error) { return content, nil })
}

func addTools(s *famcp.Server) {
	embedded := famcp.Contents{MIME: "text/plain", Text: "This is an embedded resource content."}
	mixed := famcp.Contents{MIME: "application/json", Text: `{"test":"data","value":123}`}

	fixed(s, "test_simple_text", "Gives a text.", famcp.Text("This is a simple text response for testing."))
	fixed(s, "test_image_content", "Gives an image.", famcp.Image("image/png", redPixel()))
	fixed(s, "test_audio_content", "Gives a sound.", famcp.Audio("audio/wav", []byte(silence)))
	fixed(s, "test_embedded_resource", "Gives an embedded resource.", famcp.Embed("test://embedded-resource", embedded))
	fixed(s, "test_multiple_content_types", "Gives a text, an image and a resource.",
		famcp.Text("Multiple content types test:"),
		famcp.Image("image/png", redPixel()),
		famcp.Embed("test://mixed-content-resource", mixed))
	fixed(s, "test_streaming_elicitation", "Answers without any request of its own on the stream.", famcp.Text("nothing asked"))

	read := func(name, description string) famcp.Tool {
		return famcp.Tool{Name: name, Description: description, Effect: famcp.ReadOnly()}
	}
	famcp.AddTool(s, read("test_error_handling", "Fails."), alwaysFails)
	famcp.AddTool(s, read("test_tool_with_logging", "Sends three log messages."), withLogging)
	famcp.AddTool(s, read("test_logging_tool", "Sends a log message, which only a client that set a level gets."), logsOnce)
	famcp.AddTool(s, read("test_tool_with_progress", "Reports progress three times."), withProgress)
	famcp.AddTool(s, read("test_x_mcp_header", "Mirrors an argument into a header."), withHeader)

	schema := read("json_schema_2020_12_tool", "Has an input schema that uses much of JSON Schema 2020-12.")
	schema.InputSchema = json.RawMessage(contactSchema)
	famcp.AddTool(s, schema, func(_ context.Context, _ *famcp.Call, args json.RawMessage) (string, error) {
		return "called with " + string(args), nil
	})

	mutate := func(name, what string) famcp.Tool {
		return famcp.Tool{
			Name: name, Description: "Changes the list of " + what + "s.",
			Effect: famcp.Mutates(famcp.LowRisk, "adds or removes a "+what+" of this server").ClosedWorld(),
		}
	}
	famcp.AddTool(s, mutate("test_trigger_tool_change", "tool"), toggleTool(s))
	famcp.AddTool(s, mutate("test_trigger_prompt_change", "prompt"), togglePrompt(s))
}

func alwaysFails(context.Context, *famcp.Call, none) (string, error) {
	return "", famcp.Failf("This tool intentionally returns an error for testing")
}

func withLogging(ctx context.Context, call *famcp.Call, _ none) (string, error) {
	for i, message := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
		if i > 0 {
			if err := wait(ctx, pause); err != nil {
				return "", err
			}
		}
		call.Notify("info", message, nil)
	}
	return "Tool with logging executed successfully", nil
}

func logsOnce(_ context.Context, call *famcp.Call, _ none) (string, error) {
	call.Notify("info", "test_logging_tool executed", nil)
	return "Logged.", nil
}

func withProgress(ctx context.Context, call *famcp.Call, _ none) (string, error) {
	for _, done := range []float64{0, 50, 100} {
		call.Progress(done, 100, fmt.Sprintf("Completed step %.0f of 100", done))
		if err := wait(ctx, pause); err != nil {
			return "", err
		}
	}
	return "Tool with progress executed successfully", nil
}

type headerInput struct {
	Region string `json:"region,omitempty" mcpheader:"Region" jsonschema:"Mirrored into the header Mcp-Param-Region."`
	Level  int    `json:"level,omitempty" jsonschema:"Not mirrored."`
}

func withHeader(_ context.Context, _ *famcp.Call, in headerInput) (string, error) {
	return "region=" + in.Region, nil
}

// contactSchema must come out of tools/list with every keyword.
const contactSchema = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"$defs": {
		"address": {
			"$anchor": "addressDef",
			"type": "object",
			"properties": {"street": {"type": "string"}, "city": {"type": "string"}}
		}
	},
	"properties": {
		"name": {"type": "string"},
		"address": {"$ref": "#/$defs/address"},
		"contactMethod": {"type": "string", "enum": ["phone", "email"]},
		"phone": {"type": "string"},
		"email": {"type": "string"}
	},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
	"then": {"required": ["phone"]},
	"else": {"required": ["email"]},
	"additionalProperties": false
}`

// transient is what the two triggers add and remove in turn.
const transient = "test_transient"

func toggleTool(s *famcp.Server) func(context.Context, *famcp.Call, none) (string, error) {
	return func(context.Context, *famcp.Call, none) (string, error) {
		if s.Remove(famcp.Tools, transient) {
			return "removed a tool", nil
		}
		fixed(s, transient, "Comes and goes.", famcp.Text("here for now"))
		return "added a tool", nil
	}
}

func togglePrompt(s *famcp.Server) func(context.Context, *famcp.Call, none) (string, error) {
	return func(context.Context, *famcp.Call, none) (string, error) {
		if s.Remove(famcp.Prompts, transient) {
			return "removed a prompt", nil
		}
		famcp.AddPrompt(s, famcp.Prompt{Name: transient, Description: "Comes and goes."},
			func(context.Context, *famcp.Call, none) ([]famcp.Message, error) {
				return []famcp.Message{famcp.UserMessage("here for now")}, nil
			})
		return "added a prompt", nil
	}
}
