package resolve_test

import (
	"os"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/foldtest"
	"github.com/marketlog/marketlog/processors/resolve"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// scripted are the rates that a script gives.
type scripted struct{ *foldtest.Rates }

func (s scripted) Rate(quoteID string) (resolve.Rate, bool) {
	rate, ok := s.Newest(quoteID)
	return resolve.Rate(rate), ok
}

// Poloniex sells something else under the symbol: it is kept out once it has been off for ten minutes, as long as at
// least as many venues agree with the reference as do not.
func TestAMarketWithoutTheCoinsPriceIsDoubted(t *testing.T) {
	root, err := os.OpenRoot("testdata")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	// remembered are the log times at which the log has a market of SOL as doubted, by venue.
	for script, remembered := range map[string]map[string]string{"guard.txt": nil, "guard_remembered.txt": {"poloniex SOL_USD": "09:59:00", "okx SOL-USD": "08:00:00"}} {
		rates := foldtest.NewRates()
		foldtest.Run(t, root, script, foldtest.Script{New: func() processors.Fold {
			conflicts := resolve.NewConflictFilter()
			for _, report := range []struct{ source, id, price, at string }{
				{"coingecko", "solana", "210", "09:00:00"},
				{"coinpaprika", "sol-solana", "200", "10:00:00"},
				{"coingecko", "dogecoin", "0.1", "10:00:00"},
				{"coingecko", "cardano", "nonsense", "10:00:00"},
				{"coingecko", "no-coin-of-ours", "1", "10:00:00"},
			} {
				conflicts.Apply(&eventsv1.CoinMarket{Source: report.source, SourceId: report.id, Price: report.price, IngestTime: instant(t, report.at)})
			}
			for market, at := range remembered {
				venue, symbol, _ := strings.Cut(market, " ")
				conflicts.Remember(venue, symbol, instant(t, at))
			}
			return resolve.Unit(schemas.Coins(), overrides(t), corrections(t), scripted{rates}, conflicts).New(0)
		}, Topic: schemas.TopicTicksRaw, Rates: rates})
	}
}

// instant is a time of day of the scripts.
func instant(t *testing.T, text string) int64 {
	t.Helper()
	at, err := foldtest.Time(text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// overrides are what operators set in all scripts.
func overrides(t *testing.T) *schemas.SymbolOverrides {
	o := schemas.NewSymbolOverrides()
	for _, override := range []struct{ at, source, symbol, coin string }{
		{"11:00:00", "okx", "ABC", "bitcoin"},
		{"11:00:05", "okx", "ABC", ""},
		{"11:00:00", schemas.GeneralSource, "NOPE9", "solana"},
		{"11:00:00", "kraken", "NOPE9", schemas.NoCoin},
		{"11:00:00", "kraken", "SOL", schemas.NoCoin},
		{"10:00:00", "mexc", "SOL", "solana"},
		{"11:00:00", "okx", "DAI", schemas.NoCoin},
		{"11:00:00", "kraken", "DAI", "usd-coin"},
		{"11:00:00", schemas.GeneralSource, "EUR", "bitcoin"},
	} {
		at, err := foldtest.Time(override.at)
		if err != nil {
			t.Fatal(err)
		}
		o.Apply(&eventsv1.SymbolOverride{Source: override.source, Symbol: override.symbol, CoinId: override.coin, Time: at})
	}
	return o
}

// corrections are what operators corrected in all scripts.
func corrections(t *testing.T) *schemas.Corrections {
	at := func(text string) int64 {
		at, err := foldtest.Time(text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	exclude, withdraw := schemas.CorrectionExclude, schemas.CorrectionWithdraw
	return schemas.NewCorrections(
		&eventsv1.CorrectionRecord{Id: "b", Kind: withdraw, Time: at("12:00:05"), Withdraws: "a"}, // read in another order
		&eventsv1.CorrectionRecord{Id: "a", Kind: exclude, Time: at("12:00:01"), Venue: "okx", From: at("12:00:00")},
		&eventsv1.CorrectionRecord{Id: "c", Kind: exclude, Time: at("12:00:01"), Venue: "gemini", Symbol: "BTCUSD", From: at("12:00:00"), To: at("12:00:20")},
	)
}

func TestResolve(t *testing.T) {
	root, err := os.OpenRoot("testdata")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	rates := foldtest.NewRates()
	unit := resolve.Unit(schemas.Coins(), overrides(t), corrections(t), scripted{rates}, nil)
	for _, file := range []string{"names.txt", "overrides.txt", "corrections.txt", "rates.txt", "refusals.txt", "flags.txt", "repeats.txt", "pulses.txt"} {
		t.Run(file, func(t *testing.T) {
			foldtest.Run(t, root, file, foldtest.Script{
				New: func() processors.Fold { return unit.New(0) }, Topic: unit.Input, Rates: rates, Pulses: file == "pulses.txt",
			})
		})
	}
}
