package merge_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp/internal/scaffold/merge"
)

var labels = merge.Labels{Ours: "yours", Base: "base", Theirs: "template v2"}

func TestMerge(t *testing.T) {
	tests := []struct {
		name               string
		base, ours, theirs string
		want               string
		outcome            merge.Outcome
	}{
		{"nothing", "", "", "", "", merge.Clean},
		{"nobody", "a\nb\n", "a\nb\n", "a\nb\n", "a\nb\n", merge.Clean},
		{"ours", "a\nb\n", "a\nB\n", "a\nb\n", "a\nB\n", merge.Clean},
		{"theirs", "a\nb\n", "a\nb\n", "a\nB\n", "a\nB\n", merge.Clean},
		{"alike", "a\nb\n", "a\nB\n", "a\nB\n", "a\nB\n", merge.Clean},
		{"apart", "a\nb\nc\nd\n", "A\nb\nc\nd\n", "a\nb\nc\nD\n", "A\nb\nc\nD\n", merge.Clean},
		{"one added, one deleted", "a\nb\nc\nd\n", "a\nx\nb\nc\nd\n", "a\nb\nc\n", "a\nx\nb\nc\n", merge.Clean},
		{
			"same line", "a\nb\nc\n", "a\nX\nc\n", "a\nY\nc\n",
			"a\n<<<<<<< yours\nX\n||||||| base\nb\n=======\nY\n>>>>>>> template v2\nc\n", merge.Conflicted,
		},
		{
			"touching lines", "a\nb\nc\n", "A\nb\nc\n", "a\nB\nc\n",
			"<<<<<<< yours\nA\nb\n||||||| base\na\nb\n=======\na\nB\n>>>>>>> template v2\nc\n", merge.Conflicted,
		},
		{
			"both add at one place", "a\nb\n", "a\nx\nb\n", "a\ny\nb\n",
			"a\n<<<<<<< yours\nx\n||||||| base\n=======\ny\n>>>>>>> template v2\nb\n", merge.Conflicted,
		},
		{
			"deleted against changed", "a\nb\nc\n", "a\nc\n", "a\nB\nc\n",
			"a\n<<<<<<< yours\n||||||| base\nb\n=======\nB\n>>>>>>> template v2\nc\n", merge.Conflicted,
		},
		{
			"no base", "", "a\n", "b\n",
			"<<<<<<< yours\na\n||||||| base\n=======\nb\n>>>>>>> template v2\n", merge.Conflicted,
		},
		{"final newline of ours", "a\nb\nc", "A\nb\nc\n", "a\nb\nc", "A\nb\nc\n", merge.Clean},
		{"final newline of theirs", "a\nb\nc\n", "A\nb\nc\n", "a\nb\nc", "A\nb\nc", merge.Clean},
		{
			"no final newline in a conflict", "a\nb", "a\nX", "a\nY",
			"a\n<<<<<<< yours\nX\n||||||| base\nb\n=======\nY\n>>>>>>> template v2\n", merge.Conflicted,
		},
		{"ours in CRLF", "a\nb\nc\n", "a\r\nb\r\nc\r\n", "a\nb\nC\nd\n", "a\r\nb\r\nC\r\nd\r\n", merge.Clean},
		{"theirs in CRLF", "a\nb\nc\n", "A\nb\nc\n", "a\r\nb\r\nC\r\n", "A\nb\nC\n", merge.Clean},
		{"single lines in CRLF stay", "a\nb\nc\nd\n", "a\r\nb\nc\nd\n", "a\nb\nc\nD\n", "a\r\nb\nc\nD\n", merge.Clean},
		{
			"conflict in CRLF", "a\nb\n", "a\r\nX\r\n", "a\nY\n",
			"a\r\n<<<<<<< yours\r\nX\r\n||||||| base\r\nb\r\n=======\r\nY\r\n>>>>>>> template v2\r\n", merge.Conflicted,
		},
		{"CR alone is no line end", "a\rb\nc\nd\n", "A\rb\nc\nd\n", "a\rb\nc\nD\n", "A\rb\nc\nD\n", merge.Clean},
		{"mark of ours", "a\nb\nc\n", "\ufeffa\nb\nc\n", "a\nb\nC\n", "\ufeffa\nb\nC\n", merge.Clean},
		{"mark of theirs", "a\nb\nc\n", "a\nb\nc\n", "\ufeffa\nb\nC\n", "a\nb\nC\n", merge.Clean},
		{
			"markers in the text", "a\n<<<<<<<< x\nb\n", "a\n<<<<<<<< x\nX\n", "a\n<<<<<<<< x\nY\n",
			"a\n<<<<<<<< x\n<<<<<<<<< yours\nX\n||||||||| base\nb\n=========\nY\n>>>>>>>>> template v2\n", merge.Conflicted,
		},
		{"binary, ours", "a\x00", "b\x00", "a\x00", "b\x00", merge.Clean},
		{"binary, theirs", "a\x00", "a\x00", "b\x00", "b\x00", merge.Clean},
		{"binary, alike", "a\x00", "b\x00", "b\x00", "b\x00", merge.Clean},
		{"binary, both", "a\x00", "b\x00", "c\x00", "b\x00", merge.Undecided},
		{"became binary", "a\n", "b\n", "c\x00", "b\n", merge.Undecided},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := merge.Merge([]byte(tt.base), []byte(tt.ours), []byte(tt.theirs), labels)
			if diff := cmp.Diff(tt.want, string(got.Text)); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if got.Outcome != tt.outcome {
				t.Errorf("outcome %s, want %s", got.Outcome, tt.outcome)
			}
		})
	}
}

func TestRegions(t *testing.T) {
	got := merge.Merge([]byte("a\nb\nc\nd\ne\n"), []byte("A\nb\nc1\nd\ne\nf\n"), []byte("a\nb\nc2\nd\n"), labels)
	want := []merge.Region{
		{Kind: merge.Ours, Base: merge.Span{Line: 1, Lines: 1}, Ours: merge.Span{Line: 1, Lines: 1}, Theirs: merge.Span{Line: 1, Lines: 1}, Text: merge.Span{Line: 1, Lines: 1}},
		{Kind: merge.Same, Base: merge.Span{Line: 2, Lines: 1}, Ours: merge.Span{Line: 2, Lines: 1}, Theirs: merge.Span{Line: 2, Lines: 1}, Text: merge.Span{Line: 2, Lines: 1}},
		{Kind: merge.Conflict, Base: merge.Span{Line: 3, Lines: 1}, Ours: merge.Span{Line: 3, Lines: 1}, Theirs: merge.Span{Line: 3, Lines: 1}, Text: merge.Span{Line: 3, Lines: 7}},
		{Kind: merge.Same, Base: merge.Span{Line: 4, Lines: 1}, Ours: merge.Span{Line: 4, Lines: 1}, Theirs: merge.Span{Line: 4, Lines: 1}, Text: merge.Span{Line: 10, Lines: 1}},
		{Kind: merge.Conflict, Base: merge.Span{Line: 5, Lines: 1}, Ours: merge.Span{Line: 5, Lines: 2}, Theirs: merge.Span{Line: 5}, Text: merge.Span{Line: 11, Lines: 7}},
	}
	if diff := cmp.Diff(want, got.Regions); diff != "" {
		t.Errorf("regions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]merge.Region{want[2], want[4]}, got.Conflicts()); diff != "" {
		t.Errorf("conflicts (-want +got):\n%s", diff)
	}
}

func TestMarkers(t *testing.T) {
	labels := merge.Labels{Ours: "the\nteam's", Base: "", Theirs: "v2"}
	r := merge.Merge([]byte("a\n<<<<<<< x\n"), []byte("b\r\n<<<<<<< x\r\n"), []byte("c\n<<<<<<< x\n"), labels)
	if diff := cmp.Diff([]int{1, 3, 7}, merge.Markers(r.Text, labels)); diff != "" {
		t.Errorf("markers (-want +got):\n%s\n%s", diff, r.Text)
	}
	for _, text := range []string{"", "Title\n=======\n", "<<<<<<< somebody else's\n", "<<<<<< v2\n", ">>>>>>>v2\n"} {
		if got := merge.Markers([]byte(text), labels); got != nil {
			t.Errorf("Markers(%q) = %v", text, got)
		}
	}
}

func TestLargeTexts(t *testing.T) {
	big := bytes.Repeat([]byte("line\n"), merge.MaxBytes/5+1)
	if got := merge.Merge(big, append([]byte("ours\n"), big...), append(bytes.Clone(big), "theirs\n"...), labels); got.Outcome != merge.Undecided {
		t.Errorf("more than the largest text: outcome %s", got.Outcome)
	}

	// Texts that have little more in common than a few chance lines are one conflict between their equal ends.
	text := func(word string) []byte {
		var b strings.Builder
		b.WriteString("head\n")
		for i := range 6000 {
			if i%10 == 0 {
				word := "chance"
				fmt.Fprintf(&b, "%s %d\n", word, i*7919%6000)
				continue
			}
			fmt.Fprintf(&b, "%s %d\n", word, i)
		}
		b.WriteString("tail\n")
		return []byte(b.String())
	}
	got := merge.Merge(text("base"), text("ours"), text("theirs"), labels)
	if len(got.Conflicts()) != 1 || len(got.Regions) != 3 {
		t.Errorf("%d conflicts, %d regions, want one conflict between two regions", len(got.Conflicts()), len(got.Regions))
	}
}
