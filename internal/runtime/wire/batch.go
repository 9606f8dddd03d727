package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/famcp/famcp/internal/runtime/protocol"
)

// A batch collects the answers of a JSON-RPC batch, which only revision
// 2025-03-26 has, and sends them together when the last call has ended.
type batch struct {
	send func(line []byte) error

	mu      sync.Mutex
	left    int
	answers [][]byte
}

func (b *batch) expect() {
	b.mu.Lock()
	b.left++
	b.mu.Unlock()
}

func (b *batch) add(answer []byte) {
	b.mu.Lock()
	b.answers = append(b.answers, answer)
	b.mu.Unlock()
}

// done counts one expected call out. Notifications and cancelled calls add no
// answer; a batch without answers sends nothing.
func (b *batch) done() error {
	b.mu.Lock()
	b.left--
	ready := b.left == 0 && len(b.answers) > 0
	b.mu.Unlock()
	if !ready {
		return nil
	}
	line := append([]byte{'['}, bytes.Join(b.answers, []byte{','})...)
	return b.send(append(line, ']'))
}

func (m *mux) serveBatch(ctx context.Context, data []byte) error {
	refuse := func(text string) error {
		return m.refuse(ctx, nil, nil, newError(protocol.CodeInvalidRequest, text, protocol.ErrorData{}))
	}
	if m.legacy == nil || m.negotiated != protocol.BatchRevision {
		return refuse(protocol.ErrBatch.Error())
	}
	var elements []json.RawMessage
	if err := json.Unmarshal(data, &elements); err != nil {
		return refuse(protocol.ErrBatch.Error())
	}
	if len(elements) == 0 {
		return refuse("the batch is empty")
	}
	if len(elements) > maxOpen {
		return refuse(fmt.Sprintf("the batch has %d messages, more than %d", len(elements), maxOpen))
	}
	b := &batch{send: func(line []byte) error { return m.out.write(context.WithoutCancel(ctx), line) }}
	b.expect() // this loop
	for _, element := range elements {
		msg, fault := protocol.Parse(element)
		if err := m.message(ctx, b, element, msg, fault); err != nil {
			return err
		}
	}
	return b.done()
}
