// Package config holds the settings of this server: those of the runtime and the project's own.
package config

import "github.com/famcp/famcp"

// Config is the whole configuration. The layers it is read from are described in docs/configuration.md.
type Config struct {
	famcp.Config `yaml:",inline"`
	App          App `yaml:"app"`
}

// App is the section app.
type App struct {
	MaxHits int `yaml:"maxHits" default:"10" min:"1" max:"100" doc:"Most hits search_docs returns."`
}
