// Package gomod makes go.mod and go.sum of a project and of the runtime vendored in it.
package gomod

// GoVersion is the language version of a generated project: the oldest that the runtime supports, whatever Go built
// famcp.
const GoVersion = "1.26"
