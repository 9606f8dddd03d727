package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-jose/go-jose/v4"
)

// Sizes of RSA keys: below, they can be broken; above, one check costs what an
// attacker would like it to.
const (
	minRSABits = 2048
	maxRSABits = 8192
	newRSABits = 3072 // NIST SP 800-57: good beyond 2030
)

const maxKeyFile = 64 << 10

// KeyPair is a private key with its public half.
type KeyPair struct {
	alg     Algorithm
	kid     string
	private crypto.Signer // *ecdsa.PrivateKey or *rsa.PrivateKey
}

// GenerateKeyPair makes a new key: P-256 for ES256, 3072 bits for RS256.
func GenerateKeyPair(alg Algorithm) (*KeyPair, error) {
	var private crypto.Signer
	var err error
	switch alg {
	case ES256:
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case RS256:
		private, err = rsa.GenerateKey(rand.Reader, newRSABits)
	default:
		return nil, fmt.Errorf("%q is not an algorithm; use ES256 or RS256", alg)
	}
	if err != nil {
		return nil, fmt.Errorf("making an %s key: %w", alg, err)
	}
	return newKeyPair(private, alg)
}

func newKeyPair(private crypto.Signer, alg Algorithm) (*KeyPair, error) {
	public, err := newVerifyKey(private.Public(), alg)
	if err != nil {
		return nil, err
	}
	return &KeyPair{alg: alg, kid: public.kid, private: private}, nil
}

// KeyID returns the RFC 7638 thumbprint of the public key, its kid.
func (k *KeyPair) KeyID() string { return k.kid }

// PrivatePEM returns the private key in PKCS #8.
func (k *KeyPair) PrivatePEM() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// PublicPEM returns the public key in the form of X.509 (PKIX).
func (k *KeyPair) PublicPEM() ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(k.private.Public())
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

// JWKS returns the JSON of a key set (RFC 7517) of the public key alone.
func (k *KeyPair) JWKS() ([]byte, error) { return k.set().public() }

func (k *KeyPair) set() *keySet {
	return &keySet{keys: []verifyKey{{kid: k.kid, alg: string(k.alg), key: k.private.Public()}}, anyKID: true}
}

// Names of the files of [KeyPair.Write].
const (
	PrivateKeyName = "private.pem"
	PublicKeyName  = "public.pem"
	JWKSName       = "jwks.json"
)

// Write puts the private key (mode 0600), the public key and the key set into
// dir, which is made with mode 0700 when absent. Unless overwrite, it writes
// nothing and returns an error matching fs.ErrExist when one of them is there.
func (k *KeyPair) Write(dir string, overwrite bool) error {
	private, err1 := k.PrivatePEM()
	public, err2 := k.PublicPEM()
	jwks, err3 := k.JWKS()
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	files := []struct {
		name string
		data []byte
		mode fs.FileMode
	}{
		{PrivateKeyName, private, 0o600},
		{PublicKeyName, public, 0o644},
		{JWKSName, append(jwks, '\n'), 0o644},
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		if _, err := os.Lstat(path); err == nil && !overwrite {
			return fmt.Errorf("%s: %w; tokens made with that key would stop working", path, fs.ErrExist)
		}
	}
	place := os.Link
	if overwrite {
		place = os.Rename
	}
	for _, f := range files {
		if err := writeFile(filepath.Join(dir, f.name), f.data, f.mode, place); err != nil {
			return err
		}
	}
	return nil
}

// writeFile puts a whole file in place at once: os.Rename replaces one that is
// there, os.Link does not.
func writeFile(path string, data []byte, mode fs.FileMode, place func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // which is gone when it was renamed
	_, err = f.Write(data)
	if err := errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return place(f.Name(), path)
}

// ReadKeyPair reads a private key of the algorithm from a PEM file, in PKCS #8,
// PKCS #1 or SEC 1.
func ReadKeyPair(path string, alg Algorithm) (*KeyPair, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		var key any
		switch block.Type {
		case "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		case "RSA PRIVATE KEY":
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		case "ENCRYPTED PRIVATE KEY":
			return nil, fmt.Errorf("%s is encrypted, and there is nobody to ask for its password; decrypt it", path)
		default:
			continue // such as EC PARAMETERS before the key
		}
		if err != nil {
			return nil, fmt.Errorf("%s holds no private key that can be read: %w", path, err)
		}
		private, ok := key.(crypto.Signer)
		if !ok {
			return nil, fmt.Errorf("%s holds a private key that signs nothing", path)
		}
		pair, err := newKeyPair(private, alg)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return pair, nil
	}
	return nil, fmt.Errorf("%s holds no private key in PEM", path)
}

// readPublicKey reads a public key of the algorithm from a PEM file.
func readPublicKey(path string, alg Algorithm) (verifyKey, error) {
	data, err := readFile(path)
	if err != nil {
		return verifyKey{}, err
	}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		var key any
		switch block.Type {
		case "PUBLIC KEY":
			key, err = x509.ParsePKIXPublicKey(block.Bytes)
		case "RSA PUBLIC KEY":
			key, err = x509.ParsePKCS1PublicKey(block.Bytes)
		case "CERTIFICATE":
			var cert *x509.Certificate
			if cert, err = x509.ParseCertificate(block.Bytes); err == nil {
				key = cert.PublicKey
			}
		default:
			if strings.HasSuffix(block.Type, "PRIVATE KEY") {
				return verifyKey{}, fmt.Errorf("%s holds a private key; a server that only checks tokens should not have it", path)
			}
			continue
		}
		if err != nil {
			return verifyKey{}, fmt.Errorf("%s holds no public key that can be read: %w", path, err)
		}
		public, err := newVerifyKey(key, alg)
		if err != nil {
			return verifyKey{}, fmt.Errorf("%s: %w", path, err)
		}
		return public, nil
	}
	return verifyKey{}, fmt.Errorf("%s holds no public key in PEM", path)
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxKeyFile {
		return nil, fmt.Errorf("%s is longer than 64 KiB and so no key", path)
	}
	return data, nil
}

// newVerifyKey ties a public key to the algorithm, which must be that of its
// class, and names it by its thumbprint.
func newVerifyKey(key any, alg Algorithm) (verifyKey, error) {
	class, err := classOf(key)
	if err != nil {
		return verifyKey{}, err
	}
	if class != alg {
		return verifyKey{}, fmt.Errorf("the key is one for %s, but the algorithm is %s; set the other algorithm or another key", class, alg)
	}
	sum, err := (&jose.JSONWebKey{Key: key}).Thumbprint(crypto.SHA256)
	if err != nil {
		return verifyKey{}, err
	}
	return verifyKey{kid: base64.RawURLEncoding.EncodeToString(sum), alg: string(alg), key: key}, nil
}

// classOf returns the one algorithm that a public key is used with here.
func classOf(key any) (Algorithm, error) {
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() {
			return "", fmt.Errorf("the key is on the curve %s; ES256 needs P-256", key.Curve.Params().Name)
		}
		return ES256, nil
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < minRSABits || bits > maxRSABits {
			return "", fmt.Errorf("the RSA key has %d bits; use 2048 to 8192", bits)
		}
		return RS256, nil
	default:
		return "", errors.New("the key is neither EC nor RSA")
	}
}

// public returns the JSON of the key set.
func (s *keySet) public() ([]byte, error) {
	var set jose.JSONWebKeySet
	for _, k := range s.keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.key, KeyID: k.kid, Algorithm: k.alg, Use: "sig"})
	}
	return json.Marshal(set)
}

// keyStore is the directory of the mode Embedded: one PEM file per algorithm.
type keyStore struct {
	dir string
	alg Algorithm
	log *slog.Logger

	mu   sync.Mutex
	pair *KeyPair // nil until loaded
	keys *keySet
}

// load returns the key, made when there is none yet. A failure is not
// remembered.
func (s *keyStore) load() (*KeyPair, *keySet, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pair == nil {
		pair, err := s.readOrMake()
		if err != nil {
			return nil, nil, fmt.Errorf("key of the mode embedded: %w", err)
		}
		s.pair, s.keys = pair, pair.set()
	}
	return s.pair, s.keys, nil
}

// readOrMake lets a server and famcp token that start together agree on one
// key: a hard link puts the whole file in place only where none is, in one
// step, so the second to come reads the key of the first. Unlike a lock file it
// leaves nothing behind when a process is killed.
func (s *keyStore) readOrMake() (*KeyPair, error) {
	path := filepath.Join(s.dir, strings.ToLower(string(s.alg))+".pem")
	if _, err := os.Stat(path); err == nil {
		return s.read(path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	pair, err := GenerateKeyPair(s.alg)
	if err != nil {
		return nil, err
	}
	data, err := pair.PrivatePEM()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	err = writeFile(path, data, 0o600, os.Link)
	if errors.Is(err, fs.ErrExist) {
		return s.read(path)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; keyStoragePath must be a writable directory on a file system with hard links", err)
	}
	s.log.Info("made a key for tokens", "file", path, "kid", pair.KeyID())
	return pair, nil
}

func (s *keyStore) read(path string) (*KeyPair, error) {
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		s.log.Warn("the key for tokens can be read by other users; chmod 600 it", "file", path)
	}
	return ReadKeyPair(path, s.alg)
}
