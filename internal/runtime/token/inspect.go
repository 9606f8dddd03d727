package token

import "time"

// Inspection is what a token holds, believed or not.
type Inspection struct {
	Header   map[string]any
	Claims   *Claims
	Problems []*Error // what would keep it from being accepted, the signature apart
}

// Inspect decodes raw without checking its signature. Its problems are those
// that need no configuration: times without skew, a missing subject, alg none.
// The error is that of a token that cannot be decoded.
func Inspect(raw string) (*Inspection, error) {
	in, err := decode(raw, []string{algHS256, string(ES256), string(RS256)})
	if err != nil {
		return nil, err
	}
	in.Problems = append(in.Problems, timeProblems(in.Claims, 0, time.Now())...)
	return in, nil
}

// Inspect decodes raw without checking its signature; its problems are those of
// [Tokens.Verify], which checks the signature.
func (t *Tokens) Inspect(raw string, facts Facts) (*Inspection, error) {
	in, err := decode(raw, t.algs)
	if err != nil {
		return nil, err
	}
	in.Problems = append(in.Problems, t.problems(in.Claims, facts, time.Now())...)
	return in, nil
}

func decode(raw string, algs []string) (*Inspection, error) {
	if raw == "" {
		return nil, fail(ReasonMissing, "there is no token")
	}
	p, err := parse(raw)
	if err != nil {
		return nil, err
	}
	in := &Inspection{Header: p.header, Claims: p.claims}
	if !contains(algs, p.alg) {
		in.Problems = append(in.Problems, fail(ReasonAlgorithm, "the token's algorithm is not one that is accepted"))
	}
	return in, nil
}
