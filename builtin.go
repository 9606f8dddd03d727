package famcp

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// addBuiltins registers the entries that every server has (contract §5). A
// project's own entry of the same name or URI wins.
func (s *Server) addBuiltins() {
	public := Access{Public: true}
	brief := cmp.Or(s.info.AgentBrief, s.info.Description, s.info.Title, s.info.Name)
	agent := cmp.Or(s.info.AgentPrompt, s.info.Instructions, brief)

	texts := []struct{ uri, name, mime, description, text string }{
		{"project://id", "project-id", "text/plain", "Name of this server as an identifier.", s.info.Name},
		{"project://name", "project-name", "text/plain", "Name of this server for people.", cmp.Or(s.info.Title, s.info.Name)},
		{"project://version", "project-version", "text/plain", "Version of this server.", s.info.Version},
		{"use://http-headers", "http-headers", "text/plain", "HTTP headers this server reads.", s.headersText()},
		{"use://auth", "auth", "text/plain", "How callers authenticate.", s.describeAuth()},
		{s.info.Name + "://agent/brief", "agent-brief", "text/plain", "What this server can help with, in brief.", brief},
		{s.info.Name + "://agent/prompt", "agent-prompt", "text/plain", "How an agent uses this server.", agent},
	}
	if s.docs != nil {
		if readme, err := fs.ReadFile(s.docs, "README.md"); err == nil {
			texts = append(texts, struct{ uri, name, mime, description, text string }{
				"doc://readme", "readme", "text/markdown", "README of this server.", string(readme),
			})
		}
	}
	for _, t := range texts {
		if s.taken(s.uris, t.uri) {
			continue
		}
		s.AddResource(Resource{
			URI: t.uri, Name: t.name, Description: t.description, MIME: t.mime, Access: public, Contents: &Contents{Text: t.text},
		}, nil)
	}

	for name, text := range map[string]string{"agent_brief": brief, "agent_prompt": agent} {
		if s.taken(s.prompts, name) {
			continue
		}
		AddPrompt(s, Prompt{Name: name, Description: "Tells an agent about this server.", Access: public},
			func(context.Context, *Call, struct{}) ([]Message, error) { return []Message{UserMessage(text)}, nil })
	}
	if !s.taken(s.prompts, "tool_prompt") {
		AddPrompt(s, Prompt{Name: "tool_prompt", Description: "Tells how to use one tool of this server.", Access: public}, s.toolPrompt)
		s.Complete("tool_prompt", "tool", s.toolNames)
	}
}

func (s *Server) taken(names map[string]bool, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return names[name]
}

type toolPromptArgs struct {
	Tool string `json:"tool" jsonschema:"name of the tool"`
}

func (s *Server) toolPrompt(ctx context.Context, call *Call, in toolPromptArgs) ([]Message, error) {
	s.mu.Lock()
	t, ok := s.tools[in.Tool]
	s.mu.Unlock()
	if !ok || !visible(ctx, call, t.Access) {
		return nil, Invalidf("tool", "there is no tool of that name")
	}
	text := cmp.Or(t.Prompt, fmt.Sprintf("Use the tool %s. %s", t.Name, t.Effect.describe(t.Description)))
	return []Message{UserMessage(text)}, nil
}

func (s *Server) toolNames(ctx context.Context, call *Call, prefix string) ([]string, error) {
	s.mu.Lock()
	tools := slices.Sorted(maps.Keys(s.tools))
	access := make(map[string]Access, len(tools))
	for _, name := range tools {
		access[name] = s.tools[name].Access
	}
	s.mu.Unlock()
	var names []string
	for _, name := range tools {
		if strings.HasPrefix(name, prefix) && visible(ctx, call, access[name]) {
			names = append(names, name)
		}
	}
	return names, nil
}

// visible reports whether the caller may know of an entry.
func visible(ctx context.Context, call *Call, a Access) bool {
	for _, scope := range a.Scopes {
		if !call.HasScope(scope) {
			return false
		}
	}
	return a.Visible == nil || a.Visible(ctx, call)
}
