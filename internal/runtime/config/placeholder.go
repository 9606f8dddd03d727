package config

import (
	"reflect"
	"strings"
)

// Placeholders lists the paths of the secret keys of v, a pointer to a tagged
// struct, that hold a text from an example rather than a secret.
func Placeholders(v any) ([]string, error) {
	s, dst, err := schemaOfPointer(v)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, f := range s.fields {
		if !f.Secret {
			continue
		}
		v := f.in(dst)
		if v.Kind() != reflect.Slice {
			if isPlaceholder(v) {
				paths = append(paths, f.Path)
			}
			continue
		}
		for i := range v.Len() {
			if isPlaceholder(v.Index(i)) {
				paths = append(paths, f.Path)
				break
			}
		}
	}
	return paths, nil
}

var placeholderWords = []string{
	"changeme", "changeit", "replaceme", "replacewith", "placeholder", "yoursecret", "yourtoken", "yourkey",
	"yourpassword", "putyour", "insertyour", "examplesecret", "mysecret", "supersecret", "notasecret",
}

func isPlaceholder(v reflect.Value) bool {
	if v.Kind() != reflect.String || v.Len() == 0 {
		return false
	}
	text := strings.ToLower(strings.TrimSpace(v.String()))
	if text == "" {
		return true
	}
	if strings.HasPrefix(text, "<") && strings.HasSuffix(text, ">") || strings.HasPrefix(text, "${") {
		return true
	}
	letters := squash(text)
	switch letters {
	case "secret", "password", "passwd", "token", "key", "test", "todo", "admin", "example":
		return true
	}
	for _, word := range placeholderWords {
		if strings.Contains(letters, word) {
			return true
		}
	}
	return strings.Trim(text, text[:1]) == "" // xxxxxxxx, 00000000
}
