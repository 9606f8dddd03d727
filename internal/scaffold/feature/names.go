package feature

import (
	"go/token"
	"path"
	"strings"
	"unicode"
)

// initialisms are written in one case in Go names, as linters want it.
var initialisms = map[string]bool{
	"acl": true, "api": true, "ascii": true, "cpu": true, "css": true, "dns": true, "eof": true, "guid": true, "html": true, "http": true,
	"https": true, "id": true, "ip": true, "json": true, "qps": true, "ram": true, "rpc": true, "sla": true, "smtp": true, "sql": true,
	"ssh": true, "tcp": true, "tls": true, "ttl": true, "udp": true, "ui": true, "uid": true, "uri": true, "url": true, "utf8": true,
	"uuid": true, "vm": true, "xml": true, "xsrf": true, "xss": true,
}

// words splits snake_case and camelCase, and lowers it.
func words(name string) []string {
	var all []string
	for part := range strings.SplitSeq(name, "_") {
		start := 0
		for i, r := range part {
			if i > 0 && unicode.IsUpper(r) && !unicode.IsUpper(rune(part[i-1])) {
				all = append(all, strings.ToLower(part[start:i]))
				start = i
			}
		}
		if part[start:] != "" {
			all = append(all, strings.ToLower(part[start:]))
		}
	}
	return all
}

// exported is the Go name of an argument.
func exported(name string) string {
	var b strings.Builder
	for _, w := range words(name) {
		if initialisms[w] {
			b.WriteString(strings.ToUpper(w))
		} else {
			b.WriteString(strings.ToUpper(w[:1]) + w[1:])
		}
	}
	return b.String()
}

// unexported is the Go name of a feature. Of a word that ends in a digit the next one is set off, so that a_1 and a1
// differ.
func unexported(name string) string {
	all := words(name)
	return all[0] + exported(strings.Join(all[1:], "_"))
}

// fileNames are those of a feature's code and test in dir. The go command takes the ends of some names for systems.
func fileNames(dir, name string, kind Kind) (code, test string) {
	if i := strings.LastIndexByte(name, '_'); i >= 0 && special[name[i+1:]] {
		name += "_" + string(kind)
	}
	return path.Join(dir, name+".go"), path.Join(dir, name+"_test.go")
}

var special = func() map[string]bool {
	m := map[string]bool{"test": true}
	for w := range strings.FieldsSeq(`aix android darwin dragonfly freebsd hurd illumos ios js linux nacl netbsd openbsd plan9 solaris unix
		wasip1 windows zos 386 amd64 amd64p32 arm armbe arm64 arm64be loong64 mips mipsle mips64 mips64le mips64p32 mips64p32le ppc ppc64
		ppc64le riscv riscv64 s390 s390x sparc sparc64 wasm`) {
		m[w] = true
	}
	return m
}()

// local are the names that generated code uses inside of functions, or imports.
var local = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`ctx call in out ok yes err args valid t s c tt res got want text build asked context errors fmt maps slices strings testing
		famcp famcptest mcp`) {
		m[w] = true
	}
	return m
}()

// idents are the Go names of a feature.
type idents struct{ Base, In, Out, Var, Handler, Test string }

func identsOf(spec Spec, shadowed func(string) bool) idents {
	base := unexported(spec.Name)
	n := idents{Base: base, In: base + "In", Out: base + "Out", Var: base + "Tool", Handler: base, Test: "Test" + upperFirst(base)}
	switch spec.Kind {
	case Prompt:
		n.Var = base + "Prompt"
	case Resource:
		n.Var, n.In = base+"Resource", base+"Params"
		if strings.Contains(spec.URI, "{") {
			n.Var = base + "Template"
		}
	}
	if local[base] || token.IsKeyword(base) || shadowed(base) {
		n.Handler = "run" + upperFirst(base)
	}
	return n
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
