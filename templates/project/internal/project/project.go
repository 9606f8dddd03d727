// Package project says what this server is called. Change Version with every release, together with CHANGELOG.md.
package project

// What clients and people see of this server.
const (
	Name        = "my-server"
	Title       = "My Server"
	Description = "My Server, an MCP server."
	Version     = "0.1.0"
)

// DefaultCommand is what the program does without arguments.
const DefaultCommand = "http"
