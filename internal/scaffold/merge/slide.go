package merge

// Where equal lines follow each other, a change can be described in more than one way: of two functions, the added one
// may begin or end with the empty line between them. A description has to be chosen the way git chooses it, because
// it decides which changes touch.

// runs are the lines of one side of a difference, and which of them changed. Changed lines stand in runs, that may be
// empty, between unchanged ones: the n-th run of one side answers the n-th of the other.
type runs struct {
	ids     []int
	changed []bool
}

func newRuns(ids []int) runs { return runs{ids, make([]bool, len(ids))} }

// first is the first run, which may be empty.
func (r runs) first() interval { return interval{0, r.endOf(0)} }

// endOf is where the run that begins at start ends.
func (r runs) endOf(start int) int {
	for start < len(r.changed) && r.changed[start] {
		start++
	}
	return start
}

// startOf is where the run that ends at end begins.
func (r runs) startOf(end int) int {
	for end > 0 && r.changed[end-1] {
		end--
	}
	return end
}

// next is the run after run; there is none after the last line.
func (r runs) next(run interval) (interval, bool) {
	if run.end == len(r.ids) {
		return run, false
	}
	return interval{run.end + 1, r.endOf(run.end + 1)}, true
}

// previous is the run before run, which there must be.
func (r runs) previous(run interval) interval {
	return interval{r.startOf(run.start - 1), run.start - 1}
}

// up moves run by one line, if it can be, and joins it with a run that it then touches.
func (r runs) up(run *interval) bool {
	if run.start == 0 || r.ids[run.start-1] != r.ids[run.end-1] {
		return false
	}
	run.start--
	run.end--
	r.changed[run.start], r.changed[run.end] = true, false
	run.start = r.startOf(run.start)
	return true
}

// down is up in the other direction.
func (r runs) down(run *interval) bool {
	if run.end == len(r.ids) || r.ids[run.start] != r.ids[run.end] {
		return false
	}
	r.changed[run.start], r.changed[run.end] = false, true
	run.start++
	run.end++
	run.end = r.endOf(run.end)
	return true
}

// slide moves each run of x down as far as it can go, joins those that meet, and then moves it up again to the last
// place where the run of y that answers it is not empty, if there is one.
func slide(x, y runs) {
	run, answer := x.first(), y.first()
	for {
		if run.end > run.start {
			run, answer = x.settle(run, y, answer)
		}
		var more bool
		if run, more = x.next(run); !more {
			return
		}
		answer, _ = y.next(answer)
	}
}

// settle does what [slide] does for one run. It returns where the run and its answer are then.
func (r runs) settle(run interval, y runs, answer interval) (interval, interval) {
	for {
		size := run.end - run.start
		matching := -1
		for r.up(&run) {
			answer = y.previous(answer)
		}
		if answer.end > answer.start {
			matching = run.end
		}
		for r.down(&run) {
			answer, _ = y.next(answer)
			if answer.end > answer.start {
				matching = run.end
			}
		}
		if run.end-run.start != size { // joined others: may now move further
			continue
		}
		for matching >= 0 && run.end > matching {
			r.up(&run)
			answer = y.previous(answer)
		}
		return run, answer
	}
}
