// Package app puts the server together: what its features work with, and the features.
package app

import (
	"io/fs"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/templates/bare/internal/config"
	"github.com/famcp/famcp/templates/bare/internal/prompts"
	"github.com/famcp/famcp/templates/bare/internal/resources"
	"github.com/famcp/famcp/templates/bare/internal/tools"
)

// Register makes what the features work with, from the settings and from the files that are built in, README.md and
// docs, and adds the features to s.
func Register(s *famcp.Server, _ *config.Config, _ fs.FS) error {
	tools.Register(s, tools.Deps{})
	prompts.Register(s)
	resources.Register(s, resources.Deps{})
	return nil
}
