// Package config loads a typed configuration from layers and says where every
// value came from.
//
// A configuration is any struct whose fields carry tags. The tags are the one
// table behind reading, environment names, masking, documentation, .env.example
// and the JSON Schema:
//
//	yaml:"name"       the key; ",inline" lifts the fields of an embedded struct, "-" skips the field
//	env:"NAME"        replaces the derived variable; on a struct the prefix of its keys; "-" for none
//	default:"text"    the lowest layer, written as in a variable
//	doc:"text"        one or two sentences for operators; on a struct said of each of its keys
//	secret:"true"     never shown; implied by a string type with a method Reveal() string
//	min:"1" max:"9"   bounds of a number; of a text that is not empty, its length; of a list, its size
//	enum:"a,b"        the texts that are allowed
//	unit:"ms"         required on a time.Duration: ms or s, because files hold whole numbers
//
// Fields are strings, booleans, integers, floats, time.Duration, lists of
// these, and structs of fields.
//
// Later layers win: default tags, the built-in default.yaml, then in the
// directory config/ default.yaml, <environment>.yaml and local.yaml, then the
// environment. A default.yaml on disk lies over the built-in one and does not
// replace it, so that a program never loses the keys it was built with. A list
// replaces the list below it.
//
// The package has no state: everything may be called concurrently on distinct
// destinations.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// EnvVariable names the environment: it chooses config/<value>.yaml.
const EnvVariable = "FAMCP_ENV"

// DefaultEnv is the environment when [EnvVariable] is unset or empty.
const DefaultEnv = "development"

// DefaultSource is the [Value.Source] of a key that no layer sets.
const DefaultSource = "default"

const (
	maxFileBytes  = 256 << 10 // a configuration file
	maxValueBytes = 64 << 10  // a file named by NAME_FILE
)

var envName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

// Source is where a configuration is read from. The zero Source reads nothing:
// only the default tags remain.
type Source struct {
	// Defaults is the YAML built into the program; nil for none.
	Defaults []byte
	// DefaultsName stands for Defaults in errors and reports; empty means
	// "config/default.yaml (built in)".
	DefaultsName string
	// Dir is the directory that holds config/; empty reads no files.
	Dir string
	// Partial says that the destination is a part of the program's
	// configuration: sections at the top of a file that it does not know are
	// the program's own and are skipped.
	Partial bool
	// Environ is the environment as "NAME=value", usually os.Environ(). The
	// last of several equal names wins.
	Environ []string
}

// Load fills dst, a pointer to a tagged struct, from the layers of src. The
// report describes every key, also when err is not nil; it is nil only when the
// struct itself is at fault. err joins every fault found ([Error] each); dst is
// to be used only without one.
func Load(dst any, src Source) (*Report, error) {
	s, v, err := schemaOfPointer(dst)
	if err != nil {
		return nil, err
	}
	l := &loader{schema: s, dst: v, partial: src.Partial, sources: make(map[*field]string, len(s.fields))}
	for _, f := range s.fields {
		f.reset(v)
	}
	vars := environ(src.Environ)

	env := DefaultEnv
	if set := vars[EnvVariable]; set != "" {
		if err := checkEnvName(set); err != nil {
			l.fail(EnvVariable, "", "%v", err)
		} else {
			env = set
		}
	}
	if name := src.DefaultsName; src.Defaults != nil {
		if name == "" {
			name = "config/default.yaml (built in)"
		}
		l.file(name, src.Defaults)
	}
	if src.Dir != "" {
		for _, name := range []string{"default", env, "local"} {
			l.disk(src.Dir, "config/"+name+".yaml")
		}
	}
	l.environment(vars)
	return l.report(env), errors.Join(l.errs...)
}

// Error is one fault of a configuration.
type Error struct {
	Where   string // "config/local.yaml:12", a variable, or empty for a value set in Go
	Key     string // the path of the key; empty when the fault is not about one
	Problem string // what is wrong and what to do; never holds a secret
}

func (e *Error) Error() string {
	parts := slices.DeleteFunc([]string{e.Where, e.Key, e.Problem}, func(s string) bool { return s == "" })
	return strings.Join(parts, ": ")
}

// loader is one run of Load.
type loader struct {
	schema  *schema
	dst     reflect.Value
	partial bool
	sources map[*field]string
	errs    []error
}

func (l *loader) fail(where, key, format string, args ...any) {
	l.errs = append(l.errs, &Error{Where: where, Key: key, Problem: fmt.Sprintf(format, args...)})
}

func (l *loader) report(env string) *Report {
	r := &Report{Env: env, Values: make([]Value, 0, len(l.schema.fields))}
	for _, f := range l.schema.fields {
		source := l.sources[f]
		if source == "" {
			source = DefaultSource
		}
		r.Values = append(r.Values, Value{Key: f.Key, Value: f.shown(l.dst), Source: source})
	}
	return r
}

// disk reads the file name, relative to dir, unless it does not exist.
func (l *loader) disk(dir, name string) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		if short := strings.TrimSuffix(name, "yaml") + "yml"; exists(dir, short) {
			l.fail(short, "", "is not read; rename it to end in .yaml")
		}
		return
	case err != nil:
		l.fail(name, "", "%v", reason(err))
		return
	case !info.Mode().IsRegular(): // a pipe would block, a directory says nothing
		l.fail(name, "", "not a regular file")
		return
	}
	data, err := readBounded(path, maxFileBytes)
	if err != nil {
		l.fail(name, "", "%v", err)
		return
	}
	l.file(name, data)
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
	return err == nil
}

func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, reason(err)
	}
	defer f.Close()
	var buf bytes.Buffer
	if n, err := io.Copy(&buf, io.LimitReader(f, limit+1)); err != nil {
		return nil, reason(err)
	} else if n > limit {
		return nil, fmt.Errorf("larger than %d bytes", limit)
	}
	return buf.Bytes(), nil
}

// reason leaves the path out of a file error: the caller names the file in the
// operator's terms.
func reason(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

// checkEnvName keeps the environment a file name of ours: nothing else may be
// read through it.
func checkEnvName(name string) error {
	switch {
	case !envName.MatchString(name):
		return fmt.Errorf("%q is not a lower-case name such as production", shorten(name))
	case name == "default" || name == "local":
		return fmt.Errorf("%q is the name of a layer of its own; choose another", name)
	case name == "prod": // silently not production would be a weaker server than asked for
		return fmt.Errorf("%q is not an environment; write production", name)
	}
	return nil
}
