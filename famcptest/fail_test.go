package famcptest_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/famcptest"
)

// trial is a test that is expected to fail.
type trial struct {
	testing.TB
	said string
}

func (tr *trial) Fatalf(format string, args ...any) {
	tr.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// fails runs f as a test and returns what it fails with; "" for a test that
// passes.
func fails(t *testing.T, f func(testing.TB)) string {
	tr := &trial{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(tr)
	}()
	<-done
	return tr.said
}

func TestFailingTests(t *testing.T) {
	tests := []struct {
		name string
		run  func(testing.TB, *famcptest.Client)
		want string
	}{
		{
			"isError", func(t testing.TB, c *famcptest.Client) { famcptest.Call[string](t, c, "fail", nil) },
			"the tool fail failed: the disk is full",
		},
		{
			"unknown tool", func(t testing.TB, c *famcptest.Client) { famcptest.Call[string](t, c, "nothing", nil) },
			`calling nothing: unknown tool "nothing"`,
		},
		{
			"other type", func(t testing.TB, c *famcptest.Client) { famcptest.Call[[]int](t, c, "add", addIn{1, 2}) },
			`the output of add does not fit []int`,
		},
		{
			"no answer", func(t testing.TB, c *famcptest.Client) { c.For(t).CallTool("sample", nil) },
			"the server asks for sampling/createMessage, which the test does not answer; set Client.Answer",
		},
		{
			"arguments", func(t testing.TB, c *famcptest.Client) { c.For(t).CallTool("add", func() {}) },
			"cannot be sent as JSON",
		},
		{
			"completion", func(t testing.TB, c *famcptest.Client) { c.For(t).Complete("nothing", "x", "") },
			"completion/complete: ",
		},
	}
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				got := fails(t, func(tb testing.TB) { tt.run(tb, c) })
				if !strings.Contains(got, tt.want) {
					t.Errorf("failed with %q, want %q", got, tt.want)
				}
			})
		}
	})
}

func TestServerThatDoesNotStart(t *testing.T) {
	s := build(t)
	famcp.AddTool(s, famcp.Tool{Name: "Bad Name"}, func(context.Context, *famcp.Call, noArgs) (string, error) { return "", nil })
	got := fails(t, func(tb testing.TB) { famcptest.Connect(tb, s, famcptest.Modern) })
	if !strings.Contains(got, "the server does not start: ") || !strings.Contains(got, `tool "Bad Name"`) {
		t.Errorf("failed with %q", got)
	}
	if got := fails(t, func(tb testing.TB) { famcptest.Connect(tb, nil, famcptest.Modern) }); !strings.Contains(got, "build returned nil") {
		t.Errorf("failed with %q", got)
	}
}
