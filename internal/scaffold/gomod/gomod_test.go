package gomod_test

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/famcp/famcp/internal/scaffold/gomod"
)

func TestVendored(t *testing.T) {
	tests := []struct{ name, version, want string }{
		{"release", "v1.2.3", "v1.2.3"},
		{"pre-release", "v1.2.3-rc.1", "v1.2.3-rc.1"},
		{"local build", "v0.0.0-20261130120000-0123456789ab+dirty", "v0.0.0-20261130120000-0123456789ab"},
		{"none", "", "v0.0.0"},
		{"not a version", "(devel)", "v0.0.0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := gomod.Vendored("example.com/demo", tt.version)
			if err != nil {
				t.Fatal(err)
			}
			f, err := modfile.Parse("go.mod", got.Mod, nil) // strict
			if err != nil {
				t.Fatal(err)
			}
			if f.Module.Mod.Path != "example.com/demo" {
				t.Errorf("module %s", f.Module.Mod.Path)
			}
			if want := gomod.GoVersion + ".0"; f.Go.Version != want || f.Toolchain != nil {
				t.Errorf("go %s, toolchain %v, want go %s and no toolchain", f.Go.Version, f.Toolchain, want)
			}
			if version := required(f); version != tt.want {
				t.Errorf("runtime %s, want %s", version, tt.want)
			}
			if len(f.Replace) != 1 || f.Replace[0].Old.String() != gomod.Runtime || f.Replace[0].New.String() != "./"+gomod.VendorDir {
				t.Errorf("replace %v", f.Replace)
			}
			if strings.Contains(string(got.Sum), gomod.Runtime) {
				t.Error("go.sum names the runtime, which is replaced by a directory")
			}
		})
	}
}

func TestModule(t *testing.T) {
	sums := []string{gomod.Runtime + " v1.2.3 h1:zip", gomod.Runtime + " v1.2.3/go.mod h1:mod"}
	got, err := gomod.Module("example.com/demo", "v1.2.3", sums)
	if err != nil {
		t.Fatal(err)
	}
	f, err := modfile.Parse("go.mod", got.Mod, nil)
	if err != nil {
		t.Fatal(err)
	}
	if required(f) != "v1.2.3" || len(f.Replace) != 0 {
		t.Errorf("runtime %s, replace %v", required(f), f.Replace)
	}
	lines := strings.Split(string(got.Sum), "\n")
	for i, line := range lines {
		if i > 0 && line != "" && line < lines[i-1] {
			t.Errorf("go.sum: %q comes after %q", line, lines[i-1])
		}
	}
	if !strings.Contains(string(got.Sum), strings.Join(sums, "\n")+"\n") {
		t.Errorf("go.sum lacks the release:\n%s", got.Sum)
	}
}

func TestRequirements(t *testing.T) {
	got := gomod.Requirements()
	for _, want := range []string{gomod.Runtime, "github.com/modelcontextprotocol/go-sdk", "golang.org/x/sys"} {
		if !slices.Contains(got, want) {
			t.Errorf("Requirements() = %q, want %q in it", got, want)
		}
	}
}

// A vendored runtime is built on its own by people who work on it, so its go.mod must stand alone.
func TestVendoredRuntime(t *testing.T) {
	got := gomod.VendoredRuntime()
	f, err := modfile.Parse("go.mod", got.Mod, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f.Module.Mod.Path != gomod.Runtime || len(f.Replace) != 0 {
		t.Errorf("module %s, replace %v", f.Module.Mod.Path, f.Replace)
	}
}

func required(f *modfile.File) string {
	for _, r := range f.Require {
		if r.Mod.Path == gomod.Runtime {
			return r.Mod.Version
		}
	}
	return ""
}
