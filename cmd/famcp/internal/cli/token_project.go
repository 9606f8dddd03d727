package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/cmd/famcp/internal/iostreams"
	"github.com/famcp/famcp/internal/runtime/config"
	"github.com/famcp/famcp/internal/runtime/token"
)

// projectTokens are the tokens of a project's server.
type projectTokens struct {
	*token.Tokens
	project *project
	config  token.Config
	off     bool // the server asks for no tokens
}

const otherKeys = "or name a key with --secret-file, --secret-env or --key"

// openTokens reads the configuration of p as its server does, so that both have
// the same keys, issuer and audience.
func openTokens(p *project, environ []string, io *iostreams.IOStreams) (*projectTokens, error) {
	var c famcp.Config
	report, err := config.Load(&c, config.Source{Dir: p.Dir, Environ: environ, Partial: true})
	if err != nil {
		return nil, fmt.Errorf("the configuration of %s: %w", p.Name, err)
	}
	c.Env = report.Env
	cfg := famcp.TokenConfig(&c, p.Name)
	cfg.Logger = slog.New(slog.NewTextHandler(io.Err, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
	for _, path := range []*string{&cfg.KeyDir, &cfg.PublicKeyFile, &cfg.PrivateKeyFile} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(p.Dir, *path) // where its server runs
		}
	}
	off := !c.WebServer.Auth.Enabled
	tokens, err := token.New(cfg)
	if err != nil {
		if off {
			return nil, fmt.Errorf("the server %s asks for no tokens (webServer.auth.enabled is false); "+
				"its docs/authentication.md says how to change that, %s", p.Name, otherKeys)
		}
		return nil, fmt.Errorf("the configuration of %s: %w", p.Name, namedKeys(err))
	}
	return &projectTokens{Tokens: tokens, project: p, config: cfg, off: off}, nil
}

func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// namedKeys writes out the keys of refusals.
func namedKeys(err error) error {
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for i, err := range all {
		var refusal *token.ConfigError
		if errors.As(err, &refusal) {
			all[i] = fmt.Errorf("webServer.auth.jwtToken.%w", refusal)
		}
	}
	return errors.Join(all...)
}

// maker makes the tokens of the server, or says who does.
func (t *projectTokens) maker(io *iostreams.IOStreams) (*tokenMaker, error) {
	switch {
	case t.config.Mode == token.RemoteJWKS:
		host := "its provider"
		if u, err := url.Parse(t.config.JWKSURL); err == nil {
			host = u.Host
		}
		return nil, fmt.Errorf("the server %s makes no tokens (its mode is remoteJwks): "+
			"get one from its identity provider, whose issuer is %s and whose keys are at %s", t.project.Name, shown(t.config.ExpectedIssuer), shown(host))
	case !t.CanIssue():
		return nil, fmt.Errorf("the project of %s has no private key: set webServer.auth.jwtToken.privateKeyPath (WS_JWT_PRIVATE_KEY_PATH), %s",
			t.project.Name, otherKeys)
	}
	if t.off {
		fmt.Fprintf(io.Err, "The server %s asks for no tokens: webServer.auth.enabled is false.\n", t.project.Name)
	}
	return &tokenMaker{start: t.Start, sign: t.Issue}, nil
}
