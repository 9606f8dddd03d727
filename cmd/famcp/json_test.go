package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Programs read these documents: fields keep their meaning, adding some is
// fine, and removing or renaming one breaks somebody.
func TestJSONFields(t *testing.T) {
	planned := strings.Fields(`
		answers answers.author answers.auth answers.ci answers.description answers.examples answers.issuer answers.jwksUri answers.license
		answers.module answers.name answers.port answers.runtime answers.title answers.transport
		command dryRun files files.bytes files.mode files.owner files.path
		git git.branch git.commit git.hint git.repository next schema
		target target.dir target.state versions versions.famcp versions.go versions.runtime versions.sdk`)
	tests := []struct {
		name string
		args string
		in   string // below where the first project is made
		want []string
	}{
		{name: "new", args: "new demo --json", want: planned},
		{name: "dry run", args: "new other --json --dry-run", want: planned},
		{name: "add", args: "add tool x --risk read-only --description x --json", in: "demo", want: strings.Fields(`
			dir dryRun files files.change files.path kind name notes registration registration.file registration.line schema`)},
		{name: "add, dry run", args: "add tool y --risk read-only --description y --json --dry-run", in: "demo", want: strings.Fields(`
			dir dryRun files files.change files.path kind name notes patch registration registration.file registration.line schema`)},
		{name: "version", args: "version --json", want: strings.Fields("arch commit go os schema version")},
	}
	dir := t.TempDir()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := exec.Command("famcp", strings.Fields(tt.args)...)
			c.Dir = filepath.Join(dir, tt.in)
			c.Stderr = new(bytes.Buffer)
			out, err := c.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, c.Stderr)
			}
			var doc map[string]any
			if err := json.Unmarshal(out, &doc); err != nil {
				t.Fatalf("%v in %s", err, out)
			}
			want := slices.Sorted(slices.Values(tt.want))
			if diff := cmp.Diff(want, fields("", doc)); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
			if doc["schema"] != 1.0 {
				t.Errorf("schema = %v, want 1", doc["schema"])
			}
		})
	}
}

// fields are the paths of all members of a document, sorted; the elements of
// an array count as one.
func fields(prefix string, doc any) []string {
	var paths []string
	switch doc := doc.(type) {
	case map[string]any:
		for name, value := range doc {
			paths = append(paths, prefix+name)
			paths = append(paths, fields(prefix+name+".", value)...)
		}
	case []any:
		for _, value := range doc {
			paths = append(paths, fields(prefix, value)...)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}
