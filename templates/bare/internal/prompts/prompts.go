// Package prompts holds the prompts of this server, one in each file.
package prompts

import "github.com/famcp/famcp"

// AgentBrief is the text of the built-in prompt agent_brief: when to use this server, in a sentence or two. While it
// is empty the description takes its place.
const AgentBrief = ``

// AgentPrompt is the text of the built-in prompt agent_prompt: how to work with this server. While it is empty
// AgentBrief takes its place.
const AgentPrompt = ``

// Register adds the prompts to s, each with a call of [famcp.AddPrompt]. What is wrong with one is in
// [famcp.Server.Err], and stops the start.
func Register(_ *famcp.Server) {}
