package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// start makes a task that nobody cancels.
func start(t *testing.T, m *Manager, s Spec) *Run {
	t.Helper()
	if s.Cancel == nil {
		s.Cancel = func(error) {}
	}
	r, err := m.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func status(t *testing.T, m *Manager, subject, id string) Status {
	t.Helper()
	task, err := m.Get(t.Context(), subject, id)
	if err != nil {
		t.Fatal(err)
	}
	return task.Status
}

func TestOldestEndedMakesRoom(t *testing.T) {
	m := New(Config{DefaultTTL: time.Hour, Most: 3})
	defer m.Close(t.Context())
	a, b, c := start(t, m, Spec{}), start(t, m, Spec{}), start(t, m, Spec{})
	if _, err := m.Start(t.Context(), Spec{}); !errors.Is(err, ErrFull) {
		t.Fatalf("a fourth: %v", err)
	}
	b.End(t.Context(), Outcome{Result: json.RawMessage(`{}`)})
	a.End(t.Context(), Outcome{Result: json.RawMessage(`{}`)})
	start(t, m, Spec{})
	for id, want := range map[string]error{a.Task.ID: nil, b.Task.ID: ErrUnknown, c.Task.ID: nil} {
		if _, err := m.Get(t.Context(), "", id); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", id, err, want)
		}
	}
}

// TestFinalStatusesStay, whoever is first.
func TestFinalStatusesStay(t *testing.T) {
	ends := map[Status]func(*Manager, *Run){
		Completed: func(_ *Manager, r *Run) { r.End(t.Context(), Outcome{Result: json.RawMessage(`{}`)}) },
		Failed:    func(_ *Manager, r *Run) { r.End(t.Context(), Outcome{Error: json.RawMessage(`{}`)}) },
		Cancelled: func(m *Manager, r *Run) { _, _ = m.Cancel(t.Context(), "", r.Task.ID) },
	}
	for first, end := range ends {
		for second, again := range ends {
			m := New(Config{DefaultTTL: time.Hour})
			r := start(t, m, Spec{})
			end(m, r)
			again(m, r)
			if got := status(t, m, "", r.Task.ID); got != first {
				t.Errorf("%s, then %s: %s", first, second, got)
			}
			if err := r.Say(t.Context(), "late"); !errors.Is(err, ErrEnded) {
				t.Errorf("a message after %s: %v", first, err)
			}
			if _, err := r.Ask(t.Context(), map[string]json.RawMessage{"q": nil}); !errors.Is(err, ErrEnded) {
				t.Errorf("a question after %s: %v", first, err)
			}
			m.Close(t.Context())
		}
	}
}

func TestEndedIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []Status
		m := New(Config{DefaultTTL: time.Hour, Ended: func(s Status) { mu.Lock(); told = append(told, s); mu.Unlock() }})
		for _, end := range []func(*Run){
			func(r *Run) { r.End(t.Context(), Outcome{Result: json.RawMessage(`{}`)}) },
			func(r *Run) { _, _ = m.Cancel(t.Context(), "", r.Task.ID) },
		} {
			r := start(t, m, Spec{})
			end(r)
			synctest.Wait()
			r.End(t.Context(), Outcome{Result: json.RawMessage(`{}`)}) // the handler's own, when somebody was first
		}
		last := start(t, m, Spec{})
		m.Close(t.Context())
		last.End(t.Context(), Outcome{})
		if want := []Status{Completed, Cancelled, Failed}; !slices.Equal(told, want) {
			t.Errorf("told of %v, want %v", told, want)
		}
	})
}

// TestMemoryIsGivenBack when ten thousand tasks have expired, without a call.
func TestMemoryIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory(nil)
		m := New(Config{Store: store, DefaultTTL: time.Hour})
		for range 10_000 {
			r := start(t, m, Spec{Subject: "s"})
			r.End(t.Context(), Outcome{Result: make([]byte, 1024)})
			time.Sleep(time.Millisecond)
		}
		if all, err := m.List(t.Context(), "s"); err != nil || len(all) != 10_000 {
			t.Fatalf("%d tasks: %v", len(all), err)
		}
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		store.mu.Lock()
		defer store.mu.Unlock()
		if n := len(store.tasks) + store.ended.Len() + len(store.byEnd) + len(store.watchers) + len(m.runs); n != 0 || store.timer != nil {
			t.Errorf("%d entries are left, timer %v", n, store.timer)
		}
	})
}

// TestExpiryCancels what still runs.
func TestExpiryCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(Config{DefaultTTL: time.Minute})
		ctx, cancel := context.WithCancelCause(t.Context())
		r := start(t, m, Spec{Cancel: cancel})
		time.Sleep(time.Minute - time.Second)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Fatalf("cancelled early: %v", context.Cause(ctx))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if cause := context.Cause(ctx); !errors.Is(cause, errExpired) {
			t.Errorf("cause %v", cause)
		}
		r.End(t.Context(), Outcome{})
		if _, err := m.Get(t.Context(), "", r.Task.ID); !errors.Is(err, ErrUnknown) {
			t.Errorf("got %v", err)
		}
	})
}

// TestLapsedLeaseFails the tasks of a process that is gone, for every other.
func TestLapsedLeaseFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory(nil)
		config := Config{Store: store, DefaultTTL: time.Hour, Lease: 30 * time.Second, Stopped: json.RawMessage(`{"code":-32006}`)}
		alive, dead := New(config), New(config)
		lives, dies := start(t, alive, Spec{Subject: "s"}), start(t, dead, Spec{Subject: "s"})
		dead.mu.Lock() // as if the process had been killed: nothing beats any more
		delete(dead.runs, dies.Task.ID)
		dead.mu.Unlock()
		seen := make(chan Status, 10)
		go func() {
			_ = alive.Watch(context.Background(), "s", dies.Task.ID, func(task *Task) bool {
				seen <- task.Status
				return !task.Status.Final()
			})
			close(seen)
		}()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		var all []Status
		for s := range seen {
			if len(all) == 0 || all[len(all)-1] != s {
				all = append(all, s)
			}
		}
		if !slices.Equal(all, []Status{Working, Failed}) {
			t.Errorf("a watcher saw %v", all)
		}
		task, err := alive.Get(t.Context(), "s", dies.Task.ID)
		if err != nil || task.Status != Failed || string(task.Error) != `{"code":-32006}` || task.Message == "" {
			t.Errorf("got %+v, %v", task, err)
		}
		if got := status(t, alive, "s", lives.Task.ID); got != Working {
			t.Errorf("the other is %s", got)
		}
		lives.End(t.Context(), Outcome{Result: json.RawMessage(`{}`)})
		dies.stop()
		time.Sleep(time.Minute) // the last beat
		synctest.Wait()
	})
}

// TestCloseLetsSharedTasksFinish within the grace, and fails the rest.
func TestCloseLetsSharedTasksFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory(nil)
		m := New(Config{Store: store, DefaultTTL: time.Hour, Lease: 30 * time.Second})
		soon, never := start(t, m, Spec{}), start(t, m, Spec{})
		time.AfterFunc(time.Second, func() { soon.End(context.Background(), Outcome{Result: json.RawMessage(`{}`)}) })
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		m.Close(ctx)
		for id, want := range map[string]Status{soon.Task.ID: Completed, never.Task.ID: Failed} {
			if task, err := store.Get(t.Context(), id); err != nil || task.Status != want {
				t.Errorf("got %+v, %v, want %s", task, err, want)
			}
		}
		if _, err := m.Start(t.Context(), Spec{Cancel: func(error) {}}); err == nil {
			t.Error("a task started after the end")
		}
		time.Sleep(time.Minute)
	})
}

// flaky is a store that cannot be reached for a while.
type flaky struct {
	*Memory
	mu   sync.Mutex
	down bool
}

func (f *flaky) set(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = down
}

func (f *flaky) Change(ctx context.Context, id string, change func(*Task) error) (*Task, error) {
	f.mu.Lock()
	down := f.down
	f.mu.Unlock()
	if down {
		return nil, errors.New("connection refused")
	}
	return f.Memory.Change(ctx, id, change)
}

// TestOutcomeOutlivesAnOutage of the store.
func TestOutcomeOutlivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &flaky{Memory: NewMemory(nil)}
		m := New(Config{Store: store, DefaultTTL: time.Hour})
		r := start(t, m, Spec{})
		store.set(true)
		time.AfterFunc(20*time.Second, func() { store.set(false) })
		r.End(t.Context(), Outcome{Result: json.RawMessage(`{"kept":true}`)})
		task, err := m.Get(t.Context(), "", r.Task.ID)
		if err != nil || task.Status != Completed || string(task.Result) != `{"kept":true}` {
			t.Errorf("got %+v, %v", task, err)
		}
		m.Close(t.Context())
	})
}

func TestAskInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(Config{DefaultTTL: time.Hour})
		r := start(t, m, Spec{Subject: "s"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := r.Ask(ctx, map[string]json.RawMessage{"q": json.RawMessage(`{}`)}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		task, err := m.Get(t.Context(), "s", r.Task.ID)
		if err != nil || task.Status != Working || len(task.Questions) != 0 {
			t.Errorf("after the time to answer: %+v, %v", task, err)
		}
		m.Close(t.Context())
	})
}

// TestTogether has many tasks asked, answered, cancelled and ended at once: each
// ends once, and answers reach the question they were given to.
func TestTogether(t *testing.T) {
	m := New(Config{DefaultTTL: time.Hour})
	defer m.Close(t.Context())
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			r, err := m.Start(ctx, Spec{Subject: strconv.Itoa(i), Cancel: cancel})
			if err != nil {
				t.Error(err)
				return
			}
			wg.Go(func() {
				err := m.Watch(ctx, r.Task.Subject, r.Task.ID, func(task *Task) bool {
					for key, q := range task.Questions {
						if err := m.Answer(ctx, r.Task.Subject, r.Task.ID, map[string]json.RawMessage{key: q}); err != nil && ctx.Err() == nil {
							t.Error(err)
						}
					}
					return !task.Status.Final()
				})
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			})
			for round := range 5 {
				questions := map[string]json.RawMessage{}
				for k := range 3 {
					questions[strconv.Itoa(k)] = json.RawMessage(fmt.Sprintf(`"%d %d %d"`, i, round, k))
				}
				answers, err := r.Ask(ctx, questions)
				if err != nil {
					if !errors.Is(err, ErrEnded) && !errors.Is(err, errCancelled) {
						t.Error(err)
					}
					break
				}
				for key, q := range questions {
					if string(answers[key]) != string(q) {
						t.Errorf("question %s was answered %s", q, answers[key])
					}
				}
				if rand.IntN(20) == 0 {
					_, _ = m.Cancel(ctx, r.Task.Subject, r.Task.ID)
				}
			}
			r.End(ctx, Outcome{Result: json.RawMessage(`{}`)})
			if got, err := m.Get(context.Background(), r.Task.Subject, r.Task.ID); err != nil || !got.Status.Final() {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	wg.Wait()
}
