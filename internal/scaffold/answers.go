package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Answers describe one project. The keys below are the ones of an answers file and of the project's manifest.
// The zero value is not valid; start from [Defaults] or [Resolve].
type Answers struct {
	Name        string `yaml:"name" json:"name"`
	Module      string `yaml:"module" json:"module"`
	Title       string `yaml:"title" json:"title"`
	Description string `yaml:"description" json:"description"`
	Port        int    `yaml:"port" json:"port"`
	Auth        string `yaml:"auth" json:"auth"`           // none, hs256, embedded, localKey or remoteJwks
	Issuer      string `yaml:"issuer" json:"issuer"`       // of the identity provider; empty but for remoteJwks
	JWKSURI     string `yaml:"jwksUri" json:"jwksUri"`     // likewise
	CI          string `yaml:"ci" json:"ci"`               // github, gitlab, both or none
	Transport   string `yaml:"transport" json:"transport"` // both, http or stdio
	Examples    bool   `yaml:"examples" json:"examples"`
	License     string `yaml:"license" json:"license"` // mit, apache-2.0 or none
	Author      string `yaml:"author" json:"author"`   // may be empty
	Runtime     string `yaml:"runtime" json:"runtime"` // vendored or module
}

// Defaults are the answers for a project called name when nothing else is said. A famcp that knows the checksums
// of its own release refers to it as a module; any other writes the runtime into the project.
func Defaults(name string, r Release) Answers {
	title := titleFrom(name)
	a := Answers{
		Name:        name,
		Module:      "example.com/" + name,
		Title:       title,
		Description: title + ", an MCP server.",
		Port:        3000,
		Auth:        AuthNone,
		CI:          "github",
		Transport:   "both",
		Examples:    true,
		License:     "mit",
		Runtime:     "vendored",
	}
	if r.Published() {
		a.Runtime = "module"
	}
	return a
}

// Resolve completes what was given, by key, with the defaults and checks the whole. Its error is [Violations].
func Resolve(given map[string]string, r Release) (Answers, error) {
	name := strings.TrimSpace(given["name"])
	if checkName(name) != "" {
		name = "my-server" // a bad name is one violation, not three
	}
	a := Defaults(name, r)
	a.Name = ""
	var bad Violations
	for key := range given {
		if !slices.ContainsFunc(questions, func(q Question) bool { return q.Key == key }) {
			bad = append(bad, Violation{Key: key, Rule: "is not a question; the keys are " + strings.Join(keys(), ", ")})
		}
	}
	slices.SortFunc(bad, func(x, y Violation) int { return strings.Compare(x.Key, y.Key) })
	unread := map[string]bool{}
	for _, q := range questions {
		if text, ok := given[q.Key]; ok {
			if err := q.Set(&a, text); err != nil {
				unread[q.Key] = true
				bad = append(bad, violations(err)...)
			}
		}
	}
	for _, v := range violations(a.Check()) {
		if !unread[v.Key] {
			bad = append(bad, v)
		}
	}
	return a, bad.orNil()
}

// Issues reports whether the server's own keys make tokens, so that famcp can make one.
func (a Answers) Issues() bool { return a.Auth != AuthNone && a.Auth != AuthRemoteJWKS }

// Check reports every answer that breaks its rule, as [Violations].
func (a Answers) Check() error {
	var bad Violations
	for _, q := range questions {
		bad = append(bad, violations(q.Check(a))...)
	}
	return bad.orNil()
}

// byKey is a as the manifest records it.
func (a Answers) byKey() map[string]any {
	values := make(map[string]any, len(questions))
	for _, q := range questions {
		if !q.Applies(a) {
			continue
		}
		switch p := q.field(&a).(type) {
		case *int:
			values[q.Key] = *p
		case *bool:
			values[q.Key] = *p
		case *string:
			values[q.Key] = *p
		}
	}
	return values
}

// ParseAnswers reads an answers file, YAML or JSON, into texts by key, ready for [Resolve]. It takes one flat
// mapping of known keys; anything else is an error that names the line.
func ParseAnswers(data []byte) (map[string]string, error) {
	if err := checkText(data); err != nil {
		return nil, err
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return map[string]string{}, nil
	} else if err != nil {
		return nil, syntaxError(err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one document; give the answers in one")
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return map[string]string{}, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: want a mapping of answers such as `name: my-server`", root.Line)
	}
	given := make(map[string]string, len(root.Content)/2)
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: the key of an answer must be a single word", key.Line)
		}
		if !slices.Contains(keys(), key.Value) {
			return nil, fmt.Errorf("line %d: unknown answer %q; the keys are %s", key.Line, key.Value, strings.Join(keys(), ", "))
		}
		if _, twice := given[key.Value]; twice {
			return nil, fmt.Errorf("line %d: answer %q is given twice", key.Line, key.Value)
		}
		if value.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: answer %q must be a single value", value.Line, key.Value)
		}
		if value.Style&yaml.TaggedStyle != 0 && !slices.Contains(scalarTags, value.ShortTag()) {
			return nil, fmt.Errorf("line %d: answer %q has the tag %s; remove it", value.Line, key.Value, value.Tag)
		}
		if value.Tag != "!!null" { // an empty value leaves the question open
			given[key.Value] = value.Value
		}
	}
	return given, nil
}

// scalarTags are the tags whose values are what they look like.
var scalarTags = []string{"!!str", "!!int", "!!bool", "!!float", "!!null"}

// checkText finds what no YAML file may contain, with its line, which the YAML library does not tell.
func checkText(data []byte) error {
	line := 0
	for text := range bytes.Lines(data) {
		line++
		bad := func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\t\r\n", r) }
		if !utf8.Valid(text) || bytes.ContainsFunc(text, bad) {
			return fmt.Errorf("line %d: must be UTF-8 text without control characters", line)
		}
	}
	return nil
}

// syntaxError is an error of the YAML library with its line, which the library leaves out when it is the first.
func syntaxError(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if !strings.HasPrefix(text, "line ") {
		text = "line 1: " + text
	}
	return errors.New(text)
}

// NameFromDir is the project name that a target directory suggests: its last element, when that is a valid name.
func NameFromDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	name := filepath.Base(abs)
	if rule := checkName(name); rule != "" {
		return "", fmt.Errorf("the directory name %q cannot name the project: it %s; pass --name", name, rule)
	}
	return name, nil
}

// titleFrom makes "My Server" from "my-server".
func titleFrom(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '-' })
	for i, w := range words {
		first, size := utf8.DecodeRuneInString(w)
		words[i] = string(unicode.ToUpper(first)) + w[size:]
	}
	return strings.Join(words, " ")
}

// A Violation is one answer that breaks its rule.
type Violation struct {
	Key  string `json:"key"`
	Flag string `json:"flag,omitempty"` // without the dashes; empty for an unknown key
	Rule string `json:"rule"`           // reads on from the key: "must be …"
}

func (v Violation) Error() string {
	if v.Flag == "" {
		return fmt.Sprintf("%s %s", v.Key, v.Rule)
	}
	return fmt.Sprintf("%s (--%s) %s", v.Key, v.Flag, v.Rule)
}

// Violations are all the answers that break a rule, in the order of [Questions]; one line each.
type Violations []Violation

func (vs Violations) Error() string {
	lines := make([]string, len(vs))
	for i, v := range vs {
		lines[i] = v.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the single violations to [errors.As].
func (vs Violations) Unwrap() []error {
	errs := make([]error, len(vs))
	for i, v := range vs {
		errs[i] = v
	}
	return errs
}

func (vs Violations) orNil() error {
	if len(vs) == 0 {
		return nil
	}
	return vs
}

func violations(err error) Violations {
	var all Violations
	if errors.As(err, &all) {
		return all
	}
	var one Violation
	if errors.As(err, &one) {
		return Violations{one}
	}
	return nil
}
