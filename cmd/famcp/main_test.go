package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The tests run famcp as a program of its own: it is this test binary under
// another name, first on PATH. Released is what the linker makes of it in a
// release, so that projects can refer to the runtime as a module; nobody has
// published that version, so nothing can be built with it.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"famcp": main, "famcp-released": func() {
		version, sum = "v1.2.3", "h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
		main()
	}})
}
