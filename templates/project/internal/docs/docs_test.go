package docs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp/templates/project/internal/docs"
)

func library(t *testing.T) *docs.Library {
	t.Helper()
	lib, err := docs.Load(fstest.MapFS{
		"README.md":     {Data: []byte("Before the heading.\n\n# The Server\n\nRun it.\n\n```sh\n# not a heading\n```\n")},
		"docs/tools.md": {Data: []byte("# Tools\n\nEvery tool has a test.\n\n## Errors\n\nA tool returns errors.\nA tool\nerror text goes out.\n")},
		"docs/plain.md": {Data: []byte("no heading, " + strings.Repeat("ä", 300))},
		"docs/skip.txt": {Data: []byte("# Not Markdown")},
		"other/deep.md": {Data: []byte("# Too deep")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

func TestLoad(t *testing.T) {
	var got [][2]string
	for _, d := range library(t).Documents() {
		got = append(got, [2]string{d.Name, d.Title})
	}
	want := [][2]string{{"plain", "plain"}, {"readme", "The Server"}, {"tools", "Tools"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names and titles (-want +got):\n%s", diff)
	}
}

func TestLoadRefusesTwoOfOneName(t *testing.T) {
	_, err := docs.Load(fstest.MapFS{"tools.md": {}, "docs/Tools.md": {}})
	if err == nil || !strings.Contains(err.Error(), `"tools"`) {
		t.Errorf("Load = %v, want an error that names the document", err)
	}
}

func TestSearch(t *testing.T) {
	tests := []struct {
		name, query string
		want        []string // document/heading/line, best first
	}{
		{name: "one word, heading first", query: "tool", want: []string{"tools/Tools/1", "tools/Errors/5"}},
		{name: "all words must occur", query: "errors TEXT", want: []string{"tools/Errors/5"}},
		{name: "heading beats text", query: "errors", want: []string{"tools/Errors/5"}},
		{name: "code is no heading", query: "not a heading", want: []string{"readme/The Server/3"}},
		{name: "before the first heading", query: "before", want: []string{"readme//1"}},
		{name: "nothing", query: "absent"},
		{name: "no words", query: "  "},
	}
	lib := library(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, h := range lib.Search(tt.query) {
				got = append(got, fmt.Sprintf("%s/%s/%d", h.Document.Name, h.Heading, h.Line))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("Search(%q) = %q, want %q", tt.query, got, tt.want)
			}
		})
	}
}

func TestSearchSnippet(t *testing.T) {
	lib := library(t)
	if got, want := lib.Search("tool error")[0].Snippet, "A tool returns errors."; got != want {
		t.Errorf("snippet = %q, want the line with the most words, %q", got, want)
	}
	if got := []rune(lib.Search("ä")[0].Snippet); len(got) != 201 {
		t.Errorf("snippet of a long line has %d characters, want 200 and an ellipsis", len(got))
	}
}
