package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The tests run famcp as a program of its own: it is this test binary under
// another name, first on PATH.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"famcp": main})
}
