package migrate

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// NotePath is the file, at the root of a project, that collects what migrations left to a person. It may be edited and
// deleted at any time: it is written to only when there is something new to say, and what it says already, whether
// ticked off or at another line by now, is not said again.
const NotePath = "MIGRATION.md"

const noteHeader = `# Left to do after an upgrade

famcp upgrade could not do these by itself. Tick off what is done, and delete this file at the end.

`

// addNoteFile adds the file of notes to r when it gains one.
func addNoteFile(fsys fs.FS, r *Result) error {
	if len(r.Notes) == 0 {
		return nil
	}
	old, err := fs.ReadFile(fsys, NotePath)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text := string(lf(old))
	known := map[string]bool{}
	for line := range strings.Lines(text) {
		known[noteItem(line)] = true
	}
	if text == "" {
		text = noteHeader
	} else if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	var added []string
	for _, item := range noteItems(r.Notes) {
		if line := "- [ ] " + item + ".\n"; !known[noteItem(line)] {
			added = append(added, line)
		}
	}
	if added == nil {
		return nil
	}
	text += strings.Join(added, "")
	if strings.Contains(string(old), "\r\n") {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	r.Files[NotePath] = []byte(text)
	return nil
}

// noteItems says the same about several lines of a file once.
func noteItems(notes []Change) []string {
	type what struct{ path, text string }
	var order []what
	lines := map[what]string{}
	for _, n := range notes {
		w := what{n.Path, n.Text}
		known, ok := lines[w]
		switch {
		case !ok:
			order = append(order, w)
			lines[w] = Change{Path: n.Path, Line: n.Line}.place()
		case n.Line > 0:
			lines[w] = fmt.Sprintf("%s,%d", known, n.Line)
		}
	}
	items := make([]string, len(order))
	for i, w := range order {
		items[i] = w.text
		if w.path != "" {
			items[i] = lines[w] + ": " + w.text
		}
	}
	return items
}

var (
	noteLine    = regexp.MustCompile(`^- \[[ xX]\] (.*)$`)
	lineNumbers = regexp.MustCompile(`^([^ ]+):[0-9,]+: `)
)

// noteItem is what a line of the file says, without its tick and without line numbers, which move; or empty.
func noteItem(line string) string {
	m := noteLine.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
	if m == nil {
		return ""
	}
	return lineNumbers.ReplaceAllString(m[1], "$1: ")
}
