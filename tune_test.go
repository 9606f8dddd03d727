package famcp

import (
	"testing"
	"testing/fstest"
)

func TestMemoryLimit(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	tests := []struct {
		name   string
		root   fstest.MapFS
		want   int64
		wantOK bool
	}{
		{name: "no control groups", root: fstest.MapFS{}},
		{name: "version 2 in a container", root: fstest.MapFS{
			"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("536870912\n"),
		}, want: 536870912, wantOK: true},
		{name: "version 2 without a limit", root: fstest.MapFS{
			"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("max\n"),
		}},
		{name: "least of those around", root: fstest.MapFS{
			"proc/self/cgroup":                           file("0::/a.slice/b.service\n"),
			"sys/fs/cgroup/a.slice/memory.max":           file("1000\n"),
			"sys/fs/cgroup/a.slice/b.service/memory.max": file("2000\n"),
		}, want: 1000, wantOK: true},
		{name: "version 1, path of the host", root: fstest.MapFS{
			"proc/self/cgroup":                           file("11:cpu,cpuacct:/docker/x\n9:memory:/docker/x\n0::/\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": file("268435456\n"),
			"sys/fs/cgroup/cpu,cpuacct/memory.max":       file("1\n"),
		}, want: 268435456, wantOK: true},
		{name: "version 1 without a limit", root: fstest.MapFS{
			"proc/self/cgroup":                           file("9:memory:/\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n"),
		}},
		{name: "path above the root", root: fstest.MapFS{
			"proc/self/cgroup": file("0::/../../x\n"), "sys/fs/cgroup/memory.max": file("1000\n"),
		}, want: 1000, wantOK: true},
		{name: "not readable", root: fstest.MapFS{
			"proc/self/cgroup": file("garbage\n0::/\n"), "sys/fs/cgroup/memory.max": file("garbage\n"),
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := memoryLimit(tt.root)
			if ok != tt.wantOK || ok && got != tt.want {
				t.Errorf("memoryLimit = %d, %v; want %d, %v", got, ok, tt.want, tt.wantOK)
			}
		})
	}
}
