package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/famcp/famcp/internal/scaffold/gomod"
	"github.com/famcp/famcp/internal/testkit"
)

// additions are run one after the other in a project, from any of its directories.
var additions = []struct {
	dir  string
	args []string
}{
	{".", []string{
		"tool", "lookup_order", "--description", "Looks up an order.", "--risk", "read-only", "--closed-world",
		"--field", "id:string:Id of the order.", "--field", "state:open|closed?:Which ones", "--field", "max_lines:int?:Most lines.",
		"--field", "ratio:number:Share.", "--field", "dry:bool?:Changes nothing.", "--field", "tags:[]string?:Tags.",
	}},
	{"internal/app", []string{
		"tool", "erase_windows", "--title", `It's "quoted" {{ .x }} [[ .y ]]`, "--description", "`rm` \"it\" {{ .x }} $HOME \\n %d */ // ünï", "--risk", "high",
		"--side-effects", "It's `gone`; {{ \"all\" }} of it", "--scope", "files:erase", "--scope", "x", "--field", "path:string:A `path` \"quoted\" with \\.",
	}},
	{"tests", []string{"tool", "build", "--description", "Builds.", "--risk", "medium", "--side-effects", "A file appears.", "--additive", "--idempotent"}},
	{"config", []string{"tool", "call", "--description", "Calls.", "--risk", "low", "--side-effects", "A phone rings."}},
	{"docs", []string{
		"prompt", "review_text", "--description", "Review it \"well\" with `{{ .care }}` 100%.", "--scope", "y",
		"--field", "text:string:Text to review.", "--field", "focus:style|facts:What to look at", "--field", "tone:string?:How.",
	}},
	{".", []string{"prompt", "hello", "--description", "Say hello."}},
	{".", []string{"resource", "opening_hours", "--description", "When it is open.", "--scope", "z"}},
	{"internal/resources", []string{
		"resource", "order", "--uri", "orders://{customer}/{order_id}", "--mime", "application/json", "--description", "One order.",
		"--field", "order_id:string:Id of the `order`.",
	}},
}

// What is added leaves a project whose tests are green, in both eras, with and without the starters.
func TestAddedFeatures(t *testing.T) {
	for _, examples := range []string{"--examples", "--no-examples"} {
		t.Run(examples, func(t *testing.T) {
			if examples == "--examples" { // the other tree differs in what is there already
				long(t)
			}
			p := project{dir: filepath.Join(t.TempDir(), "shop"), env: offline(t)}
			p.make(t, "famcp", examples, "--runtime", "vendored", "--no-git", "--yes")
			// The runtime of the checkout is compiled already.
			p.run(t, "go", "mod", "edit", "-replace", gomod.Runtime+"="+testkit.Checkout(t))
			for _, a := range additions {
				before := p.files(t)
				at := project{dir: filepath.Join(p.dir, filepath.FromSlash(a.dir)), env: p.env}
				patch := at.run(t, "famcp", append([]string{"add"}, append(a.args, "--dry-run")...)...)
				if diff := changed(before, p.files(t)); diff != nil {
					t.Fatalf("a dry run of %q changed %q", a.args, diff)
				}
				if _, err := exec.LookPath("git"); err == nil {
					check := p.command(t.Context(), "git", "apply", "--check", "-")
					check.Stdin = strings.NewReader(patch)
					check.Env = append(check.Env, "GIT_CEILING_DIRECTORIES="+filepath.Dir(p.dir))
					if out, err := check.CombinedOutput(); err != nil {
						t.Errorf("git apply --check: %v\n%s\n%s", err, out, patch)
					}
				}
				at.run(t, "famcp", append([]string{"add"}, a.args...)...)
				files := p.files(t)
				if err := checkGo(files); err != nil {
					t.Error(err)
				}
				again := at.command(t.Context(), "famcp", append([]string{"add"}, a.args...)...)
				out, err := again.CombinedOutput()
				if again.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "must not be ") {
					t.Errorf("again: %v\n%s", err, out)
				}
				if diff := changed(files, p.files(t)); diff != nil {
					t.Errorf("a refusal changed %q", diff)
				}
			}
			p.run(t, "go", "vet", "./...")
			p.run(t, "go", "test", "./...")
			out := p.run(t, "go", "run", ".", "tools")
			for _, name := range []string{"lookup_order", "erase_windows", "build", "call"} {
				if !strings.Contains(out, name) {
					t.Errorf("the server does not list %s:\n%s", name, out)
				}
			}
		})
	}
}

// changed are the names of the files that differ.
func changed(before, after map[string]string) []string {
	var names []string
	for name, text := range after {
		if was, ok := before[name]; !ok || was != text {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}

func checkGo(files map[string]string) error {
	for name, text := range files {
		if strings.HasSuffix(name, ".go") {
			if err := checkFile(name, text); err != nil {
				return &os.PathError{Op: "checking", Path: name, Err: err}
			}
		}
	}
	return nil
}
