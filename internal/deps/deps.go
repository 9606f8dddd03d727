// Package deps holds requirements until their users import them.
package deps

import (
	_ "github.com/Masterminds/sprig/v3"
	_ "github.com/charmbracelet/huh"
	_ "github.com/go-git/go-git/v5"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/google/jsonschema-go/jsonschema"
	_ "github.com/modelcontextprotocol/go-sdk/mcp"
	_ "github.com/pelletier/go-toml/v2"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/spf13/cobra"
	_ "github.com/yosida95/uritemplate/v3"
	_ "go.yaml.in/yaml/v3"
	_ "golang.org/x/mod/modfile"
	_ "golang.org/x/mod/module"
	_ "golang.org/x/term"
	_ "github.com/creack/pty"
	_ "golang.org/x/sync/errgroup"
)
