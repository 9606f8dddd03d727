package tests

import "testing"

// A server that cannot be built fails here first, with nothing else around it.
func TestBuild(t *testing.T) {
	if build(t) == nil {
		t.Fatal("there is no server")
	}
}
