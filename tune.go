package famcp

import (
	"io/fs"
	"math"
	"path"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/famcp/famcp/internal/runtime/collector"
)

// limitShare of what the control group allows is the memory limit, in percent;
// the rest is for what is not heap.
const limitShare = 90

// tune sets up the collector for the whole process, unless the environment
// does. root is the file system from its root.
func tune(getenv func(string) (string, bool), root fs.FS) {
	if v, _ := getenv("GOGC"); v == "" {
		collector.Pace()
	}
	if v, _ := getenv("GOMEMLIMIT"); v == "" {
		if limit, ok := memoryLimit(root); ok {
			debug.SetMemoryLimit(limit / 100 * limitShare)
		}
	}
}

// memoryLimit is the least limit in bytes that the control groups of this
// process, of version 2 or 1, or any around them set. Without control groups,
// as on systems other than Linux, there is none.
func memoryLimit(root fs.FS) (int64, bool) {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	least := int64(math.MaxInt64)
	for line := range strings.Lines(string(groups)) {
		// hierarchy:controllers:path, where version 2 has no controllers
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		mount, file := "sys/fs/cgroup", "memory.max"
		if parts[1] != "" {
			if !strings.Contains(","+parts[1]+",", ",memory,") {
				continue
			}
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		// In a container the path may be the host's, of which only the root is
		// mounted: what does not exist sets no limit.
		for dir := path.Join("/", parts[2]); ; dir = path.Dir(dir) {
			if limit, ok := readLimit(root, path.Join(mount, dir, file)); ok {
				least = min(least, limit)
			}
			if dir == "/" {
				break
			}
		}
	}
	// Version 1 writes the largest multiple of a page for no limit.
	return least, least < 1<<62
}

func readLimit(root fs.FS, name string) (int64, bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max" is none
	return limit, err == nil && limit > 0
}
