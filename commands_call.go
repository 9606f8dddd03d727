package famcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/protocol"
)

// hush leaves out of the log what a client's own output says better. A level
// that was chosen to be told more or less stays.
func hush(cfg Configured) {
	if c := cfg.config(); c.Logger.Level == "info" {
		c.Logger.Level = "warn"
	}
}

// local is a client in the process of its server.
type local struct {
	*mcp.ClientSession
	server *Server
}

// connect starts the server and connects a client that speaks era, or the
// newest one served if it is "".
func (s *Server) connect(ctx context.Context, era string, options *mcp.ClientOptions) (*local, error) {
	version := protocol.Modern
	if served := protocol.Eras(s.cfg.MCP.Eras); era == "legacy" || era == "" && !served.Serves(protocol.EraModern) {
		version = protocol.NewestLegacy
	}
	if wanted := protocol.EraOf(version); !protocol.Eras(s.cfg.MCP.Eras).Serves(wanted) {
		return nil, fmt.Errorf("mcp.eras is %s: the %s era is not served", s.cfg.MCP.Eras, wanted)
	}
	if err := s.start(""); err != nil {
		return nil, err
	}
	// The connection outlives ctx, so that a cancelled call ends as a call.
	connected := context.WithoutCancel(ctx)
	caller, err := s.asLocal(connected)
	if err != nil {
		return nil, errors.Join(err, s.Close(connected))
	}
	serverSide, clientSide := mcp.NewInMemoryTransports()
	if _, err := s.mcp.Connect(caller, serverSide, nil); err != nil {
		return nil, errors.Join(err, s.Close(connected))
	}
	client := mcp.NewClient(&mcp.Implementation{Name: s.info.Name + "-command", Version: s.info.Version}, options)
	session, err := client.Connect(connected, clientSide, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return nil, errors.Join(err, s.Close(connected))
	}
	return &local{ClientSession: session, server: s}, nil
}

// close ends the session, then the server, within the time of a graceful stop.
func (l *local) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	return errors.Join(l.Close(), l.server.Close(ctx))
}

func (l *local) tools(ctx context.Context) ([]*mcp.Tool, error) {
	tools := []*mcp.Tool{}
	for t, err := range l.Tools(ctx, nil) {
		if err != nil {
			return nil, answered(err)
		}
		tools = append(tools, t)
	}
	return tools, nil
}

// answered leaves the SDK's wrapping out of an error that the server sent.
func answered(err error) error {
	var rpc *jsonrpc.Error
	if !errors.As(err, &rpc) {
		return err
	}
	return fmt.Errorf("%s (code %d)", rpc.Message, rpc.Code)
}

// eraOption adds the option --era.
func eraOption(options *flag.FlagSet) *string {
	era := new(string)
	options.Func("era", "speak the protocol of this `ERA`, modern or legacy; modern where it is served", func(text string) error {
		if text != "modern" && text != "legacy" {
			return errors.New("want modern or legacy")
		}
		*era = text
		return nil
	})
	return era
}

func (p *program) toolsCommand(options *flag.FlagSet) func(context.Context, []string) error {
	asJSON := options.Bool("json", false, "print the tools as clients get them")
	era := eraOption(options)
	return func(ctx context.Context, operands []string) (err error) {
		if len(operands) > 1 {
			return usagef("tools", "tools shows one tool at a time")
		}
		l, err := p.local(ctx, *era, nil)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, l.close(ctx)) }()
		tools, err := l.tools(ctx)
		if err != nil {
			return err
		}
		if len(operands) == 1 {
			t, err := pick(tools, operands[0])
			switch {
			case err != nil:
				return err
			case *asJSON:
				return printJSON(p.out, t)
			}
			_, err = io.WriteString(p.out, l.server.manual(t, p.name))
			return err
		}
		if *asJSON {
			return printJSON(p.out, map[string]any{"tools": tools})
		}
		_, err = io.WriteString(p.out, l.server.toolTable(tools))
		return err
	}
}

// local makes the server and connects to it in this process.
func (p *program) local(ctx context.Context, era string, options *mcp.ClientOptions) (*local, error) {
	cfg, _, err := p.load()
	if err != nil {
		return nil, err
	}
	hush(cfg)
	s, err := p.server(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return s.connect(ctx, era, options)
}

func pick(tools []*mcp.Tool, name string) (*mcp.Tool, error) {
	var names []string
	for _, t := range tools {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	if len(names) == 0 {
		return nil, usagef("tools", "there is no tool %q; this server has none", name)
	}
	return nil, usagef("tools", "there is no tool %q%s; the tools are %s", name, didYouMean(name, names), strings.Join(names, ", "))
}

func (s *Server) toolTable(tools []*mcp.Tool) string {
	if len(tools) == 0 {
		return "This server has no tools.\n"
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "NAME\tEFFECT\tDESCRIPTION\n")
	for _, t := range tools {
		first, _, _ := strings.Cut(strings.TrimSpace(t.Description), "\n")
		fmt.Fprintf(w, "%s\t%s\t%s\n", t.Name, s.effectOf(t), shorten(cmp.Or(t.Title, first), 80))
	}
	_ = w.Flush() // to memory
	return b.String()
}

// effectOf is a tool's effect in two words. A tool that the project gave to
// the SDK itself has only hints.
func (s *Server) effectOf(t *mcp.Tool) string {
	s.mu.Lock()
	known, ok := s.tools[t.Name]
	s.mu.Unlock()
	switch {
	case ok && !known.Effect.readOnly:
		return string(known.Effect.risk) + " risk"
	case ok || t.Annotations != nil && t.Annotations.ReadOnlyHint:
		return "read-only"
	default:
		return "unknown"
	}
}

// shorten cuts text to at most most characters.
func shorten(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return strings.TrimRight(string([]rune(text)[:most-1]), " ") + "…"
}

// toolInput is what the commands read of a tool's input schema.
type toolInput struct {
	Properties map[string]toolArgument `json:"properties"`
	Required   []string                `json:"required"`
}

type toolArgument struct {
	Type        any    `json:"type"` // a text or a list of them
	Description string `json:"description"`
	Enum        []any  `json:"enum"`
}

func inputOf(t *mcp.Tool) (toolInput, error) {
	raw, err := json.Marshal(t.InputSchema)
	if err != nil {
		return toolInput{}, err
	}
	return decode[toolInput](raw)
}

// types lists the JSON types an argument may have; nil is any.
func (a toolArgument) types() []string {
	switch t := a.Type.(type) {
	case string:
		return []string{t}
	case []any:
		var types []string
		for _, x := range t {
			if text, ok := x.(string); ok {
				types = append(types, text)
			}
		}
		return types
	}
	return nil
}

// manual describes one tool to a person who wants to call it.
func (s *Server) manual(t *mcp.Tool, program string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s)\n", t.Name, s.effectOf(t))
	if t.Title != "" {
		b.WriteString(t.Title + "\n")
	}
	fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(t.Description))
	in, err := inputOf(t)
	if err != nil || len(in.Properties) == 0 {
		fmt.Fprintf(&b, "\nIt takes no arguments: %s call %s\n", program, t.Name)
		return b.String()
	}
	b.WriteString("\nArguments:\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, name := range slices.Sorted(maps.Keys(in.Properties)) {
		arg, need := in.Properties[name], ""
		if slices.Contains(in.Required, name) {
			need = "required"
		}
		types := slices.DeleteFunc(arg.types(), func(t string) bool { return t == "null" })
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", name, cmp.Or(strings.Join(types, " or "), "any"), need, arg.meaning())
	}
	_ = w.Flush() // to memory
	var lines []string
	for line := range strings.Lines(b.String()) { // tabwriter pads empty cells
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.Join(lines, "\n") + "\n"
}

func (a toolArgument) meaning() string {
	if len(a.Enum) == 0 {
		return a.Description
	}
	values := make([]string, len(a.Enum))
	for i, v := range a.Enum {
		values[i] = fmt.Sprint(v)
	}
	return strings.TrimSpace(a.Description + " (one of " + strings.Join(values, ", ") + ")")
}

// assignment is one NAME=VALUE or NAME:=JSON of the command line.
type assignment struct {
	name, value string
	isJSON      bool
}

func parseAssignments(operands []string) ([]assignment, error) {
	var all []assignment
	seen := map[string]bool{}
	for _, operand := range operands {
		name, value, ok := strings.Cut(operand, "=")
		if !ok || name == "" || name == ":" {
			return nil, usagef("call", "%q is no argument; write NAME=VALUE", operand)
		}
		a := assignment{name: name, value: value}
		a.name, a.isJSON = strings.CutSuffix(name, ":")
		if seen[a.name] {
			return nil, usagef("call", "argument %q is given twice; write a list as %s:='[…]'", a.name, a.name)
		}
		seen[a.name] = true
		all = append(all, a)
	}
	return all, nil
}

// encoded is the value as JSON of one of the types.
func (a assignment) encoded(types []string) (json.RawMessage, error) {
	text := json.RawMessage(strings.TrimSpace(a.value))
	valid := json.Valid(text)
	switch {
	case a.isJSON && !valid:
		return nil, usagef("call", "argument %q: %q is not JSON", a.name, a.value)
	case a.isJSON:
		return text, nil
	case slices.Contains(types, "string"), types == nil && !valid:
		return json.Marshal(a.value)
	case types == nil, valid && slices.ContainsFunc(types, func(t string) bool { return hasType(text, t) }):
		return text, nil
	}
	wanted := strings.Join(slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == "null" }), " or ")
	hint := ""
	switch wanted {
	case "array":
		hint = fmt.Sprintf(`; write it as JSON: %s='["a","b"]'`, a.name)
	case "object":
		hint = fmt.Sprintf(`; write it as JSON: %s='{"key":"value"}'`, a.name)
	case "boolean":
		hint = "; write true or false"
	}
	return nil, usagef("call", "argument %q is of type %s, got %q%s", a.name, wanted, a.value, hint)
}

// hasType reports whether valid JSON is of a type of JSON Schema.
func hasType(raw json.RawMessage, t string) bool {
	switch raw[0] {
	case '{':
		return t == "object"
	case '[':
		return t == "array"
	case '"':
		return t == "string"
	case 't', 'f':
		return t == "boolean"
	case 'n':
		return t == "null"
	}
	if t != "integer" {
		return t == "number"
	}
	n, err := json.Number(raw).Float64()
	return err == nil && n == math.Trunc(n)
}

// callOptions are the options of the command call.
type callOptions struct {
	json   string
	output string
	yes    bool
	era    *string
}

func (p *program) callCommand(options *flag.FlagSet) func(context.Context, []string) error {
	o := callOptions{output: "text", era: eraOption(options)}
	options.StringVar(&o.json, "json", "", "take arguments from a JSON `OBJECT`, or with - from standard input; those named win over it")
	options.Func("o", "print the result in this `FORM`: text, structured (the structured content alone) or json (all of it)", func(text string) error {
		if !slices.Contains([]string{"text", "structured", "json"}, text) {
			return errors.New("want text, structured or json")
		}
		o.output = text
		return nil
	})
	options.BoolVar(&o.yes, "yes", false, "accept what the tool asks, as far as yes or a default is an answer")
	return func(ctx context.Context, operands []string) error {
		if len(operands) == 0 {
			return usagef("call", "call needs the name of a tool; %q lists them", p.name+" tools")
		}
		assigned, err := parseAssignments(operands[1:])
		if err != nil {
			return err
		}
		arguments, err := p.readArguments(o.json)
		if err != nil {
			return err
		}
		res, err := p.call(ctx, operands[0], arguments, assigned, o)
		if res == nil {
			return err
		}
		return errors.Join(p.printResult(res, o.output), err)
	}
}

// readArguments reads the value of --json.
func (p *program) readArguments(text string) (map[string]json.RawMessage, error) {
	arguments := map[string]json.RawMessage{}
	if text == "" {
		return arguments, nil
	}
	if text == "-" {
		raw, err := io.ReadAll(p.in)
		if err != nil {
			return nil, fmt.Errorf("reading the arguments from standard input: %w", err)
		}
		text = string(raw)
	}
	if err := json.Unmarshal([]byte(text), &arguments); err != nil || arguments == nil {
		return nil, usagef("call", "--json: the arguments must be a JSON object such as '{\"limit\": 5}'")
	}
	return arguments, nil
}

// call makes one call, all its questions included. With a result the error is
// that of stopping the server after it.
func (p *program) call(ctx context.Context, tool string, arguments map[string]json.RawMessage, assigned []assignment, o callOptions) (_ *mcp.CallToolResult, err error) {
	said := &notices{w: p.err}
	asker := &asker{ctx: ctx, in: p.in, w: said, person: p.interactive && o.json != "-", yes: o.yes}
	l, err := p.local(ctx, *o.era, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{
			Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{},
		}},
		ElicitationHandler:          asker.answer,
		ProgressNotificationHandler: said.progress,
		LoggingMessageHandler:       said.message,
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.close(ctx)) }()
	tools, err := l.tools(ctx)
	if err != nil {
		return nil, err
	}
	t, err := pick(tools, tool)
	if err != nil {
		return nil, err
	}
	in, err := inputOf(t)
	if err != nil {
		return nil, err
	}
	for _, a := range assigned {
		types := []string{"string"} // an unknown name is for the server to explain
		if arg, ok := in.Properties[a.name]; ok {
			types = arg.types()
		}
		if arguments[a.name], err = a.encoded(types); err != nil {
			return nil, err
		}
	}
	params := &mcp.CallToolParams{Meta: mcp.Meta{protocol.MetaLogLevel: "info"}, Name: tool, Arguments: arguments}
	params.SetProgressToken(tool)
	res, err := l.CallTool(ctx, params)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	} else if err != nil {
		return nil, answered(err)
	}
	return res, nil
}

// printResult prints what the tool gave; the text of a failure goes to the
// people.
func (p *program) printResult(res *mcp.CallToolResult, form string) error {
	var err error
	switch {
	case form == "json":
		err = printJSON(p.out, res)
	case res.IsError:
		_, err = io.WriteString(p.err, resultText(res))
	case form == "structured" && res.StructuredContent == nil:
		return errors.New("the tool gave no structured content; see -o json")
	case form == "structured":
		err = printJSON(p.out, res.StructuredContent)
	default:
		_, err = io.WriteString(p.out, resultText(res))
	}
	if err == nil && res.IsError {
		return errReported
	}
	return err
}

// resultText is a result for people: texts as they are, a note for what is
// not text. The JSON that only mirrors the structured content is indented.
func resultText(res *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range res.Content {
		text := contentText(c)
		if len(res.Content) == 1 && res.StructuredContent != nil {
			text = indentMirror(text, res.StructuredContent)
		}
		b.WriteString(text)
		if !strings.HasSuffix(text, "\n") {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func contentText(c mcp.Content) string {
	switch c := c.(type) {
	case *mcp.TextContent:
		return c.Text
	case *mcp.ImageContent:
		return fmt.Sprintf("[image, %s, %d bytes]", c.MIMEType, len(c.Data))
	case *mcp.AudioContent:
		return fmt.Sprintf("[audio, %s, %d bytes]", c.MIMEType, len(c.Data))
	case *mcp.ResourceLink:
		return fmt.Sprintf("[link to %s: %s]", cmp.Or(c.Title, c.Name), c.URI)
	case *mcp.EmbeddedResource:
		if c.Resource.Blob == nil {
			return c.Resource.Text
		}
		return fmt.Sprintf("[resource %s, %s, %d bytes]", c.Resource.URI, c.Resource.MIMEType, len(c.Resource.Blob))
	default:
		return fmt.Sprintf("[content of type %T]", c)
	}
}

func indentMirror(text string, structured any) string {
	mirror, err := json.Marshal(structured)
	if err != nil {
		return text
	}
	same, err := decode[any](json.RawMessage(text))
	if err != nil {
		return text
	}
	again, err := json.Marshal(same)
	if err != nil || !bytes.Equal(mirror, again) {
		return text
	}
	var out bytes.Buffer
	if json.Indent(&out, []byte(text), "", "  ") != nil {
		return text
	}
	return string(readable(out.Bytes()))
}
