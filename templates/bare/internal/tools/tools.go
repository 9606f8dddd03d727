// Package tools holds the tools of this server, one in each file.
package tools

import "github.com/famcp/famcp"

// Deps is what the tools work with: a store, a client, a setting. Handlers share it and run concurrently.
type Deps struct{}

// Register adds the tools to s, each with a call of [famcp.AddTool]. What is wrong with one is in
// [famcp.Server.Err], and stops the start.
func Register(_ *famcp.Server, _ Deps) {}
