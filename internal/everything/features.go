package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"time"

	"github.com/famcp/famcp"
)

func addPrompts(s *famcp.Server) {
	famcp.AddPrompt(s, famcp.Prompt{Name: "test_simple_prompt", Description: "A prompt without arguments."},
		func(context.Context, *famcp.Call, none) ([]famcp.Message, error) {
			return []famcp.Message{famcp.UserMessage("This is a simple prompt for testing.")}, nil
		})
	famcp.AddPrompt(s, famcp.Prompt{Name: "test_prompt_with_arguments", Description: "A prompt with two arguments."}, promptWithArguments)
	famcp.AddPrompt(s, famcp.Prompt{Name: "test_prompt_with_embedded_resource", Description: "A prompt with a resource in it."}, promptWithResource)
	famcp.AddPrompt(s, famcp.Prompt{Name: "test_prompt_with_image", Description: "A prompt with an image in it."},
		func(context.Context, *famcp.Call, none) ([]famcp.Message, error) {
			return []famcp.Message{
				{Content: famcp.Image("image/png", redPixel())},
				famcp.UserMessage("Please analyze the image above."),
			}, nil
		})
	famcp.AddPrompt(s, famcp.Prompt{Name: "test_input_required_result_prompt", Description: "A prompt that asks the user for context."}, promptThatAsks)

	s.Complete("test_prompt_with_arguments", "arg1", func(_ context.Context, _ *famcp.Call, prefix string) ([]string, error) {
		return []string{prefix + "1", prefix + "2"}, nil
	})
}

type twoArguments struct {
	Arg1 string `json:"arg1" jsonschema:"First test argument"`
	Arg2 string `json:"arg2" jsonschema:"Second test argument"`
}

func promptWithArguments(_ context.Context, _ *famcp.Call, in twoArguments) ([]famcp.Message, error) {
	return []famcp.Message{famcp.UserMessage(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", in.Arg1, in.Arg2))}, nil
}

type resourceArgument struct {
	ResourceURI string `json:"resourceUri" jsonschema:"URI of the resource to embed"`
}

func promptWithResource(_ context.Context, _ *famcp.Call, in resourceArgument) ([]famcp.Message, error) {
	contents := famcp.Contents{MIME: "text/plain", Text: "Embedded resource content for testing."}
	return []famcp.Message{
		{Content: famcp.Embed(in.ResourceURI, contents)},
		famcp.UserMessage("Please process the embedded resource above."),
	}, nil
}

type contextForm struct {
	Context string `json:"context"`
}

func promptThatAsks(_ context.Context, call *famcp.Call, _ none) ([]famcp.Message, error) {
	answer, err := famcp.Elicit[contextForm](call, "user_context", "What context should the prompt use?")
	if err != nil {
		return nil, err
	}
	return []famcp.Message{famcp.UserMessage("Context: " + answer.Context)}, nil
}

func addResources(s *famcp.Server) {
	text := famcp.Resource{URI: "test://static-text", Name: "static-text", Description: "A text.", MIME: "text/plain"}
	s.AddResource(text, func(context.Context, *famcp.Call) (famcp.Contents, error) {
		return famcp.Contents{Text: "This is the content of the static text resource."}, nil
	})
	binary := famcp.Resource{URI: "test://static-binary", Name: "static-binary", Description: "An image.", MIME: "image/png"}
	s.AddResource(binary, func(context.Context, *famcp.Call) (famcp.Contents, error) {
		return famcp.Contents{Blob: redPixel()}, nil
	})
	watched := famcp.Resource{
		URI: "test://watched-resource", Name: "watched-resource", Description: "A text that changes every three seconds.", MIME: "text/plain",
		Watch: func(ctx context.Context, uri string) error {
			for wait(ctx, 3*time.Second) == nil {
				s.ResourceUpdated(ctx, uri)
			}
			return nil
		},
	}
	s.AddResource(watched, func(context.Context, *famcp.Call) (famcp.Contents, error) {
		return famcp.Contents{Text: "It is " + time.Now().UTC().Format(time.TimeOnly) + "."}, nil
	})
	template := famcp.ResourceTemplate{
		URITemplate: "test://template/{id}/data", Name: "template", Description: "Data by identifier.", MIME: "application/json",
	}
	famcp.AddResourceTemplate(s, template, templateData)
}

type templateParams struct {
	ID string `json:"id"`
}

func templateData(_ context.Context, _ *famcp.Call, p templateParams) (famcp.Contents, error) {
	data, err := json.Marshal(struct {
		ID           string `json:"id"`
		TemplateTest bool   `json:"templateTest"`
		Data         string `json:"data"`
	}{p.ID, true, "Data for ID: " + p.ID})
	return famcp.Contents{Text: string(data)}, err
}

// redPixel returns the smallest of images as a PNG file.
func redPixel() []byte {
	img := image.NewRGBA(image.Rect(0, 0, 1, 1))
	img.Set(0, 0, color.RGBA{R: 255, A: 255})
	var buf bytes.Buffer
	if err := png.Encode(&buf, img); err != nil {
		panic(err) // cannot happen: a buffer takes it all
	}
	return buf.Bytes()
}

// silence is a WAV file of one sample: 8 kHz, mono, 16 bits.
const silence = "RIFF\x26\x00\x00\x00WAVE" +
	"fmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00" +
	"data\x02\x00\x00\x00\x00\x00"
