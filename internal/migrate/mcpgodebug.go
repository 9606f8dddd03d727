package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/famcp/famcp/internal/gocode"
)

const switchVariable = "MCPGODEBUG"

// goneSwitches are the switches that go-sdk does not read any more, and what takes their place in a project. The
// versions are those of docs/mcpgodebug.md in go-sdk.
var goneSwitches = map[string]string{
	"jsonescaping": "JSON is never escaped for HTML since go-sdk 1.6; a test that compares the text has to expect that",
	"disablecrossoriginprotection": "go-sdk checks no origin by itself since 1.6; the runtime checks it by webServer.originHosts, and an SDK handler of your " +
		"own is protected by http.NewCrossOriginProtection().Handler(handler)",
	"enableoriginverification": "since go-sdk 1.8 no origin is checked without http.NewCrossOriginProtection().Handler(handler) around an SDK handler of your " +
		"own; the runtime checks it by webServer.originHosts",
	"seterroroverwrite":       "since go-sdk 1.8 CallToolResult.SetError keeps the Content there is; set Content to nil before it to have the text of the error",
	"disablecontenttypecheck": "since go-sdk 1.8 a POST without Content-Type: application/json is refused; change the client",
	"disablelocalhostprotection": "name the public host in webServer.allowedHosts; an SDK handler of your own has DisableLocalhostProtection in " +
		"mcp.StreamableHTTPOptions and mcp.SSEOptions",
}

// switches takes the switches that are gone out of a value of MCPGODEBUG.
func switches(value string) (left string, gone []string) {
	var kept []string
	for part := range strings.SplitSeq(value, ",") {
		name, _, _ := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		if _, ok := goneSwitches[name]; ok {
			gone = append(gone, name)
		} else if strings.TrimSpace(part) != "" {
			kept = append(kept, strings.TrimSpace(part))
		}
	}
	if gone == nil {
		return value, nil
	}
	return strings.Join(kept, ","), gone
}

// dropSwitches removes switches that do nothing any more, which changes nothing by itself, and notes for each what the
// project may need instead.
func dropSwitches(t *tree) error {
	for _, name := range t.files(goFile, yamlFile, dockerFile, shellFile, textFile) {
		if !bytes.Contains(t.now[name], []byte(switchVariable)) {
			continue
		}
		var found []setting
		switch kindOf(name) {
		case goFile:
			continue // all of them below
		case yamlFile:
			var ok bool
			if found, ok = yamlSettings(t.now[name]); !ok {
				t.noteSwitches(name)
				continue
			}
		case textFile:
			t.noteSwitches(name)
			continue
		default:
			found = shellSettings(t.now[name], kindOf(name) == dockerFile)
		}
		if err := t.dropSettings(name, found); err != nil {
			return err
		}
	}
	if !t.mentions(switchVariable) {
		return nil
	}
	found := map[string][]setting{}
	for _, p := range t.program().Packages {
		for _, file := range p.Files {
			if !ast.IsGenerated(file) {
				name := p.Name(file.Pos())
				found[name] = goSettings(p, file)
			}
		}
	}
	for _, name := range t.files(goFile) {
		if err := t.dropSettings(name, found[name]); err != nil {
			return err
		}
	}
	return nil
}

// setting is one place where the variable is given switches that are gone.
type setting struct {
	line int
	gone []string
	edit edit
	// manual is set when the place is only reported.
	manual bool
}

func (t *tree) dropSettings(name string, found []setting) error {
	var edits []edit
	var changes []Change
	for _, s := range found {
		for _, sw := range s.gone {
			t.note(name, s.line, fmt.Sprintf("the %s switch %s does nothing any more: %s", switchVariable, sw, goneSwitches[sw]))
		}
		if !s.manual {
			edits = append(edits, s.edit)
			changes = append(changes, Change{Line: s.line, Text: fmt.Sprintf("%s loses %s, which go-sdk does not read any more",
				switchVariable, strings.Join(s.gone, " and "))})
		}
	}
	if len(edits) == 0 {
		return nil
	}
	return t.apply(name, edits, changes...)
}

// noteSwitches reports what is found in a file of a format that is not edited.
func (t *tree) noteSwitches(name string) {
	line := 0
	for text := range strings.Lines(string(t.now[name])) {
		line++
		if !strings.Contains(text, switchVariable) {
			continue
		}
		var gone []string
		for _, word := range lowerWord.FindAllString(text, -1) {
			if _, ok := goneSwitches[word]; ok && !slices.Contains(gone, word) {
				gone = append(gone, word)
			}
		}
		_ = t.dropSettings(name, []setting{{line: line, gone: gone, manual: true}}) // edits nothing, so it cannot fail
	}
}

// goSettings finds Setenv("MCPGODEBUG", "…"), of whatever package or test, and elements of an environment.
func goSettings(p *gocode.Package, file *ast.File) []setting {
	var found []setting
	seen := map[ast.Node]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "Setenv" || len(n.Args) != 2 || literal(n.Args[0]) != switchVariable {
				return true
			}
			lit, ok := n.Args[1].(*ast.BasicLit)
			if left, gone := switches(literal(n.Args[1])); ok && gone != nil {
				found = append(found, setting{line: p.Line(n.Pos()), gone: gone, edit: edit{p.Offset(lit.Pos()), p.Offset(lit.End()), strconv.Quote(left)}})
			}
		case *ast.BasicLit:
			rest, ok := strings.CutPrefix(literal(n), switchVariable+"=")
			if left, gone := switches(rest); ok && gone != nil && !seen[n] {
				found = append(found, setting{line: p.Line(n.Pos()), gone: gone, edit: edit{
					p.Offset(n.Pos()), p.Offset(n.End()), strconv.Quote(switchVariable + "=" + left),
				}})
			}
		case *ast.BinaryExpr: // part of a longer text
			seen[n.X], seen[n.Y] = true, true
		}
		return true
	})
	return found
}

// literal is the value of a string literal, or empty.
func literal(x ast.Expr) string {
	lit, ok := x.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	s, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return s
}

var (
	lowerWord  = regexp.MustCompile(`[a-z]+`)
	assignment = regexp.MustCompile(`(^|[\s;&|"'(])MCPGODEBUG(\s*[:?+]?=[ \t]*)("[^"\n]*"|'[^'\n]*'|[^\s;&|"')]*)`)
	dockerEnv  = regexp.MustCompile(`^(?i:\s*ENV)\s+MCPGODEBUG\s+()([^\s=][^\n]*)$`)
	alone      = regexp.MustCompile(`^(?:\s*export\s+|(?i:\s*(?:ENV|ARG)\s+)|\s*)$`)
)

// shellSettings finds assignments in a shell script, a Makefile, a sample of .env or a Dockerfile.
func shellSettings(src []byte, docker bool) []setting {
	var found []setting
	offset, line := 0, 0
	continued := false
	for text := range strings.Lines(string(src)) {
		line++
		body := strings.TrimRight(text, "\r\n")
		ends := strings.HasSuffix(body, `\`)
		if !strings.HasPrefix(strings.TrimSpace(body), "#") {
			found = append(found, lineSettings(body, len(text), offset, line, continued || ends, docker)...)
			continued = ends
		}
		offset += len(text)
	}
	return found
}

func lineSettings(body string, length, offset, line int, continued, docker bool) []setting {
	if m := dockerEnv.FindStringSubmatchIndex(body); docker && m != nil {
		left, gone := switches(body[m[4]:m[5]])
		switch {
		case gone == nil:
			return nil
		case left == "" && !continued:
			return []setting{{line: line, gone: gone, edit: edit{offset, offset + length, ""}}}
		case left == "":
			left = `""`
		}
		return []setting{{line: line, gone: gone, edit: edit{offset + m[4], offset + m[5], left}}}
	}
	var found []setting
	for _, m := range assignment.FindAllStringSubmatchIndex(body, -1) {
		if i := strings.Index(body[:m[0]+1], " #"); i >= 0 && !docker {
			break // the rest of the line is a comment
		}
		name, value := m[3], body[m[6]:m[7]]
		quote := ""
		if value != "" && strings.ContainsRune(`"'`, rune(value[0])) {
			quote = value[:1]
		}
		left, gone := switches(strings.Trim(value, quote))
		if gone == nil {
			continue
		}
		s := setting{line: line, gone: gone, edit: edit{offset + m[6], offset + m[7], quote + left + quote}}
		if left == "" && !continued && alone.MatchString(body[:name]) {
			switch rest := body[m[7]:]; {
			case strings.TrimSpace(rest) == "":
				s.edit = edit{offset, offset + length, ""} // the line has nothing else
			case !docker && strings.HasPrefix(rest, " ") && !strings.HasPrefix(strings.TrimSpace(rest), "#"):
				s.edit = edit{offset + name, offset + m[7] + len(rest) - len(strings.TrimLeft(rest, " ")), ""} // before a command
			}
		}
		found = append(found, s)
	}
	return found
}

// yamlSettings finds the variable as a key, as NAME=value in a list, as name and value, and in the lines of a script.
// It is not ok when src is not YAML, but say a template of it.
func yamlSettings(src []byte) (found []setting, ok bool) {
	dec := yaml.NewDecoder(bytes.NewReader(src))
	y := yamlText{src: src}
	for {
		var doc yaml.Node
		if err := dec.Decode(&doc); err != nil {
			return found, errors.Is(err, io.EOF)
		}
		walkYAML(&doc, func(n *yaml.Node) {
			switch n.Kind {
			case yaml.MappingNode:
				for i := 0; i+1 < len(n.Content); i += 2 {
					key, value := n.Content[i], n.Content[i+1]
					switch {
					case value.Kind != yaml.ScalarNode:
					case key.Value == switchVariable:
						found = append(found, y.drop(value, value.Value, n, key)...)
					case key.Value == "name" && value.Value == switchVariable:
						if v := valueOf(n, "value"); v != nil && v.Kind == yaml.ScalarNode {
							found = append(found, y.drop(v, v.Value, nil, nil)...)
						}
					case strings.Contains(value.Value, switchVariable):
						found = append(found, y.script(value)...)
					}
				}
			case yaml.SequenceNode:
				for _, item := range n.Content {
					if item.Kind != yaml.ScalarNode {
						continue
					}
					if rest, ok := strings.CutPrefix(item.Value, switchVariable+"="); ok && !strings.ContainsAny(rest, " \n") {
						found = append(found, y.drop(item, rest, n, item)...)
					} else if strings.Contains(item.Value, switchVariable) {
						found = append(found, y.script(item)...)
					}
				}
			}
		})
	}
}

func walkYAML(n *yaml.Node, visit func(*yaml.Node)) {
	visit(n)
	for _, c := range n.Content { // aliases are visited where they are anchored
		walkYAML(c, visit)
	}
}

func valueOf(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// yamlText is YAML whose nodes are edited in their text.
type yamlText struct{ src []byte }

// start is the offset of the line, counted from 1.
func (y yamlText) start(line int) int {
	offset := 0
	for range line - 1 {
		i := bytes.IndexByte(y.src[offset:], '\n')
		if i < 0 {
			return len(y.src)
		}
		offset += i + 1
	}
	return offset
}

// runeOffset is where the rune at index i of line begins.
func runeOffset(line []byte, i int) int {
	offset := 0
	for ; i > 0 && offset < len(line); i-- {
		_, size := utf8.DecodeRune(line[offset:])
		offset += size
	}
	return offset
}

// drop takes switches out of value, which is text in the node n. In parent, where first begins the entry, an entry
// that is left with nothing goes when it is not the last one.
func (y yamlText) drop(n *yaml.Node, value string, parent, first *yaml.Node) []setting {
	left, gone := switches(value)
	if gone == nil {
		return nil
	}
	s := setting{line: n.Line, gone: gone, manual: true}
	start, end := y.start(n.Line), y.start(n.Line+1)
	column := runeOffset(y.src[start:end], n.Column-1)
	i := bytes.Index(y.src[start+column:end], []byte(value))
	if i < 0 { // escaped, or on several lines
		return []setting{s}
	}
	i += column
	s.manual = false
	if left == "" && n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) == 0 && n.Value == value {
		left = `""`
	}
	s.edit = edit{start + i, start + i + len(value), left}
	if parent != nil && (left == "" || left == `""`) && parent.Style&yaml.FlowStyle == 0 && first.Line == n.Line {
		entries := len(parent.Content)
		if parent.Kind == yaml.MappingNode {
			entries /= 2
		}
		line := strings.TrimSpace(string(y.src[start:end]))
		ownLine := strings.HasPrefix(line, "- ") || parent.Kind == yaml.MappingNode && strings.HasPrefix(strings.Trim(line, `"'`), switchVariable)
		if entries > 1 && ownLine && !strings.Contains(line, " #") {
			s.edit = edit{start, end, ""}
		}
	}
	return []setting{s}
}

// script looks for assignments in the lines of a node.
func (y yamlText) script(n *yaml.Node) []setting {
	lines := 1
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		lines += strings.Count(n.Value, "\n") + 1
	}
	var found []setting
	for line := n.Line; line < n.Line+lines; line++ {
		start, end := y.start(line), y.start(line+1)
		body := strings.TrimRight(string(y.src[start:end]), "\r\n")
		if strings.HasPrefix(strings.TrimSpace(body), "#") {
			continue
		}
		found = append(found, lineSettings(body, end-start, start, line, strings.HasSuffix(body, `\`), false)...)
	}
	return found
}
