package front

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

const (
	keepAlive    = 20 * time.Second // silence on a stream before a comment line; proxies cut at 60 s
	writeTimeout = 30 * time.Second // one write to a client that does not read
	slowest      = 32 << 10         // bytes a second that a client may take for a large one

	// A client that falls behind by this much is dropped.
	maxQueuedEvents = 1024
	maxQueuedBytes  = 16 << 20
)

var errSlow = errors.New("the client does not read its stream")

// stream is an SSE response. Senders only queue; one goroutine writes, so a
// slow client holds up nobody.
type stream struct {
	w    http.ResponseWriter
	drop context.CancelCauseFunc // ends the request of a client that is too slow

	wake chan struct{} // buffered by one
	done chan struct{} // closed when the writer has ended

	mu     sync.Mutex
	queue  [][]byte
	size   int
	closed bool // no more is queued
	broken bool // nobody reads
}

// openStream sends the headers of a stream and starts its writer.
func openStream(w http.ResponseWriter, drop context.CancelCauseFunc) *stream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	s := &stream{
		w: w, drop: drop,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	go s.write()
	return s
}

// send queues bytes that are one or more whole events.
func (s *stream) send(event []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.broken {
		return
	}
	if len(s.queue) > 0 && (len(s.queue) >= maxQueuedEvents || s.size+len(event) > maxQueuedBytes) {
		s.fail(errSlow)
		return
	}
	s.queue = append(s.queue, event)
	s.size += len(event)
	s.signal()
}

// fail is called with the mutex held.
func (s *stream) fail(err error) {
	s.broken = true
	s.queue, s.size = nil, 0
	s.drop(err)
	s.signal()
}

func (s *stream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// close waits until everything queued is written or given up. The response
// writer is free afterwards.
func (s *stream) close() {
	s.mu.Lock()
	s.closed = true
	s.signal()
	s.mu.Unlock()
	<-s.done
}

func (s *stream) write() {
	defer close(s.done)
	timer := time.NewTimer(keepAlive)
	defer timer.Stop()
	s.put([][]byte{nil}) // the headers
	for {
		select {
		case <-s.wake:
			for {
				events, over := s.take()
				if over {
					return
				}
				if len(events) == 0 {
					break
				}
				s.put(events)
			}
		case <-timer.C:
			s.put([][]byte{[]byte(": keep-alive\n\n")})
		}
		timer.Reset(keepAlive)
	}
}

// take returns what is queued, and whether the stream is over.
func (s *stream) take() (events [][]byte, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	events, s.queue, s.size = s.queue, nil, 0
	return events, len(events) == 0 && (s.closed || s.broken)
}

// put writes events, of which there is at least one.
func (s *stream) put(events [][]byte) {
	b := events[0]
	if len(events) > 1 {
		b = bytes.Join(events, nil)
	}
	if err := put(s.w, b); err != nil {
		s.mu.Lock()
		s.fail(err)
		s.mu.Unlock()
	}
}

// put writes and flushes b in a time that suits its size. The deadline belongs
// to this write only: silence must not cut a stream, nor what comes later on
// the connection.
func put(w http.ResponseWriter, b []byte) error {
	conn := http.NewResponseController(w)
	_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout + time.Duration(len(b)/slowest)*time.Second))
	defer func() { _ = conn.SetWriteDeadline(time.Time{}) }()
	if _, err := w.Write(b); err != nil {
		return err
	}
	return conn.Flush()
}

// event frames a message, which is one line of JSON.
func event(message []byte) []byte {
	return bytes.Join([][]byte{[]byte("event: message\ndata: "), message, []byte("\n\n")}, nil)
}
