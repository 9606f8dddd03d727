package tools

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/templates/project/internal/notes"
)

type importNotesIn struct {
	Notes []newNote `json:"notes" jsonschema:"Notes to add, in order."`
}

type newNote struct {
	ID   string `json:"id" jsonschema:"Lower-case letters, digits and dashes, at most 40, beginning with a letter."`
	Text string `json:"text" jsonschema:"What the note says, at most 2000 bytes."`
}

type importNotesOut struct {
	Added   int `json:"added" jsonschema:"Number of notes added."`
	Skipped int `json:"skipped" jsonschema:"Number of notes left alone because their id was taken."`
}

var importNotesTool = famcp.Tool{
	Name:  "import_notes",
	Title: "Import notes",
	Description: "Adds many notes and reports progress after each. A note whose id is taken is skipped, so an import " +
		"that was cancelled or ran out of time can be repeated as it was.",
	Effect: famcp.Mutates(famcp.LowRisk, "Notes are added; existing ones stay as they are.").
		Additive().Idempotent().ClosedWorld(),
	Tasks: famcp.TasksOptional,
}

const maxNoteBytes = 2000

var noteID = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)

func importNotes(store *notes.Store) func(context.Context, *famcp.Call, importNotesIn) (importNotesOut, error) {
	return func(ctx context.Context, call *famcp.Call, in importNotesIn) (importNotesOut, error) {
		// Refuse before the first note is stored, so that a bad one late in the list does not leave half an import.
		for i, n := range in.Notes {
			switch {
			case !noteID.MatchString(n.ID):
				return importNotesOut{}, famcp.Invalidf(fmt.Sprintf("notes[%d].id", i), "must match %s", noteID)
			case len(n.Text) > maxNoteBytes:
				return importNotesOut{}, famcp.Invalidf(fmt.Sprintf("notes[%d].text", i), "must be at most %d bytes long", maxNoteBytes)
			}
		}
		var out importNotesOut
		for i, n := range in.Notes {
			if err := ctx.Err(); err != nil { // cancelled by the client, or out of time
				return importNotesOut{}, err
			}
			added, err := store.Add(notes.Note(n))
			switch {
			case errors.Is(err, notes.ErrFull):
				return importNotesOut{}, famcp.Failf("there is room for %d of these notes only; delete some and import again", out.Added)
			case err != nil:
				return importNotesOut{}, err
			case added:
				out.Added++
			default:
				out.Skipped++
			}
			call.Progress(float64(i+1), float64(len(in.Notes)), n.ID)
		}
		return out, nil
	}
}
