package tools

import (
	"errors"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/famcptest"
	"github.com/famcp/famcp/templates/project/internal/docs"
)

func TestSearchDocs(t *testing.T) {
	library, err := docs.Load(fstest.MapFS{
		"README.md":          {Data: []byte("# My Server\n\nRun it, and run it again.\n")},
		"docs/operations.md": {Data: []byte("# Operations\n\n## Run\n\nRun it in a container.\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	operations := docsHit{URI: "docs://operations", Title: "Operations", Section: "Run", Line: 3, Snippet: "Run it in a container."}
	readme := docsHit{URI: "docs://readme", Title: "My Server", Section: "My Server", Line: 1, Snippet: "Run it, and run it again."}

	tests := []struct {
		name string
		in   searchDocsIn
		want searchDocsOut
	}{
		{"best first", searchDocsIn{Query: "run"}, searchDocsOut{Total: 2, Hits: []docsHit{operations, readme}}},
		{"fewer than there are", searchDocsIn{Query: "run", Limit: 1}, searchDocsOut{Total: 2, Hits: []docsHit{operations}}},
		{"no more than the server's limit", searchDocsIn{Query: "run", Limit: 50}, searchDocsOut{Total: 2, Hits: []docsHit{operations, readme}}},
		{"nothing is an empty list", searchDocsIn{Query: "absent"}, searchDocsOut{Hits: []docsHit{}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := searchDocs(library, 2)(t.Context(), famcptest.NewCall(t), tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSearchDocsRefusesANegativeLimit(t *testing.T) {
	_, err := searchDocs(&docs.Library{}, 2)(t.Context(), famcptest.NewCall(t), searchDocsIn{Query: "run", Limit: -1})
	var refused *famcp.Error
	if !errors.As(err, &refused) || refused.Field != "limit" {
		t.Errorf("error = %v, want one about limit", err)
	}
}
