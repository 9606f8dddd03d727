package resources

import (
	"context"
	"strings"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/templates/project/internal/docs"
)

type documentParams struct {
	Name string `json:"name" jsonschema:"Name of the document, such as tools."`
}

var documentTemplate = famcp.ResourceTemplate{
	URITemplate: "docs://{name}",
	Name:        "document",
	Title:       "A document",
	Description: "One document of this server's documentation. The tool search_docs finds the right one.",
	MIME:        "text/markdown",
}

func document(library *docs.Library) func(context.Context, *famcp.Call, documentParams) (famcp.Contents, error) {
	return func(_ context.Context, _ *famcp.Call, p documentParams) (famcp.Contents, error) {
		doc, ok := library.Document(p.Name)
		if !ok {
			return famcp.Contents{}, famcp.NotFoundf("there is no document %q", p.Name)
		}
		return famcp.Contents{Text: doc.Text}, nil
	}
}

// documentNames completes the name in the template, for clients that let people choose.
func documentNames(library *docs.Library) func(context.Context, *famcp.Call, string) ([]string, error) {
	return func(_ context.Context, _ *famcp.Call, prefix string) ([]string, error) {
		var names []string
		for _, d := range library.Documents() {
			if strings.HasPrefix(d.Name, prefix) {
				names = append(names, d.Name)
			}
		}
		return names, nil
	}
}
