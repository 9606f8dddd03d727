package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/famcp/famcp/internal/scaffold"
	"github.com/famcp/famcp/internal/scaffold/overlay"
	"github.com/famcp/famcp/internal/testkit"
)

// olderFamcp makes projects as an older famcp did.
type olderFamcp struct {
	t     *testing.T
	older testkit.Older
}

func newOlderFamcp(t *testing.T) *olderFamcp {
	return &olderFamcp{t, testkit.OlderFamcp(t)}
}

// project makes a project with the default answers, and commits it.
func (f *olderFamcp) project(dir, name string) error { return f.teamProject(dir, name, nil) }

// teamProject makes one with the team's own template over famcp's.
func (f *olderFamcp) teamProject(dir, name string, team *overlay.Tree) error {
	plan, err := scaffold.PlanNew(f.t.Context(), scaffold.NewOptions{
		Dir:       dir,
		Answers:   scaffold.Defaults(name, scaffold.Release{}),
		Templates: f.older.Templates,
		Overlay:   team,
		Runtime:   f.older.Runtime,
		Release:   scaffold.Release{Version: f.older.Version},
		Git:       true,
		Env: func(name string) string {
			return map[string]string{
				"GIT_CONFIG_NOSYSTEM": "1",
				"GIT_AUTHOR_NAME":     "Gopher", "GIT_AUTHOR_EMAIL": "gopher@example.com",
				"GIT_COMMITTER_NAME": "Gopher", "GIT_COMMITTER_EMAIL": "gopher@example.com",
			}[name]
		},
		Now: time.Now,
	})
	if err != nil {
		return err
	}
	var mod, sum int
	for i, file := range plan.Files {
		switch file.Path {
		case "go.mod":
			mod = i
		case "go.sum":
			sum = i
		}
	}
	plan.Files[mod].Data, plan.Files[sum].Data = f.older.Modules(f.t, plan.Files[mod].Data, plan.Files[sum].Data)
	_, err = plan.Apply(f.t.Context(), nil)
	return err
}

// script is the command "older DIR [TEMPLATE]" of scripts.
func (f *olderFamcp) script(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: older dir [template]")
	}
	var team *overlay.Tree
	if len(args) == 2 {
		var err error
		team, err = overlay.Fetch(f.t.Context(), ts.MkAbs(args[1]))
		ts.Check(err)
	}
	ts.Check(f.teamProject(ts.MkAbs(args[0]), "demo", team))
}

// edit is the command "edit FILE OLD NEW" of scripts: it replaces the one place
// where OLD is in FILE. \n and \r in both stand for what they do in Go.
func edit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: edit file old new")
	}
	name := ts.MkAbs(args[0])
	data, err := os.ReadFile(name)
	ts.Check(err)
	text, err := replaceOnce(string(data), args[1], args[2])
	ts.Check(err)
	info, err := os.Stat(name)
	ts.Check(err)
	ts.Check(os.WriteFile(name, []byte(text), info.Mode()))
}

func replaceOnce(text, old, now string) (string, error) {
	escapes := strings.NewReplacer(`\n`, "\n", `\r`, "\r")
	old, now = escapes.Replace(old), escapes.Replace(now)
	if n := strings.Count(text, old); n != 1 {
		return "", fmt.Errorf("%q is there %d times, want once", old, n)
	}
	return strings.Replace(text, old, now, 1), nil
}
