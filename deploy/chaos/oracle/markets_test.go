package oracle_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/chaos/oracle"
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/markets"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// run is a scripted market: what the log holds of it, and by which minutes.
type run struct {
	t            testing.TB
	candles      map[int32][]oracle.Record
	observations []oracle.Record
	minutes      []runMinute
	closes       []int64
}

type runMinute struct {
	end     int64
	records []eventsv1.Marked
}

func (r *run) minute(end int64) {
	r.minutes = append(r.minutes, runMinute{end: end})
	r.closes = append(r.closes, end)
	for range 3 { // a clock that jumps is believed from its third record on
		r.observe(&eventsv1.ReferenceRecord{Producer: "sources", Body: &eventsv1.ReferenceRecord_Clock{Clock: &eventsv1.Clock{Time: end - int64(time.Minute)}}})
	}
}

func (r *run) candle(partition int32, c *eventsv1.Candle) {
	records := r.candles[partition]
	rec := &eventsv1.CandleRecord{Mark: &eventsv1.Mark{Offset: int64(len(records))}, Body: &eventsv1.CandleRecord_Candle{Candle: c}}
	value, err := rec.MarshalVT()
	if err != nil {
		r.t.Fatal(err)
	}
	r.candles[partition] = append(records, oracle.Record{Offset: int64(len(records)), Value: value})
	last := &r.minutes[len(r.minutes)-1]
	last.records = append(last.records, rec)
}

func (r *run) observe(rec *eventsv1.ReferenceRecord) {
	value, err := rec.MarshalVT()
	if err != nil {
		r.t.Fatal(err)
	}
	r.observations = append(r.observations, oracle.Record{Offset: int64(len(r.observations)), Value: value})
	if rec.GetCoinMarket() != nil {
		last := &r.minutes[len(r.minutes)-1]
		last.records = append(last.records, rec)
	}
}

// fold runs the processor over the minutes; keep says which observations reach it, by their number, and may change them.
// Every restarts minutes another one takes over, as after a kill.
func (r *run) fold(keep func(n int, reported *eventsv1.CoinMarket) *eventsv1.CoinMarket, restarts int) []*eventsv1.MarketRecord {
	r.t.Helper()
	fold := markets.New(schemas.Coins())
	var written []*eventsv1.MarketRecord
	n := 0
	kept := make([][]eventsv1.Marked, len(r.minutes))
	for i, m := range r.minutes {
		if restarts > 0 && i%restarts == restarts-1 {
			fold = r.takeOver(kept[:i], written)
		}
		for _, rec := range m.records {
			if reported, ok := rec.(*eventsv1.ReferenceRecord); ok {
				changed := keep(n, reported.GetCoinMarket())
				n++
				if changed == nil {
					continue
				}
				rec = &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_CoinMarket{CoinMarket: changed}}
			}
			kept[i] = append(kept[i], rec)
			fold.Take(m.end, processors.Input{}, rec)
		}
		var out processors.Outputs
		out.Begin(processors.Input{Offset: m.end})
		fold.Close(m.end, &out)
		for _, o := range out.List {
			written = append(written, o.Record.(*eventsv1.MarketRecord))
		}
	}
	return written
}

func (r *run) takeOver(kept [][]eventsv1.Marked, written []*eventsv1.MarketRecord) processors.MinuteFold {
	fold := markets.New(schemas.Coins())
	from := 0
	for i := range kept {
		if r.closes[i] <= r.closes[len(kept)-1]-int64(processors.StateEvery+2*time.Minute) {
			from = i
		}
	}
	for _, rec := range written {
		if rec.Mark.Offset >= r.closes[from] {
			fold.Load(rec)
		}
	}
	for i := from; i < len(kept); i++ {
		for _, rec := range kept[i] {
			fold.Take(r.closes[i], processors.Input{}, rec)
		}
		fold.Close(r.closes[i], nil)
	}
	return fold
}

func every(_ int, reported *eventsv1.CoinMarket) *eventsv1.CoinMarket { return reported }

// want is what the oracle works out from the log.
func (r *run) want() []oracle.MarketMinute {
	r.t.Helper()
	known := oracle.Market{Coins: map[string]oracle.MarketCoin{
		"bitcoin": {Symbol: "BTC", Name: "Bitcoin"}, "ethereum": {Symbol: "ETH", Name: "Ethereum"}, "tether": {Symbol: "USDT", Name: "Tether", Stablecoin: true},
	}, ID: func(source, id string) string {
		if source == "coingecko" {
			return id
		}
		return map[string]string{"btc-bitcoin": "bitcoin", "bitcoin": "bitcoin", "usdt-tether": "tether", "tether": "tether"}[id]
	}}
	want, err := known.FoldMarkets(r.candles, r.observations, r.closes)
	if err != nil {
		r.t.Fatal(err)
	}
	return want
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// faulty is a market in which venues, sources and the clock fail.
func faulty(t testing.TB, seed uint64, length int) *run {
	r := &run{t: t, candles: map[int32][]oracle.Record{}}
	chance := rand.New(rand.NewPCG(seed, 7))
	end := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC).UnixNano()
	ids := []string{"bitcoin", "ethereum", "tether", "n-coin", "m-coin", "l-coin", "k-coin"}
	paprika := map[string]string{"bitcoin": "btc-bitcoin", "tether": "usdt-tether", "n-coin": "n-of-nobody"}
	names := map[string][2]string{"bitcoin": {"BTC", "Bitcoin"}, "tether": {"USDT", "Tether"}}
	price := map[string]float64{}
	for i, id := range ids {
		price[id] = 60_000 / float64(i*i*10+1)
	}
	for i := range length {
		end += int64(time.Minute)
		switch {
		case i%90 == 60:
			end += int64(chance.IntN(300)) * int64(time.Minute)
		case i == length/2:
			end += int64(time.Duration(chance.IntN(20)) * 24 * time.Hour)
		}
		r.minute(end)
		for n, id := range ids {
			price[id] *= 1 + (chance.Float64()-0.5)/30
			p := price[id]
			if n < 4 && (i/25+n)%4 != 0 {
				r.candle(int32(n%2), &eventsv1.Candle{
					CoinId: id, Start: end - int64(time.Minute), Open: p, High: p * 1.002, Low: p * 0.997, Close: p * 1.001,
					Volume24H: float64(chance.IntN(3)) * p * 1e5, Accepted: uint32(n + 2), Simulated: i%50 < 3,
				})
			}
			for _, source := range []string{"coingecko", "coinpaprika", "another"} {
				if chance.IntN(6) != 0 {
					continue
				}
				reported := &eventsv1.CoinMarket{
					Source: source, SourceId: id, Symbol: names[id][0], Name: names[id][1], Price: decimal(p * (1 + (chance.Float64()-0.5)/40)),
					CirculatingSupply: decimal(float64(2e6 - 1e4*n)), TotalSupply: "3000000", Volume24H: decimal(p * 1e5 * chance.Float64()),
					High24H: decimal(p * 1.04), Low24H: decimal(p * 0.96), Change1H: decimal(chance.Float64() - 0.5), Change24H: decimal(9 * (chance.Float64() - 0.4)),
					Change7D: decimal(20 * (chance.Float64() - 0.5)), Change1Y: "120.5", Ath: decimal(p * 1.1), AthTime: 5, Atl: decimal(p * 0.95), AtlTime: 6,
					EventTime: end - int64(chance.IntN(120))*int64(time.Second), IngestTime: end - int64(chance.IntN(30))*int64(time.Second),
				}
				if source == "coinpaprika" {
					reported.SourceId = paprika[id]
					if reported.SourceId == "" {
						continue
					}
				} else if reported.Symbol == "" {
					reported.Symbol, reported.Name = id[:1]+"c", strings.ToUpper(id)
				}
				spoil(chance, reported, p)
				r.observe(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_CoinMarket{CoinMarket: reported}})
			}
		}
	}
	return r
}

// spoil makes every third observation wrong or poor.
func spoil(chance *rand.Rand, reported *eventsv1.CoinMarket, price float64) {
	switch chance.IntN(30) {
	case 0:
		reported.Price = decimal(price * 9)
	case 1:
		reported.Price = ""
	case 2:
		reported.CirculatingSupply = "900000000000"
	case 3:
		reported.CirculatingSupply, reported.MaxSupply = "0", "7000000"
	case 4:
		reported.EventTime -= int64(50 * time.Hour)
	case 5:
		reported.EventTime += int64(50 * time.Hour)
	case 6:
		reported.MarketCap = decimal(price)
	case 7:
		reported.Volume24H, reported.High24H, reported.Low24H, reported.Change24H = "", "", "", ""
	case 8:
		reported.Change24H, reported.Volume24H = "-100", "0"
	case 9:
		reported.Ath, reported.Atl, reported.TotalSupply = "", "0", ""
	}
}

func TestMarketsEqualTheOracle(t *testing.T) {
	for _, seed := range streamtest.Seeds(t, 0, 1, 2) {
		r := faulty(t, seed, 400)
		want := r.want()
		for _, restarts := range []int{0, 37} {
			got := r.fold(every, restarts)
			if wrong := oracle.CompareMarkets(want, got); len(wrong) > 0 {
				t.Fatalf("seed %d, begun again every %d minutes: %d differences:\n%s", seed, restarts, len(wrong), strings.Join(wrong[:min(len(wrong), 10)], "\n"))
			}
			if len(got) < 2000 {
				t.Errorf("seed %d: the fold wrote only %d records", seed, len(got))
			}
		}
	}
}

// Of 100,000 observations one is lost, one brings an old supply; one market cap is counted twice.
func TestPlantedMarketFaultsAreFound(t *testing.T) {
	const coins, rounds = 500, 200
	r := &run{t: t, candles: map[int32][]oracle.Record{}}
	end := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC).UnixNano()
	for round := range rounds {
		end += int64(time.Minute)
		r.minute(end)
		for n := range coins {
			r.observe(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_CoinMarket{CoinMarket: &eventsv1.CoinMarket{
				Source: "coingecko", SourceId: fmt.Sprintf("coin-%03d", n), Symbol: "c", Name: "C", Price: decimal(1 + float64(n)/7 + float64(round%5)/100),
				CirculatingSupply: decimal(float64(1_000_000 + round)), Change24H: decimal(float64((n+round)%9) - 4), IngestTime: end - int64(time.Second),
			}}})
		}
	}
	want := r.want()
	got := r.fold(every, 0)
	if wrong := oracle.CompareMarkets(want, got); len(wrong) > 0 {
		t.Fatalf("%d differences without a fault:\n%s", len(wrong), strings.Join(wrong[:min(len(wrong), 5)], "\n"))
	}
	const victim = coins*(rounds-50) + 123
	lost := r.fold(func(n int, reported *eventsv1.CoinMarket) *eventsv1.CoinMarket {
		if n == victim {
			return nil
		}
		return reported
	}, 0)
	stale := r.fold(func(n int, reported *eventsv1.CoinMarket) *eventsv1.CoinMarket {
		if n != victim {
			return reported
		}
		old := r.repeated(reported)
		old.CirculatingSupply = "1000000"
		return old
	}, 0)
	doubled := slices.Clone(got)
	for i, rec := range doubled {
		if s := rec.GetSummary(); s != nil && i > len(doubled)/2 {
			again := &eventsv1.Summary{}
			value, err := s.MarshalVT()
			if err != nil {
				t.Fatal(err)
			}
			if err := again.UnmarshalVT(value); err != nil {
				t.Fatal(err)
			}
			again.TotalMarketCap += again.TotalMarketCap * again.Dominance[0].Percent / 100
			doubled[i] = &eventsv1.MarketRecord{Mark: rec.Mark, Body: &eventsv1.MarketRecord_Summary{Summary: again}}
			break
		}
	}
	for _, test := range []struct {
		what    string
		records []*eventsv1.MarketRecord
		names   string
	}{
		{"one observation of 100,000 dropped", lost, "coin-123"},
		{"one supply stale", stale, "coin-123"},
		{"one market cap counted twice", doubled, "the summary"},
		{"the last row lost", withoutLastRow(got), "coin-"},
	} {
		wrong := oracle.CompareMarkets(want, test.records)
		if len(wrong) == 0 || !strings.Contains(strings.Join(wrong, "\n"), test.names) {
			t.Errorf("%s: got %d differences, want some that name %s", test.what, len(wrong), test.names)
		}
	}
}

func (r *run) repeated(reported *eventsv1.CoinMarket) *eventsv1.CoinMarket {
	value, err := reported.MarshalVT()
	if err != nil {
		r.t.Fatal(err)
	}
	again := &eventsv1.CoinMarket{}
	if err := again.UnmarshalVT(value); err != nil {
		r.t.Fatal(err)
	}
	return again
}

func withoutLastRow(records []*eventsv1.MarketRecord) []*eventsv1.MarketRecord {
	for i := len(records) - 1; ; i-- {
		if records[i].GetMarket() != nil {
			return slices.Delete(slices.Clone(records), i, i+1)
		}
	}
}
