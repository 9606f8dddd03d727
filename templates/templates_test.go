package templates_test

import (
	"io/fs"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp/templates"
)

// The embed directive drops a nested module and, without "all:", dotfiles, and says nothing.
func TestEmbedHoldsEveryFile(t *testing.T) {
	for _, tree := range []string{"project", "bare"} {
		want := list(t, os.DirFS("."), tree)
		got := list(t, templates.FS(), tree)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-disk +embedded):\n%s", tree, diff)
		}
		if len(got) == 0 {
			t.Errorf("%s holds no files", tree)
		}
	}
}

func list(t *testing.T, fsys fs.FS, root string) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(fsys, root, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
