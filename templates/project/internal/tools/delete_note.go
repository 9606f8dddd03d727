package tools

import (
	"context"
	"fmt"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/templates/project/internal/notes"
)

type deleteNoteIn struct {
	ID string `json:"id" jsonschema:"Id of the note, as in the resource notes://all."`
}

type deleteNoteOut struct {
	ID      string `json:"id" jsonschema:"Id of the note."`
	Outcome string `json:"outcome" jsonschema:"deleted, declined when the user said no, or absent when there is no such note."`
}

var deleteNoteTool = famcp.Tool{
	Name:  "delete_note",
	Title: "Delete a note",
	Description: "Deletes one note, after asking the user. " +
		"Read the resource notes://all first to find its id.",
	// Idempotent, although only the first call deletes: repeating it, say after an answer was lost, does no more harm.
	Effect: famcp.Mutates(famcp.MediumRisk, "The note is gone and cannot be restored.").Idempotent().ClosedWorld(),
}

func deleteNote(store *notes.Store) func(context.Context, *famcp.Call, deleteNoteIn) (deleteNoteOut, error) {
	return func(_ context.Context, call *famcp.Call, in deleteNoteIn) (deleteNoteOut, error) {
		out := deleteNoteOut{ID: in.ID, Outcome: "absent"}
		note, ok := store.Get(in.ID)
		if !ok {
			return out, nil
		}
		// The first time, this returns an error that makes the runtime ask. With the answer, the whole handler runs again.
		yes, err := call.Confirm("delete", fmt.Sprintf("Delete the note %q? It says: %s", note.ID, note.Text))
		if err != nil {
			return deleteNoteOut{}, err
		}
		switch {
		case !yes:
			out.Outcome = "declined"
		case store.Delete(in.ID): // else another call was faster
			out.Outcome = "deleted"
		}
		return out, nil
	}
}
