package main

import "embed"

// The binary works from any directory: clients start stdio servers wherever they like.
var (
	//go:embed config/default.yaml
	defaultConfig []byte

	// documents are served as resources.
	//go:embed README.md docs
	documents embed.FS
)
