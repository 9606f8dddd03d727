package render

import (
	"fmt"
	"strings"

	"golang.org/x/mod/module"

	"github.com/famcp/famcp/internal/scaffold/gomod"
)

// maxPathBytes bounds a path of a team's template.
const maxPathBytes = 200

// CheckPath refuses a path, slash-separated and relative to the project, that no template may have: one that leads out
// of it or is not portable, and those that are famcp's, git's or a machine's own.
func CheckPath(name string) error {
	if len(name) > maxPathBytes {
		return fmt.Errorf("path %.40q… is longer than %d bytes; shorten it", name, maxPathBytes)
	}
	if err := module.CheckFilePath(name); err != nil {
		return fmt.Errorf("path %q cannot be in a project: it leads out of it, or not every system has it; rename it", name)
	}
	lower := strings.ToLower(name)
	for _, element := range strings.Split(lower, "/") {
		if element == ".git" || strings.HasPrefix(element, "git~") {
			return fmt.Errorf("path %q is git's own; leave it out of the template", name)
		}
	}
	for _, r := range reserved {
		if lower == r.path || strings.HasPrefix(lower, r.path+"/") {
			return fmt.Errorf("path %q %s; leave it out of the template", name, r.why)
		}
	}
	return nil
}

var reserved = []struct{ path, why string }{
	{".famcp", "is famcp's record of the project"},
	{gomod.VendorDir, "is the runtime's"},
	{"go.mod", "is made by famcp"},
	{"go.sum", "is made by famcp"},
	{"go.work", "would change which modules the project is built from"},
	{"vendor", "would change which modules the project is built from"},
	{"config/local.yaml", "is a machine's own, and may hold secrets"},
	{"keys", "is a machine's own, and may hold secrets"},
	{".env", "is a machine's own, and may hold secrets"},
}
