package render

import (
	"fmt"
	"path"
	"strings"
)

// An option is a file, or a directory with all below it, that only some projects have.
type option struct {
	path string // exact, or ending in "/" for a directory
	when func(Data) bool
	to   string // what the file is called in the project; empty keeps path
}

// options is the whole choice of files; what no row names is in every project. Paths are destinations.
var options = []option{
	{path: ".github/workflows/", when: func(d Data) bool { return d.GitHub }},
	{path: ".github/dependabot.yml", when: func(d Data) bool { return d.GitHub }},
	{path: ".gitlab-ci.yml", when: func(d Data) bool { return d.GitLab }},
	{path: "Dockerfile", when: func(d Data) bool { return d.HTTP }},
	{path: ".dockerignore", when: func(d Data) bool { return d.HTTP }},
	{path: "deploy/", when: func(d Data) bool { return d.HTTP }},
	{path: "internal/docs/", when: func(d Data) bool { return d.Examples }},
	{path: "internal/notes/", when: func(d Data) bool { return d.Examples }},
	{path: "LICENSE.mit", to: "LICENSE", when: func(d Data) bool { return d.License == "mit" }},
	{path: "LICENSE.apache-2.0", to: "LICENSE", when: func(d Data) bool { return d.License == "apache-2.0" }},
}

// choose says what the file at path is called in the project of d, and whether it is there at all.
func choose(path string, d Data) (string, bool) {
	for _, o := range options {
		if covers(o.path, path) {
			if o.to != "" {
				path = o.to
			}
			return path, o.when(d)
		}
	}
	return path, true
}

// ownership is one row of the table of owners: a pattern as in [option], or one for [path.Match].
type ownership struct {
	pattern string
	owner   Owner
}

var owners = []ownership{
	{"main.go", Managed},
	{"embed.go", Managed},
	{"internal/project/", Managed}, // its version is the team's, the rest comes from the answers
	{"tests/", Managed},
	{"Dockerfile", Managed},
	{".*", Managed},
	{".github/", Managed},
	{"deploy/", Managed},
	{"docs/", Managed},
	{"AGENTS.md", Managed},
	{"CLAUDE.md", Managed},
	{"config/local.example.yaml", Managed},
	{"config/default.yaml", Seeded},
	{"internal/app/", Seeded},
	{"internal/config/", Seeded},
	{"internal/docs/", Seeded},
	{"internal/notes/", Seeded},
	{"internal/tools/", Seeded},
	{"internal/prompts/", Seeded},
	{"internal/resources/", Seeded},
	{"README.md", Seeded},
	{"CHANGELOG.md", Seeded},
	{"LICENSE", Seeded},
}

// ownerOf is the owner that exactly one row gives to the file at path.
func ownerOf(path string) (Owner, error) {
	var owner Owner
	for _, o := range owners {
		if !covers(o.pattern, path) {
			continue
		}
		if owner != "" {
			return "", fmt.Errorf("file %s has more than one row in the table of owners", path)
		}
		owner = o.owner
	}
	if owner == "" {
		return "", fmt.Errorf("file %s has no row in the table of owners", path)
	}
	return owner, nil
}

// executable reports whether the file at path has mode 0755. Templates cannot say it by their own mode: an embedded
// file has none.
func executable(name string) bool { return path.Ext(name) == ".sh" }

func covers(pattern, name string) bool {
	if strings.HasSuffix(pattern, "/") {
		return strings.HasPrefix(name, pattern)
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
