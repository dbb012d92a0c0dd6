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
			"the coin is not known any more",
			&eventsv1.ResolvedTick{Tick: tick("NOSUCH", "USD"), CoinId: "nosuch", QuoteId: schemas.USD, Rate: 1, RateTime: noon},
			&eventsv1.ResolvedTick{Tick: tick("NOSUCH", "USD"), QuoteId: schemas.USD, Rate: 1, RateTime: noon, Flags: uint32(schemas.Unmapped)},
		},
	} {
		before := proto.Clone(test.recorded)
		got := Rejoin(schemas.Coins(), schemas.NewSymbolOverrides(), past, test.recorded, noon+5*int64(time.Second))
		if !proto.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
		if !proto.Equal(before, test.recorded) {
			t.Errorf("%s: the recorded tick was changed to %v", test.name, test.recorded)
		}
	}
}
