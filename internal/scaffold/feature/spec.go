// Package feature adds a tool, a prompt or a resource to the Go code of a project: a file with its test in the project's
// style, its registration where the project registers, and its line in the project's contract tests.
//
// It is pure: it takes the texts of files and returns new ones. Code is found and changed by its syntax and types.
package feature

import (
	"fmt"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yosida95/uritemplate/v3"
)

// Kind is what is added.
type Kind string

// The kinds.
const (
	Tool     Kind = "tool"
	Prompt   Kind = "prompt"
	Resource Kind = "resource" // a template when its URI has variables
)

// The risks of a tool.
const (
	ReadOnly   = "read-only"
	LowRisk    = "low"
	MediumRisk = "medium"
	HighRisk   = "high"
)

// Risks are the choices for [Spec.Risk].
var Risks = []string{ReadOnly, LowRisk, MediumRisk, HighRisk}

// Spec says what to add.
type Spec struct {
	Kind        Kind
	Name        string
	Title       string // for people; empty is made from the name
	Description string
	Fields      []Field  // arguments; of a resource, the variables of its URI that need a description
	Scopes      []string // that a caller needs

	// Of a tool.
	Risk        string // one of [Risks]
	SideEffects string // what it changes; not with ReadOnly
	Additive    bool   // it only adds
	Idempotent  bool   // repeating it changes nothing more
	ClosedWorld bool   // it touches only what the server owns

	// Of a resource.
	URI  string // empty is made from the name
	MIME string // empty is text/plain
}

// Type is the type of an argument.
type Type string

// The types.
const (
	String  Type = "string"
	Int     Type = "int"
	Number  Type = "number"
	Bool    Type = "bool"
	Strings Type = "[]string"
)

var goTypes = map[Type]string{String: "string", Int: "int", Number: "float64", Bool: "bool", Strings: "[]string"}

// Field is one argument.
type Field struct {
	Name        string
	Type        Type
	Optional    bool
	Choices     []string // of a String: the values it may have
	Description string
}

const fieldForm = "must be name:type:description, with string, int, number, bool, []string or choices such as open|closed as the type, and ? after it " +
	"when the argument is optional"

// ParseField reads name:type:description.
func ParseField(text string) (Field, error) {
	parts := strings.SplitN(text, ":", 3)
	if len(parts) != 3 {
		return Field{}, fmt.Errorf("%s; it is %q", fieldForm, text)
	}
	f := Field{Name: strings.TrimSpace(parts[0]), Description: strings.TrimSpace(parts[2])}
	kind, optional := strings.CutSuffix(strings.TrimSpace(parts[1]), "?")
	f.Type, f.Optional = Type(kind), optional
	if strings.Contains(kind, "|") {
		f.Type, f.Choices = String, strings.Split(kind, "|")
	}
	if _, known := goTypes[f.Type]; !known {
		return Field{}, fmt.Errorf("%s; the type is %q", fieldForm, kind)
	}
	return f, nil
}

// Fault is one thing that is wrong with a [Spec].
type Fault struct {
	Key  string // name, description, risk and so on, as the flags are called; field for all of them
	Rule string // reads on from the key
}

const (
	maxName        = 63
	maxDescription = 2000
	maxFields      = 50
)

var (
	namePattern   = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)
	fieldPattern  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,62}$`)
	choicePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.+-]*$`)
	scopePattern  = regexp.MustCompile(`^[\x21\x23-\x5B\x5D-\x7E]+$`) // RFC 6749 §3.3
	mimePattern   = regexp.MustCompile(`^[a-z]+/[A-Za-z0-9][A-Za-z0-9.+-]*$`)
	keywordTag    = regexp.MustCompile(`^[^ \t\n]*=`) // reserved by jsonschema-go
)

// builtIn are the names that the runtime serves itself.
var builtIn = map[Kind][]string{Prompt: {"agent_brief", "agent_prompt", "tool_prompt"}}

// Complete fills in the defaults of what is empty.
func (s *Spec) Complete() {
	if s.Title == "" {
		s.Title = titleOf(s.Name)
	}
	if s.Kind == Resource {
		if s.URI == "" {
			s.URI = strings.ReplaceAll(s.Name, "_", "-") + "://all"
		}
		if s.MIME == "" {
			s.MIME = "text/plain"
		}
	}
}

func titleOf(name string) string {
	words := strings.ReplaceAll(name, "_", " ")
	if words == "" {
		return ""
	}
	return strings.ToUpper(words[:1]) + words[1:]
}

// Check returns everything that is wrong with a completed s by itself, whatever the project.
func (s *Spec) Check() []Fault {
	var faults []Fault
	fault := func(key, rule string) {
		if rule != "" {
			faults = append(faults, Fault{key, rule})
		}
	}
	fault("name", checkName(s.Kind, s.Name))
	if s.Title != "" {
		fault("title", checkText(s.Title, 200))
	}
	if strings.TrimSpace(s.Description) == "" {
		fault("description", "is missing; say what it does, when to use it and what comes back")
	} else {
		fault("description", checkText(s.Description, maxDescription))
	}
	for _, scope := range s.Scopes {
		if !scopePattern.MatchString(scope) {
			fault("scope", fmt.Sprintf("must be visible characters without spaces, quotes and backslashes, not %q", scope))
		}
	}
	if s.Kind == Tool {
		faults = append(faults, s.checkEffect()...)
	}
	faults = append(faults, s.checkFields()...)
	if s.Kind == Resource {
		if _, err := s.variables(); err != nil {
			fault("uri", err.Error())
		}
		if !mimePattern.MatchString(s.MIME) {
			fault("mime", fmt.Sprintf("must be a media type such as text/markdown, not %q", s.MIME))
		}
	}
	return faults
}

func checkName(kind Kind, name string) string {
	switch {
	case name == "":
		return "is missing; it begins with a letter and has lower case letters, digits and underscores"
	case !namePattern.MatchString(name):
		return fmt.Sprintf("must match %s, not %q", namePattern, name)
	case token.IsKeyword(name) || types.Universe.Lookup(name) != nil || name == "init" || name == "main":
		return fmt.Sprintf("must not be %q, a word of the Go language", name)
	case slices.Contains(builtIn[kind], name):
		return fmt.Sprintf("must not be %q, which the runtime serves itself", name)
	}
	return ""
}

// checkText holds text to one line that shows as it is stored.
func checkText(text string, limit int) string {
	if !utf8.ValidString(text) {
		return "must be valid UTF-8"
	}
	for _, r := range text {
		if unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control) || r == '\ufeff' {
			return fmt.Sprintf("must be one line without control characters; it contains %U", r)
		}
	}
	if n := utf8.RuneCountInString(text); n > limit {
		return fmt.Sprintf("must be at most %d characters long, not %d", limit, n)
	}
	if strings.TrimSpace(text) == "" {
		return "must not be blank"
	}
	return ""
}

func (s *Spec) checkEffect() []Fault {
	var faults []Fault
	switch {
	case s.Risk == "":
		faults = append(faults, Fault{"risk", "is missing; it is read-only for a tool that changes nothing, else low, medium or high: how bad a call by mistake would be"})
	case !slices.Contains(Risks, s.Risk):
		faults = append(faults, Fault{"risk", fmt.Sprintf("must be one of %s, not %q", strings.Join(Risks, ", "), s.Risk)})
	case s.Risk == ReadOnly && s.SideEffects != "":
		faults = append(faults, Fault{"side-effects", "are those of a tool that changes something; this one is read-only"})
	case s.Risk == ReadOnly && (s.Additive || s.Idempotent):
		faults = append(faults, Fault{"risk", "is read-only, which says already that nothing is added and that it can be repeated"})
	case s.Risk == ReadOnly:
	case strings.TrimSpace(s.SideEffects) == "":
		faults = append(faults, Fault{"side-effects", "are missing; say what a call changes, as in: The note is gone and cannot be restored."})
	default:
		if rule := checkText(s.SideEffects, maxDescription); rule != "" {
			faults = append(faults, Fault{"side-effects", rule})
		}
	}
	return faults
}

func (s *Spec) checkFields() []Fault {
	var faults []Fault
	fault := func(f Field, format string, args ...any) {
		faults = append(faults, Fault{"field", fmt.Sprintf("%q ", f.Name) + fmt.Sprintf(format, args...)})
	}
	if len(s.Fields) > maxFields {
		return []Fault{{"field", fmt.Sprintf("is given %d times; %d at most", len(s.Fields), maxFields)}}
	}
	idents, names := map[string]string{}, map[string]bool{}
	for _, f := range s.Fields {
		if !fieldPattern.MatchString(f.Name) {
			fault(f, "must begin with a letter and have letters, digits and underscores only")
			continue
		}
		ident := exported(f.Name)
		switch other, taken := idents[ident]; {
		case names[f.Name]:
			fault(f, "is given twice")
		case taken:
			fault(f, "has the same name in Go as %q: %s", other, ident)
		}
		idents[ident], names[f.Name] = f.Name, true
		switch rule := checkText(f.Description, maxDescription); {
		case strings.TrimSpace(f.Description) == "":
			fault(f, "has no description; models fill in arguments by it")
		case rule != "":
			fault(f, "has a description that %s", rule)
		case keywordTag.MatchString(f.Description):
			fault(f, "has a description that begins with a word and =, which schemas keep for themselves; put another word first")
		}
		if s.Kind != Tool && f.Type != String {
			fault(f, "must be a string, as all arguments of a %s are", s.Kind)
		}
		for i, c := range f.Choices {
			if !choicePattern.MatchString(c) {
				fault(f, "has the choice %q; choices are letters, digits and any of _.+- between them", c)
			} else if slices.Contains(f.Choices[:i], c) {
				fault(f, "has the choice %q twice", c)
			}
		}
	}
	return faults
}

// variables are the variables of the URI of a resource, as fields.
func (s *Spec) variables() ([]Field, error) {
	scheme, _, ok := strings.Cut(s.URI, "://")
	if !ok || !regexp.MustCompile(`^[a-z][a-z0-9+.-]*$`).MatchString(scheme) {
		return nil, fmt.Errorf("must be a URI such as orders://all or orders://{id}, not %q", s.URI)
	}
	for _, r := range s.URI {
		if r <= ' ' || r == '"' || r == '`' || r == '\\' || r > unicode.MaxASCII || r == 0x7f {
			return nil, fmt.Errorf("must be visible ASCII without quotes and backslashes; it contains %U", r)
		}
	}
	t, err := uritemplate.New(s.URI)
	if err != nil {
		return nil, fmt.Errorf("is no URI template: %w", err)
	}
	var fields []Field
	idents := map[string]bool{}
	for _, name := range t.Varnames() {
		f := Field{Name: name, Type: String, Description: titleOf(name) + "."}
		if i := slices.IndexFunc(s.Fields, func(f Field) bool { return f.Name == name }); i >= 0 {
			f = s.Fields[i]
		}
		if !fieldPattern.MatchString(name) || idents[exported(name)] {
			return nil, fmt.Errorf("has the variable %q; variables are different letters, digits and underscores", name)
		}
		idents[exported(name)] = true
		fields = append(fields, f)
	}
	for _, f := range s.Fields {
		switch {
		case !slices.ContainsFunc(fields, func(v Field) bool { return v.Name == f.Name }):
			return nil, fmt.Errorf("has no variable %q; write it as {%s}", f.Name, f.Name)
		case f.Optional || len(f.Choices) > 0:
			return nil, fmt.Errorf("has the variable %q, which can neither be optional nor have choices", f.Name)
		}
	}
	return fields, nil
}
