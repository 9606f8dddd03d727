// Package config holds the settings of this server: those of the runtime and the project's own.
package config

import "github.com/famcp/famcp"

// Config is the whole configuration. The layers it is read from are described in docs/configuration.md.
type Config struct {
	famcp.Config `yaml:",inline"`
	App          App `yaml:"app"`
}

// App is the section app. Its fields are described in docs/configuration.md too.
type App struct{}
