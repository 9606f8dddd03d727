// Package tools holds the tools of this server, one in each file.
package tools

import (
	"github.com/famcp/famcp"
	"github.com/famcp/famcp/templates/project/internal/docs"
	"github.com/famcp/famcp/templates/project/internal/notes"
)

// Deps is what the tools work with. Handlers share it and run concurrently.
type Deps struct {
	Docs    *docs.Library
	Notes   *notes.Store
	MaxHits int // of search_docs
}

// Register adds the tools to s. What is wrong with one is in [famcp.Server.Err], and stops the start.
func Register(s *famcp.Server, deps Deps) {
	famcp.AddTool(s, searchDocsTool, searchDocs(deps.Docs, deps.MaxHits))
	famcp.AddTool(s, deleteNoteTool, deleteNote(deps.Notes))
	famcp.AddTool(s, importNotesTool, importNotes(deps.Notes))
}
