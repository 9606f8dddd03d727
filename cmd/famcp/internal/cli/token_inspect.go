package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/famcp/famcp/cmd/famcp/internal/iostreams"
	"github.com/famcp/famcp/internal/runtime/token"
)

type tokenInspectOptions struct {
	IO      *iostreams.IOStreams
	Environ []string

	Token  string // empty or "-" reads it
	Verify bool
	JSON   bool
}

func newTokenInspectCmd(app *App, run func(context.Context, *tokenInspectOptions) error) *cobra.Command {
	opts := &tokenInspectOptions{IO: app.IO, Environ: app.Environ}
	cmd := &cobra.Command{
		Use:   "inspect [TOKEN|-]",
		Short: "Show what a token says and why it would be refused",
		Long: `Show the claims of a token, its times in words, and why a server would refuse it.

Inside of a project this is what its server would say, and --verify checks the
signature with the server's key, too: in the mode remoteJwks it fetches the keys
of the provider. A token that --verify finds refused is a failure, code 1.

The token is read from standard input when it is - or not given; on a terminal
it is asked for and not shown. As an argument it would be seen by other programs
and kept in the shell's history.`,
		Example: `  famcp token inspect - < token.txt
  famcp token --subject alice --ttl 1h | famcp token inspect - --verify`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 { // without repeating them
				return fmt.Errorf("%s takes one token, not %d arguments", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				opts.Token = args[0]
			}
			return run(cmd.Context(), opts)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&opts.Verify, "verify", false, "Check the signature as the server of this project does.")
	flags.BoolVar(&opts.JSON, "json", false, "Print one JSON document.")
	return cmd
}

func tokenInspectRun(ctx context.Context, opts *tokenInspectOptions) error {
	tokens, err := opts.tokens()
	if err != nil {
		return err
	}
	raw, err := opts.read(ctx)
	if err != nil {
		return err
	}
	in, facts, err := inspect(tokens, raw)
	if err != nil {
		return fmt.Errorf("this cannot be read as a token: %w", err)
	}
	doc := newInspectDoc(in)
	if tokens != nil {
		doc.Server = tokens.project.Name
	}
	if opts.Verify {
		if err := doc.verify(ctx, tokens, raw, facts); err != nil {
			return err
		}
	}
	if opts.JSON {
		err = writeJSON(opts.IO.Out, doc)
	} else {
		err = doc.print(opts.IO.Out, in, time.Now())
	}
	if err == nil && opts.Verify && len(doc.Problems) > 0 {
		err = fmt.Errorf("the server %s would refuse this token: %s", doc.Server, doc.Problems[0].Text)
	}
	return err
}

// tokens are those of the project, or nil outside of one. A project that cannot
// say what it accepts is a fault only when that was asked for.
func (o *tokenInspectOptions) tokens() (*projectTokens, error) {
	p, err := findProject(".")
	if err == nil && p == nil && o.Verify {
		return nil, usagef("--verify needs a key, and this directory is in no project; change to that of the server")
	}
	if err != nil || p == nil {
		return nil, err
	}
	tokens, err := openTokens(p, o.Environ, o.IO)
	if err != nil && !o.Verify {
		fmt.Fprintf(o.IO.Err, "What the server of this project would say is not known: %v\n", err)
		return nil, nil
	}
	return tokens, err
}

// inspect decodes a token, by the rules of the server when there is one. From
// where it would be used is not known, so one limited to addresses is taken to
// come from one of them.
func inspect(tokens *projectTokens, raw string) (*token.Inspection, token.Facts, error) {
	in, err := token.Inspect(raw)
	if err != nil || tokens == nil {
		return in, token.Facts{}, err
	}
	facts := token.Facts{IP: firstAddress(in.Claims.IPs)}
	in, err = tokens.Inspect(raw, facts)
	return in, facts, err
}

// firstAddress is an address in one of the networks, zero when none can be read.
func firstAddress(networks []string) netip.Addr {
	for _, text := range networks {
		if addr, err := netip.ParseAddr(text); err == nil {
			return addr
		}
		if prefix, err := netip.ParsePrefix(text); err == nil {
			return prefix.Addr()
		}
	}
	return netip.Addr{}
}

// read returns the token, also when it was copied with its scheme.
func (o *tokenInspectOptions) read(ctx context.Context) (string, error) {
	text := o.Token
	switch {
	case text != "" && text != "-":
	case o.IO.InTTY && (!o.IO.ErrTTY || o.IO.Unattended):
		return "", usagef("no token, and nobody to ask; pipe it in, as in: famcp token inspect - < token.txt")
	case o.IO.InTTY:
		var err error
		if text, err = readHidden(ctx, o.IO, "Token (it is not shown): "); err != nil {
			return "", err
		}
	default:
		data, err := io.ReadAll(io.LimitReader(o.IO.In, 2*token.MaxBytes)) // a longer one is refused for its length
		if err != nil {
			return "", fmt.Errorf("reading the token: %w", err)
		}
		text = string(data)
	}
	text = strings.TrimSpace(text)
	if scheme, rest, ok := strings.Cut(text, " "); ok && strings.EqualFold(scheme, "Bearer") {
		text = strings.TrimSpace(rest)
	}
	if text == "" {
		return "", usagef("no token; pipe it in, as in: famcp token inspect - < token.txt")
	}
	return text, nil
}

// readHidden reads a line from a terminal that does not show it. The terminal's
// own line editing would stop at 4096 bytes.
func readHidden(ctx context.Context, streams *iostreams.IOStreams, prompt string) (string, error) {
	f, ok := streams.In.(*os.File)
	if !ok {
		return "", errors.New("standard input is no terminal")
	}
	before, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return "", err
	}
	fmt.Fprint(streams.Err, prompt) // when nothing is shown any more
	defer func() {
		_ = term.Restore(int(f.Fd()), before)
		fmt.Fprintln(streams.Err)
	}()
	type result struct {
		line string
		err  error
	}
	read := make(chan result, 1)
	go func() { // a blocked read cannot be cancelled; the process is about to end then
		line, err := readKeys(f)
		read <- result{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", errInterrupted
	case r := <-read:
		return r.line, r.err
	}
}

// readKeys reads what is typed or pasted until Enter.
func readKeys(in io.Reader) (string, error) {
	const ctrlC, ctrlD, backspace, del = 0x03, 0x04, 0x08, 0x7f
	var line []byte
	key := make([]byte, 1)
	for {
		if _, err := in.Read(key); errors.Is(err, io.EOF) {
			return string(line), nil
		} else if err != nil {
			return "", err
		}
		switch key[0] {
		case '\r', '\n', ctrlD:
			return string(line), nil
		case ctrlC:
			return "", errInterrupted
		case backspace, del:
			line = line[:max(0, len(line)-1)]
		default:
			if len(line) <= token.MaxBytes {
				line = append(line, key[0])
			}
		}
	}
}

// inspectDoc is the answer of `famcp token inspect --json`. Fields keep their
// meaning; new ones may come.
type inspectDoc struct {
	Schema   int            `json:"schema"`
	Header   map[string]any `json:"header"`
	Claims   map[string]any `json:"claims"`
	Expires  *time.Time     `json:"expires"`  // null without an end
	Server   string         `json:"server"`   // whose rules were applied; empty outside of a project
	Verified bool           `json:"verified"` // the signature was checked, too
	Problems []refusal      `json:"problems"`
}

// refusal is why a server would refuse the token.
type refusal struct {
	Reason token.Reason `json:"reason"`
	Text   string       `json:"text"`
}

func newInspectDoc(in *token.Inspection) *inspectDoc {
	doc := &inspectDoc{Schema: 1, Header: in.Header, Claims: in.Claims.Map(), Problems: []refusal{}}
	if t := in.Claims.ExpiresAt.UTC(); !in.Claims.ExpiresAt.IsZero() {
		doc.Expires = &t
	}
	for _, p := range in.Problems {
		doc.Problems = append(doc.Problems, refusal{p.Reason, p.Text})
	}
	return doc
}

// verify adds what the server finds with its key.
func (d *inspectDoc) verify(ctx context.Context, tokens *projectTokens, raw string, facts token.Facts) error {
	d.Verified = true
	_, err := tokens.Verify(ctx, raw, facts)
	var refused *token.Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case !errors.As(err, &refused):
		return err
	case refused.Reason == token.ReasonUnavailable:
		return errors.Join(fmt.Errorf("the signature cannot be checked now: %w", err), refused.Cause)
	}
	if !slices.ContainsFunc(d.Problems, func(p refusal) bool { return p.Reason == refused.Reason }) {
		d.Problems = slices.Insert(d.Problems, 0, refusal{refused.Reason, refused.Text})
	}
	return nil
}

// print writes the document for people.
func (d *inspectDoc) print(w io.Writer, in *token.Inspection, now time.Time) error {
	c := in.Claims
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(label, text string) {
		if text != "" {
			fmt.Fprintf(table, "%s\t%s\n", label, text)
		}
	}
	list := func(label string, texts []string) {
		quoted := make([]string, len(texts))
		for i, text := range texts {
			quoted[i] = shown(text)
		}
		row(label, strings.Join(quoted, ", "))
	}
	times := func(label string, t time.Time) {
		if !t.IsZero() {
			row(label, moment(t, now))
		}
	}
	row("subject (sub)", shown(c.Subject))
	row("issuer (iss)", shown(c.Issuer))
	list("audience (aud)", c.Audience)
	list("scopes (scope)", c.Scopes)
	list("services (service)", c.Services)
	list("addresses (ip)", c.IPs)
	row("id (jti)", shown(c.ID))
	times("issued (iat)", c.IssuedAt)
	times("not before (nbf)", c.NotBefore)
	times("expires (exp)", c.ExpiresAt)
	for _, name := range slices.Sorted(maps.Keys(d.Claims)) {
		if !token.Reserved(name) {
			row(shown(name), shownJSON(d.Claims[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Header)) {
		row("header "+shown(name), shownJSON(d.Header[name]))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, p := range d.Problems {
		if _, err := fmt.Fprintf(w, "\nWould be refused: %s.", p.Text); err != nil {
			return err
		}
	}
	end := "\n"
	switch {
	case len(d.Problems) > 0:
	case d.Verified:
		end = "\nThe server " + d.Server + " accepts it.\n"
	default:
		end = "\nNothing in it is a reason to refuse it. Its signature was not checked.\n"
	}
	_, err := io.WriteString(w, end)
	return err
}

// shown is text of a stranger as a terminal may see it.
func shown(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) >= 0 || strings.ContainsRune(text, unicode.ReplacementChar) {
		return strconv.QuoteToASCII(text)
	}
	return text
}

// shownJSON is shown of a value; a text stands without quotes.
func shownJSON(v any) string {
	if text, ok := v.(string); ok {
		return shown(text)
	}
	data, err := json.Marshal(v)
	if err != nil {
		return shown(fmt.Sprint(v))
	}
	return shown(string(data))
}

// moment is a time with its distance from now: "… UTC, in 30 days".
func moment(t, now time.Time) string {
	text := t.UTC().Format("2006-01-02 15:04:05 UTC")
	d := t.Sub(now).Round(time.Second)
	switch {
	case d > 0:
		return text + ", in " + inWords(d)
	case d < 0:
		return text + ", " + inWords(-d) + " ago"
	default:
		return text + ", now"
	}
}

// inWords is a duration of at least a second in its two largest units, rounded:
// "1 day 2 hours".
func inWords(d time.Duration) string {
	const day = 24 * time.Hour
	units := []struct {
		name string
		size time.Duration
	}{{"year", 365 * day}, {"day", day}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}}
	for i, u := range units {
		rounded := d.Round(units[min(i+1, len(units)-1)].size)
		if rounded < u.size {
			continue
		}
		text := counted(int(rounded/u.size), u.name)
		if i+1 < len(units) {
			if n := int(rounded % u.size / units[i+1].size); n > 0 {
				text += " " + counted(n, units[i+1].name)
			}
		}
		return text
	}
	return counted(0, "second")
}

func counted(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}
