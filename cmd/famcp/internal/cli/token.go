package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"charm.land/huh/v2"
	"github.com/spf13/cobra"

	"github.com/famcp/famcp/cmd/famcp/internal/iostreams"
	"github.com/famcp/famcp/internal/runtime/token"
)

// maxSecretBytes bounds the file of a shared secret, as the server does.
const maxSecretBytes = 64 << 10

type tokenOptions struct {
	IO      *iostreams.IOStreams
	Getenv  func(string) string
	Environ []string

	Key      keyFlags
	Subject  string
	TTL      string
	Audience []string
	Issuer   string
	Scopes   []string
	Services []string
	IPs      []string
	ID       string
	Claims   []string // name=text or name:=JSON
	Force    bool
	JSON     bool
}

func newTokenCmd(app *App, run func(context.Context, *tokenOptions) error) *cobra.Command {
	opts := &tokenOptions{IO: app.IO, Getenv: app.Getenv, Environ: app.Environ}
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make and check the tokens of a server",
		Long: `Make a token (JWT) that a server accepts, and print it and nothing else.

Inside of a project, in any of its directories, key, algorithm, issuer and
audience are those of its server, from its configuration files and the
environment. In the mode embedded the key is made when there is none yet.

Elsewhere, or for another server, a flag names the key: a file or a variable
with the shared secret of the mode hs256, or a file with a private key. Secrets
never stand on the command line, where other programs and the shell's history
could see them. A project is then not looked at.

The life of a token is digits and one of s, m, h, d, w, y: 45m, 30d. A day has
24 hours, a year 365 days, and a token lives at most one year unless --force
says otherwise. On a terminal, a form asks for the subject and the life when
they are missing.`,
		Example: `  famcp token --subject alice --ttl 12h
  famcp token --subject ci --ttl 30d --scope "notes:read notes:write"
  famcp token --subject alice --ttl 1d --audience my-server --secret-file secret.txt
  famcp token --subject ci --ttl 30d --audience my-server --issuer https://mcp.example.com --key keys/private.pem
  famcp token keys --alg ES256 --out keys
  famcp token inspect - < token.txt`,
		Args: noTokenArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), opts) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&opts.Subject, "subject", "", "Who the token is for (sub): a `name` for the log and the limits.")
	flags.StringVar(&opts.TTL, "ttl", "", "How long it lives: a `time` such as 45m, 12h, 30d.")
	flags.StringArrayVar(&opts.Scopes, "scope", nil, "A `scope` it grants; several in one text or by repeating the flag.")
	flags.StringArrayVar(&opts.Audience, "audience", nil, "The `server` it is for (aud); may be repeated (default in a project its server).")
	flags.StringVar(&opts.Issuer, "issuer", "", "Who made it (iss), usually a `URL` (default in a project that of its server).")
	flags.StringArrayVar(&opts.Services, "service", nil, "A service it is limited to, by `name`; may be repeated.")
	flags.StringArrayVar(&opts.IPs, "ip", nil, "An `address` or CIDR it is limited to; may be repeated.")
	flags.StringArrayVar(&opts.Claims, "claim", nil, "Another claim as `name=text`, or name:=JSON; may be repeated.")
	flags.StringVar(&opts.ID, "jti", "", "Its `id`, by which it can be revoked (default random).")
	flags.StringVar(&opts.Key.SecretFile, "secret-file", "", "Sign with the shared secret in this `file`.")
	flags.StringVar(&opts.Key.SecretEnv, "secret-env", "", "Sign with the shared secret in this environment `variable`.")
	flags.StringVar(&opts.Key.File, "key", "", "Sign with the private key in this PEM `file`.")
	addAlgFlag(cmd, &opts.Key.Alg, "Algorithm of --key.")
	flags.BoolVar(&opts.Force, "force", false, "Allow a life of more than one year.")
	flags.BoolVar(&opts.JSON, "json", false, "Print one JSON document with the token, its claims and its end; asks nothing.")
	cmd.AddCommand(newTokenKeysCmd(app, tokenKeysRun), newTokenInspectCmd(app, tokenInspectRun))
	return cmd
}

func addAlgFlag(cmd *cobra.Command, alg *string, help string) {
	v := (*algFlag)(alg)
	*v = algFlag(token.ES256)
	cmd.Flags().Var(v, "alg", help)
	complete := cobra.FixedCompletions([]cobra.Completion{string(token.ES256), string(token.RS256)}, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("alg", complete); err != nil {
		panic(err) // the flag was defined three lines above
	}
}

// algFlag is a pflag.Value that takes the name of an algorithm.
type algFlag string

func (f *algFlag) Set(text string) error {
	switch token.Algorithm(text) {
	case token.ES256, token.RS256:
		*f = algFlag(text)
		return nil
	}
	return fmt.Errorf("want %s or %s", token.ES256, token.RS256)
}

func (f *algFlag) String() string { return string(*f) }
func (f *algFlag) Type() string   { return "ES256|RS256" }

// noTokenArgs refuses arguments without repeating them: one may be a token.
func noTokenArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes no such argument; to look at a token, pass it to: famcp token inspect -", cmd.CommandPath())
}

// keyFlags name a key that is in no project.
type keyFlags struct {
	SecretFile, SecretEnv string
	File, Alg             string // of a private key
}

// tokenMaker makes tokens with one key.
type tokenMaker struct {
	start func() error // makes or reads the key; nil when it is there
	sign  func(token.Grant) (string, *token.Claims, error)
}

// tokenRun is `famcp token`: find the key, complete the grant, sign, print.
func tokenRun(ctx context.Context, opts *tokenOptions) error {
	grant, err := opts.grant()
	if err != nil {
		return err
	}
	maker, err := opts.maker()
	if err != nil {
		return err
	}
	if err := opts.complete(ctx); err != nil {
		return err
	}
	grant.Subject = strings.TrimSpace(opts.Subject)
	if grant.TTL, err = parseTTL(opts.TTL, opts.Force); err != nil {
		return usagef("--ttl: %w", err)
	}
	if maker.start != nil {
		if err := maker.start(); err != nil {
			return err
		}
	}
	raw, claims, err := maker.sign(grant)
	if err != nil {
		return &usageError{err: err}
	}
	return opts.print(raw, claims)
}

// grant is what the flags say about the token, but for subject and life.
func (o *tokenOptions) grant() (token.Grant, error) {
	g := token.Grant{
		Audience: o.Audience,
		Issuer:   o.Issuer,
		Services: o.Services,
		IPs:      o.IPs,
		ID:       o.ID,
		Uncapped: o.Force,
		Extra:    map[string]any{},
	}
	for _, text := range o.Scopes {
		g.Scopes = append(g.Scopes, strings.Fields(text)...)
	}
	for _, text := range o.Claims {
		name, value, err := parseClaim(text)
		if err != nil {
			return g, usagef("--claim: %w", err)
		}
		if _, twice := g.Extra[name]; twice {
			return g, usagef("--claim: %q is given twice", name)
		}
		g.Extra[name] = value
	}
	return g, nil
}

// claimFlags are the flags of the claims that --claim may not set.
var claimFlags = map[string]string{
	"sub": "--subject", "exp": "--ttl", "aud": "--audience", "iss": "--issuer", "scope": "--scope", "scp": "--scope",
	"service": "--service", "ip": "--ip", "jti": "--jti",
}

// parseClaim reads name=text or name:=JSON.
func parseClaim(text string) (name string, value any, err error) {
	name, rest, ok := strings.Cut(text, "=")
	name, isJSON := strings.CutSuffix(name, ":")
	switch flag := claimFlags[name]; {
	case !ok || name == "":
		return "", nil, errors.New("want name=text, or name:=JSON such as admin:=true")
	case flag != "":
		return "", nil, fmt.Errorf("%q is reserved; pass %s", name, flag)
	case token.Reserved(name):
		return "", nil, fmt.Errorf("%q is reserved: famcp sets it", name)
	case !isJSON:
		return name, rest, nil
	}
	dec := json.NewDecoder(strings.NewReader(rest))
	dec.UseNumber() // long numbers keep their digits
	if err := dec.Decode(&value); err != nil || dec.Decode(new(any)) != io.EOF {
		return "", nil, fmt.Errorf("the value of %q is not JSON; write %s=text for a text", name, name)
	}
	return name, value, nil
}

// parseTTL reads a life; force lifts the maximum.
func parseTTL(text string, force bool) (time.Duration, error) {
	ttl, err := token.ParseTTL(text)
	if errors.Is(err, token.ErrTTLTooLong) {
		if force {
			return ttl, nil
		}
		return 0, fmt.Errorf("%w; pass --force to go beyond", err)
	}
	return ttl, err
}

// maker finds the key: the one that the flags name or, without them, that of
// the project.
func (o *tokenOptions) maker() (*tokenMaker, error) {
	signer, err := o.Key.signer(o.Getenv)
	if err != nil {
		return nil, err
	}
	if signer != nil {
		return &tokenMaker{sign: signer.Sign}, nil
	}
	p, err := findProject(".")
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, usagef("no key: this directory is in no project; change to one, or pass --secret-file, --secret-env or --key")
	}
	tokens, err := openTokens(p, o.Environ, o.IO)
	if err != nil {
		return nil, err
	}
	return tokens.maker(o.IO)
}

// signer is that of the one key which the flags name, or nil when they name none.
func (k keyFlags) signer(getenv func(string) string) (*token.Signer, error) {
	var named []string
	for _, f := range []struct{ flag, value string }{{"--secret-file", k.SecretFile}, {"--secret-env", k.SecretEnv}, {"--key", k.File}} {
		if f.value != "" {
			named = append(named, f.flag)
		}
	}
	if len(named) > 1 {
		return nil, usagef("%s exclude each other; name one key", strings.Join(named, " and "))
	}
	switch {
	case k.SecretFile != "":
		data, err := readBounded(k.SecretFile, maxSecretBytes)
		if err != nil { // without the path: it may be the secret itself, passed by mistake
			return nil, usagef("--secret-file: reading the file it names: %w", withoutPath(err))
		}
		return secretSigner("--secret-file", strings.TrimRight(string(data), "\r\n"))
	case k.SecretEnv != "":
		text := getenv(k.SecretEnv)
		if text == "" {
			return nil, usagef("--secret-env: the variable it names is empty or not exported")
		}
		return secretSigner("--secret-env", text)
	case k.File != "":
		pair, err := token.ReadKeyPair(k.File, token.Algorithm(k.Alg))
		if err != nil {
			return nil, usagef("--key: %w", err)
		}
		return pair.Signer(), nil
	}
	return nil, nil
}

func secretSigner(flag, secret string) (*token.Signer, error) {
	signer, err := token.NewSecretSigner([]byte(secret))
	if err != nil {
		return nil, usagef("%s: %w", flag, err)
	}
	return signer, nil
}

func withoutPath(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

// complete asks for the subject and the life when they are missing.
func (o *tokenOptions) complete(ctx context.Context) error {
	var questions []tokenQuestion
	var missing, flags []string
	if o.Subject == "" {
		missing, flags = append(missing, "no subject"), append(flags, "--subject")
		questions = append(questions, tokenQuestion{"Subject: who the token is for", &o.Subject, checkSubject})
	}
	if o.TTL == "" {
		missing, flags = append(missing, "no life"), append(flags, "--ttl")
		questions = append(questions, tokenQuestion{"Life, such as 45m, 12h or 30d", &o.TTL, func(text string) error {
			_, err := parseTTL(text, o.Force)
			return err
		}})
	}
	switch {
	case len(questions) == 0:
		return nil
	case o.JSON || !o.IO.CanPrompt():
		return usagef("%s, and nobody to ask; pass %s, as in: famcp token --subject alice --ttl 30d",
			strings.Join(missing, " and "), strings.Join(flags, " and "))
	case plain(o.IO):
		return askLines(ctx, o.IO, questions)
	}
	var fields []huh.Field
	for _, q := range questions {
		fields = append(fields, huh.NewInput().Title(q.title).Value(q.answer).Validate(func(text string) error {
			return q.check(strings.TrimSpace(text))
		}))
	}
	err := runForm(ctx, o.IO, huh.NewGroup(fields...))
	o.TTL = strings.TrimSpace(o.TTL)
	return err
}

type tokenQuestion struct {
	title  string
	answer *string
	check  func(string) error
}

func checkSubject(text string) error {
	if text == "" {
		return errors.New("a token needs a subject")
	}
	return nil
}

func askLines(ctx context.Context, io *iostreams.IOStreams, questions []tokenQuestion) error {
	for _, q := range questions {
		for {
			text, err := readLine(ctx, io, q.title+": ")
			if err != nil {
				return err
			}
			if err := q.check(text); err != nil {
				fmt.Fprintln(io.Err, err)
				continue
			}
			*q.answer = text
			break
		}
	}
	return nil
}

// tokenDoc is the answer of `famcp token --json`. Fields keep their meaning;
// new ones may come.
type tokenDoc struct {
	Schema  int            `json:"schema"`
	Token   string         `json:"token"`
	Claims  map[string]any `json:"claims"`
	Expires time.Time      `json:"expires"`
}

// print writes the token, and for a person at the terminal what it is.
func (o *tokenOptions) print(raw string, c *token.Claims) error {
	if len(c.Audience) == 0 {
		fmt.Fprintln(o.IO.Err, "This token names no server, and most refuse such a one: pass --audience with the server's name.")
	}
	if o.JSON {
		return writeJSON(o.IO.Out, tokenDoc{Schema: 1, Token: raw, Claims: c.Map(), Expires: c.ExpiresAt.UTC()})
	}
	if o.IO.ErrTTY {
		fmt.Fprintf(o.IO.Err, "A token for %s, good until %s.\n", shown(c.Subject), moment(c.ExpiresAt, time.Now()))
	}
	_, err := fmt.Fprintln(o.IO.Out, raw)
	return err
}
