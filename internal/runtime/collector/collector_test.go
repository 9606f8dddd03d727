package collector

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func TestPercentFor(t *testing.T) {
	tests := []struct {
		live uint64
		want int
	}{
		{0, Percent}, {4 << 20, Percent}, {12 << 20, Percent}, {24 << 20, 200}, {48 << 20, 100}, {8 << 30, 100},
	}
	for _, tt := range tests {
		if got := percentFor(tt.live); got != tt.want {
			t.Errorf("percentFor(%d MiB) = %d, want %d", tt.live>>20, got, tt.want)
		}
	}
}

// TestPace holds on to memory and lets it go again.
func TestPace(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // the pace goes on, and sets it again
	Pace()
	gogc := func() uint64 {
		s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	waitFor := func(percent uint64) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); gogc() != percent; {
			if time.Now().After(deadline) {
				t.Fatalf("GOGC is %d, want %d", gogc(), percent)
			}
			runtime.GC()
		}
	}
	waitFor(Percent)
	data := make([]byte, 96<<20)
	waitFor(least)
	runtime.KeepAlive(data) // until here
	waitFor(Percent)
}
