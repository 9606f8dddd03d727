package resources

import (
	"context"
	"encoding/json"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/templates/project/internal/notes"
)

var notesResource = famcp.Resource{
	URI:         "notes://all",
	Name:        "notes",
	Title:       "All notes",
	Description: "The notes as a JSON array of objects with id and text, sorted by id.",
	MIME:        "application/json",
}

func allNotes(store *notes.Store) func(context.Context, *famcp.Call) (famcp.Contents, error) {
	return func(context.Context, *famcp.Call) (famcp.Contents, error) {
		text, err := json.Marshal(store.All())
		if err != nil {
			return famcp.Contents{}, err
		}
		return famcp.Contents{Text: string(text)}, nil
	}
}
