package invoke

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// state is what a client carries between the rounds of one request
// (multi round-trip requests, 2026-07-28). It leaves the process sealed.
type state struct {
	Expires  int64                      `json:"e"` // Unix seconds
	Round    int                        `json:"r"`
	Answers  map[string]json.RawMessage `json:"a,omitempty"`
	Kept     map[string]json.RawMessage `json:"k,omitempty"`
	Progress float64                    `json:"p,omitempty"`
}

// sealer encrypts and authenticates state with AES-256-GCM. The binding (who
// asked for what) is the additional data, so a state opens only for the
// request that it belongs to. It is safe for concurrent use.
type sealer struct {
	aead cipher.AEAD
	ttl  time.Duration
	max  int // bytes of sealed text
	now  func() time.Time
}

func newSealer(secret string, ttl time.Duration, maxBytes int, now func() time.Time) (*sealer, error) {
	key := make([]byte, 32)
	if secret == "" {
		_, _ = rand.Read(key) // never fails since Go 1.24
	} else {
		var err error
		if key, err = hkdf.Key(sha256.New, []byte(secret), nil, "famcp request state v1", len(key)); err != nil {
			return nil, fmt.Errorf("deriving the key of mcp.mrtr.stateSecret: %w", err)
		}
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return &sealer{aead: aead, ttl: ttl, max: maxBytes, now: now}, nil
}

func (s *sealer) seal(st state, binding []byte) (string, error) {
	st.Expires = s.now().Add(s.ttl).Unix()
	plain, err := json.Marshal(st)
	if err != nil {
		return "", err
	}
	nonce := make([]byte, s.aead.NonceSize())
	_, _ = rand.Read(nonce)
	text := base64.RawURLEncoding.EncodeToString(s.aead.Seal(nonce, nonce, plain, binding))
	if s.max > 0 && len(text) > s.max {
		return "", &Fault{Kind: Internal, Cause: fmt.Errorf(
			"request state of %d bytes is over mcp.mrtr.maxStateBytes (%d): keep less between rounds or raise the key", len(text), s.max)}
	}
	return text, nil
}

var (
	errStateForged  = errors.New("requestState does not belong to this request; send back the value of the latest answer unchanged")
	errStateExpired = errors.New("requestState has expired; start the request again without it")
)

func (s *sealer) open(text string, binding []byte) (state, error) {
	var st state
	if s.max > 0 && len(text) > s.max {
		return st, errStateForged
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) < s.aead.NonceSize() {
		return st, errStateForged
	}
	n := s.aead.NonceSize()
	plain, err := s.aead.Open(nil, raw[:n], raw[n:], binding)
	if err != nil || json.Unmarshal(plain, &st) != nil {
		return state{}, errStateForged
	}
	if s.now().Unix() > st.Expires {
		return state{}, errStateExpired
	}
	return st, nil
}

// binding names a request: its subject, method, target and arguments. Equal
// JSON gives an equal binding whatever its white space and member order.
func binding(subject, method, name string, args json.RawMessage) []byte {
	h := sha256.New()
	for _, s := range []string{subject, method, name} {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	h.Write(canonical(args))
	return h.Sum(nil)
}

func canonical(raw json.RawMessage) []byte {
	if len(raw) == 0 || string(raw) == "null" {
		return []byte("{}")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return raw
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}
