// Package prompts holds the prompts of this server, one in each file.
package prompts

import "github.com/famcp/famcp"

// AgentBrief is the text of the built-in prompt agent_brief: when to use this server, in a sentence or two.
const AgentBrief = `Answers questions about this server from its documentation, and keeps short notes.`

// AgentPrompt is the text of the built-in prompt agent_prompt: how to work with this server.
const AgentPrompt = `You work with a server that has documentation and notes.

- Answer questions about the server from search_docs, and read the resource of a hit before you quote it.
- Read notes://all to see the notes. Add notes with import_notes, all of them in one call.
- Delete a note with delete_note only when the user asked for it. It asks the user once more; when the outcome is
  "declined", leave it at that.`

// Register adds the prompts to s. What is wrong with one is in [famcp.Server.Err], and stops the start.
func Register(s *famcp.Server) {
	famcp.AddPrompt(s, answerFromDocsPrompt, answerFromDocs)
}
