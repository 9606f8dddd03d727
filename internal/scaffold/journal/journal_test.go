package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var errDisk = errors.New("no space left on device")

// breakingDisk fails at its step n, counted from 1, and, when broken, at every later one.
type breakingDisk struct {
	Disk
	n, at  int
	broken bool
	full   bool // only what needs room fails
}

func (d *breakingDisk) fail(needsRoom bool) error {
	d.at++
	if d.at == d.n || d.broken && d.at > d.n && (needsRoom || !d.full) {
		return errDisk
	}
	return nil
}

func (d *breakingDisk) Mkdir(path string, mode fs.FileMode) error {
	if err := d.fail(true); err != nil {
		return err
	}
	return d.Disk.Mkdir(path, mode)
}

// WriteFile leaves half a file behind when it fails, as a full disk does.
func (d *breakingDisk) WriteFile(path string, data []byte, mode fs.FileMode) error {
	if err := d.fail(true); err != nil {
		return errors.Join(err, d.Disk.WriteFile(path, data[:len(data)/2], mode))
	}
	return d.Disk.WriteFile(path, data, mode)
}

func (d *breakingDisk) Rename(from, to string) error {
	if err := d.fail(false); err != nil {
		return err
	}
	return d.Disk.Rename(from, to)
}

func (d *breakingDisk) Remove(path string) error {
	if err := d.fail(false); err != nil {
		return err
	}
	return d.Disk.Remove(path)
}

// sample is a project with some of everything, and changes of it.
func sample(t *testing.T) (*os.Root, []Change) {
	t.Helper()
	dir := t.TempDir()
	var changes []Change
	if err := os.Mkdir(filepath.Join(dir, ".famcp"), 0o755); err != nil { // as in every project
		t.Fatal(err)
	}
	for i := range 7 {
		changes = append(changes,
			Change{Path: fmt.Sprintf("src/changed%d.txt", i), Was: &Content{[]byte("before\n"), 0o644}, Now: &Content{[]byte("after\n"), 0o755}},
			Change{Path: fmt.Sprintf("new/deep%d/file.txt", i), Now: &Content{[]byte("new\n"), 0o644}},
			Change{Path: fmt.Sprintf("old%d/deep/gone.txt", i), Was: &Content{[]byte("gone\n"), 0o600}})
	}
	changes = append(changes, Change{Path: "src/locked.txt", Was: &Content{[]byte{0, 1}, 0o600}, Now: &Content{nil, 0o600}})
	for _, c := range changes {
		if c.Was == nil {
			continue
		}
		name := filepath.Join(dir, c.Path)
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, c.Was.Data, c.Was.Mode); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root, changes
}

// snapshot is every path of a project with its mode and content.
func snapshot(t *testing.T, root *os.Root) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil || name == "." {
			return err
		}
		found[name] = info.Mode().String()
		if info.Mode().IsRegular() {
			data, err := root.ReadFile(name)
			found[name] += " " + string(data)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func apply(t *testing.T, root *os.Root, disk Disk, changes []Change) error {
	t.Helper()
	j, err := Open(root, disk)
	if err != nil {
		return err
	}
	return errors.Join(j.Apply(t.Context(), changes), j.Close())
}

func restore(t *testing.T, root *os.Root, all bool) *Restored {
	t.Helper()
	j, err := Open(root, Real(root))
	if err != nil {
		t.Fatal(err)
	}
	r, err := j.Restore(all)
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestApplyAndRestore(t *testing.T) {
	root, changes := sample(t)
	before := snapshot(t, root)
	if err := apply(t, root, Real(root), changes); err != nil {
		t.Fatal(err)
	}
	if Look(root) != Applied {
		t.Errorf("state %v, want applied", Look(root))
	}
	for _, c := range changes {
		found, err := Read(root, c.Path)
		if err != nil || !sumOf(found).equal(sumOf(c.Now)) {
			t.Errorf("%s is %v, %v, want %v", c.Path, found, err, c.Now)
		}
	}
	if _, err := root.Stat("old0"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an emptied directory is still there: %v", err)
	}
	// A second change on top; both are taken back.
	more := []Change{{Path: "src/changed0.txt", Was: &Content{[]byte("after\n"), 0o755}, Now: &Content{[]byte("later\n"), 0o755}}}
	if err := apply(t, root, Real(root), more); err != nil {
		t.Fatal(err)
	}
	if r := restore(t, root, true); len(r.Paths) != len(changes) || r.Kept != "" {
		t.Errorf("restored %d files, kept %q, want %d and nothing", len(r.Paths), r.Kept, len(changes))
	}
	if diff := cmp.Diff(before, snapshot(t, root)); diff != "" {
		t.Errorf("restored (-before +after):\n%s", diff)
	}
}

// Whichever step fails, the project is as it was: at once when the disk works again, or has just no room left, and by
// the next command when nothing at all could be done any more.
func TestEveryStepCanFail(t *testing.T) {
	failures := 0
	for _, mode := range []struct {
		name         string
		broken, full bool
	}{{"once", false, false}, {"disk full from then on", true, true}, {"dead from then on", true, false}} {
		for n := 1; ; n++ {
			root, changes := sample(t)
			before := snapshot(t, root)
			disk := &breakingDisk{Disk: Real(root), n: n, broken: mode.broken, full: mode.full}
			err := apply(t, root, disk, changes)
			if disk.at < n {
				if err != nil {
					t.Fatalf("%s: without a failure: %v", mode.name, err)
				}
				break
			}
			failures++
			if !errors.Is(err, errDisk) && err != nil {
				t.Fatalf("%s at step %d: %v, want the disk's error", mode.name, n, err)
			}
			if Look(root) == Interrupted {
				if mode.full || !mode.broken {
					t.Errorf("%s at step %d: not changed back at once", mode.name, n)
				}
				restore(t, root, false)
			}
			after := snapshot(t, root)
			// What cannot be removed waits for the next command, in a directory that git ignores.
			for name := range after {
				if strings.HasPrefix(name, Dir) {
					delete(after, name)
				}
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Fatalf("%s at step %d: the project changed (-before +after):\n%s", mode.name, n, diff)
			}
			if n%16 > 0 {
				continue
			}
			// And it works the next time.
			if err := apply(t, root, Real(root), changes); err != nil {
				t.Fatalf("%s at step %d, the next time: %v", mode.name, n, err)
			}
		}
	}
	if failures < 200 {
		t.Errorf("%d failures, want 200", failures)
	}
	t.Logf("%d failures", failures)
}

// A restore that fails at any step is finished by the next one.
func TestRestoreCanFail(t *testing.T) {
	for n := 1; ; n++ {
		root, changes := sample(t)
		before := snapshot(t, root)
		if err := apply(t, root, Real(root), changes); err != nil {
			t.Fatal(err)
		}
		disk := &breakingDisk{Disk: Real(root), n: n, broken: true}
		j, err := Open(root, Real(root))
		if err != nil {
			t.Fatal(err)
		}
		j.disk = disk
		_, err = j.Restore(true)
		if e := j.Close(); e != nil {
			t.Fatal(e)
		}
		if disk.at < n {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		if !errors.Is(err, errDisk) {
			t.Fatalf("step %d: %v, want the disk's error", n, err)
		}
		restore(t, root, true)
		if diff := cmp.Diff(before, snapshot(t, root)); diff != "" {
			t.Fatalf("step %d: (-before +after):\n%s", n, diff)
		}
	}
}

func TestRestoreKeepsEdits(t *testing.T) {
	root, changes := sample(t)
	before := snapshot(t, root)
	if err := apply(t, root, Real(root), changes); err != nil {
		t.Fatal(err)
	}
	edits := map[string]string{"src/changed0.txt": "mine\n", "new/deep0/file.txt": "mine, too\n", "old0/deep/gone.txt": "back\n"}
	for name, text := range edits {
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := root.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := restore(t, root, true)
	if r.Kept != ".famcp/tmp/kept-1" {
		t.Fatalf("kept in %q", r.Kept)
	}
	for name, text := range edits {
		if data, err := root.ReadFile(filepath.Join(r.Kept, name)); err != nil || string(data) != text {
			t.Errorf("kept %s = %q, %v, want %q", name, data, err, text)
		}
	}
	if err := root.RemoveAll(Dir); err != nil {
		t.Fatal(err)
	}
	after := snapshot(t, root)
	delete(before, "old0") // made again by the edit, with another mode
	delete(before, "old0/deep")
	delete(after, "old0")
	delete(after, "old0/deep")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func TestApplyRefuses(t *testing.T) {
	t.Run("a file that changed meanwhile", func(t *testing.T) {
		root, changes := sample(t)
		if err := root.WriteFile(changes[0].Path, []byte("meanwhile\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		before := snapshot(t, root)
		var changed *ChangedError
		if err := apply(t, root, Real(root), changes); !errors.As(err, &changed) || changed.Path != changes[0].Path {
			t.Errorf("error %v", err)
		}
		after := snapshot(t, root)
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("(-before +after):\n%s", diff)
		}
	})
	t.Run("a cancelled context", func(t *testing.T) {
		root, changes := sample(t)
		before := snapshot(t, root)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		j, err := Open(root, Real(root))
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Apply(ctx, changes); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		after := snapshot(t, root)
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("(-before +after):\n%s", diff)
		}
	})
	t.Run("a second process", func(t *testing.T) {
		root, _ := sample(t)
		j, err := Open(root, Real(root))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Open(root, Real(root)); !errors.Is(err, ErrBusy) {
			t.Errorf("error %v, want busy", err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if j, err = Open(root, Real(root)); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a path that leads out of the project", func(t *testing.T) {
		root, _ := sample(t)
		outside := t.TempDir()
		if err := os.Symlink(outside, filepath.Join(root.Name(), "out")); err != nil {
			t.Skip(err)
		}
		if err := apply(t, root, Real(root), []Change{{Path: "out/x", Now: &Content{[]byte("x"), 0o644}}}); err == nil {
			t.Error("written")
		}
		if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
			t.Errorf("outside: %v, %v", entries, err)
		}
	})
}
