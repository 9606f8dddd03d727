package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"github.com/famcp/famcp/internal/runtime/protocol"
)

// A batch collects the answers of a JSON-RPC batch, which only revision
// 2025-03-26 has, until the last of its calls has ended.
type batch struct {
	finish func(answers [][]byte)

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

// done counts one expected call out.
func (b *batch) done() {
	b.mu.Lock()
	b.left--
	last := b.left == 0
	b.mu.Unlock()
	if last {
		b.finish(b.answers)
	}
}

func (m *mux) serveBatch(ctx context.Context, data []byte) error {
	refuse := func(text string) error {
		return m.refuse(ctx, nil, nil, &refusal{code: protocol.CodeInvalidRequest, message: text})
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
	b := &batch{}
	b.finish = func(answers [][]byte) { m.finishBatch(context.WithoutCancel(ctx), b, answers) }
	b.expect() // this loop
	for _, element := range elements {
		msg, fault := protocol.Parse(element)
		if err := m.message(ctx, b, element, msg, fault); err != nil {
			return err
		}
	}
	b.done()
	return nil
}

// finishBatch sends the answers together. Notifications and cancelled calls
// have none; when nothing has, nothing is sent.
func (m *mux) finishBatch(ctx context.Context, b *batch, answers [][]byte) {
	m.mu.Lock()
	maps.DeleteFunc(m.byID, func(_ string, p *pending) bool { return p.batch == b })
	m.mu.Unlock()
	if len(answers) == 0 {
		return
	}
	line := append([]byte{'['}, bytes.Join(answers, []byte{','})...)
	_ = m.out.write(ctx, append(line, ']')) // a failure ends Run by itself
}
