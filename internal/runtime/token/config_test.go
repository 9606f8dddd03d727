package token

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// refused returns the keys of the ConfigErrors joined in err.
func refused(err error) []string {
	if err == nil {
		return nil
	}
	list := []error{err}
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		list = j.Unwrap()
	}
	var keys []string
	for _, e := range list {
		var c *ConfigError
		if errors.As(e, &c) {
			keys = append(keys, c.Key)
		} else {
			keys = append(keys, "not a ConfigError: "+e.Error())
		}
	}
	return keys
}

func TestRefusals(t *testing.T) {
	publicPEM := func(key any) string {
		der, err := x509.MarshalPKIXPublicKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return writeTo(t, "public.pem", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	private, err := ecKey().PrivatePEM()
	if err != nil {
		t.Fatal(err)
	}
	privateFile := writeTo(t, "private.pem", private)

	hs := func(change func(*Config)) Config { c := secretConfig(); change(&c); return c }
	local := func(change func(*Config)) Config { c := localConfig(t, ecKey()); change(&c); return c }
	remote := func(change func(*Config)) Config { c := remoteConfig(nil); change(&c); return c }

	tests := []struct {
		name string
		cfg  Config
		want []string
	}{
		{"hs256", secretConfig(), nil},
		{"no mode", hs(func(c *Config) { c.Mode = "" }), nil},
		{"alias", hs(func(c *Config) { c.Mode = LegacyAESCTR }), nil},
		{"local", localConfig(t, ecKey()), nil},
		{"remote", remoteConfig(nil), nil},
		{"secret of 32 bytes", hs(func(c *Config) { c.Secret = []byte(testSecret[:32]) }), nil},
		{"skew of 60 s", hs(func(c *Config) { c.Skew = time.Minute }), nil},
		{"no skew", hs(func(c *Config) { c.Skew = 0 }), nil},

		{"unknown mode", hs(func(c *Config) { c.Mode = "rot13" }), []string{"mode"}},
		{"unknown algorithm", local(func(c *Config) { c.Algorithm = "HS256" }), []string{"algorithm"}},
		{"no secret", hs(func(c *Config) { c.Secret = nil }), []string{"encryptKey"}},
		{"secret of 31 bytes", hs(func(c *Config) { c.Secret = []byte(testSecret[:31]) }), []string{"encryptKey"}},
		{"placeholder", hs(func(c *Config) { c.Secret = []byte("changeme-changeme-changeme-changeme") }), []string{"encryptKey"}},
		{"placeholder in brackets", hs(func(c *Config) { c.Secret = []byte("<at least thirty-two random bytes>") }), []string{"encryptKey"}},
		{"unexpanded variable", hs(func(c *Config) { c.Secret = []byte("${WS_TOKEN_ENCRYPT_KEY_OF_THE_SERVER}") }), []string{"encryptKey"}},
		{"repeated secret", hs(func(c *Config) { c.Secret = bytes.Repeat([]byte("abc"), 20) }), []string{"encryptKey"}},
		{"skew above 60 s", hs(func(c *Config) { c.Skew = time.Minute + 1 }), []string{"clockSkew"}},
		{"negative skew", hs(func(c *Config) { c.Skew = -1 }), []string{"clockSkew"}},
		{"cache above 10 min", remote(func(c *Config) { c.CacheTTL = 10*time.Minute + 1 }), []string{"jwksCacheTtl"}},
		{"negative cool-down", remote(func(c *Config) { c.Cooldown = -1 }), []string{"jwksCooldown"}},
		{"life above a year", hs(func(c *Config) { c.DefaultTTL = MaxTTL + 1 }), []string{"defaultTtl"}},
		{"nothing to accept", hs(func(c *Config) { c.ServerName = "" }), []string{"expectedAudience"}},
		{"empty audience", hs(func(c *Config) { c.ExpectedAudience = []string{""} }), []string{"expectedAudience"}},
		{"issuers differ", local(func(c *Config) { c.Issuer = "https://other.test" }), []string{"issuer"}},

		{"embedded without directory", Config{Mode: Embedded, ServerName: "s", ExpectedIssuer: "i"}, []string{"keyStoragePath"}},
		{"embedded without issuer", Config{Mode: Embedded, ServerName: "s", KeyDir: "keys"}, []string{"expectedIssuer"}},
		{"local without public key", local(func(c *Config) { c.PublicKeyFile = "" }), []string{"publicKeyPath"}},
		{"local with only the private key", local(func(c *Config) { c.PublicKeyFile, c.PrivateKeyFile = "", privateFile }), []string{"publicKeyPath"}},
		{"local without issuer", local(func(c *Config) { c.ExpectedIssuer = "" }), []string{"expectedIssuer"}},
		{"local, no such file", local(func(c *Config) { c.PublicKeyFile += "x" }), []string{"publicKeyPath"}},
		{"local, not PEM", local(func(c *Config) { c.PublicKeyFile = writeTo(t, "x.pem", []byte("hello")) }), []string{"publicKeyPath"}},
		{"local, key of the other class", local(func(c *Config) { c.Algorithm = RS256 }), []string{"publicKeyPath"}},
		{"local, other curve", local(func(c *Config) { c.PublicKeyFile = publicPEM(p384.Public()) }), []string{"publicKeyPath"}},
		{"local, small RSA", local(func(c *Config) { c.Algorithm, c.PublicKeyFile = RS256, publicPEM(small.Public()) }), []string{"publicKeyPath"}},
		{"local, private key as public", local(func(c *Config) { c.PublicKeyFile = privateFile }), []string{"publicKeyPath"}},
		{"local, halves of two pairs", local(func(c *Config) {
			c.PublicKeyFile, c.PrivateKeyFile = publicPEM(otherECKey().private.Public()), privateFile
		}), []string{"privateKeyPath"}},
		{"remote without URL", remote(func(c *Config) { c.JWKSURL = "" }), []string{"jwksUri"}},
		{"remote with a file", remote(func(c *Config) { c.JWKSURL = "file:///etc/passwd" }), []string{"jwksUri"}},
		{"remote, relative", remote(func(c *Config) { c.JWKSURL = "/keys" }), []string{"jwksUri"}},
		{"remote, password", remote(func(c *Config) { c.JWKSURL = "https://u:p@id.test/keys" }), []string{"jwksUri"}},
		{"remote without issuer", remote(func(c *Config) { c.ExpectedIssuer = "" }), []string{"expectedIssuer"}},
		{"all at once", remote(func(c *Config) { c.JWKSURL, c.ExpectedIssuer, c.Skew = "", "", time.Hour }), []string{"expectedIssuer", "jwksUri", "clockSkew"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(tt.cfg)
			if got := refused(err); !slices.Equal(got, tt.want) {
				t.Errorf("New refused %q (%v), want %q", got, err, tt.want)
			}
			if err != nil && len(tt.cfg.Secret) > 0 && strings.Contains(err.Error(), string(tt.cfg.Secret)) {
				t.Errorf("the error %q repeats the secret", err)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	tests := []struct {
		name       string
		cfg        Config
		production bool
		want       string
	}{
		{"hs256 in production", secretConfig(), true, "SECURITY: tokens are signed with a shared secret"},
		{"hs256 in development", secretConfig(), false, ""},
		{"plain http in production", func() Config { c := remoteConfig(nil); c.JWKSURL = "http://id.test/k"; return c }(), true, "SECURITY: the key set"},
		{"https in production", remoteConfig(nil), true, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			tt.cfg.Production, tt.cfg.Logger = tt.production, slog.New(slog.NewTextHandler(&log, nil))
			newTokens(t, tt.cfg)
			if got := log.String(); (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("log = %q, want %q in it", got, tt.want)
			}
			if strings.Contains(log.String(), testSecret) {
				t.Error("the log holds the secret")
			}
		})
	}
}

func TestReadKeyPairForms(t *testing.T) {
	ec := ecKey().private.(*ecdsa.PrivateKey)
	sec1, err := x509.MarshalECPrivateKey(ec)
	if err != nil {
		t.Fatal(err)
	}
	parameters := pem.EncodeToMemory(&pem.Block{Type: "EC PARAMETERS", Bytes: []byte{6, 8, 42, 134, 72, 206, 61, 3, 1, 7}})
	pkcs1 := x509.MarshalPKCS1PrivateKey(rsaKey().private.(*rsa.PrivateKey))
	pkcs8, err := ecKey().PrivatePEM()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		data []byte
		alg  Algorithm
		want string // kid, or a part of the error
	}{
		{"PKCS 8", pkcs8, ES256, ecKey().KeyID()},
		{"SEC 1 of openssl ecparam", append(parameters, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: sec1})...), ES256, ecKey().KeyID()},
		{"PKCS 1", pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: pkcs1}), RS256, rsaKey().KeyID()},
		{"other class", pkcs8, RS256, "is one for ES256"},
		{"encrypted", pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte{1}}), ES256, "decrypt it"},
		{"broken", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte{1}}), ES256, "no private key that can be read"},
		{"long", bytes.Repeat([]byte{'\n'}, maxKeyFile+1), ES256, "longer than 64 KiB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pair, err := ReadKeyPair(writeTo(t, "k.pem", tt.data), tt.alg)
			var got string
			if err != nil {
				got = err.Error()
			} else {
				got = pair.KeyID()
			}
			if !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCertificateAsPublicKey(t *testing.T) {
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, ecKey().private.Public(), ecKey().private)
	if err != nil {
		t.Fatal(err)
	}
	cfg := localConfig(t, ecKey())
	cfg.PublicKeyFile = filepath.Join(t.TempDir(), "cert.pem")
	if err := os.WriteFile(cfg.PublicKeyFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	wantReason(t, newTokens(t, cfg), by(t, ecKey(), "", nil), "")
}
