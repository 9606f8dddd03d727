// Package collector sets the pace of the Go collector for servers.
package collector

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// Percent is GOGC for a small heap. Serving a request makes far more garbage
	// than a server keeps, so a larger heap is collected much less often.
	Percent = 400

	// budget is the garbage that may gather between two collections. What a
	// server keeps grows with its sessions and its data; at a fixed percentage
	// the garbage would grow with it, and 1 GiB of data would take 5.
	budget = 48 << 20

	// least is the percentage that even a large heap has: Go's own default.
	least = 100
)

// Pace sets GOGC to [Percent] and lowers it as the heap grows, for the whole
// process and for as long as it lives.
func Pace() {
	debug.SetGCPercent(Percent)
	follow(&pace{percent: Percent})
}

type pace struct{ percent int }

// follow adjusts p after each collection: a collection is what finds out that
// the mark is unreachable.
func follow(p *pace) {
	mark := new([16]byte) // smaller ones share memory with others, and live as long
	runtime.AddCleanup(mark, func(p *pace) {
		p.adjust()
		follow(p)
	}, p)
}

func (p *pace) adjust() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	percent := percentFor(live[0].Value.Uint64())
	// Setting it stops the world for a moment, which small changes are not worth.
	if change := percent - p.percent; change > p.percent/10 || -change > p.percent/10 {
		p.percent = percent
		debug.SetGCPercent(percent)
	}
}

func percentFor(live uint64) int {
	return int(min(max(budget*100/max(live, 1), least), Percent))
}
