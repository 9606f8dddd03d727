package invoke

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/famcp/famcp/internal/runtime/protocol"
)

// FuzzCursor opens anything as a cursor. What opens is what is sealed again,
// and everything else is refused as the client's own fault.
func FuzzCursor(f *testing.F) {
	for _, cursor := range []string{"", "x", "djE6", sealCursor("tool"), sealCursor("test://ü/\x00"), sealCursor("a") + "=", "djI6eA", "%%", sealCursor("\xff\xfe")} {
		f.Add(cursor)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		last, err := openCursor(cursor)
		var fault *Fault
		switch {
		case err != nil && (!errors.As(err, &fault) || fault.Kind != Invalid || fault.Field != "cursor"):
			t.Errorf("%q: got %v", cursor, err)
		case err == nil && cursor != "":
			if again, err := openCursor(sealCursor(last)); err != nil || again != last {
				t.Errorf("%q stands for %q, which becomes %q, %v", cursor, last, again, err)
			}
		}
	})
}

// FuzzState opens anything as a sealed state: only what was sealed for the
// same request opens, and nothing panics.
func FuzzState(f *testing.F) {
	now := func() time.Time { return time.Unix(1_800_000_000, 0) }
	s, err := newSealer("a secret of thirty-two characters", time.Minute, 1<<16, now)
	if err != nil {
		f.Fatal(err)
	}
	bound := binding("subject", "tools/call", "tool", json.RawMessage(`{"a":1}`))
	sealed, err := s.seal(state{Round: 1, Answers: map[string]json.RawMessage{"k": json.RawMessage(`1`)}}, bound)
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{"", "AAAA", sealed, sealed[1:], sealed[:len(sealed)-1], sealed + "A", "=" + sealed} {
		f.Add(text, []byte(`{"a":1}`))
		f.Add(text, []byte(`{ "a" : 1 }`))
		f.Add(text, []byte(`{"a":1`))
	}
	f.Fuzz(func(t *testing.T, text string, args []byte) {
		st, err := s.open(text, binding("subject", "tools/call", "tool", args))
		if err != nil {
			if !errors.Is(err, errStateForged) && !errors.Is(err, errStateExpired) {
				t.Errorf("got %v", err)
			}
			return
		}
		// Each process of the fuzzer has sealed one of its own.
		raw, err := base64.RawURLEncoding.DecodeString(text)
		unchanged := err == nil && base64.RawURLEncoding.EncodeToString(raw) == text
		if !unchanged || !bytes.Equal(canonical(args), []byte(`{"a":1}`)) || st.Round != 1 {
			t.Errorf("%q opens for %s as %+v", text, args, st)
		}
	})
}

// FuzzCheck checks any arguments against schemas with every kind of keyword:
// no panic, at most eight violations, and none for what the validator accepts.
func FuzzCheck(f *testing.F) {
	var schemas []*Schema
	for _, text := range []string{
		`{"type":"object","properties":{"n":{"type":"integer","minimum":0,"maximum":10,"default":3},"s":{"type":"string","pattern":"^a+$","maxLength":5},"e":{"enum":["x",1,null]}},"required":["s"],"additionalProperties":false}`,
		`{"type":"object","properties":{"l":{"type":"array","items":{"$ref":"#/$defs/d"},"minItems":1,"uniqueItems":true}},"$defs":{"d":{"anyOf":[{"type":"number","multipleOf":0.1},{"type":"object","properties":{"d":{"$ref":"#/$defs/d"}}}]}}}`,
		`{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}],"if":{"required":["c"]},"then":{"required":["d"]},"not":{"required":["z"]},"dependentRequired":{"a":["b"]}}`,
	} {
		s, err := ParseSchema(json.RawMessage(text))
		if err != nil {
			f.Fatal(err)
		}
		schemas = append(schemas, s)
	}
	for _, args := range []string{
		``, `null`, ` null`, `{}`, `[]`, `{"s":"aaa","n":1e400}`, `{"s":"aaa","n":12345678901234567890}`, `{"l":[1,1,{"d":{"d":{"d":1.1}}}]}`,
		`{"a":1,"b":2,"c":3}`, `{"s":"\u0000","e":[]}`, `{"s":"aaa","x":{"y":{}}}`, `{"l":[[[[[[]]]]]]}`, `{"z":1`, `{"a":1,"a":2}`,
	} {
		f.Add([]byte(args))
	}
	f.Fuzz(func(t *testing.T, args []byte) {
		for i, s := range schemas {
			filled, violations := s.Check(args)
			if len(violations) > maxViolations {
				t.Errorf("schema %d: %d violations", i, len(violations))
			}
			if len(violations) == 0 {
				if again, more := s.Check(filled); len(more) > 0 {
					t.Errorf("schema %d: %s becomes %s, which breaks it: %v", i, args, again, more)
				}
			}
			_, _ = s.Fill(args)
			_ = PlainIntegers(args)
		}
	})
}

// FuzzParamHeaders compares any header with any arguments.
func FuzzParamHeaders(f *testing.F) {
	headers, err := protocol.CompileParamHeaders(json.RawMessage(`{"properties":{"r":{"type":"string","x-mcp-header":"R"},"o":{"properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}`))
	if err != nil || len(headers) != 2 {
		f.Fatal(headers, err)
	}
	for _, value := range []string{"", "eu", "=?base64?ZXU=?=", "=?base64?!?=", "=?base64?", "7", "7.0", "1e400", "NaN", "-0", "9007199254740993", "\xff"} {
		f.Add(value, value, []byte(`{"r":"eu","o":{"n":7}}`))
		f.Add(value, "", []byte(`{"r":null,"o":[]}`))
		f.Add("", value, []byte(`{`))
	}
	f.Fuzz(func(t *testing.T, r, n string, args []byte) {
		h := map[string][]string{}
		for name, value := range map[string]string{"Mcp-Param-R": r, "Mcp-Param-N": n} {
			if value != "" {
				h[name] = []string{value}
			}
		}
		header, reason := headers.Mismatch(h, args)
		if (header == "") != (reason == "") {
			t.Errorf("%q: %q", header, reason)
		}
		var v struct {
			R any `json:"r"`
		}
		if header == "" && r != "" && json.Valid(args) && json.Unmarshal(args, &v) == nil {
			if text, ok := v.R.(string); v.R != nil && !ok && r == text {
				t.Errorf("header %q for %s", r, args)
			}
		}
	})
}
