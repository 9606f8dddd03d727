package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/famcp/famcp/cmd/famcp/internal/iostreams"
	"github.com/famcp/famcp/internal/runtime/token"
)

type tokenKeysOptions struct {
	IO *iostreams.IOStreams

	Alg   string
	Out   string
	Force bool
	JSON  bool
}

func newTokenKeysCmd(app *App, run func(context.Context, *tokenKeysOptions) error) *cobra.Command {
	opts := &tokenKeysOptions{IO: app.IO}
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make a key pair that tokens are signed and checked with",
		Long: `Make a key pair for servers in the mode localKey, and print its public half as a
key set (JWKS).

DIR gets private.pem, which only you can read and which makes tokens,
public.pem, which is all that a server needs to check them, and jwks.json, the
key set. Files that are there are never overwritten without --force: tokens
made with their key would stop working.`,
		Example: `  famcp token keys --alg ES256 --out keys
  famcp token keys --alg RS256 --out keys --force`,
		Args: noTokenArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), opts) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	addAlgFlag(cmd, &opts.Alg, "Algorithm of the key.")
	flags.StringVar(&opts.Out, "out", "", "The `directory` for its files, made when absent.")
	flags.BoolVar(&opts.Force, "force", false, "Overwrite a key pair that is there.")
	flags.BoolVar(&opts.JSON, "json", false, "Print one JSON document.")
	return cmd
}

// tokenKeysDoc is the answer of `famcp token keys --json`. Fields keep their
// meaning; new ones may come.
type tokenKeysDoc struct {
	Schema int             `json:"schema"`
	Alg    token.Algorithm `json:"alg"`
	KeyID  string          `json:"kid"`
	Files  []string        `json:"files"`
	JWKS   json.RawMessage `json:"jwks"`
}

func tokenKeysRun(_ context.Context, opts *tokenKeysOptions) error {
	if opts.Out == "" {
		return usagef("no directory for the keys; pass --out, as in: famcp token keys --alg %s --out keys", opts.Alg)
	}
	alg := token.Algorithm(opts.Alg)
	pair, err := token.GenerateKeyPair(alg)
	if err != nil {
		return err
	}
	jwks, err := pair.JWKS()
	if err != nil {
		return err
	}
	if err := pair.Write(opts.Out, opts.Force); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%w; choose another --out, or pass --force to overwrite it", err)
		}
		return fmt.Errorf("writing the keys: %w", err)
	}
	var files []string
	for _, name := range []string{token.PrivateKeyName, token.PublicKeyName, token.JWKSName} {
		files = append(files, filepath.Join(opts.Out, name))
	}
	if opts.JSON {
		return writeJSON(opts.IO.Out, tokenKeysDoc{Schema: 1, Alg: alg, KeyID: pair.KeyID(), Files: files, JWKS: jwks})
	}
	for _, file := range files {
		fmt.Fprintf(opts.IO.Err, "%s Wrote %s\n", opts.IO.Good("✓"), file)
	}
	_, err = fmt.Fprintf(opts.IO.Out, "%s\n", jwks)
	return err
}
