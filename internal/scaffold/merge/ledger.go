package merge

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// Ledger says where each line of the team's file went in a merge, and what became of the lines that the team had
// removed. The zero value is that of an empty file, and of data without lines.
type Ledger struct {
	Kept     int `json:"kept"`     // lines of the team's file, by fate; their sum is all its lines
	Conflict int `json:"conflict"` //
	Replaced int `json:"replaced"` //
	Dropped  int `json:"dropped"`  // lines of the base that the team had removed and that stay removed

	Lines   []Entry `json:"lines"`   // of the team's file, all of them, in order
	Removed []Entry `json:"removed"` // of the base, those that the team had removed, in order
}

// Entry is a run of lines with one fate.
type Entry struct {
	Fate  Fate `json:"fate"`
	Line  int  `json:"line"` // the first, counted from 1
	Lines int  `json:"lines"`
	At    int  `json:"at,omitempty"` // where the first is in the text; 0 when it is not there
}

// Fate is what became of a line.
type Fate string

// The fates.
const (
	Kept       Fate = "kept"     // it is in the text
	InConflict Fate = "conflict" // it is in the text, between conflict markers
	Replaced   Fate = "replaced" // the team had left it as the template wrote it, and the template has changed or removed it
	Dropped    Fate = "dropped"  // the team had removed it from what the template wrote
)

// Account makes the ledger of a merge. It trusts none of what result says about the sides: it compares every line, and
// its error means that a line is missing or not what it should be, so the result must not be used.
func Account(base, ours, theirs []byte, result Result) (Ledger, error) {
	if len(result.Regions) == 0 {
		return accountWhole(base, ours, theirs, result)
	}
	a := accountant{base: split(base), ours: split(ours), theirs: split(theirs), text: split(result.Text)}
	intern(&a.base, &a.ours, &a.theirs, &a.text)
	next := Region{Base: Span{Line: 1}, Ours: Span{Line: 1}, Theirs: Span{Line: 1}, Text: Span{Line: 1}}
	for _, r := range result.Regions {
		for _, s := range []struct {
			span, next *Span
			text       text
		}{{&r.Base, &next.Base, a.base}, {&r.Ours, &next.Ours, a.ours}, {&r.Theirs, &next.Theirs, a.theirs}, {&r.Text, &next.Text, a.text}} {
			if s.span.Line != s.next.Line || s.span.Lines < 0 || s.span.Line-1+s.span.Lines > len(s.text.lines) {
				return Ledger{}, fmt.Errorf("the regions leave lines out at line %d", s.next.Line)
			}
			s.next.Line += s.span.Lines
		}
		if !a.region(r) {
			return Ledger{}, fmt.Errorf("line %d of the text is not what a region of kind %s has there", r.Text.Line, r.Kind)
		}
	}
	if next.Base.Line <= len(a.base.lines) || next.Ours.Line <= len(a.ours.lines) || next.Theirs.Line <= len(a.theirs.lines) ||
		next.Text.Line <= len(a.text.lines) {
		return Ledger{}, errors.New("the regions leave the last lines out")
	}
	return a.ledger, nil
}

// accountWhole is the account of a merge without regions: of empty texts, or of data without lines.
func accountWhole(base, ours, theirs []byte, result Result) (Ledger, error) {
	switch {
	case bytes.Equal(result.Text, ours), bytes.Equal(base, ours) && bytes.Equal(result.Text, theirs):
		return Ledger{}, nil
	case len(bytes.TrimPrefix(ours, bom)) == 0 && len(bytes.TrimPrefix(result.Text, bom)) == 0:
		return Ledger{}, nil
	}
	return Ledger{}, errors.New("the data is neither the team's nor what the template made of it")
}

type accountant struct {
	base, ours, theirs, text text
	ledger                   Ledger
}

// region enters the lines of r. It reports whether they are what r says.
func (a *accountant) region(r Region) bool {
	base, ours, theirs, text := a.base.of(r.Base), a.ours.of(r.Ours), a.theirs.of(r.Theirs), a.text.of(r.Text)
	switch r.Kind {
	case Same:
		a.enter(Kept, r.Ours.Line, r.Ours.Lines, r.Text.Line)
		return slices.Equal(base, ours) && slices.Equal(ours, theirs) && slices.Equal(ours, text)
	case Ours, Both:
		a.enter(Kept, r.Ours.Line, r.Ours.Lines, r.Text.Line)
		a.remove(Dropped, base, ours, r.Base.Line)
		if r.Kind == Both {
			return slices.Equal(ours, theirs) && slices.Equal(ours, text)
		}
		return slices.Equal(base, theirs) && slices.Equal(ours, text)
	case Theirs:
		// Where lines repeat, the region can be larger than what changed.
		at := positions(text)
		for i, id := range ours {
			if p := at[id]; len(p) > 0 {
				a.enter(Kept, r.Ours.Line+i, 1, r.Text.Line+p[0])
				at[id] = p[1:]
			} else {
				a.enter(Replaced, r.Ours.Line+i, 1, 0)
			}
		}
		return slices.Equal(base, ours) && slices.Equal(theirs, text)
	case Conflict:
		a.enter(InConflict, r.Ours.Line, r.Ours.Lines, r.Text.Line+1)
		a.remove(InConflict, base, ours, r.Base.Line)
		return a.conflict(r)
	}
	return false
}

// conflict checks that all three sides are between the markers.
func (a *accountant) conflict(r Region) bool {
	const markers = 4
	text := a.text.in(r.Text)
	if len(text) != markers+r.Ours.Lines+r.Base.Lines+r.Theirs.Lines {
		return false
	}
	for _, side := range [][]line{a.ours.in(r.Ours), a.base.in(r.Base), a.theirs.in(r.Theirs)} {
		for i, l := range side {
			end, ok := bytes.CutPrefix(slices.Concat(text[1+i].text, text[1+i].end), l.text)
			if !ok || !bytes.Equal(end, lf) && !bytes.Equal(end, crlf) { // a marker may have given it an end
				return false
			}
		}
		text = text[1+len(side):]
	}
	return true
}

// enter adds lines of the team's file.
func (a *accountant) enter(fate Fate, line, lines, at int) {
	switch fate {
	case Kept:
		a.ledger.Kept += lines
	case InConflict:
		a.ledger.Conflict += lines
	case Replaced:
		a.ledger.Replaced += lines
	}
	a.ledger.Lines = extend(a.ledger.Lines, Entry{fate, line, lines, at})
}

// remove adds the lines of base, which begin at line, that ours has not.
func (a *accountant) remove(fate Fate, base, ours []int, line int) {
	left := positions(ours)
	for i, id := range base {
		if p := left[id]; len(p) > 0 {
			left[id] = p[1:]
			continue
		}
		if fate == Dropped {
			a.ledger.Dropped++
		}
		a.ledger.Removed = extend(a.ledger.Removed, Entry{Fate: fate, Line: line + i, Lines: 1})
	}
}

// extend adds e to entries, or to the last of them.
func extend(entries []Entry, e Entry) []Entry {
	if e.Lines == 0 {
		return entries
	}
	if n := len(entries); n > 0 {
		last := &entries[n-1]
		follows := e.At == 0 && last.At == 0 || e.At != 0 && last.At != 0 && e.At == last.At+last.Lines
		if last.Fate == e.Fate && e.Line == last.Line+last.Lines && follows {
			last.Lines += e.Lines
			return entries
		}
	}
	return append(entries, e)
}

// positions says where each id is in ids.
func positions(ids []int) map[int][]int {
	at := map[int][]int{}
	for i, id := range ids {
		at[id] = append(at[id], i)
	}
	return at
}
