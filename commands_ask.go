package famcp

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/invoke"
)

// notices writes whole lines from several goroutines.
type notices struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements [io.Writer].
func (n *notices) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.w.Write(b)
}

func (n *notices) progress(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
	q := req.Params
	done := strconv.FormatFloat(q.Progress, 'g', -1, 64)
	if q.Total > 0 {
		done += "/" + strconv.FormatFloat(q.Total, 'g', -1, 64)
	}
	fmt.Fprintln(n, strings.TrimSpace(done+" "+q.Message))
}

func (n *notices) message(_ context.Context, req *mcp.LoggingMessageRequest) {
	text, ok := req.Params.Data.(string)
	if !ok {
		raw, err := json.Marshal(req.Params.Data)
		if err != nil {
			return
		}
		text = string(raw)
	}
	fmt.Fprintf(n, "%s: %s\n", req.Params.Level, text)
}

// asker answers what a tool asks: a person on the terminal, or --yes.
type asker struct {
	ctx    context.Context // of the command: interrupting it interrupts a question
	in     io.Reader
	w      io.Writer
	person bool // somebody can be asked
	yes    bool

	mu    sync.Mutex // one question at a time
	lines chan string
}

var declined = &mcp.ElicitResult{Action: "decline"}

// answer is the ElicitationHandler of the client.
func (a *asker) answer(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := req.Params
	if q.URL != "" {
		return a.visit(ctx, q)
	}
	f, err := parseForm(q.RequestedSchema)
	if err != nil {
		return nil, err
	}
	if content, ok := f.consent(); ok && a.yes {
		fmt.Fprintf(a.w, "%s\nanswered: yes (--yes)\n", q.Message)
		return &mcp.ElicitResult{Action: "accept", Content: content}, nil
	}
	if !a.person {
		fmt.Fprintf(a.w, "%s\ndeclined: nobody can be asked here%s\n", q.Message, f.remedy())
		return declined, nil
	}
	return a.fill(ctx, q.Message, f)
}

func (a *asker) visit(ctx context.Context, q *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	fmt.Fprintf(a.w, "%s\n%s\n", q.Message, q.URL)
	if !a.person {
		fmt.Fprintln(a.w, "declined: nobody can be asked here")
		return declined, nil
	}
	fmt.Fprint(a.w, "Done? [y/N] ")
	line, err := a.line(ctx)
	if yes, _ := yesNo(line); err == nil && yes {
		return &mcp.ElicitResult{Action: "accept"}, nil
	}
	return declined, a.ended(ctx)
}

// fill asks for each field of a form. The end of input declines.
func (a *asker) fill(ctx context.Context, message string, f form) (*mcp.ElicitResult, error) {
	single := len(f) == 1 && f[0].Type == "boolean"
	if !single {
		fmt.Fprintf(a.w, "%s (the end of input, Ctrl-D, declines)\n", message)
	}
	content := map[string]any{}
	for _, field := range f {
		prompt := "  " + field.prompt()
		if single {
			prompt = message + field.choices()
		}
		for {
			fmt.Fprint(a.w, prompt+" ")
			line, err := a.line(ctx)
			if err != nil {
				fmt.Fprintln(a.w)
				return declined, a.ended(ctx)
			}
			value, problem := field.read(strings.TrimSpace(line))
			if problem != "" {
				fmt.Fprintf(a.w, "  %s\n", problem)
				continue
			}
			if value != nil {
				content[field.name] = plain(value)
			}
			break
		}
	}
	return &mcp.ElicitResult{Action: "accept", Content: content}, nil
}

// ended is the error of a question that was interrupted, or nil.
func (a *asker) ended(ctx context.Context) error { return cmp.Or(a.ctx.Err(), ctx.Err()) }

// line reads one line. A read of a terminal cannot be interrupted, so it has a
// goroutine of its own, which lives as long as the process.
func (a *asker) line(ctx context.Context) (string, error) {
	if a.lines == nil {
		a.lines = make(chan string)
		go func() {
			defer close(a.lines)
			for scan := bufio.NewScanner(a.in); scan.Scan(); {
				a.lines <- scan.Text()
			}
		}()
	}
	select {
	case line, ok := <-a.lines:
		if !ok {
			return "", io.EOF
		}
		return line, nil
	case <-a.ctx.Done():
		return "", a.ctx.Err()
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// form is a flat object that is asked for, the required fields first.
type form []formField

type formField struct {
	name     string
	required bool
	schema   *invoke.Schema

	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Default     json.RawMessage `json:"default"`
	Enum        []string        `json:"enum"`
	OneOf       []titled        `json:"oneOf"`
	Items       struct {
		Enum  []string `json:"enum"`
		AnyOf []titled `json:"anyOf"`
	} `json:"items"`
}

type titled struct {
	Const string `json:"const"`
}

// parseForm reads the subset of JSON Schema that elicitation allows. The order
// of fields does not survive the SDK, so it is that of their names.
func parseForm(requested any) (form, error) {
	raw, err := json.Marshal(requested)
	if err != nil {
		return nil, err
	}
	object, err := decode[struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}](raw)
	if err != nil {
		return nil, fmt.Errorf("the form is not readable: %w", err)
	}
	var f form
	for _, name := range slices.Sorted(maps.Keys(object.Properties)) {
		field, err := decode[formField](object.Properties[name])
		if err != nil {
			return nil, fmt.Errorf("field %q of the form is not readable: %w", name, err)
		}
		if field.schema, err = invoke.ParseSchema(object.Properties[name]); err != nil {
			return nil, fmt.Errorf("field %q of the form: %w", name, err)
		}
		field.name, field.required = name, slices.Contains(object.Required, name)
		f = append(f, field)
	}
	slices.SortStableFunc(f, func(a, b formField) int {
		switch {
		case a.required == b.required:
			return 0
		case a.required:
			return -1
		default:
			return 1
		}
	})
	return f, nil
}

// consent is the form filled in by somebody who only says yes: true to what
// must be answered by yes or no, else the default.
func (f form) consent() (map[string]any, bool) {
	content := map[string]any{}
	for _, field := range f {
		switch {
		case field.Default != nil:
			content[field.name] = plain(field.Default)
		case field.required && field.Type == "boolean":
			content[field.name] = true
		case field.required:
			return nil, false
		}
	}
	return content, true
}

// plain is valid JSON as the values that the SDK checks.
func plain(raw json.RawMessage) any {
	v, err := decode[any](raw)
	if err != nil {
		return string(raw)
	}
	return v
}

func (f form) remedy() string {
	if _, ok := f.consent(); ok {
		return "; --yes accepts"
	}
	return "; run it on a terminal"
}

// options are the values a field is limited to; nil for any.
func (f formField) options() []string {
	options := slices.Concat(f.Enum, f.Items.Enum)
	for _, o := range slices.Concat(f.OneOf, f.Items.AnyOf) {
		options = append(options, o.Const)
	}
	return options
}

// choices is the end of a prompt: what can be answered and what an empty
// answer means.
func (f formField) choices() string {
	switch {
	case f.Type == "boolean" && string(f.Default) == "true":
		return " [Y/n]"
	case f.Type == "boolean":
		return " [y/N]"
	case f.Default != nil:
		return " [" + strings.Trim(string(f.Default), `"`) + "]:"
	case !f.required:
		return " []:"
	default:
		return ":"
	}
}

func (f formField) prompt() string {
	kind := f.Type
	if options := f.options(); options != nil {
		kind = "one of "
		if f.Type == "array" {
			kind = "some of, by comma, "
		}
		kind += strings.Join(options, ", ")
	}
	label := cmp.Or(f.Title, f.name)
	if f.Description != "" {
		label += ", " + f.Description
	}
	return fmt.Sprintf("%s (%s)%s", label, kind, f.choices())
}

// read turns an answer into the field's value, nil for none, or says what is
// wrong with it.
func (f formField) read(line string) (value json.RawMessage, problem string) {
	switch {
	case line == "" && f.Default != nil:
		return f.Default, ""
	case line == "" && !f.required && f.Type != "boolean":
		return nil, ""
	case f.Type == "boolean":
		yes, ok := yesNo(line)
		if !ok {
			return nil, "answer y or n"
		}
		return json.RawMessage(strconv.FormatBool(yes)), ""
	case line == "":
		return nil, "an answer is required"
	case f.Type == "array":
		parts := strings.Split(line, ",")
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		value, _ = json.Marshal(parts) // texts
	case f.Type == "string":
		value, _ = json.Marshal(line)
	case !json.Valid([]byte(line)):
		return nil, "must be of type " + f.Type
	default:
		value = json.RawMessage(line)
	}
	if _, violations := f.schema.Check(value); len(violations) > 0 {
		return nil, violations[0].Reason
	}
	return value, ""
}

// yesNo reads an answer; an empty one is no.
func yesNo(line string) (yes, ok bool) {
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes", "true":
		return true, true
	case "", "n", "no", "false":
		return false, true
	}
	return false, false
}
