// Package resources holds the resources of this server, one in each file.
package resources

import "github.com/famcp/famcp"

// Deps is what the resources are read from.
type Deps struct{}

// Register adds the resources to s, each with a call of [famcp.Server.AddResource] or [famcp.AddResourceTemplate].
// What is wrong with one is in [famcp.Server.Err], and stops the start.
func Register(_ *famcp.Server, _ Deps) {}
