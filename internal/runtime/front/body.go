package front

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/famcp/famcp/internal/runtime/protocol"
)

const (
	bodyTimeout = 30 * time.Second // for a whole body; slower ones are cut
	believed    = 8 << 10          // of an announced size
	idWindow    = 8 << 10          // where the id of a body over the cap is looked for
)

var errTooLarge = errors.New("the body is over the cap")

// readBody reads the body of r up to limit bytes. On [errTooLarge] it returns
// the beginning of the body.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	conn := http.NewResponseController(w)
	// Recorders of tests have no connection; a server's always has.
	_ = conn.SetReadDeadline(time.Now().Add(bodyTimeout))
	if r.ContentLength > limit {
		head, err := io.ReadAll(io.LimitReader(r.Body, min(idWindow, limit)))
		if err != nil {
			return nil, err
		}
		return head, errTooLarge
	}
	body, err := readAll(http.MaxBytesReader(w, r.Body, limit), r.ContentLength)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return body, errTooLarge
	}
	if err != nil {
		return nil, err
	}
	// From here on net/http watches the connection for the client going away;
	// a deadline would look like that.
	_ = conn.SetReadDeadline(time.Time{})
	return body, nil
}

// readAll is io.ReadAll with a buffer of the size that was announced, as far
// as what was announced is believed before it arrives.
func readAll(r io.Reader, announced int64) ([]byte, error) {
	body := make([]byte, 0, min(max(announced, 0), believed)+1) // one more finds the end
	for {
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case err == io.EOF:
			return body, nil
		case err != nil:
			return body, err
		case len(body) == cap(body):
			body = slices.Grow(body, len(body))
		}
	}
}

// findID returns the id of a message of which only the beginning is known, or
// nil. go-sdk clients give up the session on an error without the id.
func findID(head []byte) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(head[:min(len(head), idWindow)]))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return nil
		}
		if key == "id" {
			if !protocol.ValidID(value) {
				return nil
			}
			return value
		}
	}
	return nil
}
