// An MCP server. internal/app says what it serves.
package main

import (
	"context"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/templates/project/internal/app"
	"github.com/famcp/famcp/templates/project/internal/config"
	"github.com/famcp/famcp/templates/project/internal/project"
	"github.com/famcp/famcp/templates/project/internal/prompts"
)

func main() {
	famcp.Main(build, famcp.Defaults{
		Config:  defaultConfig,
		FS:      documents,
		Command: project.DefaultCommand,
	})
}

func build(_ context.Context, cfg *config.Config) (*famcp.Server, error) {
	s, err := famcp.New(&cfg.Config, famcp.Info{
		Name:        project.Name,
		Title:       project.Title,
		Description: project.Description,
		Version:     project.Version,
		AgentBrief:  prompts.AgentBrief,
		AgentPrompt: prompts.AgentPrompt,
	})
	if err != nil {
		return nil, err
	}
	return s, app.Register(s, cfg, documents)
}
