package explain_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// The turnover of a minute is added up again of the single trades of the venues that were accepted in its last price, of those that came until it closed.
func TestTurnoverOfAMinuteIsAddedUpAgain(t *testing.T) {
	random := streamtest.Rand(t)
	w := newFixture(t)
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	p := views.PartitionOf("bitcoin", 8)
	for _, second := range []int{3, 40} {
		w.Now = start.Add(time.Duration(second) * time.Second)
		w.tick("bitcoin", "kraken", "BTC/USD", 90_000, "USD", 1)
		w.tick("bitcoin", "okx", "BTC-USDT", 90_010, "tether", 0.999)
		w.publish("bitcoin")
	}
	type market struct{ venue, symbol string }
	venues := []market{{"kraken", "BTC/USD"}, {"okx", "BTC-USDT"}, {"kraken", "BTC/USDT"}, {"bitstamp", "btcusd"}} // the last one is in no price
	write := func(coin string, rec *eventsv1.ResolvedRecord) {
		w.append(schemas.TopicTicks, p, coin, w.Now.UnixNano(), rec)
	}
	marks := int64(0)
	trade := func(m market, at time.Time, flags schemas.Flag) (rec *eventsv1.ResolvedRecord, usd float64) {
		marks++
		tick := &eventsv1.Tick{Venue: m.venue, Symbol: m.symbol, Kind: eventsv1.TickKind_TICK_KIND_TRADE, EventTime: at.UnixNano(), IngestTime: w.Now.UnixNano(),
			Price: fmt.Sprintf("%.2f", 90_000+100*random.Float64()), Size: fmt.Sprintf("%.8f", random.Float64())}
		rate := 1.0
		if strings.HasSuffix(m.symbol, "USDT") {
			rate = 0.999
		}
		value := decimal.RequireFromString(tick.Price).Mul(decimal.RequireFromString(tick.Size)).InexactFloat64()
		return &eventsv1.ResolvedRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Partition: 3, Offset: marks},
			Body: &eventsv1.ResolvedRecord_Tick{Tick: &eventsv1.ResolvedTick{CoinId: "bitcoin", Rate: rate, Flags: uint32(flags), Tick: tick}}}, value * rate
	}
	usd, traded, volumes := map[string]float64{}, map[market]uint64{}, map[market]decimal.Decimal{}
	trades := 50 + random.IntN(200)
	// A trade of the minute that came too far ahead of the clock is left out of the candle, which no record says.
	w.Now = start.Add(-90 * time.Second)
	ahead, _ := trade(venues[0], start.Add(time.Second), 0)
	isAhead := random.IntN(3) == 0
	if isAhead {
		write("bitcoin", ahead)
	}
	for i := range trades {
		w.Now = start.Add(time.Duration(i) * time.Minute / time.Duration(trades))
		m := venues[i%len(venues)]
		if i >= len(venues) {
			m = venues[random.IntN(len(venues))]
		}
		repeated, _ := trade(m, w.Now, schemas.Repeat)
		before, _ := trade(m, w.Now.Add(-time.Minute), 0)
		write("bitcoin", repeated)
		write("bitcoin", before)
		rec, value := trade(m, w.Now, 0)
		write("bitcoin", rec)
		if random.IntN(4) == 0 {
			write("bitcoin", rec) // by a fold that began again
		}
		usd[m.venue] += value
		traded[m]++
		volumes[m] = volumes[m].Add(decimal.RequireFromString(rec.GetTick().Tick.Size))
	}
	w.Now = start.Add(time.Minute + schemas.AllowedLateness)
	later, _ := trade(venues[0], start.Add(59*time.Second), 0)
	write("bitcoin", later) // after the minute had closed
	c := &eventsv1.Candle{CoinId: "bitcoin", Start: start.UnixNano(), Open: 90_000, High: 90_010, Low: 90_000, Close: 90_010, Volume: "1", VolumeUsd: usd["kraken"] + usd["okx"], Trades: 3, Accepted: 2}
	for _, m := range venues {
		w.append(schemas.TopicCandles, p, "bitcoin", c.Start, &eventsv1.CandleRecord{Mark: &eventsv1.Mark{LogicVersion: 2, Offset: w.Offset()}, Body: &eventsv1.CandleRecord_VenueCandle{
			VenueCandle: &eventsv1.VenueCandle{Venue: m.venue, Symbol: m.symbol, CoinId: "bitcoin", Start: c.Start, Volume: volumes[m].String(), Trades: traded[m]}}})
	}
	w.append(schemas.TopicCandles, p, "bitcoin", c.Start, &eventsv1.CandleRecord{Mark: &eventsv1.Mark{LogicVersion: 2, Offset: w.Offset()}, Body: &eventsv1.CandleRecord_Candle{Candle: c}})
	w.AddCandles(c)
	w.state("bitcoin").AddCandle(c)
	w.close(start.Add(time.Minute).UnixNano())
	number := "candle/bitcoin/1m/" + start.Format(time.RFC3339) + "/volumeUsd"
	if isAhead {
		if n := w.ask(number, ""); n.Reproduced != nil || !strings.Contains(n.Note, "cannot be told") {
			t.Errorf("got %+v, want that it is not computed again", n)
		}
		return
	}
	n := w.reproduced(number, "", true)
	if len(n.Inputs) != 2 || *n.Value != c.VolumeUsd || n.Note != "" {
		t.Fatalf("got %+v, want the turnover of two venues", n)
	}
	for _, in := range n.Inputs {
		if _, venue, _ := strings.Cut(in.Number, "/"); math.Abs(*in.Value-usd[strings.TrimSuffix(venue, "/bitcoin")]) > 0 || len(in.Inputs) == 0 || len(in.Inputs[0].Records) != 1 {
			t.Errorf("got the input %+v, want %v", in, usd)
		}
	}
}

// Of a minute of which the log lacks trades it is not said that its turnover is another one.
func TestTurnoverIsNotAddedUpOfLessThanAllTrades(t *testing.T) {
	w := newFixture(t)
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.Now = start.Add(time.Second)
	w.tick("bitcoin", "kraken", "BTC/USD", 90_000, "USD", 1)
	w.publish("bitcoin")
	w.append(schemas.TopicCandles, views.PartitionOf("bitcoin", 8), "bitcoin", start.UnixNano(), &eventsv1.CandleRecord{Mark: &eventsv1.Mark{LogicVersion: 2, Offset: w.Offset()},
		Body: &eventsv1.CandleRecord_VenueCandle{VenueCandle: &eventsv1.VenueCandle{Venue: "kraken", Symbol: "BTC/USD", CoinId: "bitcoin", Start: start.UnixNano(), Volume: "1", Trades: 1}}})
	w.traded("bitcoin", start, 90_000, 90_000, 90_000, 90_000, 1)
	w.close(start.Add(time.Minute).UnixNano())
	if n := w.ask("candle/bitcoin/1m/"+start.Format(time.RFC3339)+"/volumeUsd", ""); n.Reproduced != nil || !strings.Contains(n.Note, "no longer has all trades") {
		t.Errorf("got %+v, want the reason why it is not computed again", n)
	}
}
