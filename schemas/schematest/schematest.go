// Package schematest makes a small record of each topic, and what can be found in its place, for tests of those who read the log.
package schematest

import (
	"fmt"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// second is the log time of the first record of a topic.
const second = int64(1764000000) * 1e9

// Record is the value of the n-th record of a topic of the table, n from 1: one with a body of its own, caused by what no
// other is caused by.
func Record(topic string, n int) []byte {
	at, name := second+int64(n)*60e9, fmt.Sprintf("coin-%d", n)
	byOffset := &eventsv1.Mark{LogicVersion: 1, Offset: int64(n)}
	byTime := &eventsv1.Mark{LogicVersion: 1, Offset: at}
	tick := &eventsv1.Tick{
		Venue: "kraken", Symbol: "XBT/USD", Base: "XBT", Quote: "USD", Kind: eventsv1.TickKind_TICK_KIND_TRADE,
		EventId: fmt.Appendf(nil, "%016d", n), EventTime: at, IngestTime: at, Price: "100.5", Size: "2", TradeId: "7",
	}
	var rec interface{ MarshalVT() ([]byte, error) }
	switch topic {
	case schemas.TopicTicksRaw:
		rec = &eventsv1.RawRecord{Producer: "kraken", Epoch: second, Body: &eventsv1.RawRecord_Tick{Tick: tick}}
	case schemas.TopicTicks:
		rec = &eventsv1.ResolvedRecord{Mark: byOffset, Body: &eventsv1.ResolvedRecord_Tick{Tick: &eventsv1.ResolvedTick{
			Tick: tick, CoinId: name, QuoteId: schemas.USD, Rate: 1, RateTime: at,
		}}}
	case schemas.TopicQuotes:
		rec = &eventsv1.QuoteRecord{Mark: byTime, Body: &eventsv1.QuoteRecord_Rate{Rate: &eventsv1.QuoteRate{QuoteId: name, Rate: 2, Time: at, Method: "market"}}}
	case schemas.TopicPrices:
		rec = &eventsv1.PriceRecord{Mark: byOffset, Body: &eventsv1.PriceRecord_Price{Price: &eventsv1.Price{CoinId: name, Symbol: "C", Time: at, Price: 5, Source: "kraken"}}}
	case schemas.TopicCandles:
		rec = &eventsv1.CandleRecord{Mark: byOffset, Body: &eventsv1.CandleRecord_Candle{Candle: &eventsv1.Candle{CoinId: name, Start: at, Open: 1, High: 3, Low: 1, Close: 2, Volume: "4", Trades: 2}}}
	case schemas.TopicMarkets:
		rec = &eventsv1.MarketRecord{Mark: byTime, Body: &eventsv1.MarketRecord_Summary{Summary: &eventsv1.Summary{Time: at, TotalMarketCap: 5}}}
	case schemas.TopicRates:
		rec = &eventsv1.RateRecord{Mark: byTime, Body: &eventsv1.RateRecord_Project{Project: &eventsv1.RateProject{Slug: name, Name: "Project", Category: "lending", Time: at}}}
	case schemas.TopicDefi:
		rec = &eventsv1.DefiRecord{Mark: byTime, Body: &eventsv1.DefiRecord_Summary{Summary: &eventsv1.DefiSummary{Time: at}}}
	case schemas.TopicEarn:
		rec = &eventsv1.EarnRecord{Mark: byTime, Body: &eventsv1.EarnRecord_Variant{Variant: &eventsv1.EarnVariant{
			ProductId: name, VariantId: name, Provider: "kraken", ProviderName: "Kraken", CoinId: name, Symbol: "C", Category: "staking", Source: "kraken", Apr: 1, Apy: 2, Time: at,
		}}}
	case schemas.TopicBackfillRaw:
		rec = &eventsv1.BackfillRecord{Producer: "kraken", Body: &eventsv1.BackfillRecord_Candle{Candle: &eventsv1.BackfillCandle{
			Venue: "kraken", Symbol: "XBT/USD", Start: at, Open: "1", High: "2", Low: "1", Close: "2", Volume: "3",
		}}}
	case schemas.TopicReferenceRaw:
		rec = &eventsv1.ReferenceRecord{Producer: "coingecko", Epoch: second, Body: &eventsv1.ReferenceRecord_Coin{Coin: &eventsv1.Coin{
			Source: "coingecko", SourceId: name, Part: "list", Symbol: "C", Name: name, IngestTime: at,
		}}}
	case schemas.TopicCoinMarketsRaw:
		rec = &eventsv1.ReferenceRecord{Producer: "coingecko", Epoch: second, Body: &eventsv1.ReferenceRecord_CoinMarket{CoinMarket: &eventsv1.CoinMarket{
			Source: "coingecko", SourceId: name, Symbol: "C", Name: name, Price: "5", IngestTime: at,
		}}}
	case schemas.TopicRatesRaw:
		rec = &eventsv1.ReferenceRecord{Producer: "defillama", Epoch: second, Body: &eventsv1.ReferenceRecord_Rate{Rate: &eventsv1.Rate{Source: "defillama", IngestTime: at}}}
	case schemas.TopicUsage:
		rec = &eventsv1.UsageRecord{Replica: "replica", Number: int64(n), Budget: name, Plan: "pro", Day: second / 86400e9 * 86400e9, Requests: 1, Time: at}
	case schemas.TopicServed:
		rec = &eventsv1.ServedRecord{Replica: "replica", Number: int64(n), Time: at, Steps: []*eventsv1.ServedStep{
			{Time: at, Read: &eventsv1.ServedStep_Prices{Prices: &eventsv1.ServedPrices{Partition: 1, Offset: int64(n)}}},
			{Time: at, Read: &eventsv1.ServedStep_Minute{Minute: second / 60e9 * 60e9}},
			{Time: at, Read: &eventsv1.ServedStep_Rates{Rates: second / 60e9 * 60e9}},
			{Time: at, Read: &eventsv1.ServedStep_Sources{Sources: &eventsv1.ServedSources{Last: int64(n), Coins: int64(n) + 1, Clock: second}}},
			{Time: at, Read: &eventsv1.ServedStep_Pegs{Pegs: &eventsv1.ServedPegs{Coins: []*eventsv1.ServedPeg{{CoinId: "tether", MeanBps: 1.5, P95Bps: 4, Samples: uint32(n)}}}}},
			{Time: at, Read: &eventsv1.ServedStep_Candles{Candles: &eventsv1.ServedCandles{Closed: []int64{second / 60e9 * 60e9}, Folded: at}}},
			{Time: at, Read: &eventsv1.ServedStep_Figures{Figures: &eventsv1.ServedFigures{Time: second / 60e9 * 60e9, Whole: true, Coins: []*eventsv1.ServedFigure{{CoinId: "bitcoin", DayAgo: 1.5}}}}},
			{Time: at, Read: &eventsv1.ServedStep_Series{Series: &eventsv1.ServedSeries{Written: second / 60e9 * 60e9, Past: int64(n)}}},
		}}
	case schemas.TopicRestatements:
		rec = &eventsv1.RestatementRecord{Run: "replay-1", Attempt: 1, Time: at, Body: &eventsv1.RestatementRecord_Restatement{Restatement: &eventsv1.Restatement{
			Table: "candles_1m", View: schemas.ViewCandles, Kind: "changed", Cause: "replay", CoinId: name, EventTime: at,
			Key:    []*eventsv1.RestatedValue{{Name: "coin_id", Value: name}},
			Before: []*eventsv1.RestatedValue{{Name: "close", Value: "1"}}, After: []*eventsv1.RestatedValue{{Name: "close", Value: "2"}},
		}}}
	case schemas.TopicCorrections:
		rec = &eventsv1.CorrectionRecord{
			Id: fmt.Sprint(n), Kind: schemas.CorrectionExclude, Time: at, Venue: name, From: at, Author: "an operator", Reason: "stuck prices", Evidence: "https://example.com",
		}
	case schemas.TopicKeys:
		rec = &eventsv1.KeyRecord{Id: name, Hash: make([]byte, 32), Plan: "pro", Last4: "abcd", Budget: name, Created: at, Label: "sample"}
	case schemas.TopicTicksRawDead, schemas.TopicReferenceRawDead:
		rec = &eventsv1.DeadRecord{Letter: &eventsv1.DeadLetter{Reason: string(schemas.Absurd), Detail: "a price of 1e30", Source: name, Payload: []byte("{}"), IngestTime: at}}
	default:
		panic("topic " + topic + " has no sample")
	}
	value, err := rec.MarshalVT()
	if err != nil {
		panic(err)
	}
	return value
}

// Garbage is what can lie in a topic and is not a record of it, by its name. An empty value ends a key of a compacted topic,
// and is not one there.
func Garbage(topic string) map[string][]byte {
	noise := make([]byte, 40)
	for i := range noise {
		noise[i] = byte(0xff - i*7)
	}
	whole := Record(topic, 1_000)
	garbage := map[string][]byte{"noise": noise, "text": []byte("hello, world"), "half a record": whole[:len(whole)/2]}
	other := schemas.TopicUsage
	if topic == other {
		other = schemas.TopicReferenceRaw
	}
	garbage["a record of "+other] = Record(other, 1_000)
	if row, err := schemas.TopicNamed(topic); err != nil || !row.Compacted {
		garbage["nothing"] = nil
	}
	return garbage
}
