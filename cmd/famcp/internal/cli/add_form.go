package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"charm.land/huh/v2"

	"github.com/famcp/famcp/cmd/famcp/internal/iostreams"
	"github.com/famcp/famcp/internal/scaffold/feature"
)

// askFeature asks for what has to be said and was not. Who gave a name and a description is not asked for arguments.
func askFeature(ctx context.Context, opts *addOptions) error {
	s := &opts.Spec
	asked := s.Name == "" || strings.TrimSpace(s.Description) == ""
	if s.Name == "" {
		name, err := askOne(ctx, opts.IO, "Name of the "+string(s.Kind), nil, ruleOf(s, "name", func(s *feature.Spec, text string) { s.Name = text }))
		if err != nil {
			return err
		}
		s.Name = name
	}
	if strings.TrimSpace(s.Description) == "" {
		text, err := askOne(ctx, opts.IO, "What it does, when to use it and what comes back", nil,
			ruleOf(s, "description", func(s *feature.Spec, text string) { s.Description = text }))
		if err != nil {
			return err
		}
		s.Description = text
	}
	if s.Kind == feature.Tool {
		if s.Risk == "" {
			risk, err := askOne(ctx, opts.IO, "How bad a call by mistake would be", feature.Risks, ruleOf(s, "risk", func(s *feature.Spec, text string) { s.Risk = text }))
			if err != nil {
				return err
			}
			s.Risk = risk
			asked = true
		}
		if s.Risk != feature.ReadOnly && s.SideEffects == "" {
			text, err := askOne(ctx, opts.IO, "What a call changes", nil, ruleOf(s, "side-effects", func(s *feature.Spec, text string) { s.SideEffects = text }))
			if err != nil {
				return err
			}
			s.SideEffects = text
		}
	}
	if !asked || len(s.Fields) > 0 || s.Kind == feature.Resource {
		return nil
	}
	for {
		title := "An argument, as name:type:description; nothing when there is none"
		if len(s.Fields) > 0 {
			title = "Another argument; nothing when there is none"
		}
		text, err := askOne(ctx, opts.IO, title, nil, func(text string) error {
			if text == "" {
				return nil
			}
			f, err := feature.ParseField(text)
			if err != nil {
				return err
			}
			more := *s
			more.Fields = append(more.Fields[:len(more.Fields):len(more.Fields)], f)
			return faultOf(&more, "field")
		})
		if err != nil || text == "" {
			return err
		}
		f, err := feature.ParseField(text)
		if err != nil {
			return err
		}
		s.Fields = append(s.Fields, f)
	}
}

// ruleOf checks an answer by what it does to a copy of s.
func ruleOf(s *feature.Spec, key string, set func(*feature.Spec, string)) func(string) error {
	return func(text string) error {
		so := *s
		set(&so, text)
		return faultOf(&so, key)
	}
}

func faultOf(s *feature.Spec, key string) error {
	so := *s
	so.Complete()
	for _, f := range so.Check() {
		if f.Key == key {
			return errors.New(f.Rule)
		}
	}
	return nil
}

// askOne asks one question until its answer passes check, in a form or in plain text.
func askOne(ctx context.Context, io *iostreams.IOStreams, title string, choices []string, check func(string) error) (string, error) {
	answer := ""
	if !plain(io) {
		var field huh.Field = huh.NewInput().Title(title).Value(&answer).Validate(func(text string) error { return check(strings.TrimSpace(text)) })
		if choices != nil {
			answer = choices[0]
			field = huh.NewSelect[string]().Title(title).Options(huh.NewOptions(choices...)...).Value(&answer)
		}
		err := runForm(ctx, io, huh.NewGroup(field))
		return strings.TrimSpace(answer), err
	}
	if choices != nil {
		title += ": " + strings.Join(choices, ", ")
	}
	for {
		text, err := readLine(ctx, io, title+": ")
		if err != nil {
			return "", err
		}
		if err := check(text); err != nil {
			fmt.Fprintf(io.Err, "It %v\n", err)
			continue
		}
		return text, nil
	}
}
