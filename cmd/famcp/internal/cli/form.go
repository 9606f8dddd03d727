package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"

	"github.com/famcp/famcp/cmd/famcp/internal/iostreams"
	"github.com/famcp/famcp/internal/scaffold"
)

// fieldsPerPage keeps a page of the form on a terminal of 24 lines.
const fieldsPerPage = 4

// interview is the state of asking for open answers. An answer left blank keeps
// the default, which follows the answers before it.
type interview struct {
	opts  *newOptions
	given map[string]string
}

// askOpen asks for every answer that is not in given, and adds it there. It
// settles opts.Dir when that is open.
func askOpen(ctx context.Context, opts *newOptions, given map[string]string) error {
	// What cannot work is said before a dozen questions, not after.
	if err := checkGiven(given, opts.Release); err != nil {
		return err
	}
	if opts.Dir != "" {
		if _, err := scaffold.CheckTarget(opts.Dir); err != nil {
			return err
		}
	}
	iv := &interview{opts: opts, given: given}
	var open []scaffold.Question
	_, authGiven := given["auth"]
	for _, q := range scaffold.Questions() {
		_, answered := given[q.Key]
		if !answered && hasChoice(q, opts.Release) && (!authGiven || iv.applies(q, nil)) {
			open = append(open, q)
		}
	}
	if len(open) == 0 {
		return nil
	}
	if err := iv.ask(ctx, open); err != nil {
		return err
	}
	if opts.Dir == "" {
		opts.Dir = given["name"]
	}
	return nil
}

// ask asks the way the terminal takes.
func (iv *interview) ask(ctx context.Context, open []scaffold.Question) error {
	if plain(iv.opts.IO) {
		return iv.lines(ctx, open)
	}
	return iv.form(ctx, open)
}

// plain reports whether to ask in lines of text: the form shows by colour alone
// which of two buttons is the chosen one.
func plain(io *iostreams.IOStreams) bool { return io.Accessible || !io.Color }

// checkGiven reports the answers that break a rule already.
func checkGiven(given map[string]string, r scaffold.Release) error {
	_, err := scaffold.Resolve(given, r)
	var broken scaffold.Violations
	if errors.As(err, &broken) {
		broken = slices.DeleteFunc(broken, func(v scaffold.Violation) bool {
			_, ok := given[v.Key]
			return !ok // a default that a missing answer spoils
		})
	}
	if len(broken) > 0 {
		return &usageError{err: broken}
	}
	return nil
}

// hasChoice reports whether more than one answer to q would be accepted.
func hasChoice(q scaffold.Question, r scaffold.Release) bool {
	if q.Key == "runtime" && !r.Published() {
		return false // there is no module to refer to
	}
	return q.Kind != scaffold.Choice || len(q.Choices) > 1
}

// fallback is the default of q, given the answers so far and those in more.
func (iv *interview) fallback(q scaffold.Question, more map[string]string) string {
	so := maps.Clone(more)
	delete(so, q.Key)
	return q.Text(iv.answers(so))
}

// answers are what the answers so far and those in more amount to.
func (iv *interview) answers(more map[string]string) scaffold.Answers {
	so := maps.Clone(iv.given)
	for key, text := range more {
		if text != "" {
			so[key] = text
		}
	}
	if so["name"] == "" && iv.opts.Dir != "" {
		so["name"], _ = scaffold.NameFromDir(iv.opts.Dir) // else there is no default
	}
	answers, _ := scaffold.Resolve(so, iv.opts.Release) // broken answers are reported where they are given
	return answers
}

// applies reports whether q is open, given the answers so far and those in more.
func (iv *interview) applies(q scaffold.Question, more map[string]string) bool {
	return q.Applies(iv.answers(more))
}

// check reports whether text answers q.
func (iv *interview) check(q scaffold.Question, text string) error {
	var a scaffold.Answers
	if q.Conditional() {
		a.Auth = scaffold.AuthRemoteJWKS // or it would not be asked
	}
	err := q.Set(&a, text)
	if err == nil {
		err = q.Check(a)
	}
	var broken scaffold.Violation
	if errors.As(err, &broken) {
		return errors.New(broken.Rule)
	}
	if q.Key == "name" && iv.opts.Dir == "" {
		_, err = scaffold.CheckTarget(text)
	}
	return err
}

// form asks on pages that are drawn on standard error.
func (iv *interview) form(ctx context.Context, open []scaffold.Question) error {
	texts := &sheet{texts: map[string]string{}}
	var groups []*huh.Group
	add := func(questions []scaffold.Question) *huh.Group {
		var fields []huh.Field
		for _, q := range questions {
			fields = append(fields, iv.field(q, texts))
		}
		groups = append(groups, huh.NewGroup(fields...))
		return groups[len(groups)-1]
	}
	// What follows from an answer gets a page of its own, behind that of the answer.
	var page, following []scaffold.Question
	flush := func() {
		if len(page) > 0 {
			add(page)
		}
		if q := following; len(q) > 0 {
			add(q).WithHideFunc(func() bool { return !iv.applies(q[0], texts.snapshot()) })
		}
		page, following = nil, nil
	}
	for _, q := range open {
		if q.Conditional() {
			following = append(following, q)
		} else if page = append(page, q); len(page) == fieldsPerPage {
			flush()
		}
	}
	flush()
	if err := runForm(ctx, iv.opts.IO, groups...); err != nil {
		return err
	}
	answers := texts.snapshot()
	open = slices.DeleteFunc(open, func(q scaffold.Question) bool { return !iv.applies(q, answers) })
	for _, q := range open {
		if text := answers[q.Key]; text != "" {
			iv.given[q.Key] = text
		}
	}
	return nil
}

func (iv *interview) field(q scaffold.Question, texts *sheet) huh.Field {
	answer := &answerCell{sheet: texts, key: q.Key}
	switch q.Kind {
	case scaffold.Choice:
		answer.Set(iv.fallback(q, nil))
		options := huh.NewOptions(q.Choices...)
		for i, note := range q.Notes {
			options[i].Key += ": " + note
		}
		return huh.NewSelect[string]().Title(q.Title).Options(options...).Accessor(answer)
	case scaffold.Switch:
		answer.Set(iv.fallback(q, nil))
		return huh.NewConfirm().Title(q.Title).Inline(true).Accessor(switchCell{answer})
	default:
		return huh.NewInput().Title(q.Title).Accessor(answer).
			PlaceholderFunc(func() string { return iv.fallback(q, texts.snapshot()) }, texts.texts).
			Validate(func(text string) error {
				if text == "" {
					text = iv.fallback(q, texts.snapshot())
				}
				return iv.check(q, text)
			})
	}
}

// sheet is what has been written into a form. The form's loop alone writes it,
// and placeholders are made beside that.
type sheet struct {
	mu    sync.Mutex
	texts map[string]string
}

func (s *sheet) snapshot() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.texts)
}

// answerCell lets a field of a form write into a sheet.
type answerCell struct {
	sheet *sheet
	key   string
}

func (c *answerCell) Get() string { return c.sheet.texts[c.key] }

func (c *answerCell) Set(text string) {
	c.sheet.mu.Lock()
	defer c.sheet.mu.Unlock()
	c.sheet.texts[c.key] = strings.TrimSpace(text)
}

// switchCell is the yes or no in an [answerCell].
type switchCell struct{ *answerCell }

func (c switchCell) Get() bool    { return c.answerCell.Get() == "true" }
func (c switchCell) Set(yes bool) { c.answerCell.Set(strconv.FormatBool(yes)) }

// runForm runs a form until it is submitted; breaking it off is [errInterrupted].
func runForm(ctx context.Context, io *iostreams.IOStreams, groups ...*huh.Group) error {
	keys := huh.NewDefaultKeyMap()
	keys.Select.Filter.SetEnabled(false) // lists are short
	err := huh.NewForm(groups...).
		WithTheme(huh.ThemeFunc(huh.ThemeBase16)).
		WithKeyMap(keys).
		WithProgramOptions(
			tea.WithInput(io.In),
			tea.WithOutput(io.Err),
			tea.WithoutSignalHandler(), // ctx ends on signals
		).
		RunWithContext(ctx)
	if errors.Is(err, huh.ErrUserAborted) || ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

// lines asks in plain text, one line a question: for screen readers and for
// terminals without colour or escape sequences. huh has such a mode, but it takes the end
// of the input for consent.
func (iv *interview) lines(ctx context.Context, open []scaffold.Question) error {
	for _, q := range open {
		if !iv.applies(q, nil) {
			continue
		}
		prompt, fallback := q.Title, iv.fallback(q, nil)
		switch q.Kind {
		case scaffold.Choice:
			prompt += ": " + strings.Join(q.Choices, ", ")
		case scaffold.Switch:
			prompt += ": yes, no"
			fallback = map[string]string{"true": "yes", "false": "no"}[fallback]
		}
		if fallback != "" {
			prompt += " [" + fallback + "]"
		}
		for {
			text, err := readLine(ctx, iv.opts.IO, prompt+": ")
			if err != nil {
				return err
			}
			if text == "" {
				text = fallback
			}
			if err := iv.check(q, text); err != nil {
				fmt.Fprintf(iv.opts.IO.Err, "%s %v\n", q.Title, err)
				continue
			}
			iv.given[q.Key] = text
			break
		}
	}
	return nil
}

// confirm asks once, after what will be done was shown.
func confirm(ctx context.Context, io *iostreams.IOStreams, question string) error {
	agreed := true
	var err error
	if plain(io) {
		agreed, err = readYes(ctx, io, question)
	} else {
		err = runForm(ctx, io, huh.NewGroup(huh.NewConfirm().Title(question).Inline(true).Value(&agreed)))
	}
	if err != nil {
		return err
	}
	if !agreed {
		fmt.Fprintln(io.Err, "Nothing was written.")
		return errInterrupted
	}
	return nil
}

// readYes asks a question until it is answered by yes, the default, or no.
func readYes(ctx context.Context, io *iostreams.IOStreams, question string) (bool, error) {
	for {
		text, err := readLine(ctx, io, question+" yes, no [yes]: ")
		if err != nil || text == "" {
			return true, err
		}
		yes, err := scaffold.ParseYes(text)
		if err == nil {
			return yes, nil
		}
		fmt.Fprintf(io.Err, "%s %v\n", question, err)
	}
}

// readLine asks for one line. It reads a byte at a time, so that the next call
// finds what follows; terminals hand out lines anyway.
func readLine(ctx context.Context, streams *iostreams.IOStreams, prompt string) (string, error) {
	fmt.Fprint(streams.Err, prompt)
	type result struct {
		line string
		err  error
	}
	read := make(chan result, 1)
	go func() { // a blocked read cannot be cancelled; the process is about to end then
		line, err := bufio.NewReaderSize(oneByte{streams.In}, 16).ReadString('\n')
		read <- result{line, err}
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(streams.Err)
		return "", errInterrupted
	case r := <-read:
		if errors.Is(r.err, io.EOF) {
			fmt.Fprintln(streams.Err)
			return "", usagef("standard input ended before the questions did; pass the answers as flags")
		}
		return strings.TrimSpace(r.line), r.err
	}
}

type oneByte struct{ io.Reader }

func (r oneByte) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(1, len(p))]) }
