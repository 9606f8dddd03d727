package tools

import (
	"context"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/templates/project/internal/docs"
)

type searchDocsIn struct {
	Query string `json:"query" jsonschema:"Words to look for. All of them must occur in a section; case does not matter."`
	Limit int    `json:"limit,omitempty" jsonschema:"Most hits to return. Leave it out for the server's own limit, which is never exceeded."`
}

type searchDocsOut struct {
	Total int       `json:"total" jsonschema:"Number of sections that match."`
	Hits  []docsHit `json:"hits" jsonschema:"The best of them, best first."`
}

type docsHit struct {
	URI     string `json:"uri" jsonschema:"Resource to read for the whole document."`
	Title   string `json:"title" jsonschema:"Title of the document."`
	Section string `json:"section" jsonschema:"Heading of the section that matches."`
	Line    int    `json:"line" jsonschema:"Line of that heading in the document."`
	Snippet string `json:"snippet" jsonschema:"Line of the section with the most words of the query."`
}

var searchDocsTool = famcp.Tool{
	Name:  "search_docs",
	Title: "Search the documentation",
	Description: "Searches this server's own documentation and returns the sections that match, best first. " +
		"Use it before answering a question about the server, and read the resource of a hit for the whole text.",
	Effect: famcp.ReadOnly().ClosedWorld(),
}

func searchDocs(library *docs.Library, maxHits int) func(context.Context, *famcp.Call, searchDocsIn) (searchDocsOut, error) {
	return func(_ context.Context, _ *famcp.Call, in searchDocsIn) (searchDocsOut, error) {
		if in.Limit < 0 {
			return searchDocsOut{}, famcp.Invalidf("limit", "must not be negative")
		}
		limit := maxHits
		if in.Limit > 0 {
			limit = min(in.Limit, maxHits)
		}
		found := library.Search(in.Query)
		out := searchDocsOut{Total: len(found), Hits: []docsHit{}}
		for _, h := range found[:min(limit, len(found))] {
			out.Hits = append(out.Hits, docsHit{
				URI:     "docs://" + h.Document.Name,
				Title:   h.Document.Title,
				Section: h.Heading,
				Line:    h.Line,
				Snippet: h.Snippet,
			})
		}
		return out, nil
	}
}
