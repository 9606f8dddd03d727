package famcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/invoke"
)

// Risk is how much harm a mutating tool can do when it is called wrongly.
type Risk string

const (
	LowRisk    Risk = "low"
	MediumRisk Risk = "medium"
	HighRisk   Risk = "high"
)

// Effect says what a tool does to the world. Clients decide by it what they
// ask their user. Make one with [ReadOnly] or [Mutates]; the zero value is
// refused.
type Effect struct {
	stated      bool
	readOnly    bool
	additive    bool
	idempotent  bool
	closedWorld bool
	risk        Risk
	sideEffects string
}

// ReadOnly is the effect of a tool that changes nothing.
func ReadOnly() Effect { return Effect{stated: true, readOnly: true, idempotent: true} }

// Mutates is the effect of a tool that changes something: sideEffects says
// what, for the model and the user. Such a tool counts as destructive, not
// repeatable and in touch with the outside world unless the methods of Effect
// say otherwise.
func Mutates(risk Risk, sideEffects string) Effect {
	return Effect{stated: true, risk: risk, sideEffects: sideEffects}
}

// Additive says that the tool only adds and never destroys.
func (e Effect) Additive() Effect { e.additive = true; return e }

// Idempotent says that a repeated call with the same arguments changes
// nothing more.
func (e Effect) Idempotent() Effect { e.idempotent = true; return e }

// ClosedWorld says that the tool touches only what this server owns.
func (e Effect) ClosedWorld() Effect { e.closedWorld = true; return e }

func (e Effect) check() error {
	switch {
	case !e.stated:
		return errors.New("no Effect; use ReadOnly() or Mutates(risk, sideEffects)")
	case e.readOnly:
		return nil
	case e.risk != LowRisk && e.risk != MediumRisk && e.risk != HighRisk:
		return fmt.Errorf("risk %q is not LowRisk, MediumRisk or HighRisk", e.risk)
	case e.sideEffects == "":
		return errors.New("no side effects in Mutates; say what it changes")
	}
	return nil
}

func (e Effect) annotations(title string) *mcp.ToolAnnotations {
	destructive, openWorld := !e.readOnly && !e.additive, !e.closedWorld
	return &mcp.ToolAnnotations{
		Title: title, ReadOnlyHint: e.readOnly, DestructiveHint: &destructive,
		IdempotentHint: e.idempotent, OpenWorldHint: &openWorld,
	}
}

func (e Effect) describe(description string) string {
	if e.readOnly {
		return description
	}
	return fmt.Sprintf("%s\n\nSide effects: %s Risk: %s.", description, sentence(e.sideEffects), e.risk)
}

func sentence(s string) string {
	if s != "" && s[len(s)-1] != '.' {
		return s + "."
	}
	return s
}

// Access says who may see and use a feature. It is enforced in lists and on
// use. The zero value lets in every caller the server lets in.
type Access struct {
	Public  bool                              // needs no credentials, where the server allows such callers
	Scopes  []string                          // all of them are needed
	Visible func(context.Context, *Call) bool // nil: to everyone
}

func (a Access) pipeline() invoke.Access {
	out := invoke.Access{Public: a.Public, Scopes: a.Scopes}
	if a.Visible != nil {
		out.Visible = func(ctx context.Context, c *invoke.Call) bool {
			ctx, public := wrap(ctx, c)
			return a.Visible(ctx, public)
		}
	}
	return out
}

// Tasks says whether calls of a tool may become tasks: calls that are answered
// with an id at once and go on after the request. It needs mcp.tasks.enabled.
//
// In the modern era the server decides: a call of a client with the extension
// io.modelcontextprotocol/tasks becomes a task when it outlives
// [Tool].TaskGrace. In revision 2025-11-25 the client asks for a task. A task
// has no time limit but its own TTL and the [Tool].Timeout, if there is one.
type Tasks string

// Whether calls become tasks.
const (
	TasksForbidden Tasks = "forbidden" // never
	TasksOptional  Tasks = "optional"  // where the client knows tasks
	TasksRequired  Tasks = "required"  // other clients cannot call the tool; it is refused at start while tasks are off
)

// Tool describes a tool. Name, Description and Effect are required.
type Tool struct {
	Name        string // ^[a-z][a-z0-9_]{0,62}$
	Title       string // for people; "" shows the name
	Description string // for the model: what it does and when to use it
	Prompt      string // longer instructions, given by the prompt tool_prompt
	Effect      Effect
	Access      Access
	Timeout     time.Duration // of one run; 0 takes mcp.limits.toolTimeoutMs, negative is none
	Tasks       Tasks         // whether calls may become tasks; "" is TasksForbidden
	TaskGrace   time.Duration // before a modern call becomes a task; 0 is 50 ms, negative is at once
	Icons       []Icon
	Deprecated  *Deprecated // nil: it stays

	// InputSchema and OutputSchema replace what is inferred from the handler's
	// types: anything that marshals to a JSON Schema 2020-12. InputSchema is
	// required when the input is json.RawMessage or map[string]any.
	InputSchema, OutputSchema any
}

// Handler serves a tool call behind the [Middleware]: args is the tool's input
// value, the result its output value.
type Handler func(ctx context.Context, call *Call, args any) (any, error)

// Middleware wraps the handler of every tool.
type Middleware func(Handler) Handler

var toolName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// AddTool registers a tool. In is a struct, whose JSON form is the arguments;
// or json.RawMessage or map[string]any together with an InputSchema. Out is a
// struct, map or slice, given as structured output and as text; string,
// [Content] or []Content for content alone; or [Result] for both.
//
// The arguments are checked against the schema before the handler runs. A
// fault in the registration is kept for [Server.Err]. A tool may be added
// while the server runs: clients are notified.
func AddTool[In, Out any](s *Server, t Tool, h func(context.Context, *Call, In) (Out, error)) {
	fail := func(err error) { s.fail(fmt.Errorf("tool %q: %w", t.Name, err)) }
	var errs []error
	if !toolName.MatchString(t.Name) {
		errs = append(errs, fmt.Errorf("the name must match %s", toolName))
	}
	if t.Description == "" {
		errs = append(errs, errors.New("no Description; say what the tool does and when to use it"))
	}
	errs = append(errs, t.Effect.check(), t.Deprecated.check(), t.checkTasks(s.cfg.MCP.Tasks.Enabled))
	if h == nil {
		errs = append(errs, errors.New("the handler is nil"))
	}
	input, err := inputSchema[In](t.InputSchema)
	if err != nil {
		errs = append(errs, fmt.Errorf("input: %w", err))
	}
	encode, output, err := encoder[Out](t.OutputSchema)
	if err != nil {
		errs = append(errs, fmt.Errorf("output: %w", err))
	}
	if err := errors.Join(errs...); err != nil {
		fail(err)
		return
	}
	// Composed by the first call: the chain is complete when the server serves.
	handler := sync.OnceValue(func() Handler {
		return s.wrapped(func(ctx context.Context, c *Call, args any) (any, error) { return h(ctx, c, args.(In)) })
	})
	s.addTool(t, &invoke.Tool{
		Listed: &mcp.Tool{
			Name: t.Name, Title: t.Title, Description: t.Deprecated.pipeline().Describe(t.Effect.describe(t.Description)),
			Annotations: t.Effect.annotations(t.Title), Icons: t.Icons,
		},
		Access: t.Access.pipeline(), Timeout: t.Timeout, Tasks: invoke.TaskSupport(t.Tasks), TaskGrace: t.TaskGrace,
		Deprecated: t.Deprecated.pipeline(), Input: input, Output: output,
		Handle: func(ctx context.Context, c *invoke.Call, raw json.RawMessage) (invoke.Output, error) {
			in, err := decodeInput[In](raw)
			if err != nil {
				return invoke.Output{}, err
			}
			ctx, call := wrap(ctx, c)
			out, err := handler()(ctx, call, in)
			if err != nil {
				return invoke.Output{}, err
			}
			return encode(out)
		},
	})
}

func (t Tool) checkTasks(enabled bool) error {
	switch t.Tasks {
	case "", TasksForbidden, TasksOptional:
		return nil
	case TasksRequired:
		if !enabled {
			return errors.New("Tasks is TasksRequired and tasks are off; set mcp.tasks.enabled (MCP_TASKS_ENABLED=true) or use TasksOptional")
		}
		return nil
	}
	return fmt.Errorf("Tasks is %q, not TasksForbidden, TasksOptional or TasksRequired", t.Tasks)
}

func inputSchema[In any](given any) (*invoke.Schema, error) {
	t := reflect.TypeFor[In]()
	raw := t == reflect.TypeFor[json.RawMessage]() || t == reflect.TypeFor[map[string]any]()
	var (
		schema *invoke.Schema
		err    error
	)
	switch {
	case given != nil:
		schema, err = invoke.ParseSchema(given)
	case raw:
		return nil, fmt.Errorf("a handler of %s needs Tool.InputSchema", t)
	case t.Kind() == reflect.Struct, t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct:
		schema, err = invoke.SchemaFor(t)
	default:
		return nil, fmt.Errorf("%s is not a struct", t)
	}
	if err != nil {
		return nil, err
	}
	if !schema.IsObject {
		return nil, errors.New("the schema's type must be object")
	}
	return schema, nil
}

// decodeInput reads checked arguments. Integers keep their exact value.
func decodeInput[In any](raw json.RawMessage) (In, error) {
	var in In
	switch p := any(&in).(type) {
	case *json.RawMessage:
		*p = raw
		return in, nil
	default:
		err := unmarshal(raw, p)
		var field *json.UnmarshalTypeError
		if errors.As(err, &field) && strings.HasPrefix(field.Value, "number") {
			// 1.0 and 1e2 are integers to JSON Schema, but not to encoding/json.
			in = *new(In)
			err = json.Unmarshal(invoke.PlainIntegers(raw), &in)
		}
		switch {
		case err == nil:
			return in, nil
		case errors.As(err, &field):
			return in, Invalidf(cmp.Or(field.Field, "arguments"), "is out of range or not of the right type")
		default:
			return in, Invalidf("arguments", "cannot be read").With(err)
		}
	}
}

// unmarshal keeps the numbers of a loose map exact.
func unmarshal(raw json.RawMessage, v any) error {
	if _, loose := v.(*map[string]any); !loose {
		return json.Unmarshal(raw, v)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return dec.Decode(v)
}

// structured is satisfied by Result.
type structured interface {
	valueType() reflect.Type
	parts() (any, []Content)
}

func (r Result[T]) valueType() reflect.Type { return reflect.TypeFor[T]() }
func (r Result[T]) parts() (any, []Content) { return r.Value, r.Content }

// encoder returns how a handler's output is sent, and its schema if it is
// structured.
func encoder[Out any](given any) (func(any) (invoke.Output, error), *invoke.Schema, error) {
	t := reflect.TypeFor[Out]()
	switch {
	case t == reflect.TypeFor[string]() && given == nil:
		return func(v any) (invoke.Output, error) {
			return invoke.Output{Content: []Content{Text(v.(string))}}, nil
		}, nil, nil
	case t == reflect.TypeFor[Content]():
		return func(v any) (invoke.Output, error) {
			c, ok := v.(Content)
			if !ok {
				return invoke.Output{}, errors.New("the handler returned no content")
			}
			return invoke.Output{Content: []Content{c}}, nil
		}, nil, nil
	case t == reflect.TypeFor[[]Content]():
		return func(v any) (invoke.Output, error) { return invoke.Output{Content: v.([]Content)}, nil }, nil, nil
	}
	value := func(v any) (any, []Content) { return v, nil }
	var zero Out
	if r, ok := any(zero).(structured); ok {
		t = r.valueType()
		value = func(v any) (any, []Content) { return v.(structured).parts() }
	}
	var (
		schema *invoke.Schema
		err    error
	)
	switch {
	case given != nil:
		schema, err = invoke.ParseSchema(given)
	case t.Kind() == reflect.Interface || t == reflect.TypeFor[json.RawMessage]():
		err = fmt.Errorf("%s says nothing of its form; use a struct or give Tool.OutputSchema", t)
	default:
		schema, err = invoke.SchemaFor(t)
	}
	if err != nil {
		return nil, nil, err
	}
	return func(v any) (invoke.Output, error) {
		v, content := value(v)
		raw, err := marshal(v)
		return invoke.Output{Structured: raw, Content: content}, err
	}, schema, nil
}

// marshal is JSON with nil slices and maps at the root as empty ones.
func marshal(v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err == nil && string(raw) == "null" {
		switch reflect.TypeOf(v).Kind() {
		case reflect.Slice:
			return json.RawMessage("[]"), nil
		case reflect.Map:
			return json.RawMessage("{}"), nil
		}
	}
	return raw, err
}
