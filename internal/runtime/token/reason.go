package token

import (
	"errors"
	"fmt"
)

// Reason is why a token was refused: one of the constants, fit for a metric's
// label.
type Reason string

// The reasons a token is refused for.
const (
	ReasonMissing      Reason = "missing"       // there was no token
	ReasonMalformed    Reason = "malformed"     // not a token, too long, or a claim of the wrong type
	ReasonAlgorithm    Reason = "algorithm"     // alg is none, unknown or not of this mode
	ReasonUnknownKey   Reason = "unknown_key"   // no key of that kid and algorithm
	ReasonBadSignature Reason = "bad_signature" // the key did not make it
	ReasonSubject      Reason = "subject"       // no sub
	ReasonExpired      Reason = "expired"       // exp is past or absent
	ReasonNotYetValid  Reason = "not_yet_valid" // nbf is ahead
	ReasonAudience     Reason = "audience"      // made for another server
	ReasonIssuer       Reason = "issuer"        // made by another issuer
	ReasonIP           Reason = "ip"            // used from another address
	ReasonService      Reason = "service"       // made for other services
	ReasonRevoked      Reason = "revoked"       // by jti, token or user
	ReasonUnavailable  Reason = "unavailable"   // keys cannot be had now: the server's trouble, HTTP 503
)

// Reasons lists all of them.
func Reasons() []Reason {
	return []Reason{
		ReasonMissing, ReasonMalformed, ReasonAlgorithm, ReasonUnknownKey, ReasonBadSignature, ReasonSubject, ReasonExpired,
		ReasonNotYetValid, ReasonAudience, ReasonIssuer, ReasonIP, ReasonService, ReasonRevoked, ReasonUnavailable,
	}
}

// Error is a refusal.
type Error struct {
	Reason Reason
	Text   string // safe to show to the caller: nothing of the token, no address of a provider
	Cause  error  // for the log, of ReasonUnavailable only; may be nil
}

// Error returns the text for the caller; the cause is not part of it.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// ReasonOf returns the reason of err, and "" for nil or a foreign error.
func ReasonOf(err error) Reason {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

func fail(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Text: fmt.Sprintf(format, args...)}
}

// ConfigError is a reason not to start.
type ConfigError struct {
	Key     string // below webServer.auth.jwtToken, such as jwksUri
	Problem string // what is wrong and what to do; holds no secret
}

func (e *ConfigError) Error() string { return e.Key + ": " + e.Problem }

func refuse(key, format string, args ...any) error {
	return &ConfigError{Key: key, Problem: fmt.Sprintf(format, args...)}
}
