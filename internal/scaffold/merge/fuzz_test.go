package merge_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/famcp/famcp/internal/scaffold/merge"
)

func FuzzMerge(f *testing.F) {
	f.Add([]byte("a\nb\nc\n"), []byte("a\nx\nc\n"), []byte("a\nb\ny\n"))
	f.Add([]byte("a\r\nb"), []byte("\ufeffa\r\nb\r\n"), []byte("a\n<<<<<<<< b\nb"))
	f.Add([]byte("x\nx\nx\n\n\n"), []byte("x\n\nx\n\n"), []byte("x\nx\nx\nx"))
	f.Add([]byte("\x00"), []byte("a"), []byte("b"))
	f.Fuzz(func(t *testing.T, base, ours, theirs []byte) {
		got := merge.Merge(base, ours, theirs, labels)
		ledger, err := merge.Account(base, ours, theirs, got)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Regions) > 0 {
			n := bytes.Count(ours, []byte("\n"))
			if rest := bytes.TrimPrefix(ours, []byte("\ufeff")); len(rest) > 0 && rest[len(rest)-1] != '\n' {
				n++
			}
			if ledger.Kept+ledger.Conflict+ledger.Replaced != n {
				t.Errorf("%d lines, and the ledger has %+v", n, ledger)
			}
		}
		if got.Outcome == merge.Conflicted != (len(got.Conflicts()) > 0) || got.Outcome == merge.Conflicted != (len(merge.Markers(got.Text, labels)) > 0) {
			t.Errorf("outcome %s, %d conflicts, markers in lines %v", got.Outcome, len(got.Conflicts()), merge.Markers(got.Text, labels))
		}
		// Neither side may weigh more in what is a conflict.
		if other := merge.Merge(base, theirs, ours, labels); other.Outcome != got.Outcome {
			t.Errorf("outcome %s, and %s the other way round", got.Outcome, other.Outcome)
		}
		for what, r := range map[string]merge.Result{
			"only the team changed": merge.Merge(base, ours, base, labels),
			"both are alike":        merge.Merge(base, ours, ours, labels),
		} {
			if r.Outcome != merge.Clean || !bytes.Equal(r.Text, ours) {
				t.Errorf("%s: %s %q, want %q", what, r.Outcome, r.Text, ours)
			}
		}
	})
}

// Every merge is of 20 000 lines; what differs is how much of them was changed.
func BenchmarkMerge(b *testing.B) {
	const size = 20_000
	for _, bb := range []struct {
		name         string
		alphabet     int
		edits        int
		linesPerEdit int
	}{
		{"few edits", 1 << 30, 20, 3},
		{"2000 edits", 1 << 30, 2000, 3},
		{"2000 edits of repeating lines", 500, 2000, 3},
		{"everything", 1 << 30, 1, size},
		{"everything of repeating lines", 500, 1, size},
		{"two lines", 2, 2000, 3},
	} {
		b.Run(bb.name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			base := lines(r, bb.alphabet, size)
			side := func() []byte {
				if bb.linesPerEdit == size {
					return []byte(strings.Join(lines(r, bb.alphabet, size), ""))
				}
				return []byte(strings.Join(edit(r, bb.alphabet, base, bb.edits), ""))
			}
			text, ours, theirs := []byte(strings.Join(base, "")), side(), side()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				merge.Merge(text, ours, theirs, labels)
			}
		})
	}
}
