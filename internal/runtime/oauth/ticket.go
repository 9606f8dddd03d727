package oauth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// tickets carry an authorization request through the consent page: what is
// agreed to is what was checked and shown, and this server keeps nothing for a
// page that nobody answers.
type tickets struct{ key []byte }

func newTickets() tickets {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	return tickets{key}
}

type ticket struct {
	Request request `json:"q"`
	Expires int64   `json:"e"` // Unix seconds
}

func (t tickets) sum(body string) string {
	mac := hmac.New(sha256.New, t.key)
	mac.Write([]byte(body))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (t tickets) seal(req request) string {
	raw, err := json.Marshal(ticket{req, time.Now().Add(ticketLife).Unix()})
	if err != nil {
		return "" // strings and lists of them always marshal
	}
	body := base64.RawURLEncoding.EncodeToString(raw)
	return body + "." + t.sum(body)
}

func (t tickets) open(sealed string) (request, bool) {
	body, sum, _ := strings.Cut(sealed, ".")
	if !hmac.Equal([]byte(sum), []byte(t.sum(body))) {
		return request{}, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(body)
	var tk ticket
	if err != nil || json.Unmarshal(raw, &tk) != nil || time.Now().Unix() >= tk.Expires {
		return request{}, false
	}
	return tk.Request, true
}
