package famcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestEncodedArguments(t *testing.T) {
	texts := []string{"string"}
	tests := []struct {
		name    string
		operand string
		types   []string
		want    string // JSON; "" wants an error that holds wantErr
		wantErr string
	}{
		{name: "text", operand: "a=b c", types: texts, want: `"b c"`},
		{name: "text of digits", operand: "a=007", types: texts, want: `"007"`},
		{name: "text with an equals sign", operand: "a=b=c", types: texts, want: `"b=c"`},
		{name: "empty text", operand: "a=", types: texts, want: `""`},
		{name: "text that could be null", operand: "a=null", types: []string{"null", "string"}, want: `"null"`},
		{name: "text before other types", operand: "a=5", types: []string{"integer", "string"}, want: `"5"`},
		{name: "integer", operand: "a=-5", types: []string{"integer"}, want: `-5`},
		{name: "large integer", operand: "a=9007199254740993", types: []string{"integer"}, want: `9007199254740993`},
		{name: "integer with spaces", operand: "a= 5 ", types: []string{"integer"}, want: `5`},
		{name: "integer as a float", operand: "a=2.0", types: []string{"integer"}, want: `2.0`},
		{name: "fraction for an integer", operand: "a=2.5", types: []string{"integer"}, wantErr: `argument "a" is of type integer, got "2.5"`},
		{name: "word for an integer", operand: "a=ten", types: []string{"integer"}, wantErr: `argument "a" is of type integer, got "ten"`},
		{name: "nothing for an integer", operand: "a=", types: []string{"integer"}, wantErr: `argument "a" is of type integer, got ""`},
		{name: "number", operand: "a=2.5e3", types: []string{"number"}, want: `2.5e3`},
		{name: "boolean", operand: "a=true", types: []string{"boolean"}, want: `true`},
		{name: "yes for a boolean", operand: "a=yes", types: []string{"boolean"}, wantErr: "write true or false"},
		{name: "optional boolean", operand: "a=null", types: []string{"null", "boolean"}, want: `null`},
		{name: "word for an optional boolean", operand: "a=x", types: []string{"null", "boolean"}, wantErr: `is of type boolean, got "x"`},
		{name: "array", operand: `a=["x"]`, types: []string{"null", "array"}, want: `["x"]`},
		{name: "word for an array", operand: "a=x", types: []string{"array"}, wantErr: `write it as JSON: a='["a","b"]'`},
		{name: "object for an array", operand: "a={}", types: []string{"array"}, wantErr: `is of type array`},
		{name: "object", operand: `a={"b":1}`, types: []string{"object"}, want: `{"b":1}`},
		{name: "word for an object", operand: "a=x", types: []string{"object"}, wantErr: `write it as JSON: a='{"key":"value"}'`},
		{name: "integer or boolean", operand: "a=x", types: []string{"integer", "boolean"}, wantErr: "is of type integer or boolean"},
		{name: "any type, JSON", operand: "a=5", types: nil, want: `5`},
		{name: "any type, text", operand: "a=x", types: nil, want: `"x"`},
		{name: "JSON for a text", operand: `a:="5"`, types: texts, want: `"5"`},
		{name: "JSON of another type", operand: "a:=5", types: texts, want: `5`},
		{name: "not JSON", operand: "a:=x", types: texts, wantErr: `argument "a": "x" is not JSON`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			parsed, err := parseAssignments([]string{tt.operand})
			if err != nil || len(parsed) != 1 || parsed[0].name != "a" {
				t.Fatalf("parsed as %v, %v", parsed, err)
			}
			got, err := parsed[0].encoded(tt.types)
			if tt.wantErr != "" {
				var usage *usageError
				if !errors.As(err, &usage) || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("error %v, want a usage error with %q", err, tt.wantErr)
				}
				return
			}
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v; want %s", got, err, tt.want)
			}
		})
	}
}

func TestParseAssignmentsRefuses(t *testing.T) {
	for operand, want := range map[string]string{
		"x": `"x" is no argument; write NAME=VALUE`, "=x": "is no argument", ":=x": "is no argument", "a=2": `argument "a" is given twice`,
	} {
		if _, err := parseAssignments([]string{"a=1", operand}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", operand, err, want)
		}
	}
}

func TestCallCommand(t *testing.T) {
	tests := []struct {
		name    string
		args    []string
		stdin   string
		environ []string
		want    int
		stdout  string // exactly
		stderr  string // a part
	}{
		{name: "text", args: []string{"greet"}, stdout: "hello over modern\n", stderr: "1/2 half way\n"},
		{name: "log message", args: []string{"greet"}, stdout: "hello over modern\n", stderr: "info: about to greet\n"},
		{name: "legacy", args: []string{"greet", "--era", "legacy"}, stdout: "hello over legacy\n", stderr: "info: about to greet\n"},
		{name: "legacy, the only one served", args: []string{"greet"}, environ: []string{"MCP_ERAS=legacy"}, stdout: "hello over legacy\n", stderr: "half way"},
		{name: "era not served", args: []string{"greet", "--era", "modern"}, environ: []string{"MCP_ERAS=legacy"}, want: 1, stderr: "mcp.eras is legacy: the modern era is not served"},
		{name: "configured", args: []string{"greet"}, environ: []string{"APP_GREETING=hi"}, stdout: "hi over modern\n", stderr: "half way"},
		{
			name: "every type", args: []string{"echo", "text=1", "count=2", "ratio=2.5", "loud=true", `tags=["a"]`, `more={"b":1}`, "any=x"},
			stdout: `{
  "text": "1",
  "count": 2,
  "ratio": 2.5,
  "loud": true,
  "tags": [
    "a"
  ],
  "more": {
    "b": 1
  },
  "any": "x"
}
`,
		},
		{name: "structured", args: []string{"echo", "-o", "structured", "text=<a>"}, stdout: "{\n  \"text\": \"<a>\"\n}\n"},
		{name: "JSON argument", args: []string{"echo", "--json", `{"text":"a","count":1}`, "count=3"}, stdout: "{\n  \"text\": \"a\",\n  \"count\": 3\n}\n"},
		{name: "JSON from the input", args: []string{"echo", "--json", "-"}, stdin: `{"text":"a"}`, stdout: "{\n  \"text\": \"a\"\n}\n"},
		{name: "JSON that is no object", args: []string{"echo", "--json", "null"}, want: 2, stderr: "--json: the arguments must be a JSON object"},
		{name: "no structured content", args: []string{"greet", "-o", "structured"}, want: 1, stderr: "the tool gave no structured content"},
		{name: "failure", args: []string{"fail"}, want: 1, stderr: "out of paper\n"},
		{name: "stopping fails", args: []string{"greet"}, environ: []string{"APP_FAULT=stop"}, want: 1, stdout: "hello over modern\n", stderr: "tester: stopping cleaner: stuck\n"},
		{name: "call and stopping fail", args: []string{"fail"}, environ: []string{"APP_FAULT=stop"}, want: 1, stderr: "out of paper\ntester: stopping cleaner: stuck\n"},
		{name: "argument of another type", args: []string{"echo", "count=x"}, want: 2, stderr: `argument "count" is of type integer, got "x"`},
		{name: "misspelt argument", args: []string{"echo", "txt=x"}, want: 1, stderr: "text"},
		{name: "misspelt tool", args: []string{"greeet"}, want: 2, stderr: `there is no tool "greeet"; did you mean "greet"?; the tools are collector, echo, `},
		{name: "no tool", want: 2, stderr: `call needs the name of a tool; "tester tools" lists them`},
		{name: "operands after --", args: []string{"--", "echo", "text=-x"}, stdout: "{\n  \"text\": \"-x\"\n}\n"},
		{name: "confirmation declined", args: []string{"erase"}, stdout: "kept\n", stderr: "Erase everything?\ndeclined: nobody can be asked here; --yes accepts\n"},
		{name: "confirmation accepted", args: []string{"erase", "--yes"}, stdout: "erased\n", stderr: "Erase everything?\nanswered: yes (--yes)\n"},
		{name: "confirmation accepted, legacy", args: []string{"erase", "--yes", "--era=legacy"}, stdout: "erased\n", stderr: "answered: yes"},
		{name: "form that yes does not fill", args: []string{"order", "--yes"}, want: 1, stderr: "declined: nobody can be asked here; run it on a terminal\n"},
		{name: "page", args: []string{"login"}, want: 1, stderr: "Please log in.\nhttps://example.com/login\ndeclined: nobody can be asked here\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, out, errOut := inProcess(t, nil, tt.environ...)
			p.in = strings.NewReader(tt.stdin)
			if got := p.run(t.Context(), append([]string{"call"}, tt.args...)); got != tt.want {
				t.Errorf("exit status %d, want %d", got, tt.want)
			}
			if diff := cmp.Diff(tt.stdout, out.String()); diff != "" {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
			checkPart(t, "stderr", errOut.String(), tt.stderr)
		})
	}
}

func TestCallCommandPrintsTheWholeResult(t *testing.T) {
	for tool, failed := range map[string]bool{"greet": false, "fail": true} {
		p, out, _ := inProcess(t, nil)
		if got := p.run(t.Context(), []string{"call", tool, "-o", "json"}); (got == 1) != failed {
			t.Errorf("%s: exit status %d", tool, got)
		}
		res, err := decode[struct {
			Content []json.RawMessage `json:"content"`
			IsError bool              `json:"isError"`
		}](out.Bytes())
		if err != nil || len(res.Content) != 1 || res.IsError != failed {
			t.Errorf("%s: %v, got:\n%s", tool, err, out)
		}
	}
}

func TestCallCommandAsksOnATerminal(t *testing.T) {
	tests := []struct {
		name   string
		args   []string
		typed  string
		want   int
		stdout string
		stderr string
	}{
		{name: "yes", args: []string{"erase"}, typed: "y\n", stdout: "erased\n", stderr: "Erase everything? [y/N] "},
		{name: "yes, legacy", args: []string{"erase", "--era=legacy"}, typed: "YES\n", stdout: "erased\n", stderr: "Erase everything? [y/N] "},
		{name: "no", args: []string{"erase"}, typed: "n\n", stdout: "kept\n", stderr: "[y/N] "},
		{name: "nothing", args: []string{"erase"}, typed: "\n", stdout: "kept\n", stderr: "[y/N] "},
		{name: "end of input", args: []string{"erase"}, typed: "", stdout: "kept\n", stderr: "[y/N] \n"},
		{name: "unclear", args: []string{"erase"}, typed: "perhaps\ny\n", stdout: "erased\n", stderr: "[y/N]   answer y or n\nErase everything? [y/N] "},
		{name: "arguments from the input", args: []string{"erase", "--json", "-"}, typed: "{}", stdout: "kept\n", stderr: "declined: nobody can be asked here"},
		{
			name: "form", args: []string{"order", "-o", "structured"}, typed: "two\n2\n\nsoup\n\n",
			stdout: "{\n  \"count\": 2,\n  \"dish\": \"soup\"\n}\n",
			stderr: "What may it be? (the end of input, Ctrl-D, declines)\n" +
				"  count (integer):   must be of type integer\n" +
				"  count (integer):   dish, what to eat (string):   an answer is required\n" +
				"  dish, what to eat (string):   note (string) []: ",
		},
		{name: "form left", args: []string{"order"}, typed: "2\n", want: 1, stderr: "the user declined"},
		{name: "page", args: []string{"login"}, typed: "y\n", stdout: "in\n", stderr: "Please log in.\nhttps://example.com/login\nDone? [y/N] "},
		{name: "page not visited", args: []string{"login"}, typed: "n\n", want: 1, stderr: "the user declined"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, out, errOut := inProcess(t, nil)
			p.in, p.interactive = strings.NewReader(tt.typed), true
			if got := p.run(t.Context(), append([]string{"call"}, tt.args...)); got != tt.want {
				t.Errorf("exit status %d, want %d", got, tt.want)
			}
			if diff := cmp.Diff(tt.stdout, out.String()); diff != "" {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
			checkPart(t, "stderr", errOut.String(), tt.stderr)
		})
	}
}

func TestInterruptedQuestionEndsTheCall(t *testing.T) {
	for _, era := range []string{"modern", "legacy"} {
		t.Run(era, func(t *testing.T) {
			p, out, _ := inProcess(t, nil)
			silent, typist := io.Pipe()
			defer typist.Close()
			ctx, cancel := context.WithCancel(t.Context())
			var said lines
			p.in, p.err, p.interactive = silent, &said, true
			go func() {
				said.waitFor(t, `\[y/N\] $`)
				cancel()
			}()
			if got := p.run(ctx, []string{"call", "erase", "--era", era}); got != 130 {
				t.Errorf("exit status %d, want 130; stderr:\n%s", got, &said)
			}
			if out.Len() > 0 {
				t.Errorf("stdout %q", out)
			}
		})
	}
}

func TestUnreadableArguments(t *testing.T) {
	p, _, errOut := inProcess(t, nil)
	p.in = iotest.ErrReader(errors.New("unplugged"))
	if got := p.run(t.Context(), []string{"call", "echo", "--json", "-"}); got != 1 {
		t.Errorf("exit status %d, want 1", got)
	}
	checkPart(t, "stderr", errOut.String(), "tester: reading the arguments from standard input: unplugged\n")
}

func TestResultText(t *testing.T) {
	res := &mcp.CallToolResult{
		Content: []mcp.Content{
			Text("one"), Text("two\n"), Image("image/png", []byte("12345")), Audio("audio/wav", []byte("1")),
			Link("note://a", "a note"), Embed("note://b", Contents{Text: "inside", MIME: "text/plain"}),
			Embed("note://c", Contents{Blob: []byte("123"), MIME: "image/gif"}),
		},
	}
	want := `one
two
[image, image/png, 5 bytes]
[audio, audio/wav, 1 bytes]
[link to a note: note://a]
inside
[resource note://c, image/gif, 3 bytes]
`
	if diff := cmp.Diff(want, resultText(res)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// A text that is not the structured content stays as it is.
	own := &mcp.CallToolResult{Content: []mcp.Content{Text(`{"a":1}`)}, StructuredContent: map[string]any{"a": 2.0}}
	if got := resultText(own); got != "{\"a\":1}\n" {
		t.Errorf("got %q", got)
	}
}

func TestFormFieldsOfEveryKind(t *testing.T) {
	f, err := parseForm(json.RawMessage(`{"type":"object","required":["size","n"],"properties":{
		"size":{"type":"string","title":"Size","enum":["s","m"]},
		"kind":{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}],"default":"a"},
		"more":{"type":"array","items":{"type":"string","enum":["x","y"]}},
		"n":{"type":"integer","minimum":1},
		"hot":{"type":"boolean","default":true}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var prompts []string
	fields := map[string]formField{}
	for _, field := range f {
		prompts = append(prompts, field.prompt())
		fields[field.name] = field
	}
	want := []string{
		"n (integer):", "Size (one of s, m):",
		"hot (boolean) [Y/n]", "kind (one of a, b) [a]:", "more (some of, by comma, x, y) []:",
	}
	if diff := cmp.Diff(want, prompts); diff != "" {
		t.Errorf("prompts (-want +got):\n%s", diff)
	}
	tests := []struct {
		field, answer, want string // want is JSON, "" none, or with ! before it a problem
	}{
		{"size", "m", `"m"`},
		{"size", "xl", "!"},
		{"size", "", "!an answer is required"},
		{"kind", "", `"a"`},
		{"kind", "b", `"b"`},
		{"more", "x, y", `["x","y"]`},
		{"more", "z", "!"},
		{"more", "", ""},
		{"n", "2", "2"},
		{"n", "0", "!"},
		{"n", "two", "!must be of type integer"},
		{"n", `"2"`, "!"},
		{"hot", "", "true"},
		{"hot", "n", "false"},
		{"hot", "x", "!answer y or n"},
	}
	for _, tt := range tests {
		value, problem := fields[tt.field].read(tt.answer)
		if part, ok := strings.CutPrefix(tt.want, "!"); ok {
			if value != nil || problem == "" || !strings.Contains(problem, part) {
				t.Errorf("%s %q: got %s, problem %q; want the problem %q", tt.field, tt.answer, value, problem, part)
			}
		} else if string(value) != tt.want || problem != "" {
			t.Errorf("%s %q: got %s, problem %q; want %s", tt.field, tt.answer, value, problem, tt.want)
		}
	}
}
