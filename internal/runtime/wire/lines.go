package wire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"

	"github.com/famcp/famcp/internal/runtime/telemetry"
)

// How much of the two ends of a line that is too long is kept, to find its id:
// most clients write it first, the TypeScript SDK writes it last.
const (
	headBytes = 4 << 10
	tailBytes = 1 << 10
)

// A line is one line of input without its end.
type line struct {
	data []byte // the line, or the head of one that is too long
	tail []byte // of one that is too long
	long bool
}

// lineReader splits input into lines of at most max bytes; 0 is unbounded.
type lineReader struct {
	r     *bufio.Reader
	max   int64
	begun bool
}

func newLineReader(r io.Reader, maxBytes int64) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), max: maxBytes}
}

// next returns the next line; the last one may lack its end. A line that is
// too long is read to its end and not kept.
func (r *lineReader) next() (line, error) {
	var l line
	for {
		chunk, err := r.r.ReadSlice('\n')
		if !r.begun && len(chunk) > 0 {
			chunk = bytes.TrimPrefix(chunk, []byte("\xef\xbb\xbf")) // some shells pipe a byte order mark
			r.begun = true
		}
		l.add(bytes.TrimSuffix(chunk, []byte("\n")), r.max)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == io.EOF && len(l.data) > 0:
			return l, nil // the next call reports the end
		default:
			return l, err
		}
	}
}

func (l *line) add(chunk []byte, maxBytes int64) {
	if !l.long && (maxBytes <= 0 || int64(len(l.data)+len(chunk)) <= maxBytes) {
		l.data = append(l.data, chunk...)
		return
	}
	if !l.long {
		l.long = true
		l.tail = bytes.Clone(l.data[max(0, len(l.data)-tailBytes):])
		l.data = append(l.data, chunk[:min(len(chunk), headBytes)]...)
		l.data = bytes.Clone(l.data[:min(len(l.data), headBytes)])
	}
	l.tail = append(l.tail, chunk[max(0, len(chunk)-tailBytes):]...)
	l.tail = bytes.Clone(l.tail[max(0, len(l.tail)-tailBytes):])
}

// lastID matches an id that is the last member of a message. The brace behind
// it ends the line, so the member is one of the message itself.
var lastID = regexp.MustCompile(`[,{]\s*"id"\s*:\s*("(?:[^"\\\x00-\x1f]|\\.)*"|-?[0-9]+)\s*\}\s*$`)

// peek finds the id of a line that is too long, nil when neither end shows
// one, and whether it is an answer of the client.
func (l *line) peek() (id json.RawMessage, answer bool) {
	dec := json.NewDecoder(bytes.NewReader(l.data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for {
		name, err := dec.Token()
		if err != nil {
			break
		}
		if name == "result" || name == "error" {
			answer = true
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil || dec.InputOffset() == int64(len(l.data)) {
			break // cut off here; a number may lack digits
		}
		if _, ok := idKey(value); ok && name == "id" {
			id = value
		}
	}
	if id == nil {
		if m := lastID.FindSubmatch(l.tail); m != nil {
			id = m[1]
		}
	}
	return id, answer
}

// lineWriter writes whole lines, one at a time. Waiting for one's turn ends
// with the context, so that a reader who has stopped reading holds up the
// writer of one line only.
type lineWriter struct {
	w        io.Writer
	messages *telemetry.Messages
	turn     chan struct{} // holds one token while a write runs
	broken   chan struct{} // closed after the first failure
	fail     sync.Once
	err      error // set before broken is closed
}

func newLineWriter(w io.Writer, messages *telemetry.Messages) *lineWriter {
	return &lineWriter{w: w, messages: messages, turn: make(chan struct{}, 1), broken: make(chan struct{})}
}

func (w *lineWriter) write(ctx context.Context, line []byte) error {
	select {
	case w.turn <- struct{}{}:
	case <-w.broken:
		return w.err
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-w.turn }()
	select {
	case <-w.broken:
		return w.err
	default:
	}
	w.messages.Out("", line)
	n, err := w.w.Write(append(line, '\n'))
	if err == nil && n <= len(line) {
		err = io.ErrShortWrite
	}
	if err != nil {
		err = fmt.Errorf("writing messages: %w", err)
		_ = w.end(err)
	}
	return err
}

// end lets every later write fail with err. It returns the error that they
// fail with already, or nil.
func (w *lineWriter) end(err error) (before error) {
	first := false
	w.fail.Do(func() {
		first = true
		w.err = err
		close(w.broken)
	})
	if first {
		return nil
	}
	return w.err
}
