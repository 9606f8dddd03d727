package famcptest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/famcptest"
)

type eraseIn struct {
	Name string `json:"name"`
}

func erase(_ context.Context, call *famcp.Call, in eraseIn) (string, error) {
	sure, err := call.Confirm("sure", "Erase "+in.Name+"?")
	if err != nil {
		return "", err
	}
	if !sure {
		return "kept " + in.Name, nil
	}
	return "erased " + in.Name, nil
}

func ExampleEras() {
	build := func(t testing.TB) *famcp.Server {
		s, err := famcp.New(nil, famcp.Info{Name: "disk", Version: "1.0.0"})
		if err != nil {
			t.Fatal(err)
		}
		famcp.AddTool(s, famcp.Tool{
			Name: "erase", Description: "Erases a file.", Effect: famcp.Mutates(famcp.HighRisk, "The file is gone."),
		}, erase)
		return s
	}
	testErase := func(t *testing.T) {
		famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
			c.Answer(func(famcptest.Question) famcptest.Answer { return famcptest.Confirm(true) })
			got := famcptest.Call[string](t, c, "erase", eraseIn{"a.txt"})
			if want := "erased a.txt"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	_ = testErase // a Test function of yours
}

func ExampleNewCall() {
	testErase := func(t *testing.T) {
		call := famcptest.NewCall(t, famcptest.WithAnswer("sure", famcptest.Decline()))
		got, err := erase(t.Context(), call, eraseIn{"a.txt"})
		if got != "kept a.txt" || err != nil {
			t.Errorf("declined: got %q, %v", got, err)
		}
		if _, err := erase(t.Context(), famcptest.NewCall(t), eraseIn{"a.txt"}); !errors.Is(err, famcp.ErrAsked) {
			t.Errorf("first round: got %v, want %v", err, famcp.ErrAsked)
		}
	}
	_ = testErase // a Test function of yours
}
