package resolve_test

import (
	"os"
	"testing"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/foldtest"
	"github.com/marketlog/marketlog/processors/resolve"
	"github.com/marketlog/marketlog/schemas"
)

// scripted are the rates that a script states.
type scripted struct{ *foldtest.Rates }

func (s scripted) Rate(quoteID string) (resolve.Rate, bool) {
	rate, ok := s.Newest(quoteID)
	return resolve.Rate(rate), ok
}

func TestResolve(t *testing.T) {
	root, err := os.OpenRoot("testdata")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	rates := foldtest.NewRates()
	unit := resolve.Unit(schemas.Coins(), scripted{rates})
	for _, file := range []string{"names.txt", "rates.txt", "refusals.txt", "flags.txt", "repeats.txt", "pulses.txt"} {
		t.Run(file, func(t *testing.T) {
			foldtest.Run(t, root, file, foldtest.Script{
				New: func() processors.Fold { return unit.New(0) }, Topic: unit.Input, Rates: rates, Pulses: file == "pulses.txt",
			})
		})
	}
}
