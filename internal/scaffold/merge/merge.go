// Package merge merges texts of lines by three: what both sides began with, what the team made of it, and what the
// template made of it.
//
// The rules are git's, so that nobody has to learn others: edits of different lines are combined, edits of the same or of
// touching lines are a conflict, and equal edits are one. Where both git merge-file and [Merge] see no conflict, the
// texts are the same, and Merge is never without a conflict where git sees overlapping edits. Two things are better
// than in git: line endings and a byte order mark follow the team's file and are no difference, and a text that holds
// lines like conflict markers gets longer ones.
package merge

import "bytes"

// MaxBytes bounds a text. A larger one is not looked into: see [Undecided].
const MaxBytes = 16 << 20

// Labels name the sides in conflict markers.
type Labels struct{ Ours, Base, Theirs string }

// Outcome says how a merge ended.
type Outcome string

// The outcomes.
const (
	// Clean is a merge without conflicts.
	Clean Outcome = "clean"
	// Conflicted is a merge whose text has conflict markers.
	Conflicted Outcome = "conflicted"
	// Undecided means that both sides changed data that has no lines: it holds a NUL byte, or is larger than
	// [MaxBytes]. The text is ours; a person keeps it or takes theirs.
	Undecided Outcome = "undecided"
)

// Result is a merged text and how it came to be.
type Result struct {
	Outcome Outcome
	Text    []byte
	// Regions cover all lines of the text and of the three sides, in order. They are empty for data without lines.
	Regions []Region
	// MarkerSize is the length of conflict markers: 7, or more where the sides hold such lines themselves.
	MarkerSize int
}

// Conflicts are the regions with conflict markers; none of an [Undecided] result.
func (r Result) Conflicts() []Region {
	var conflicts []Region
	for _, region := range r.Regions {
		if region.Kind == Conflict {
			conflicts = append(conflicts, region)
		}
	}
	return conflicts
}

// Kind says which side a region of the text comes from.
type Kind string

// The kinds of regions.
const (
	Same     Kind = "same"     // nobody changed these lines
	Ours     Kind = "ours"     // only the team did
	Theirs   Kind = "theirs"   // only the template did
	Both     Kind = "both"     // both did, alike
	Conflict Kind = "conflict" // both did, differently
)

// Region is a run of lines with one origin, and where these lines are in each text.
type Region struct {
	Kind   Kind `json:"kind"`
	Base   Span `json:"base"`
	Ours   Span `json:"ours"`
	Theirs Span `json:"theirs"`
	Text   Span `json:"text"` // of a conflict with its markers
}

// Span is a run of lines. An empty one lies before its line.
type Span struct {
	Line  int `json:"line"` // the first, counted from 1
	Lines int `json:"lines"`
}

// Merge combines what ours and theirs made of base. A nil side is an empty text.
//
// In a conflict the text has all three versions of the lines between markers, in the diff3 style of git:
//
//	<<<<<<< ours
//	lines of ours
//	||||||| base
//	lines of base
//	=======
//	lines of theirs
//	>>>>>>> theirs
//
// Lines that come from theirs or base get the line endings that most lines of ours have.
func Merge(base, ours, theirs []byte, labels Labels) Result {
	for _, data := range [][]byte{base, ours, theirs} {
		if len(data) > MaxBytes || bytes.IndexByte(data, 0) >= 0 {
			return mergeWhole(base, ours, theirs)
		}
	}
	b, o, t := split(base), split(ours), split(theirs)
	intern(&b, &o, &t)
	regions := diff3(b, o, t)
	w := newWriter(b, o, t, labels)
	result := Result{Outcome: Clean, MarkerSize: w.markerSize}
	for i := range regions {
		if regions[i].Kind == Conflict {
			result.Outcome = Conflicted
		}
		w.region(&regions[i])
	}
	result.Text, result.Regions = w.out.Bytes(), regions
	return result
}

// mergeWhole is a merge of data without lines.
func mergeWhole(base, ours, theirs []byte) Result {
	switch {
	case bytes.Equal(base, theirs), bytes.Equal(ours, theirs):
		return Result{Outcome: Clean, Text: ours, MarkerSize: markerSize}
	case bytes.Equal(base, ours):
		return Result{Outcome: Clean, Text: theirs, MarkerSize: markerSize}
	}
	return Result{Outcome: Undecided, Text: ours, MarkerSize: markerSize}
}

// Markers are the numbers of the lines in text that are conflict markers with labels, which a person has still to
// resolve. A line of equals signs alone is none: it underlines headings.
func Markers(text []byte, labels Labels) []int {
	var found []int
	n := 0
	for raw := range bytes.Lines(text) {
		n++
		line := bytes.TrimRight(raw, "\r\n")
		run := markerRun(line)
		if run < markerSize {
			continue
		}
		label, ok := map[byte]string{'<': labels.Ours, '|': labels.Base, '>': labels.Theirs}[line[0]]
		if ok && string(bytes.TrimPrefix(line[run:], []byte(" "))) == oneLine(label) {
			found = append(found, n)
		}
	}
	return found
}
