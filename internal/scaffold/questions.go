package scaffold

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/module"

	"github.com/famcp/famcp/internal/scaffold/gomod"
)

// Kind says how a question is asked and how its answer is read.
type Kind int

// The kinds of questions.
const (
	Text   Kind = iota // one line
	Number             // a whole number
	Choice             // one of Question.Choices
	Switch             // yes or no
)

// A Question is one row of the table behind flags, form, answers file, manifest and documentation.
type Question struct {
	Key     string   // in answers files and in the manifest
	Flag    string   // without the dashes; a Switch also has a "no-" form
	Title   string   // what a form asks
	Help    string   // one sentence for --help
	Kind    Kind     // how to ask
	Choices []string // of a Choice, the default first
	Notes   []string // what each of Choices means, where the word alone does not say it; or nil

	field func(*Answers) any // *string, *int or *bool
	rule  func(Answers) string
	when  func(Answers) bool // whether there is anything to ask; nil is always
}

// Questions returns the table in the order in which people are asked.
func Questions() []Question { return slices.Clone(questions) }

// Applies reports whether a leaves q open at all: some questions follow from the answers to others.
func (q Question) Applies(a Answers) bool { return q.when == nil || q.when(a) }

// Conditional reports whether q follows from the answers to others.
func (q Question) Conditional() bool { return q.when != nil }

// Text is the answer to q in a, as a flag would spell it.
func (q Question) Text(a Answers) string {
	switch p := q.field(&a).(type) {
	case *int:
		return strconv.Itoa(*p)
	case *bool:
		return strconv.FormatBool(*p)
	default:
		return *p.(*string)
	}
}

// Set reads text, without the space around it, as the answer to q into a. It fails, with a [Violation], only on text of
// the wrong type; [Question.Check] has the other rules.
func (q Question) Set(a *Answers, text string) error {
	text = strings.TrimSpace(text)
	switch p := q.field(a).(type) {
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return q.violation(fmt.Sprintf("must be a whole number, not %q", text))
		}
		*p = n
	case *bool:
		yes, err := ParseYes(text)
		if err != nil {
			return q.violation(err.Error())
		}
		*p = yes
	case *string:
		*p = text
	}
	return nil
}

// ParseYes reads a yes or no as people and YAML write it. Its error reads on from what was asked: "must be yes or no, …".
func ParseYes(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "yes", "y", "true", "on":
		return true, nil
	case "no", "n", "false", "off":
		return false, nil
	}
	return false, fmt.Errorf("must be yes or no, not %q", text)
}

// Check applies the rule of q to its answer in a; the error is a [Violation].
func (q Question) Check(a Answers) error {
	rule := ""
	switch {
	case !q.Applies(a):
		if q.Text(a) != "" {
			rule = "belongs to --auth remoteJwks only; leave it out"
		}
	case q.Kind == Choice && !slices.Contains(q.Choices, q.Text(a)):
		rule = fmt.Sprintf("must be one of %s, not %q", strings.Join(q.Choices, ", "), q.Text(a))
	case q.rule != nil:
		rule = q.rule(a)
	}
	if rule == "" {
		return nil
	}
	return q.violation(rule)
}

func (q Question) violation(rule string) error {
	return Violation{Key: q.Key, Flag: q.Flag, Rule: rule}
}

func keys() []string {
	names := make([]string, len(questions))
	for i, q := range questions {
		names[i] = q.Key
	}
	return names
}

var questions = []Question{
	{
		Key: "name", Flag: "name", Title: "Name", Kind: Text,
		Help:  "Name of the server, its binary and its image: lower case letters, digits and dashes (default from DIR).",
		field: func(a *Answers) any { return &a.Name },
		rule:  func(a Answers) string { return checkName(a.Name) },
	},
	{
		Key: "module", Flag: "module", Title: "Go module path", Kind: Text,
		Help:  "Go module path of the project (default example.com/NAME).",
		field: func(a *Answers) any { return &a.Module },
		rule:  func(a Answers) string { return checkModule(a.Module) },
	},
	{
		Key: "title", Flag: "title", Title: "Title", Kind: Text,
		Help:  "Name of the server for people (default made from the name).",
		field: func(a *Answers) any { return &a.Title },
		rule:  func(a Answers) string { return checkLine(a.Title, 1, 200) },
	},
	{
		Key: "description", Flag: "description", Title: "Description", Kind: Text,
		Help:  "What the server is for, in one sentence.",
		field: func(a *Answers) any { return &a.Description },
		rule:  func(a Answers) string { return checkLine(a.Description, 1, 1000) },
	},
	{
		Key: "port", Flag: "port", Title: "HTTP port", Kind: Number,
		Help:  "Port the server listens on over HTTP.",
		field: func(a *Answers) any { return &a.Port },
		rule: func(a Answers) string {
			if a.Port < 1 || a.Port > 65535 {
				return fmt.Sprintf("must be a port from 1 to 65535, not %d", a.Port)
			}
			return ""
		},
	},
	{
		Key: "transport", Flag: "transport", Title: "Transport", Kind: Choice,
		Choices: []string{"both", "http", "stdio"},
		Help:    "How clients reach the server: over HTTP, over stdio, or both.",
		field:   func(a *Answers) any { return &a.Transport },
	},
	{
		Key: "auth", Flag: "auth", Title: "Authentication", Kind: Choice,
		Choices: []string{AuthNone, AuthHS256, AuthEmbedded, AuthLocalKey, AuthRemoteJWKS},
		Notes: []string{
			"whoever is on this machine", "tokens, signed with a shared secret", "tokens, signed with a key that the server makes",
			"tokens, signed with a key pair made now", "tokens of an identity provider",
		},
		Help:  "Who may call over HTTP: everybody on this machine, or who has a token (JWT) signed as said.",
		field: func(a *Answers) any { return &a.Auth },
	},
	{
		Key: "issuer", Flag: "issuer", Title: "Issuer of your identity provider", Kind: Text,
		Help:  "With --auth remoteJwks: the issuer of the identity provider, as its tokens name it.",
		field: func(a *Answers) any { return &a.Issuer },
		rule:  func(a Answers) string { return checkURL(a.Issuer, "such as https://login.example.com/", false) },
		when:  remote,
	},
	{
		Key: "jwksUri", Flag: "jwks-uri", Title: "URL of its key set (JWKS)", Kind: Text,
		Help:  "With --auth remoteJwks: the URL of the provider's key set, the jwks_uri of its metadata.",
		field: func(a *Answers) any { return &a.JWKSURI },
		rule: func(a Answers) string {
			return checkURL(a.JWKSURI, "such as https://login.example.com/.well-known/jwks.json", true)
		},
		when: remote,
	},
	{
		Key: "ci", Flag: "ci", Title: "Continuous integration", Kind: Choice,
		Choices: []string{"github", "gitlab", "both", "none"},
		Help:    "Continuous integration to set up.",
		field:   func(a *Answers) any { return &a.CI },
	},
	{
		Key: "examples", Flag: "examples", Title: "Add the three starter tools", Kind: Switch,
		Help:  "Add three starter tools with their tests.",
		field: func(a *Answers) any { return &a.Examples },
	},
	{
		Key: "license", Flag: "license", Title: "License", Kind: Choice,
		Choices: []string{"mit", "apache-2.0", "none"},
		Help:    "License of the project.",
		field:   func(a *Answers) any { return &a.License },
	},
	{
		Key: "author", Flag: "author", Title: "Copyright holder", Kind: Text,
		Help:  "Copyright holder named in the license.",
		field: func(a *Answers) any { return &a.Author },
		rule:  func(a Answers) string { return checkLine(a.Author, 0, 200) },
	},
	{
		Key: "runtime", Flag: "runtime", Title: "Runtime", Kind: Choice,
		Choices: []string{"vendored", "module"},
		Help:    "How the project gets the runtime: vendored into third_party, or as a Go module.",
		field:   func(a *Answers) any { return &a.Runtime },
	},
}

// The answers to the question auth, as the configuration of a server names them.
const (
	AuthNone       = "none"
	AuthHS256      = "hs256"
	AuthEmbedded   = "embedded"
	AuthLocalKey   = "localKey"
	AuthRemoteJWKS = "remoteJwks"
)

func remote(a Answers) bool { return a.Auth == AuthRemoteJWKS }

const nameRule = "must be 1 to 63 lower case letters, digits and dashes, beginning with a letter and not ending with a dash"

var (
	namePattern    = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)
	versionPattern = regexp.MustCompile(`^v[0-9]+$`)
)

func checkName(name string) string {
	if name == "" {
		return "is missing; " + nameRule
	}
	if !namePattern.MatchString(name) {
		return fmt.Sprintf("%s, not %q", nameRule, name)
	}
	if versionPattern.MatchString(name) {
		return fmt.Sprintf("must not be %q, which at the end of a module path is a version", name)
	}
	for _, r := range reserved {
		if slices.Contains(strings.Fields(r.names), name) {
			return fmt.Sprintf("must not be %q, %s", name, r.why)
		}
	}
	return ""
}

// reserved are names that would break the project somewhere: as a package, a path or the binary at its root.
var reserved = []struct{ why, names string }{
	{"a word of the Go language", `break case chan const continue default defer else fallthrough for func go goto if
		import interface map package range return select struct switch type var
		any append bool byte cap clear close comparable complex complex64 complex128 copy delete error false float32
		float64 imag int int8 int16 int32 int64 iota len make max min new nil panic print println real recover rune
		string true uint uint8 uint16 uint32 uint64 uintptr`},
	{"which the go command treats specially", "all cmd main std test testdata tool vendor work"},
	{"the name of this tool", "famcp"},
	{"the name of an entry beside which the binary goes", "config deploy dockerfile docs internal license tests"},
	{"a device name on Windows", `aux com0 com1 com2 com3 com4 com5 com6 com7 com8 com9 con lpt0 lpt1 lpt2 lpt3 lpt4 lpt5
		lpt6 lpt7 lpt8 lpt9 nul prn`},
}

func checkModule(path string) string {
	if err := module.CheckPath(path); err != nil {
		reason := err.Error()
		if i := strings.LastIndex(reason, ": "); i >= 0 {
			reason = reason[i+2:]
		}
		return fmt.Sprintf("must be a Go module path such as example.com/my-server, not %q: %s", path, reason)
	}
	if len(path) > 200 {
		return fmt.Sprintf("must be at most 200 bytes long, not %d", len(path))
	}
	if path == gomod.Runtime || strings.HasPrefix(path, gomod.Runtime+"/") {
		return "must not be inside " + gomod.Runtime + ", the module of the runtime"
	}
	if slices.Contains(gomod.Requirements(), path) {
		return fmt.Sprintf("must not be %q, the module of a dependency", path)
	}
	elements := strings.Split(path, "/")
	if slices.Contains(elements, "vendor") {
		return fmt.Sprintf("must not contain the element vendor, below which Go finds no packages to import; it is %q", path)
	}
	if last := elements[len(elements)-1]; strings.ContainsRune("-~", rune(last[0])) { // refused by the go command
		return fmt.Sprintf("must not end in an element that begins with %q: %q", last[0], path)
	}
	return ""
}

// checkLine holds text to one line of minLen to maxLen characters that shows as it is stored.
func checkLine(text string, minLen, maxLen int) string {
	if !utf8.ValidString(text) {
		return "must be valid UTF-8"
	}
	for _, r := range text {
		if unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control) {
			return fmt.Sprintf("must be one line without control characters; it contains %U", r)
		}
	}
	if n := utf8.RuneCountInString(text); n > maxLen {
		return fmt.Sprintf("must be at most %d characters long, not %d", maxLen, n)
	}
	shows := func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }
	if (minLen > 0 || text != "") && !strings.ContainsFunc(text, shows) {
		return "must not be blank"
	}
	return ""
}

// checkURL holds text to an absolute http or https URL; example reads on from "want a URL".
func checkURL(text, example string, query bool) string {
	if text == "" {
		return "is missing; --auth remoteJwks needs a URL " + example
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || checkLine(text, 1, 1000) != "":
		return "must be a URL " + example // without repeating it: it may hold a password
	case u.User != nil:
		return "must hold neither user nor password"
	case u.Fragment != "" || !query && (u.RawQuery != "" || u.ForceQuery):
		return "must have neither query nor fragment"
	}
	return ""
}
