package resolve_test

import (
	"os"
	"testing"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/foldtest"
	"github.com/marketlog/marketlog/processors/resolve"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// scripted are the rates that a script states.
type scripted struct{ *foldtest.Rates }

func (s scripted) Rate(quoteID string) (resolve.Rate, bool) {
	rate, ok := s.Newest(quoteID)
	return resolve.Rate(rate), ok
}

// overrides are what operators say in all scripts.
func overrides(t *testing.T) *schemas.SymbolOverrides {
	o := schemas.NewSymbolOverrides()
	for _, said := range []struct{ at, source, symbol, coin string }{
		{"11:00:00", "okx", "ABC", "bitcoin"},
		{"11:00:05", "okx", "ABC", ""},
		{"11:00:00", schemas.GeneralSource, "NOPE9", "solana"},
		{"11:00:00", "kraken", "NOPE9", schemas.NoCoin},
		{"11:00:00", "kraken", "SOL", schemas.NoCoin},
	} {
		at, err := foldtest.Time(said.at)
		if err != nil {
			t.Fatal(err)
		}
		o.Apply(&eventsv1.SymbolOverride{Source: said.source, Symbol: said.symbol, CoinId: said.coin, Time: at})
	}
	return o
}

func TestResolve(t *testing.T) {
	root, err := os.OpenRoot("testdata")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	rates := foldtest.NewRates()
	unit := resolve.Unit(schemas.Coins(), overrides(t), scripted{rates})
	for _, file := range []string{"names.txt", "overrides.txt", "rates.txt", "refusals.txt", "flags.txt", "repeats.txt", "pulses.txt"} {
		t.Run(file, func(t *testing.T) {
			foldtest.Run(t, root, file, foldtest.Script{
				New: func() processors.Fold { return unit.New(0) }, Topic: unit.Input, Rates: rates, Pulses: file == "pulses.txt",
			})
		})
	}
}
