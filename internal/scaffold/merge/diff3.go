package merge

import (
	"slices"

	"znkr.io/diff"
)

// change is a run of base lines, and the lines that one side has instead. Both are half-open, counted from 0; one of
// them can be empty.
type change struct{ base, side interval }

type interval struct{ start, end int }

func (i interval) span() Span { return Span{Line: i.start + 1, Lines: i.end - i.start} }

// diff3 divides base, ours and theirs into regions.
func diff3(base, ours, theirs text) []Region {
	a, b := changes(base.ids, ours.ids), changes(base.ids, theirs.ids)
	var regions []Region
	// All three texts are the same from here on, up to the next change.
	var at, atOurs, atTheirs int
	add := func(kind Kind, base, ours, theirs int) {
		r := Region{
			Kind:   kind,
			Base:   interval{at, base}.span(),
			Ours:   interval{atOurs, ours}.span(),
			Theirs: interval{atTheirs, theirs}.span(),
		}
		if r.Base.Lines+r.Ours.Lines+r.Theirs.Lines > 0 {
			regions = append(regions, r)
		}
		at, atOurs, atTheirs = base, ours, theirs
	}
	for len(a)+len(b) > 0 {
		start := next(a, b)
		add(Same, start, atOurs+start-at, atTheirs+start-at)
		// Changes that touch belong together, however many there are of each side.
		end := start
		var nA, nB int
		for {
			switch {
			case nA < len(a) && a[nA].base.start <= end:
				end = max(end, a[nA].base.end)
				nA++
				continue
			case nB < len(b) && b[nB].base.start <= end:
				end = max(end, b[nB].base.end)
				nB++
				continue
			}
			break
		}
		endOurs, endTheirs := atOurs+end-start+growth(a[:nA]), atTheirs+end-start+growth(b[:nB])
		kind := Conflict
		switch {
		case nB == 0:
			kind = Ours
		case nA == 0:
			kind = Theirs
		case slices.Equal(ours.ids[atOurs:endOurs], theirs.ids[atTheirs:endTheirs]):
			kind = Both
		}
		add(kind, end, endOurs, endTheirs)
		a, b = a[nA:], b[nB:]
	}
	add(Same, len(base.ids), len(ours.ids), len(theirs.ids))
	return regions
}

// next is where the first of the changes starts.
func next(a, b []change) int {
	switch {
	case len(a) == 0:
		return b[0].base.start
	case len(b) == 0:
		return a[0].base.start
	}
	return min(a[0].base.start, b[0].base.start)
}

// growth is how many lines changes add, less those they take away.
func growth(changes []change) int {
	n := 0
	for _, c := range changes {
		n += c.side.end - c.side.start - (c.base.end - c.base.start)
	}
	return n
}

// changes are the differences of side to base, in order; between two of them is at least one line that both have.
func changes(base, side []int) []change {
	var found []change
	i, j := 0, 0
	for k, m := range append(kept(base, side), len(side)) { // as if the texts had one more line, and kept it
		if m == gone {
			continue
		}
		if i < k || j < m {
			found = append(found, change{interval{i, k}, interval{j, m}})
		}
		i, j = k+1, m+1
	}
	return found
}

const gone = -1

// kept says for each line of base which line of side it still is, or that it is [gone].
//
// Where lines repeat, there can be several answers, and a diff finds one of them. A merge must not depend on which:
// it would combine edits on the strength of a guess, and not the guess that git makes. So the question is asked in
// four ways, and only lines on which all agree are kept.
func kept(base, side []int) []int {
	found := matches(base, side, false)
	if rewritten(found, len(side)) {
		return ends(base, side)
	}
	for _, other := range [][]int{
		matches(base, side, true),
		invert(matches(side, base, false), len(base)),
		invert(matches(side, base, true), len(base)),
	} {
		for i := range found {
			if found[i] != other[i] {
				found[i] = gone
			}
		}
	}
	return found
}

// rewritten reports whether so little of a large text is left, in a side of n lines, that what is left is chance. Then
// more diffs would take long and find nothing.
func rewritten(found []int, n int) bool {
	const large = 5000
	size := max(len(found), n)
	if size < large {
		return false
	}
	left := 0
	for _, j := range found {
		if j != gone {
			left++
		}
	}
	return left < size/4
}

// ends keeps what base and side have in common at their starts and ends, and nothing between.
func ends(base, side []int) []int {
	found := slices.Repeat([]int{gone}, len(base))
	head := 0
	for head < min(len(base), len(side)) && base[head] == side[head] {
		found[head] = head
		head++
	}
	for i, j := len(base)-1, len(side)-1; min(i, j) >= head && base[i] == side[j]; i, j = i-1, j-1 {
		found[i] = j
	}
	return found
}

// matches is what one diff says about the lines of x in y; a diff from the end to the start, if backward is set.
func matches(x, y []int, backward bool) []int {
	a, b := newRuns(x), newRuns(y)
	if backward {
		x, y = reversed(x), reversed(y)
	}
	for _, h := range diff.Hunks(x, y, diff.Context(0)) {
		fill(a.changed[h.PosX:h.EndX])
		fill(b.changed[h.PosY:h.EndY])
	}
	if backward {
		slices.Reverse(a.changed)
		slices.Reverse(b.changed)
	}
	slide(a, b)
	slide(b, a)
	found := make([]int, len(x))
	j := 0
	for i := range found {
		if a.changed[i] {
			found[i] = gone
			continue
		}
		j = b.endOf(j)
		found[i] = j
		j++
	}
	return found
}

func fill(flags []bool) {
	for i := range flags {
		flags[i] = true
	}
}

func reversed(ids []int) []int {
	ids = slices.Clone(ids)
	slices.Reverse(ids)
	return ids
}

// invert turns the matches of x in y into those of y, which has n lines, in x.
func invert(found []int, n int) []int {
	inverse := slices.Repeat([]int{gone}, n)
	for i, j := range found {
		if j != gone {
			inverse[j] = i
		}
	}
	return inverse
}
