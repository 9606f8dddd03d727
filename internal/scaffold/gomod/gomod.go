// Package gomod makes go.mod and go.sum of a project and of the runtime vendored in it.
//
// Both are complete: go mod tidy would need more modules than a build does, and fail offline. So they are made once,
// when famcp is developed, and only filled in here; the package's test makes them anew and compares.
package gomod

import (
	_ "embed"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

const (
	// GoVersion is the language version of a generated project: the oldest that the runtime supports, whatever Go
	// built famcp.
	GoVersion = "1.26"
	// Runtime is the module path of the runtime.
	Runtime = "github.com/famcp/famcp"
	// VendorDir is where a project keeps a vendored runtime, slash-separated.
	VendorDir = "third_party/famcp"
)

var (
	//go:embed data/vendored.mod
	vendoredMod string
	//go:embed data/vendored.sum
	vendoredSum string
	//go:embed data/module.mod
	moduleMod string
	//go:embed data/module.sum
	moduleSum string
	//go:embed data/runtime.mod
	runtimeMod string
	//go:embed data/runtime.sum
	runtimeSum string
)

// Files are a go.mod and the go.sum that belongs to it.
type Files struct{ Mod, Sum []byte }

// VendoredRuntime are the files of the module in [VendorDir].
func VendoredRuntime() Files {
	return Files{[]byte(runtimeMod), []byte(runtimeSum)}
}

// Vendored are the files of a project whose runtime lies in [VendorDir]; version is the runtime's and may be empty.
func Vendored(path, version string) (Files, error) {
	mod, err := fill(vendoredMod, path, version)
	return Files{mod, []byte(vendoredSum)}, err
}

// Module are the files of a project that refers to version of the runtime as a module; sums are its go.sum lines.
func Module(path, version string, sums []string) (Files, error) {
	mod, err := fill(moduleMod, path, version)
	if err != nil {
		return Files{}, err
	}
	lines := strings.SplitAfter(moduleSum, "\n")
	at := slices.IndexFunc(lines, func(line string) bool { return line > Runtime || line == "" })
	for i, sum := range sums {
		lines = slices.Insert(lines, at+i, strings.TrimSpace(sum)+"\n")
	}
	return Files{mod, []byte(strings.Join(lines, ""))}, nil
}

// Requirements are the module paths that the go.mod of a project requires; none of them can be the project's own.
func Requirements() []string {
	f, err := modfile.Parse("go.mod", []byte(moduleMod), nil)
	if err != nil {
		panic(err) // the data is made by the package's test
	}
	paths := make([]string, len(f.Require))
	for i, r := range f.Require {
		paths[i] = r.Mod.Path
	}
	return paths
}

// fill puts path and version into the go.mod of a project.
func fill(text, path, version string) ([]byte, error) {
	f, err := modfile.Parse("go.mod", []byte(text), nil)
	if err != nil {
		return nil, err
	}
	if err := f.AddModuleStmt(path); err != nil {
		return nil, err
	}
	if err := f.AddRequire(Runtime, requirement(version)); err != nil {
		return nil, err
	}
	return f.Format()
}

// requirement is version as a go.mod can name it: a build without one, or with a local suffix such as +dirty, is
// never fetched, but the syntax wants a version.
func requirement(version string) string {
	if v := semver.Canonical(version); v != "" {
		return v
	}
	return "v0.0.0"
}
