package front

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// accepted says which kinds of answer a client takes.
type accepted struct{ json, stream bool }

// acceptedBy reads the Accept header type by type; without one everything is
// taken (RFC 9110, 12.5.1).
func acceptedBy(h http.Header) accepted {
	list := strings.Join(h.Values("Accept"), ",")
	if strings.TrimSpace(list) == "" {
		return accepted{json: true, stream: true}
	}
	var a accepted
	for item := range strings.SplitSeq(list, ",") {
		kind, params, _ := strings.Cut(item, ";")
		if refused(params) {
			continue
		}
		switch strings.ToLower(strings.TrimSpace(kind)) {
		case "*/*":
			a = accepted{json: true, stream: true}
		case "application/json", "application/*":
			a.json = true
		case "text/event-stream", "text/*":
			a.stream = true
		}
	}
	return a
}

// refused reports a quality of zero.
func refused(params string) bool {
	for p := range strings.SplitSeq(params, ";") {
		key, value, _ := strings.Cut(p, "=")
		if strings.EqualFold(strings.TrimSpace(key), "q") {
			q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return err == nil && q == 0
		}
	}
	return false
}

func (a accepted) nothing() bool { return !a.json && !a.stream }

func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && kind == "application/json"
}
