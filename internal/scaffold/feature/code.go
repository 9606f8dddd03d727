package feature

import (
	"bytes"
	"embed"
	"fmt"
	"go/format"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/yosida95/uritemplate/v3"

	"github.com/famcp/famcp/internal/scaffold/gomod"
)

//go:embed templates
var templateFiles embed.FS

// data is what the templates see. Text of people goes through quote, list, args or strings, which make Go of it.
type data struct {
	Spec
	idents
	Package, Runtime string
	Fields           []fieldData
	Choices          bool // any field has some
	Asks             bool // the user, before anything happens
	Mutates          bool
	UsesIn           bool
	Zero             string // what goes with an error
	Effect           string // Go
	Question         string
	Refusal          string // what the new code says
	Good             []arg
	Bad              []badCall
	Expanded         string // URI with values for its variables
}

type fieldData struct {
	Field
	Ident, GoType string
	Tag           string // Go
	Label         string // before its value in a prompt
	ChoiceRule    string
}

// arg is an argument of a call in a test.
type arg struct {
	name  string
	value any
}

// badCall is a call that is refused because of one argument.
type badCall struct {
	Field string
	Value string // instead of the one that fits; empty leaves it out
	Args  []arg
	Want  string
}

// generate makes the code of a feature and its test, in the package called packageName.
func generate(s Spec, n idents, packageName string) (code, test []byte, err error) {
	d := data{Spec: s, idents: n, Package: packageName, Runtime: gomod.Runtime}
	fields := s.Fields
	if s.Kind == Resource {
		if fields, err = s.variables(); err != nil {
			return nil, nil, err
		}
	}
	for _, f := range fields {
		d.Fields = append(d.Fields, fieldData{
			Field: f, Ident: exported(f.Name), GoType: goTypes[f.Type], Tag: tag(f),
			Label: "\n\n" + titleOf(strings.Join(words(f.Name), "_")) + ": ", ChoiceRule: "must be one of " + strings.Join(f.Choices, ", "),
		})
		d.Choices = d.Choices || len(f.Choices) > 0
	}
	d.Good, d.Bad = examples(s.Kind, fields)
	switch s.Kind {
	case Tool:
		d.Mutates = s.Risk != ReadOnly
		d.Asks = s.Risk == MediumRisk || s.Risk == HighRisk
		d.UsesIn = d.Choices
		d.Zero = n.Out + "{}"
		d.Effect = effect(s)
		d.Question = fmt.Sprintf("%s? %s", strings.TrimRight(s.Title, "?!."), s.SideEffects)
		d.Refusal = s.Name + " cannot do anything yet"
	case Prompt:
		d.Zero = "nil"
	case Resource:
		d.Refusal = s.Name + " has no contents yet"
		if d.Expanded, err = expand(s.URI, d.Good); err != nil {
			return nil, nil, err
		}
	}
	if code, err = execute(string(s.Kind)+".go.tmpl", d); err != nil {
		return nil, nil, err
	}
	test, err = execute(string(s.Kind)+"_test.go.tmpl", d)
	return code, test, err
}

func execute(name string, d data) ([]byte, error) {
	t, err := template.New(name).Delims("[[", "]]").Option("missingkey=error").Funcs(template.FuncMap{
		"quote": strconv.Quote, "list": goList, "args": goArgs, "strings": goStrings,
	}).ParseFS(templateFiles, "templates/"+name, "templates/choices.tmpl")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, d); err != nil {
		return nil, err
	}
	formatted, err := format.Source(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return formatted, nil
}

// tag is the struct tag of a field as a Go literal, raw where it can be.
func tag(f Field) string {
	name := f.Name
	if f.Optional {
		name += ",omitempty"
	}
	description := f.Description
	if len(f.Choices) > 0 {
		description = strings.TrimRight(description, ".") + ". One of: " + strings.Join(f.Choices, ", ") + "."
	}
	text := fmt.Sprintf("json:%q jsonschema:%s", name, strconv.Quote(description))
	if strconv.CanBackquote(text) {
		return "`" + text + "`"
	}
	return strconv.Quote(text)
}

func effect(s Spec) string {
	calls := []string{"famcp", "ReadOnly()"}
	if s.Risk != ReadOnly {
		calls[1] = fmt.Sprintf("Mutates(famcp.%sRisk, %s)", upperFirst(s.Risk), strconv.Quote(s.SideEffects))
	}
	for _, m := range []struct {
		set  bool
		name string
	}{{s.Additive, "Additive"}, {s.Idempotent, "Idempotent"}, {s.ClosedWorld, "ClosedWorld"}} {
		if m.set {
			calls = append(calls, m.name+"()")
		}
	}
	return strings.Join(calls, ".")
}

// hints are what the contract tests of a project expect of a tool.
func hints(s Spec) string {
	var hints []string
	for _, h := range []struct {
		set  bool
		word string
	}{
		{s.Risk == ReadOnly, "read-only"},
		{s.Risk != ReadOnly && !s.Additive, "destructive"},
		{s.Risk == ReadOnly || s.Idempotent, "idempotent"},
		{!s.ClosedWorld, "open-world"},
	} {
		if h.set {
			hints = append(hints, h.word)
		}
	}
	return strings.Join(hints, " ")
}

// examples are arguments that fit, and calls that do not.
func examples(kind Kind, fields []Field) (good []arg, bad []badCall) {
	values := map[Type]any{String: "example", Int: 1, Number: 1.5, Bool: true, Strings: []string{"example"}}
	for _, f := range fields {
		value := values[f.Type]
		if len(f.Choices) > 0 {
			value = f.Choices[0]
		}
		good = append(good, arg{f.Name, value})
	}
	for i, f := range fields {
		missing, rule := f.Name+": is required", f.Name+": must be one of "
		if kind == Prompt { // where the error says it, not a result
			missing, rule = fmt.Sprintf("%q is required", f.Name), "must be one of "
		}
		if !f.Optional {
			bad = append(bad, badCall{f.Name, "", slices.Delete(slices.Clone(good), i, i+1), missing})
		}
		if len(f.Choices) > 0 {
			args := slices.Clone(good)
			args[i].value = "no choice"
			bad = append(bad, badCall{f.Name, "no choice", args, rule + strings.Join(f.Choices, ", ")})
		}
	}
	return good, bad
}

func expand(uri string, args []arg) (string, error) {
	t, err := uritemplate.New(uri)
	if err != nil {
		return "", err
	}
	values := uritemplate.Values{}
	for _, a := range args {
		values.Set(a.name, uritemplate.String(fmt.Sprint(a.value)))
	}
	return t.Expand(values)
}

func goList(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = strconv.Quote(v)
	}
	return "[]string{" + strings.Join(quoted, ", ") + "}"
}

func goArgs(args []arg) string    { return goMap("map[string]any", args) }
func goStrings(args []arg) string { return goMap("map[string]string", args) }

func goMap(kind string, args []arg) string {
	entries := make([]string, len(args))
	for i, a := range args {
		value := fmt.Sprintf("%#v", a.value)
		if a, ok := a.value.([]string); ok {
			value = goList(a)
		}
		entries[i] = strconv.Quote(a.name) + ": " + value
	}
	return kind + "{" + strings.Join(entries, ", ") + "}"
}
