package famcp_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/famcptest"
)

var emptyForm = &mcp.ElicitParams{Mode: "form", Message: "Anything?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}}

// TestNothingIsAskedInVain: the user is left alone when another question of
// the same call cannot be asked.
func TestNothingIsAskedInVain(t *testing.T) {
	build := func(t testing.TB) *famcp.Server {
		s := newServer(t, nil)
		famcp.AddTool(s, reader("two"), func(_ context.Context, c *famcp.Call, _ nothing) (string, error) {
			_, err := c.Ask(map[string]mcp.InputRequest{"form": emptyForm, "roots": &mcp.ListRootsParams{}})
			return "", err
		})
		famcp.AddTool(s, reader("one_by_one"), func(_ context.Context, c *famcp.Call, _ nothing) (string, error) {
			if _, err := c.Confirm("sure", "Sure?"); !errors.Is(err, famcp.ErrAsked) {
				return "", err
			}
			_, err := c.Roots("roots")
			return "", err
		})
		return s
	}
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		c = c.Declaring(famcp.CanElicit)
		for range 5 { // a map has no order
			for _, tool := range []string{"two", "one_by_one"} {
				res := c.CallTool(tool, nil)
				if res.Asked != 0 {
					t.Fatalf("%s: the user was asked", tool)
				}
				if modern := res.Err != nil && res.Err.Code == -32021; !modern && !res.IsError {
					t.Fatalf("%s: got %v %q, want that the client lacks roots", tool, res.Err, res.Text())
				}
			}
		}
	})
}

// TestFirstFailureEndsTheCall of a legacy client, although another question
// of it is still open.
func TestFirstFailureEndsTheCall(t *testing.T) {
	s := newServer(t, func(c *famcp.Config) { c.MCP.Ask.Timeout = time.Hour })
	famcp.AddTool(s, reader("two"), func(_ context.Context, c *famcp.Call, _ nothing) (string, error) {
		_, err := c.Ask(map[string]mcp.InputRequest{"form": emptyForm, "text": &mcp.CreateMessageParams{MaxTokens: 1}})
		return "", err
	})
	handler, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(handler)
	defer web.Close()
	defer func() { _ = s.Close(t.Context()) }()
	shown, over := make(chan struct{}), make(chan struct{})
	client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			close(shown)
			<-over
			return &mcp.ElicitResult{Action: "cancel"}, nil
		},
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			<-shown
			return nil, errors.New("no model is loaded")
		},
	})
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: web.URL + "/mcp"},
		&mcp.ClientSessionOptions{ProtocolVersion: famcptest.Legacy})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	defer close(over)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "two"})
	if err != nil || !res.IsError {
		t.Fatalf("got %+v, %v, want a failure", res, err)
	}
	want := "the client could not answer a question of this call"
	if diff := cmp.Diff(want, res.Content[0].(*mcp.TextContent).Text); diff != "" {
		t.Errorf("reason (-want +got):\n%s", diff)
	}
}

func TestProgressIncreases(t *testing.T) {
	var sent famcptest.Recorder
	c := famcptest.NewCall(t, famcptest.WithRecorder(&sent))
	for _, done := range []float64{0, 1, 1, 3, 2, 3} {
		c.Progress(done, 3, "")
	}
	var got []float64
	for _, p := range sent.Notifications().Progress() {
		got = append(got, p.Progress)
	}
	if diff := cmp.Diff([]float64{0, 1, 3}, got); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}
