package protocol

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// DecodeHeader undoes the encoding of values that a header cannot carry
// (2026-07-28, transports, value encoding). ok is false when a value that is
// marked as encoded cannot be decoded.
func DecodeHeader(value string) (decoded string, ok bool) {
	encoded, ok := strings.CutPrefix(value, "=?base64?")
	if !ok {
		return value, true
	}
	encoded, ok = strings.CutSuffix(encoded, "?=")
	if !ok {
		return value, true
	}
	b, err := base64.StdEncoding.DecodeString(encoded)
	return string(b), err == nil
}

// HeaderValue returns the values of a header as one (RFC 9110, 5.3), so that a
// repeated one never matches. present tells an empty header from none.
func HeaderValue(h http.Header, name string) (value string, present bool) {
	values := h[name]
	if len(values) == 1 {
		return strings.TrimSpace(values[0]), true
	}
	return strings.TrimSpace(strings.Join(values, ", ")), len(values) > 0
}

// A ParamHeader is an argument of a tool that a modern client repeats as a
// header, for proxies that route by it: x-mcp-header in the input schema.
type ParamHeader struct {
	Header string   // canonical, with the prefix
	Path   []string // to the argument
}

// ParamHeaders are those of one tool. They are not changed once compiled.
type ParamHeaders []ParamHeader

// CompileParamHeaders finds the arguments that an input schema marks with
// x-mcp-header, at any depth of properties.
func CompileParamHeaders(schema json.RawMessage) (ParamHeaders, error) {
	var root headerSchema
	_ = json.Unmarshal(schema, &root) // whatever else it is, it marks nothing
	var found ParamHeaders
	if err := root.collect(nil, &found); err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b ParamHeader) int { return cmp.Compare(a.Header, b.Header) })
	for i := 1; i < len(found); i++ {
		if found[i].Header == found[i-1].Header {
			return nil, fmt.Errorf("x-mcp-header: two arguments use the name %s", strings.TrimPrefix(found[i].Header, HeaderParam))
		}
	}
	return found, nil
}

type headerSchema struct {
	Type       any                     `json:"type"`
	Header     json.RawMessage         `json:"x-mcp-header"`
	Properties map[string]headerSchema `json:"properties"`
}

func (s *headerSchema) collect(path []string, found *ParamHeaders) error {
	for name, property := range s.Properties {
		path := append(slices.Clone(path), name)
		if property.Header != nil {
			header, err := property.headerName()
			if err != nil {
				return fmt.Errorf("argument %s: x-mcp-header %w", strings.Join(path, "."), err)
			}
			*found = append(*found, ParamHeader{Header: http.CanonicalHeaderKey(HeaderParam + header), Path: path})
		}
		if err := property.collect(path, found); err != nil {
			return err
		}
	}
	return nil
}

func (s *headerSchema) headerName() (string, error) {
	if s.Type != "string" && s.Type != "integer" && s.Type != "boolean" {
		return "", errors.New("needs an argument whose type is exactly string, integer or boolean")
	}
	var name string
	if json.Unmarshal(s.Header, &name) != nil || name == "" || strings.ContainsFunc(name, notToken) {
		return "", errors.New("must be a name that can be part of an HTTP header's")
	}
	return name, nil
}

// notToken reports the characters that a header name cannot have (RFC 9110, 5.6.2).
func notToken(c rune) bool {
	switch {
	case '0' <= c && c <= '9', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		return false
	}
	return !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
}

// Mismatch returns the first header that does not repeat its argument, and in
// which way; "" when all do (2026-07-28, transports, custom headers).
func (p ParamHeaders) Mismatch(h http.Header, arguments json.RawMessage) (header, reason string) {
	for _, param := range p {
		value, present := HeaderValue(h, param.Header)
		argument := lookup(arguments, param.Path)
		switch {
		case argument == nil && present:
			return param.Header, "is there for an argument that is not"
		case argument == nil:
			continue
		case !present:
			return param.Header, "is required"
		}
		decoded, ok := DecodeHeader(value)
		if !ok {
			return param.Header, "is not valid base64"
		}
		if !repeats(decoded, argument) {
			return param.Header, "does not match the body"
		}
	}
	return "", ""
}

// lookup returns the value at path, nil when it is absent or null.
func lookup(object json.RawMessage, path []string) json.RawMessage {
	for _, name := range path {
		var members map[string]json.RawMessage
		if json.Unmarshal(object, &members) != nil {
			return nil
		}
		object = members[name]
	}
	if string(object) == "null" {
		return nil
	}
	return object
}

// repeats reports whether a header's value stands for an argument: a string,
// a boolean, or an integer that every JSON parser reads exactly.
func repeats(value string, argument json.RawMessage) bool {
	var v any
	if json.Unmarshal(argument, &v) != nil {
		return false
	}
	switch v := v.(type) {
	case string:
		return value == v
	case bool:
		return value == strconv.FormatBool(v)
	case float64:
		n, err := strconv.ParseFloat(value, 64)
		return err == nil && n == v && exact(n)
	}
	return false
}

func exact(n float64) bool { return n == math.Trunc(n) && math.Abs(n) <= 1<<53-1 }
