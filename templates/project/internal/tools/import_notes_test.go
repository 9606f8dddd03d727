package tools

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/famcp/famcp"
	"github.com/famcp/famcp/famcptest"
	"github.com/famcp/famcp/templates/project/internal/notes"
)

func TestImportNotes(t *testing.T) {
	store := notes.New(10, notes.Note{ID: "milk", Text: "Buy milk"})
	in := importNotesIn{Notes: []newNote{{ID: "bread", Text: "Bake bread"}, {ID: "milk", Text: "Sell milk"}, {ID: "tea", Text: "Make tea"}}}
	var sent famcptest.Recorder

	got, err := importNotes(store)(t.Context(), famcptest.NewCall(t, famcptest.WithRecorder(&sent)), in)
	if err != nil {
		t.Fatal(err)
	}
	if want := (importNotesOut{Added: 2, Skipped: 1}); got != want {
		t.Errorf("output = %+v, want %+v", got, want)
	}
	want := []notes.Note{{ID: "bread", Text: "Bake bread"}, {ID: "milk", Text: "Buy milk"}, {ID: "tea", Text: "Make tea"}}
	if diff := cmp.Diff(want, store.All()); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	progress := sent.Notifications().Progress()
	if len(progress) == 0 || progress[len(progress)-1].Progress != 3 || progress[len(progress)-1].Total != 3 {
		t.Errorf("progress = %+v, want it to end with 3 of 3", progress)
	}

	again, err := importNotes(store)(t.Context(), famcptest.NewCall(t), in)
	if want := (importNotesOut{Skipped: 3}); again != want || err != nil {
		t.Errorf("repeated: %+v, %v, want %+v", again, err, want)
	}
}

// A client that knows tasks may have the import as one, where the server keeps tasks.
func TestImportNotesAsATask(t *testing.T) {
	store := notes.New(10)
	build := func(t testing.TB) *famcp.Server {
		cfg := famcp.DefaultConfig()
		cfg.MCP.Tasks.Enabled = true
		s, err := famcp.New(cfg, famcp.Info{Name: "import", Version: "0"})
		if err != nil {
			t.Fatal(err)
		}
		famcp.AddTool(s, importNotesTool, importNotes(store))
		return s
	}
	famcptest.Eras(t, build, func(t *testing.T, c *famcptest.Client) {
		task := c.StartTask("import_notes", importNotesIn{Notes: []newNote{{ID: c.Era(), Text: "Imported"}}})
		if res := task.Result(); res.Err != nil || string(res.Structured) != `{"added":1,"skipped":0}` {
			t.Errorf("result = %s, %v, want one note added", res.Structured, res.Err)
		}
	})
}

func TestImportNotesRefusesAllWhenOneIsWrong(t *testing.T) {
	for field, bad := range map[string]newNote{
		"notes[1].id":   {ID: "Not An Id"},
		"notes[1].text": {ID: "long", Text: strings.Repeat("x", maxNoteBytes+1)},
	} {
		store := notes.New(10)
		in := importNotesIn{Notes: []newNote{{ID: "good"}, bad}}
		_, err := importNotes(store)(t.Context(), famcptest.NewCall(t), in)
		var refused *famcp.Error
		if !errors.As(err, &refused) || refused.Kind != famcp.Invalid || refused.Field != field {
			t.Errorf("error = %v, want a refusal of %s", err, field)
		}
		if all := store.All(); len(all) != 0 {
			t.Errorf("notes = %v, want none", all)
		}
	}
}

func TestImportNotesStopsWhenTheStoreIsFull(t *testing.T) {
	in := importNotesIn{Notes: []newNote{{ID: "a"}, {ID: "b"}}}
	_, err := importNotes(notes.New(1))(t.Context(), famcptest.NewCall(t), in)
	var failed *famcp.Error
	if !errors.As(err, &failed) || failed.Kind != famcp.Failed {
		t.Errorf("error = %v, want one that the model sees", err)
	}
}

func TestImportNotesStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	store := notes.New(10)
	_, err := importNotes(store)(ctx, famcptest.NewCall(t), importNotesIn{Notes: []newNote{{ID: "a"}}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want %v", err, context.Canceled)
	}
	if all := store.All(); len(all) != 0 {
		t.Errorf("notes = %v, want none", all)
	}
}
