// Package verify proves that a freshly made project works: it builds, vets and
// tests it with the go command, starts the server that was built, and makes one
// real call per protocol era and transport. It speaks raw JSON-RPC over
// net/http and pipes, as any client would.
package verify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Options say what to verify.
type Options struct {
	Dir   string // of the project, absolute
	Name  string // of its server
	HTTP  bool   // call it over HTTP
	Stdio bool   // call it over stdio

	Protected bool                   // it answers nobody without a token over HTTP
	Token     func() (string, error) // makes one, once the server was built; nil when only somebody else can

	Begin func(name string) // called before each step
	End   func(Step)        // called after each step
}

// A Step is one thing that was tried.
type Step struct {
	Name    string  `json:"name"` // a command line, or what was called and how
	OK      bool    `json:"ok"`
	Seconds float64 `json:"seconds"`
	Error   string  `json:"error,omitempty"` // what went wrong, with the end of the output
}

// A step that is still to be taken.
type task struct {
	name  string
	again string // the command that shows its failure again
	run   func(context.Context) error
}

// Run takes the steps in order and stops at the first that fails, which its
// error names together with the command that shows it again. It returns the
// steps taken. Everything it started has ended when it returns, also when ctx
// ends.
func Run(ctx context.Context, o Options) ([]Step, error) {
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return nil, fmt.Errorf("cannot verify: there is no go command on PATH; the project is complete in %s, install Go and run go test ./... there", o.Dir)
	}
	tmp, err := os.MkdirTemp("", "famcp-verify-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)

	p := &project{dir: o.Dir, goCommand: goCommand, binary: filepath.Join(tmp, o.Name), grace: stopTimeout}
	if runtime.GOOS == "windows" {
		p.binary += ".exe"
	}
	defer p.close()
	return o.take(ctx, slices.Concat(p.builds(), p.calls(o)))
}

// take runs tasks until one fails.
func (o Options) take(ctx context.Context, tasks []task) ([]Step, error) {
	steps := []Step{}
	for _, t := range tasks {
		o.Begin(t.name)
		start := time.Now()
		err := t.run(ctx)
		s := Step{Name: t.name, OK: err == nil, Seconds: time.Since(start).Seconds()}
		if err != nil {
			s.Error = err.Error()
		}
		o.End(s)
		steps = append(steps, s)
		if ctx.Err() != nil {
			return steps, ctx.Err()
		}
		if err != nil {
			return steps, fmt.Errorf("verifying failed at %q; the project stays in %s, run there: %s", t.name, o.Dir, t.again)
		}
	}
	return steps, nil
}

// project is what is being verified.
type project struct {
	dir       string
	goCommand string
	binary    string
	grace     time.Duration // for a server to end when its input does
	server    *process      // over HTTP, once it runs
	url       string
}

// builds are the steps of the go command.
func (p *project) builds() []task {
	return []task{
		{"go build ./...", "go build ./...", func(ctx context.Context) error {
			if err := p.runGo(ctx, "build", "./..."); err != nil {
				return err
			}
			return p.runGo(ctx, "build", "-o", p.binary, ".")
		}},
		{"go vet ./...", "go vet ./...", func(ctx context.Context) error { return p.runGo(ctx, "vet", "./...") }},
		{"go test ./...", "go test ./...", func(ctx context.Context) error { return p.runGo(ctx, "test", "./...") }},
	}
}

// calls are the steps with the server that was built.
func (p *project) calls(o Options) []task {
	var tasks []task
	if o.HTTP {
		const again = "go run . http"
		tasks = append(tasks, task{"start " + o.Name + " http", again, p.startHTTP})
		if o.Protected {
			tasks = append(tasks, task{"call over HTTP without a token", again, func(ctx context.Context) error {
				return refused(ctx, &httpLink{url: p.url})
			}})
		}
		if !o.Protected || o.Token != nil {
			tasks = append(tasks,
				task{"call over HTTP, " + legacyRevision, again, func(ctx context.Context) error { return p.callHTTP(ctx, o, legacy) }},
				task{"call over HTTP, " + modernRevision, again, func(ctx context.Context) error { return p.callHTTP(ctx, o, modern) }},
			)
		}
	}
	if o.Stdio {
		const again = "go run . stdio"
		tasks = append(tasks,
			task{"call over stdio, " + legacyRevision, again, func(ctx context.Context) error { return p.callStdio(ctx, legacy) }},
			task{"call over stdio, " + modernRevision, again, func(ctx context.Context) error { return p.callStdio(ctx, modern) }},
		)
	}
	return tasks
}

// callHTTP has a conversation over HTTP, with a token when the server wants one.
func (p *project) callHTTP(ctx context.Context, o Options, talk func(context.Context, link) error) error {
	l := &httpLink{url: p.url}
	if o.Protected {
		var err error
		if l.token, err = o.Token(); err != nil {
			return fmt.Errorf("making a token: %w", err)
		}
	}
	return talk(ctx, l)
}

func (p *project) close() {
	if p.server != nil {
		p.server.stop()
	}
}

// runGo runs the go command in the project.
func (p *project) runGo(ctx context.Context, args ...string) error {
	c := exec.CommandContext(ctx, p.goCommand, args...)
	c.Dir = p.dir
	c.WaitDelay = stopTimeout
	c.Cancel = func() error { return interrupt(c.Process) }
	out, err := c.CombinedOutput()
	if err != nil {
		return withOutput(err, string(out))
	}
	return nil
}

// withOutput adds the end of a program's output to the error it ended with.
func withOutput(err error, out string) error {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) > maxOutputLines {
		lines = append([]string{"…"}, lines[len(lines)-maxOutputLines:]...)
	}
	if lines[0] == "" {
		return err
	}
	return errors.New(err.Error() + "\n" + strings.Join(lines, "\n"))
}

const maxOutputLines = 40
