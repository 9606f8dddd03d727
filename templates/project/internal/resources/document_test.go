package resources

import (
	"errors"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/famcptest"
	"github.com/famcp/famcp/templates/project/internal/docs"
)

func library(t *testing.T) *docs.Library {
	t.Helper()
	lib, err := docs.Load(fstest.MapFS{"README.md": {Data: []byte("# Read me\n")}, "docs/tools.md": {Data: []byte("# Tools\n")}})
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

func TestDocument(t *testing.T) {
	read := document(library(t))
	got, err := read(t.Context(), famcptest.NewCall(t), documentParams{Name: "tools"})
	if err != nil || got.Text != "# Tools\n" {
		t.Errorf("reading tools = %q, %v, want its text", got.Text, err)
	}
	_, err = read(t.Context(), famcptest.NewCall(t), documentParams{Name: "absent"})
	var missing *famcp.Error
	if !errors.As(err, &missing) || missing.Kind != famcp.NotFound {
		t.Errorf("reading a document that is not there: %v, want not found", err)
	}
}

func TestDocumentNames(t *testing.T) {
	for prefix, want := range map[string][]string{"": {"readme", "tools"}, "to": {"tools"}, "x": nil} {
		got, err := documentNames(library(t))(t.Context(), famcptest.NewCall(t), prefix)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("names that begin with %q = %q, %v, want %q", prefix, got, err, want)
		}
	}
}
