// Package app puts the server together: what its features work with, and the features.
package app

import (
	"io/fs"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/templates/project/internal/config"
	"github.com/famcp/famcp/templates/project/internal/docs"
	"github.com/famcp/famcp/templates/project/internal/notes"
	"github.com/famcp/famcp/templates/project/internal/prompts"
	"github.com/famcp/famcp/templates/project/internal/resources"
	"github.com/famcp/famcp/templates/project/internal/tools"
)

// maxNotes bounds what clients can make the server remember.
const maxNotes = 10_000

// Register makes what the features work with, from the settings and from the files that are built in, README.md and
// docs, and adds the features to s.
func Register(s *famcp.Server, cfg *config.Config, documents fs.FS) error {
	library, err := docs.Load(documents)
	if err != nil {
		return err
	}
	store := notes.New(maxNotes, notes.Note{ID: "welcome", Text: "Try delete_note on me."})

	tools.Register(s, tools.Deps{Docs: library, Notes: store, MaxHits: cfg.App.MaxHits})
	prompts.Register(s)
	resources.Register(s, resources.Deps{Docs: library, Notes: store})
	return nil
}
