package operations

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/instance"
)

// OpenLine is a link into the pages.
type OpenLine struct {
	URL string `json:"url"`
}

// openVerb makes a one-time link.
func openVerb(in *instance.Instance) admin.Command {
	return admin.Command{Name: "open", Run: func(_ context.Context, _ json.RawMessage, emit func(any) error) error {
		if in.Pages == nil {
			return errors.New("this process serves no pages: ask the one that runs `marketlog run` or `marketlog query`")
		}
		return emit(OpenLine{in.Pages.Link()})
	}}
}
