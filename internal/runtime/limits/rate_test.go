package limits

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/famcp/famcp/internal/runtime/call"
)

func from(address string) *call.Facts {
	a := netip.MustParseAddr(address)
	return &call.Facts{Subject: a.String(), Address: a, Method: "tools/call"}
}

// admitted returns how many of n requests at once are admitted.
func admitted(l *Limits, f *call.Facts, n int) (count int) {
	for range n {
		if _, ok := l.Request(f); ok {
			count++
		}
	}
	return count
}

func TestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{MaxRequests: 100, Window: time.Minute})
		f := from("192.0.2.1")
		if got := admitted(l, f, 250); got != 100 {
			t.Fatalf("at once: %d admitted, want 100", got)
		}
		if got := admitted(l, from("192.0.2.2"), 1); got != 1 {
			t.Error("another caller is refused")
		}
		retry, ok := l.Request(f)
		if ok || retry <= 0 || retry > time.Minute+time.Second {
			t.Fatalf("over the limit: retry after %s, admitted %t", retry, ok)
		}
		time.Sleep(retry - 1)
		if _, ok := l.Request(f); ok {
			t.Error("admitted before the time to retry")
		}
		time.Sleep(time.Nanosecond)
		if _, ok := l.Request(f); !ok {
			t.Error("refused at the time to retry")
		}
		time.Sleep(30 * time.Second)
		if got := admitted(l, f, 100); got < 45 || got > 55 {
			t.Errorf("after half a window: %d admitted, want about 50", got)
		}
		time.Sleep(2 * time.Minute)
		if got := admitted(l, f, 250); got != 100 {
			t.Errorf("after two quiet windows: %d admitted, want 100", got)
		}
	})
}

// TestRequestsAtRandom: what is said about the time to retry is true, and no
// window has more than twice the limit whatever the pattern.
func TestRequestsAtRandom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable
		for limit := range 20 {
			limit++
			l := New(Config{MaxRequests: limit, Window: time.Second})
			f := from("192.0.2.1")
			var times []time.Time
			for range 500 {
				retry, ok := l.Request(f)
				if !ok {
					time.Sleep(retry - 1)
					if _, ok := l.Request(f); ok {
						t.Fatalf("limit %d: admitted 1 ns before the time to retry", limit)
					}
					time.Sleep(time.Nanosecond)
					if _, ok := l.Request(f); !ok {
						t.Fatalf("limit %d: refused at the time to retry", limit)
					}
				}
				times = append(times, time.Now())
				if n := len(times) - 2*limit; n > 0 && times[len(times)-1].Sub(times[n-1]) < time.Second {
					t.Fatalf("limit %d: more than twice as many in one window", limit)
				}
				time.Sleep(time.Duration(random.Int64N(int64(3 * time.Second / time.Duration(limit)))))
			}
		}
	})
}

func TestWhoIsOneCaller(t *testing.T) {
	token := func(subject, address string) *call.Facts {
		f := from(address)
		f.Subject = subject
		return f
	}
	tests := []struct {
		name      string
		byAddress bool
		a, b      *call.Facts
		same      bool
	}{
		{"two addresses", false, from("192.0.2.1"), from("192.0.2.2"), false},
		{"one IPv6 network", false, from("2001:db8::1"), from("2001:db8::ffff:1"), true},
		{"two IPv6 networks", false, from("2001:db8:0:1::1"), from("2001:db8:0:2::1"), false},
		{"one subject, two addresses", false, token("ann", "192.0.2.1"), token("ann", "192.0.2.2"), true},
		{"two subjects, one address", false, token("ann", "192.0.2.1"), token("bob", "192.0.2.1"), false},
		{"by address: one subject, two addresses", true, token("ann", "192.0.2.1"), token("ann", "192.0.2.2"), false},
		{"by address: two subjects, one address", true, token("ann", "192.0.2.1"), token("bob", "192.0.2.1"), true},
		{"no address", false, &call.Facts{Subject: "@"}, &call.Facts{Subject: "@"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := New(Config{MaxRequests: 1, Window: time.Hour, ByAddress: tt.byAddress})
			admitted(l, tt.a, 1)
			if _, ok := l.Request(tt.b); ok == tt.same {
				t.Errorf("the second is admitted: %t, want %t", ok, !tt.same)
			}
		})
	}
}

// TestFullTable: a caller that has used its share stays refused however many
// others come, in its window and in the next, and the table stays bounded.
func TestFullTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{MaxRequests: 10, Window: time.Minute})
		hot := from("192.0.2.1")
		crowd := func() {
			for i := range maxKeys + 50_000 {
				l.Request(&call.Facts{Subject: fmt.Sprint("crowd ", i)})
			}
			if n := len(l.requests.now); n > maxKeys+shared {
				t.Fatalf("%d counters, want at most %d", n, maxKeys+shared)
			}
		}
		admitted(l, hot, 10)
		crowd()
		if got := admitted(l, hot, 10); got != 0 {
			t.Errorf("%d more admitted in the same window", got)
		}
		time.Sleep(time.Minute)
		crowd() // before the hot one has a counter in this window
		if got := admitted(l, hot, 10); got != 0 {
			t.Errorf("%d more admitted at the start of the next window", got)
		}
		time.Sleep(2 * time.Minute)
		if got := admitted(l, hot, 20); got != 10 {
			t.Errorf("%d admitted after two quiet windows, want 10", got)
		}
		if n := len(l.requests.now) + len(l.requests.last); n != 1 {
			t.Errorf("%d counters are left of the crowd", n-1)
		}
	})
}

func TestOff(t *testing.T) {
	for _, l := range []*Limits{nil, New(Config{})} {
		f := from("192.0.2.1")
		if got := admitted(l, f, 1000); got != 1000 {
			t.Errorf("%d of 1000 requests admitted", got)
		}
		if !l.Call(f) || f.Slot != nil {
			t.Error("a call is refused or holds a slot")
		}
		leave, ok := l.Stream(f)
		if !ok {
			t.Error("a stream is refused")
		}
		leave()
	}
}

func BenchmarkRequest(b *testing.B) {
	for _, callers := range []int{1, 10_000} {
		b.Run(fmt.Sprint(callers, " callers"), func(b *testing.B) {
			l := New(Config{MaxRequests: 1_000_000_000, Window: time.Minute})
			facts := make([]*call.Facts, callers)
			for i := range facts {
				facts[i] = from(fmt.Sprintf("10.0.%d.%d", i/250, i%250))
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				l.Request(facts[i%callers])
				i++
			}
		})
	}
}

func BenchmarkRequestAndCall(b *testing.B) {
	l := New(Config{MaxRequests: 1_000_000_000, Window: time.Minute, MaxCalls: 16})
	f := from("192.0.2.1")
	b.ReportAllocs()
	for b.Loop() {
		l.Request(f)
		l.Call(f)
		f.Release()
	}
}
