package limits

import (
	"sync"
	"testing"

	"github.com/famcp/famcp/internal/runtime/call"
)

func TestCalls(t *testing.T) {
	l := New(Config{MaxCalls: 2})
	enter := func(f *call.Facts, want bool) *call.Facts {
		t.Helper()
		if got := l.Call(f); got != want {
			t.Fatalf("admitted: %t, want %t", got, want)
		}
		return f
	}
	first, second := enter(from("192.0.2.1"), true), enter(from("192.0.2.1"), true)
	enter(from("192.0.2.1"), false)
	other := enter(from("192.0.2.2"), true)
	ping := from("192.0.2.1")
	ping.Method = "ping"
	enter(ping, true)

	first.Release()
	first.Release() // gives back one place only
	third := enter(from("192.0.2.1"), true)
	enter(from("192.0.2.1"), false)

	resume := second.Pause()
	fourth := enter(from("192.0.2.1"), true)
	resume() // goes on at once
	fourth.Release()
	enter(from("192.0.2.1"), false)

	resume = third.Pause()
	third.Release() // was given up while it waited
	resume()
	last := enter(from("192.0.2.1"), true)
	for _, f := range []*call.Facts{second, last, other, ping} {
		f.Release()
	}
	if n := len(l.calls.held); n != 0 {
		t.Errorf("%d callers hold a place at the end", n)
	}
}

func TestStreams(t *testing.T) {
	l := New(Config{MaxStreams: 1, MaxCalls: 1})
	f := from("192.0.2.1")
	leave, ok := l.Stream(f)
	if !ok {
		t.Fatal("the first stream is refused")
	}
	if _, ok := l.Stream(f); ok {
		t.Error("the second stream is admitted")
	}
	if !l.Call(f) {
		t.Error("a stream holds a call's slot")
	}
	leave()
	if _, ok := l.Stream(f); !ok {
		t.Error("a stream is refused after the end of the first")
	}
}

func TestCallsInParallel(t *testing.T) {
	l := New(Config{MaxCalls: 8})
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		running int
	)
	for range 64 {
		wg.Go(func() {
			for range 200 {
				f := from("2001:db8::1")
				if !l.Call(f) {
					continue
				}
				mu.Lock()
				running++
				if running > 8 {
					t.Errorf("%d calls run", running)
				}
				mu.Unlock()
				mu.Lock()
				running--
				mu.Unlock()
				f.Release()
			}
		})
	}
	wg.Wait()
	if n := len(l.calls.held); n != 0 {
		t.Errorf("%d callers hold a place at the end", n)
	}
}
