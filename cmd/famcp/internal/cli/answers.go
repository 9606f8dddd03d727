package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/famcp/famcp/internal/scaffold"
)

// addAnswerFlags gives cmd one flag for every question, a switch two. A flag
// that is set appears in given, as text: the rules are the scaffold's, and the
// same for flags, files and forms.
func addAnswerFlags(cmd *cobra.Command, given map[string]string, r scaffold.Release) {
	defaults := scaffold.Defaults("x", r)
	for _, q := range scaffold.Questions() {
		v := &answerFlag{question: q, given: given}
		if q.Kind != scaffold.Text { // the defaults of texts depend on the name
			v.fallback = q.Text(defaults)
		}
		f := cmd.Flags().VarPF(v, q.Flag, "", q.Help)
		switch q.Kind {
		case scaffold.Choice:
			complete := cobra.FixedCompletions(q.Choices, cobra.ShellCompDirectiveNoFileComp)
			if err := cmd.RegisterFlagCompletionFunc(q.Flag, complete); err != nil {
				panic(err) // the flag was defined a line above
			}
		case scaffold.Switch:
			f.NoOptDefVal = "true"
			no := cmd.Flags().VarPF(&answerFlag{question: q, given: given, negated: true}, "no-"+q.Flag, "", "The opposite of --"+q.Flag+".")
			no.NoOptDefVal = "true"
		}
	}
}

// answerFlag is a pflag.Value that records the answer to a question.
type answerFlag struct {
	question scaffold.Question
	given    map[string]string
	fallback string // shown as the default
	negated  bool   // --no-examples
}

func (f *answerFlag) Set(text string) error {
	if f.question.Kind == scaffold.Switch {
		yes := text == "true"
		if !yes && text != "false" {
			return errors.New("want true or false")
		}
		text = strconv.FormatBool(yes != f.negated)
		if before, ok := f.given[f.question.Key]; ok && before != text {
			return fmt.Errorf("--%s and --no-%s exclude each other", f.question.Flag, f.question.Flag)
		}
	}
	f.given[f.question.Key] = text
	return nil
}

func (f *answerFlag) String() string { return f.fallback }

// Type is what --help shows behind the flag.
func (f *answerFlag) Type() string {
	switch f.question.Kind {
	case scaffold.Choice:
		return strings.Join(f.question.Choices, "|")
	case scaffold.Switch:
		return "bool"
	case scaffold.Number:
		return "number"
	default:
		return "text"
	}
}
