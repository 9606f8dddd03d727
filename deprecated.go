package famcp

import (
	"errors"
	"fmt"
	"time"

	"github.com/famcp/famcp/internal/runtime/invoke"
)

// Deprecated announces that a tool, prompt or resource will go. Its listed
// description then starts with [DEPRECATED until DATE, use NAME], its use is
// logged once an hour, and the start logs an error once the day has come.
// Nothing is refused by it: remove the entry when its time is over, two minor
// releases or three months after the announcement, whichever is later.
type Deprecated struct {
	Until      string // the day from which it may be gone, as 2027-03-31; required
	ReplacedBy string // the name or URI to use instead; "" for none
	Note       string // added to the description; "" for none
}

func (d *Deprecated) check() error {
	if d == nil {
		return nil
	}
	if d.Until == "" {
		return errors.New("no Deprecated.Until; say from which day it may be gone, as 2027-03-31")
	}
	if _, err := time.Parse(time.DateOnly, d.Until); err != nil {
		return fmt.Errorf("Deprecated.Until %q is not a date; write it as 2027-03-31", d.Until)
	}
	return nil
}

// pipeline is called for checked values only.
func (d *Deprecated) pipeline() *invoke.Deprecated {
	if d == nil {
		return nil
	}
	until, _ := time.Parse(time.DateOnly, d.Until)
	return &invoke.Deprecated{Until: until, ReplacedBy: d.ReplacedBy, Note: d.Note}
}
