// Package resources holds the resources of this server, one in each file.
package resources

import (
	"github.com/famcp/famcp"
	"github.com/famcp/famcp/templates/project/internal/docs"
	"github.com/famcp/famcp/templates/project/internal/notes"
)

// Deps is what the resources are read from.
type Deps struct {
	Docs  *docs.Library
	Notes *notes.Store
}

// Register adds the resources to s. What is wrong with one is in [famcp.Server.Err], and stops the start.
func Register(s *famcp.Server, deps Deps) {
	famcp.AddResourceTemplate(s, documentTemplate, document(deps.Docs))
	s.Complete(documentTemplate.URITemplate, "name", documentNames(deps.Docs))
	s.AddResource(notesResource, allNotes(deps.Notes))
}
