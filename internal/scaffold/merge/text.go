package merge

import (
	"bytes"
	"strings"
	"unicode"
)

// text is a side of a merge, taken apart.
type text struct {
	bom   bool
	lines []line
	ids   []int // of lines: equal ones for equal lines
}

// line is one line; only the last of a text can be without an end.
type line struct{ text, end []byte }

var (
	bom  = []byte("\ufeff")
	lf   = []byte("\n")
	crlf = []byte("\r\n")
)

func split(data []byte) text {
	var t text
	data, t.bom = bytes.CutPrefix(data, bom)
	for raw := range bytes.Lines(data) {
		content := raw
		for _, end := range [][]byte{crlf, lf} {
			var ok bool
			if content, ok = bytes.CutSuffix(raw, end); ok {
				break
			}
		}
		t.lines = append(t.lines, line{content, raw[len(content):]})
	}
	return t
}

// in are the lines of t in s.
func (t text) in(s Span) []line { return t.lines[s.Line-1 : s.Line-1+s.Lines] }

// of are the ids of the lines of t in s.
func (t text) of(s Span) []int { return t.ids[s.Line-1 : s.Line-1+s.Lines] }

// intern numbers the lines. What ends a line makes no difference, whether something does makes one.
func intern(texts ...*text) {
	type key struct {
		text  string
		ended bool
	}
	ids := map[key]int{}
	for _, t := range texts {
		t.ids = make([]int, len(t.lines))
		for i, l := range t.lines {
			k := key{string(l.text), len(l.end) > 0}
			id, ok := ids[k]
			if !ok {
				id = len(ids)
				ids[k] = id
			}
			t.ids[i] = id
		}
	}
}

// lineEnd is what most lines of t end in; nil when none has an end.
func (t text) lineEnd() []byte {
	counts := map[string]int{}
	for _, l := range t.lines {
		counts[string(l.end)]++
	}
	switch {
	case counts["\r\n"] > counts["\n"]:
		return crlf
	case counts["\n"] > 0:
		return lf
	}
	return nil
}

// markerSize is the usual length of a conflict marker.
const markerSize = 7

const markerRunes = "<|=>"

// markerSizeFor is the length of a marker that no line of texts can be taken for.
func markerSizeFor(texts ...text) int {
	size := markerSize
	for _, t := range texts {
		for _, l := range t.lines {
			if run := markerRun(l.text); run >= size {
				size = run + 1
			}
		}
	}
	return size
}

// markerRun is the length of what looks like a marker at the start of a line.
func markerRun(line []byte) int {
	if len(line) == 0 || !strings.ContainsRune(markerRunes, rune(line[0])) {
		return 0
	}
	run := 1
	for run < len(line) && line[run] == line[0] {
		run++
	}
	if run < len(line) && line[run] != ' ' {
		return 0
	}
	return run
}

// writer puts the merged text together.
type writer struct {
	base, ours, theirs text
	labels             Labels
	end                []byte // of lines that are not ours, and of markers
	markerSize         int
	out                bytes.Buffer
	lines              int // written
}

func newWriter(base, ours, theirs text, labels Labels) *writer {
	w := &writer{base: base, ours: ours, theirs: theirs, labels: labels, markerSize: markerSizeFor(base, ours, theirs)}
	for _, t := range []text{ours, theirs, base} {
		if w.end = t.lineEnd(); w.end != nil {
			break
		}
	}
	if w.end == nil {
		w.end = lf
	}
	if ours.bom || len(ours.lines) == 0 && theirs.bom {
		w.out.Write(bom)
	}
	return w
}

// region writes the text of r and notes where it is.
func (w *writer) region(r *Region) {
	r.Text.Line = w.lines + 1
	switch r.Kind {
	case Theirs:
		w.copy(w.theirs.in(r.Theirs), w.end)
	case Conflict:
		w.marker('<', w.labels.Ours)
		w.copy(w.ours.in(r.Ours), nil)
		w.endLine()
		w.marker('|', w.labels.Base)
		w.copy(w.base.in(r.Base), w.end)
		w.endLine()
		w.marker('=', "")
		w.copy(w.theirs.in(r.Theirs), w.end)
		w.endLine()
		w.marker('>', w.labels.Theirs)
	default:
		w.copy(w.ours.in(r.Ours), nil)
	}
	r.Text.Lines = w.lines + 1 - r.Text.Line
}

// copy writes lines, whose ends become end unless that is nil.
func (w *writer) copy(lines []line, end []byte) {
	for _, l := range lines {
		w.out.Write(l.text)
		if len(l.end) > 0 && end != nil {
			l.end = end
		}
		w.out.Write(l.end)
	}
	w.lines += len(lines)
}

// endLine ends the last line where a marker follows it.
func (w *writer) endLine() {
	if text := w.out.Bytes(); len(text) > 0 && text[len(text)-1] != '\n' {
		w.out.Write(w.end)
	}
}

func (w *writer) marker(r byte, label string) {
	for range w.markerSize {
		w.out.WriteByte(r)
	}
	if label != "" {
		w.out.WriteByte(' ')
		w.out.WriteString(oneLine(label))
	}
	w.out.Write(w.end)
	w.lines++
}

// oneLine is label without what would end the marker's line.
func oneLine(label string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, label)
}
