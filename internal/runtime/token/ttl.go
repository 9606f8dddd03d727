package token

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// MaxTTL is the longest life of a token that is not asked for by force: one
// year of 365 days. A credential meant to last belongs in
// permanentServerTokens, where it can be taken back.
const MaxTTL = 365 * day

const day = 24 * time.Hour

// ErrTTLTooLong is matched by the error of a life above [MaxTTL].
var ErrTTLTooLong = errors.New("a token lives at most 1y")

// units of ParseTTL. Exact, so a year is 365 days and a day 24 hours.
var units = map[byte]time.Duration{
	's': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': day, 'w': 7 * day, 'y': 365 * day,
}

// ParseTTL reads the life of a token: digits and one unit, s, m, h, d, w or y,
// where a day has 24 hours and a year 365 days. Zero, signs, fractions, spaces
// and sums such as 1h30m are refused. Above MaxTTL the error matches
// ErrTTLTooLong and the duration is returned nevertheless, for a caller that
// is told to go on.
func ParseTTL(s string) (time.Duration, error) {
	const rule = "use digits and one of s, m, h, d, w, y, such as 45m or 30d"
	if len(s) < 2 {
		return 0, fmt.Errorf("%q is not the life of a token; %s", s, rule)
	}
	digits, last := s[:len(s)-1], s[len(s)-1]
	unit, ok := units[last]
	for i := range len(digits) {
		ok = ok && digits[i] >= '0' && digits[i] <= '9'
	}
	if !ok {
		return 0, fmt.Errorf("%q is not the life of a token; %s", s, rule)
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > math.MaxInt64/int64(unit) {
		return 0, fmt.Errorf("%q is more than a clock can hold; %s, at most 1y", s, rule)
	}
	if n == 0 {
		return 0, fmt.Errorf("%q would expire at once; %s", s, rule)
	}
	ttl := time.Duration(n) * unit
	if ttl > MaxTTL {
		return ttl, fmt.Errorf("%q is too long: %w", s, ErrTTLTooLong)
	}
	return ttl, nil
}
