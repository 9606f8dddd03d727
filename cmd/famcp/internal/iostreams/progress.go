package iostreams

import (
	"fmt"
	"sync"
	"time"
)

const (
	// progressDelay keeps quick work silent.
	progressDelay = 300 * time.Millisecond
	frameInterval = 100 * time.Millisecond
	eraseLine     = "\r\x1b[K"
)

var frames = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// Progress is a spinner on standard error with the name of the running phase.
// It shows itself only on a terminal with colour, and only once the work has taken 300 ms;
// anywhere else it writes nothing. Its methods may be called concurrently.
type Progress struct {
	io   *IOStreams
	quit chan struct{}
	done chan struct{}
	once sync.Once

	mu    sync.Mutex
	phase string
}

// StartProgress starts a spinner; the caller stops it before writing anything
// else to a terminal.
func (s *IOStreams) StartProgress(phase string) *Progress {
	p := &Progress{io: s, phase: phase, quit: make(chan struct{}), done: make(chan struct{})}
	if !s.OutTTY || !s.ErrTTY || s.Accessible || s.Unattended || !s.Color {
		close(p.done)
		return p
	}
	go p.spin()
	return p
}

// Phase names what is being done now.
func (p *Progress) Phase(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase = name
}

// Stop removes the spinner from the terminal. A second call does nothing.
func (p *Progress) Stop() {
	p.once.Do(func() { close(p.quit) })
	<-p.done
}

func (p *Progress) spin() {
	defer close(p.done)
	select {
	case <-p.quit:
		return
	case <-time.After(progressDelay):
	}
	defer fmt.Fprint(p.io.Err, eraseLine)
	tick := time.NewTicker(frameInterval)
	defer tick.Stop()
	for i := 0; ; i++ {
		p.mu.Lock()
		phase := p.phase
		p.mu.Unlock()
		fmt.Fprintf(p.io.Err, "%s%s %s", eraseLine, frames[i%len(frames)], phase)
		select {
		case <-p.quit:
			return
		case <-tick.C:
		}
	}
}
