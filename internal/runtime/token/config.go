package token

import (
	"bytes"
	"errors"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Bounds of a configuration.
const (
	MinSecretBytes = 32               // RFC 7518 §3.2: as long as the hash
	MaxSkew        = time.Minute      // more would outlive a revocation in practice
	MaxCacheTTL    = 10 * time.Minute // how long a key withdrawn by its provider may go on working
)

const (
	defaultCooldown = 30 * time.Second
	defaultTTL      = 30 * time.Minute
)

// Check says what [New] would refuse in cfg before it reads a file: joined
// errors, each a [*ConfigError].
func Check(cfg Config) error {
	_, err := complete(cfg)
	return err
}

// complete fills in defaults and refuses what must not start.
func complete(cfg Config) (Config, error) {
	var errs []error
	no := func(key, format string, args ...any) { errs = append(errs, refuse(key, format, args...)) }

	switch cfg.Mode {
	case "", LegacyAESCTR:
		cfg.Mode = HS256
	case HS256:
	case Embedded, LocalKey, RemoteJWKS:
		if cfg.ExpectedIssuer == "" {
			no("expectedIssuer", "the mode %s must know whose tokens to accept; set the issuer", cfg.Mode)
		}
	default:
		no("mode", "%q is not a mode; set hs256, embedded, localKey or remoteJwks", cfg.Mode)
	}
	switch cfg.Algorithm {
	case "":
		cfg.Algorithm = ES256
	case ES256, RS256:
	default:
		no("algorithm", "%q is not an algorithm; set ES256 or RS256", cfg.Algorithm)
	}
	switch cfg.Mode {
	case HS256:
		if problem := weakSecret(cfg.Secret); problem != "" {
			no("encryptKey", "%s", problem)
		}
	case Embedded:
		if cfg.KeyDir == "" {
			no("keyStoragePath", "the mode embedded keeps its key in a directory; set one")
		}
	case LocalKey:
		if cfg.PublicKeyFile == "" {
			no("publicKeyPath", "the mode localKey checks tokens with a public key; set the path of its PEM file")
		}
	case RemoteJWKS:
		if problem := badURL(cfg.JWKSURL); problem != "" {
			no("jwksUri", "%s", problem)
		}
	}
	if cfg.Issuer == "" || cfg.Mode == RemoteJWKS {
		cfg.Issuer = cfg.ExpectedIssuer
	} else if cfg.ExpectedIssuer != "" && cfg.Issuer != cfg.ExpectedIssuer {
		no("issuer", "differs from expectedIssuer, so tokens made here would be refused here; set one of them only, or both alike")
	}
	if slices.Contains(cfg.ExpectedAudience, "") {
		no("expectedAudience", "an empty audience fits no token; remove it")
	}
	if len(cfg.ExpectedAudience) == 0 && cfg.ServerName == "" {
		no("expectedAudience", "there is neither an audience nor a server name to accept; set one")
	}
	if cfg.Skew < 0 || cfg.Skew > MaxSkew {
		no("clockSkew", "%s is outside 0 s to 60 s; synchronize the clocks instead of forgiving more", cfg.Skew)
	}
	if cfg.CacheTTL < 0 || cfg.CacheTTL > MaxCacheTTL {
		no("jwksCacheTtl", "%s is outside 0 s to 600 s: a key its provider withdrew would go on working", cfg.CacheTTL)
	}
	if cfg.Cooldown < 0 {
		no("jwksCooldown", "%s is negative; set 0 for the default", cfg.Cooldown)
	}
	if cfg.DefaultTTL < 0 || cfg.DefaultTTL > MaxTTL {
		no("defaultTtl", "%s is outside 0 s to one year", cfg.DefaultTTL)
	}
	if len(errs) > 0 {
		return cfg, errors.Join(errs...)
	}

	if cfg.CacheTTL == 0 {
		cfg.CacheTTL = MaxCacheTTL
	}
	if cfg.Cooldown == 0 {
		cfg.Cooldown = defaultCooldown
	}
	if cfg.DefaultTTL == 0 {
		cfg.DefaultTTL = defaultTTL
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Secret = bytes.Clone(cfg.Secret)
	cfg.ExpectedAudience = slices.Clone(cfg.ExpectedAudience)
	return cfg, nil
}

// placeholders are words of at least six letters, so that a random secret in
// base64 holds one about once in ten million.
var placeholders = []string{
	"changeme", "change-me", "change_me", "change this", "replaceme", "replace-me", "replace_me", "placeholder",
	"fillme", "fill_me", "fill-me", "your-secret", "your_secret", "yoursecret", "your-256-bit", "mysecret", "my-secret",
	"my_secret", "secret-key", "secret_key", "secretkey", "supersecret", "super-secret", "super_secret", "example",
	"password", "dummy-", "dummy_", "insert-", "insert_",
}

// weakSecret says what is wrong with a shared secret, without repeating it.
func weakSecret(secret []byte) string {
	const next = "; set at least 32 random bytes, such as those of openssl rand -base64 32"
	if len(secret) == 0 {
		return "the mode hs256 needs a shared secret" + next
	}
	lower := strings.ToLower(strings.TrimSpace(string(secret)))
	for _, word := range placeholders {
		if strings.Contains(lower, word) {
			return "a placeholder is not a secret" + next
		}
	}
	for _, marks := range [][2]string{{"<", ">"}, {"${", "}"}, {"{{", "}}"}, {"***", "***"}} {
		if strings.HasPrefix(lower, marks[0]) && strings.HasSuffix(lower, marks[1]) {
			return "a placeholder is not a secret" + next
		}
	}
	if len(secret) < MinSecretBytes {
		return "the secret is shorter than 32 bytes and can be guessed" + next
	}
	distinct := make(map[byte]struct{})
	for _, b := range secret {
		distinct[b] = struct{}{}
	}
	if len(distinct) < 8 {
		return "the secret repeats a few characters and can be guessed" + next
	}
	return ""
}

// badURL says what is wrong with the address of a key set.
func badURL(raw string) string {
	if raw == "" {
		return "the mode remoteJwks fetches keys from its provider; set the URL of the key set"
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return "not an absolute http or https URL; set the jwks_uri of the provider's metadata"
	case u.User != nil:
		return "a URL with a password ends up in logs; key sets are public, leave it out"
	case u.Fragment != "":
		return "a URL to fetch has no fragment; leave it out"
	}
	return ""
}
