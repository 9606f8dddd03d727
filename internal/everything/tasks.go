package main

import (
	"context"
	"fmt"
	"time"

	"github.com/famcp/famcp"
)

// addTaskTools adds the tools of the tasks scenarios.
func addTaskTools(s *famcp.Server) {
	task := func(name, description string, tasks famcp.Tasks) famcp.Tool {
		return famcp.Tool{Name: name, Description: description, Effect: famcp.ReadOnly(), Tasks: tasks}
	}
	famcp.AddTool(s, task("greet", "Greets at once.", famcp.TasksForbidden), greet)
	famcp.AddTool(s, task("slow_compute", "Computes for some seconds.", famcp.TasksOptional), slowCompute)
	famcp.AddTool(s, task("failing_job", "Fails after a second.", famcp.TasksRequired), failingJob)
	famcp.AddTool(s, task("protocol_error_job", "Panics after a moment.", famcp.TasksOptional), protocolErrorJob)
	famcp.AddTool(s, task("confirm_delete", "Asks before it deletes nothing.", famcp.TasksOptional), confirmDelete)
	famcp.AddTool(s, task("multi_input", "Asks two things at once.", famcp.TasksOptional), multiInput)
	famcp.AddTool(s, task("test_tool_with_task", "Asks for a name, then greets slowly.", famcp.TasksRequired), greetLater)
}

// later is longer than a call may take before it becomes a task.
const later = 200 * time.Millisecond

type greetInput struct {
	Name string `json:"name" jsonschema:"Whom to greet."`
}

func greet(_ context.Context, _ *famcp.Call, in greetInput) (string, error) {
	return "Hello, " + in.Name + "!", nil
}

type computeInput struct {
	Seconds float64 `json:"seconds" jsonschema:"How long it takes."`
	Label   string  `json:"label,omitempty" jsonschema:"What is computed."`
}

func slowCompute(ctx context.Context, call *famcp.Call, in computeInput) (string, error) {
	call.Progress(0, in.Seconds, "computing "+in.Label)
	if err := wait(ctx, time.Duration(in.Seconds*float64(time.Second))); err != nil {
		return "", err
	}
	return fmt.Sprintf("computed %s in %g s", in.Label, in.Seconds), nil
}

func failingJob(ctx context.Context, _ *famcp.Call, _ none) (string, error) {
	if err := wait(ctx, time.Second); err != nil {
		return "", err
	}
	return "", famcp.Failf("the job has failed")
}

func protocolErrorJob(ctx context.Context, _ *famcp.Call, _ none) (string, error) {
	if err := wait(ctx, later); err != nil {
		return "", err
	}
	panic("protocol_error_job panics")
}

type deleteInput struct {
	Filename string `json:"filename,omitempty" jsonschema:"The file that is not deleted."`
}

func confirmDelete(ctx context.Context, call *famcp.Call, in deleteInput) (string, error) {
	if err := wait(ctx, later); err != nil {
		return "", err
	}
	ok, err := call.Confirm("confirm", "Delete "+in.Filename+"?")
	if err != nil {
		return "", err
	}
	if !ok {
		return "kept " + in.Filename, nil
	}
	return "deleted " + in.Filename, nil
}

func multiInput(ctx context.Context, call *famcp.Call, _ none) (string, error) {
	if err := wait(ctx, later); err != nil {
		return "", err
	}
	first, err := famcp.Elicit[nameForm](call, "first", "What is your first name?")
	second, err2 := famcp.Elicit[nameForm](call, "second", "What is your second name?")
	if err != nil {
		return "", err
	}
	if err2 != nil {
		return "", err2
	}
	return "Hello, " + first.Name + " " + second.Name + "!", nil
}

func greetLater(ctx context.Context, call *famcp.Call, _ none) (string, error) {
	who, err := famcp.Elicit[nameForm](call, "user_name", "What is your name?")
	if err != nil {
		return "", err
	}
	if err := wait(ctx, later); err != nil {
		return "", err
	}
	return "Hello, " + who.Name + "!", nil
}
