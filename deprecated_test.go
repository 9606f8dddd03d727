package famcp

import (
	"context"
	"strings"
	"testing"
)

func TestDeprecatedNeedsADate(t *testing.T) {
	tests := []struct {
		name  string
		until string
		fault string // "" for none
	}{
		{"a date", "2027-03-31", ""},
		{"none", "", "no Deprecated.Until"},
		{"another form", "31.03.2027", `"31.03.2027" is not a date`},
		{"a day that is not", "2027-02-30", `"2027-02-30" is not a date`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := New(nil, Info{Name: "x", Version: "1.0.0"})
			if err != nil {
				t.Fatal(err)
			}
			d := &Deprecated{Until: tt.until}
			AddTool(s, Tool{Name: "old", Description: "Does it.", Effect: ReadOnly(), Deprecated: d},
				func(context.Context, *Call, struct{}) (string, error) { return "", nil })
			AddPrompt(s, Prompt{Name: "old", Description: "Does it.", Deprecated: d},
				func(context.Context, *Call, struct{}) ([]Message, error) { return nil, nil })
			s.AddResource(Resource{URI: "x://old", Name: "old", Deprecated: d},
				func(context.Context, *Call) (Contents, error) { return Contents{}, nil })
			err = s.Err()
			if tt.fault == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || strings.Count(err.Error(), tt.fault) != 3 {
				t.Errorf("got %v, want %q for tool, prompt and resource", err, tt.fault)
			}
		})
	}
}
