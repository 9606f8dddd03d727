package main_test

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/famcp/famcp/cmd/famcp/internal/cli"
	"github.com/famcp/famcp/cmd/famcp/internal/iostreams"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"famcp": famcp})
}

func famcp() {
	os.Exit(cli.Main(os.Args[1:], &cli.App{
		IO: iostreams.System(os.Getenv),
		Templates: fstest.MapFS{
			"project/README.md.tmpl": {Data: []byte("# [[.Title]]\n")},
			"project/main.go":        {Data: []byte("package main\n\nfunc main() {}\n")},
			"bare/README.md.tmpl":    {Data: []byte("# [[.Title]]\n")},
		},
		Runtime: fstest.MapFS{},
		Getenv:  os.Getenv,
	}))
}
