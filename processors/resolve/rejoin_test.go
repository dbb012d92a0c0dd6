package resolve

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

func TestRejoinKeepsWhatWasRecorded(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixNano()
	past := &RateHistory{}
	for i, usd := range []float64{1.001, 1.002} {
		past.Apply(int64(i), &eventsv1.QuoteRecord{Body: &eventsv1.QuoteRecord_Rate{Rate: &eventsv1.QuoteRate{
			QuoteId: "tether", Rate: usd, Time: noon + int64(i)*10*int64(time.Second),
		}}})
	}
	tick := func(base, quote string) *eventsv1.Tick {
		return &eventsv1.Tick{Venue: "kraken", Symbol: base + "/" + quote, Base: base, Quote: quote, IngestTime: noon}
	}
	overrides := schemas.NewSymbolOverrides(
		&eventsv1.SymbolOverride{Source: "kraken", Symbol: "ADA", CoinId: "cardano", Time: noon - int64(time.Hour)},
		&eventsv1.SymbolOverride{Source: "kraken", Symbol: "DOT", CoinId: "bitcoin", Time: noon - int64(time.Hour)},
		&eventsv1.SymbolOverride{Source: "kraken", Symbol: "UNI", CoinId: "bitcoin", Time: noon},
		&eventsv1.SymbolOverride{Source: "kraken", Symbol: "GUSD", CoinId: "tether", Time: noon - int64(time.Hour)},
		&eventsv1.SymbolOverride{Source: "kraken", Symbol: "TUSD", CoinId: "tether", Time: noon},
	)
	for _, test := range []struct {
		name           string
		recorded, want *eventsv1.ResolvedTick
	}{
		{
			"nothing new",
			&eventsv1.ResolvedTick{Tick: tick("XBT", "USDT"), CoinId: "bitcoin", QuoteId: "tether", Rate: 0.5, RateTime: 3, RateOffset: 4, Flags: uint32(schemas.Late)},
			&eventsv1.ResolvedTick{Tick: tick("XBT", "USDT"), CoinId: "bitcoin", QuoteId: "tether", Rate: 0.5, RateTime: 3, RateOffset: 4, Flags: uint32(schemas.Late)},
		},
		{
			"no rate was known and none is now",
			&eventsv1.ResolvedTick{Tick: tick("XBT", "USDT"), CoinId: "bitcoin", QuoteId: "tether", Flags: uint32(schemas.NoRate)},
			&eventsv1.ResolvedTick{Tick: tick("XBT", "USDT"), CoinId: "bitcoin", QuoteId: "tether", Flags: uint32(schemas.NoRate)},
		},
		{
			"the coin is known now",
			&eventsv1.ResolvedTick{Tick: tick("XBT", "USD"), QuoteId: schemas.USD, Rate: 1, RateTime: noon, Flags: uint32(schemas.Unmapped | schemas.Crossed)},
			&eventsv1.ResolvedTick{Tick: tick("XBT", "USD"), CoinId: "bitcoin", QuoteId: schemas.USD, Rate: 1, RateTime: noon, Flags: uint32(schemas.Crossed)},
		},
		{
			"the quote is known now: its rate of that moment",
			&eventsv1.ResolvedTick{Tick: tick("XBT", "USDT"), CoinId: "bitcoin", Flags: uint32(schemas.NoRate)},
			&eventsv1.ResolvedTick{Tick: tick("XBT", "USDT"), CoinId: "bitcoin", QuoteId: "tether", Rate: 1.001, RateTime: noon},
		},
		{
			"an operator has set what the quote is: its rate of that moment",
			&eventsv1.ResolvedTick{Tick: tick("XBT", "GUSD"), CoinId: "bitcoin", QuoteId: "gemini-dollar", Rate: 0.5, RateTime: 3, RateOffset: 4},
			&eventsv1.ResolvedTick{Tick: tick("XBT", "GUSD"), CoinId: "bitcoin", QuoteId: "tether", Rate: 1.001, RateTime: noon},
		},
		{
			"it was set at that very time, unheard",
			&eventsv1.ResolvedTick{Tick: tick("XBT", "TUSD"), CoinId: "bitcoin", QuoteId: "true-usd", Rate: 0.5, RateTime: 3, RateOffset: 4},
			&eventsv1.ResolvedTick{Tick: tick("XBT", "TUSD"), CoinId: "bitcoin", QuoteId: "true-usd", Rate: 0.5, RateTime: 3, RateOffset: 4},
		},
		{
			"the coin is not known any more",
			&eventsv1.ResolvedTick{Tick: tick("NOSUCH", "USD"), CoinId: "nosuch", QuoteId: schemas.USD, Rate: 1, RateTime: noon},
			&eventsv1.ResolvedTick{Tick: tick("NOSUCH", "USD"), QuoteId: schemas.USD, Rate: 1, RateTime: noon, Flags: uint32(schemas.Unmapped)},
		},
		{
			"a market that was doubted",
			&eventsv1.ResolvedTick{Tick: tick("SOL", "USD"), QuoteId: schemas.USD, Rate: 1, RateTime: noon, Flags: uint32(schemas.Unmapped | schemas.Doubtful)},
			&eventsv1.ResolvedTick{Tick: tick("SOL", "USD"), QuoteId: schemas.USD, Rate: 1, RateTime: noon, Flags: uint32(schemas.Unmapped | schemas.Doubtful)},
		},
		{
			"one that was doubted, and that an operator has vouched for",
			&eventsv1.ResolvedTick{Tick: tick("ADA", "USD"), QuoteId: schemas.USD, Rate: 1, RateTime: noon, Flags: uint32(schemas.Unmapped | schemas.Doubtful)},
			&eventsv1.ResolvedTick{Tick: tick("ADA", "USD"), CoinId: "cardano", QuoteId: schemas.USD, Rate: 1, RateTime: noon},
		},
		{
			"an operator's word",
			&eventsv1.ResolvedTick{Tick: tick("DOT", "USD"), CoinId: "polkadot", QuoteId: schemas.USD, Rate: 1, RateTime: noon},
			&eventsv1.ResolvedTick{Tick: tick("DOT", "USD"), CoinId: "bitcoin", QuoteId: schemas.USD, Rate: 1, RateTime: noon},
		},
		{
			"an operator's word of this moment, heard",
			&eventsv1.ResolvedTick{Tick: tick("UNI", "USD"), CoinId: "bitcoin", QuoteId: schemas.USD, Rate: 1, RateTime: noon},
			&eventsv1.ResolvedTick{Tick: tick("UNI", "USD"), CoinId: "bitcoin", QuoteId: schemas.USD, Rate: 1, RateTime: noon},
		},
		{
			"an operator's word of this moment, not heard yet",
			&eventsv1.ResolvedTick{Tick: tick("UNI", "USD"), CoinId: "uniswap", QuoteId: schemas.USD, Rate: 1, RateTime: noon},
			&eventsv1.ResolvedTick{Tick: tick("UNI", "USD"), CoinId: "uniswap", QuoteId: schemas.USD, Rate: 1, RateTime: noon},
		},
	} {
		before := proto.Clone(test.recorded)
		got := Reresolve(schemas.Coins(), overrides, past, test.recorded, noon+5*int64(time.Second))
		if !proto.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
		if !proto.Equal(before, test.recorded) {
			t.Errorf("%s: the recorded tick was changed to %v", test.name, test.recorded)
		}
	}
}
