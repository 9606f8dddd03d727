package call

import "context"

// Identity is who a request comes from.
type Identity struct {
	Subject string
	Scopes  []string
	Claims  map[string]any // not to be changed; nil for none
}

type identityKey struct{}

// Assume returns a context for an HTTP request, or for a connection within this
// process, that shall count as coming from id, whatever credentials it has. A
// client cannot: contexts are made in the server's process.
func Assume(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, id)
}

// Assumed returns the identity given to [Assume], if any.
func Assumed(ctx context.Context) (Identity, bool) {
	id, ok := ctx.Value(identityKey{}).(Identity)
	return id, ok
}

// Testing is an argument of what the root package exports for package
// famcptest only: other modules cannot name it.
type Testing struct{}
