package markets_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/markets"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// logMinute is what the inputs hold of one minute: candles come from their topic, observations from theirs.
type logMinute struct {
	end          int64
	candles      []eventsv1.Marked
	observations []eventsv1.Marked
}

// output is what a fold wrote in one minute.
type output struct {
	minute  int64
	records []eventsv1.Marked
	bytes   [][]byte
}

func equal(a, b output) bool {
	return a.minute == b.minute && slices.EqualFunc(a.bytes, b.bytes, bytes.Equal)
}

// closeMinute folds one minute; the observations first if they were read first.
func closeMinute(t testing.TB, fold processors.MinuteFold, m logMinute, observationsFirst, loaded bool) output {
	t.Helper()
	order := [][]eventsv1.Marked{m.candles, m.observations}
	if observationsFirst {
		slices.Reverse(order)
	}
	for _, records := range order {
		for _, rec := range records {
			fold.Take(m.end, processors.Input{}, rec)
		}
	}
	if loaded {
		fold.Close(m.end, nil)
		return output{minute: m.end}
	}
	var out processors.Outputs
	out.Begin(processors.Input{Offset: m.end})
	fold.Close(m.end, &out)
	written := output{minute: m.end}
	for _, o := range out.List {
		rec := o.Record.(*eventsv1.MarketRecord)
		value, err := rec.MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		decoded := &eventsv1.MarketRecord{}
		if err := decoded.UnmarshalVT(value); err != nil {
			t.Fatal(err)
		}
		written.records = append(written.records, decoded)
		written.bytes = append(written.bytes, value)
	}
	return written
}

// memory is how far back the inputs and the output are read at a start.
const memory = processors.StateEvery + 2*time.Minute

// takeOver makes a fold that goes on after minutes[at] from what was written up to there.
func takeOver(t testing.TB, minutes []logMinute, written []output, at int) processors.MinuteFold {
	t.Helper()
	from := 0
	for i, m := range minutes[:at+1] {
		if m.end <= minutes[at].end-int64(memory) {
			from = i
		}
	}
	fold := markets.New(schemas.Coins())
	for _, w := range written[from : at+1] {
		for _, rec := range w.records {
			fold.Load(rec)
		}
	}
	for _, m := range minutes[from : at+1] {
		closeMinute(t, fold, m, false, true)
	}
	return fold
}

// random is a few hours of a market with all that goes wrong in one: minutes that nobody received, coins that come, go silent for
// longer than a price counts and come back, sources that report nothing, nonsense, or old things.
func random(seed uint64, length int) []logMinute {
	r := rand.New(rand.NewPCG(seed, 1))
	end := time.Date(2026, 1, 5, 22, 0, 0, 0, time.UTC).UnixNano()
	traded := []string{"bitcoin", "ethereum", "tether", "solana", "dogecoin", "some-new-coin"}
	coins := []string{"bitcoin", "ethereum", "tether", "solana", "tron", "a-coin", "b-coin", "c-coin", "d-coin"}
	price := map[string]float64{}
	for i, id := range append(slices.Clone(traded), coins...) {
		price[id] = 1000 / float64(i+1)
	}
	var minutes []logMinute
	for i := range length {
		end += int64(time.Minute)
		if i%97 == 50 {
			end += int64(r.IntN(200)) * int64(time.Minute) // silence
		}
		if seed%2 == 1 && i == length/2 {
			end += int64(9 * 24 * time.Hour)
		}
		m := logMinute{end: end}
		for n, id := range traded {
			price[id] *= 1 + (r.Float64()-0.5)/50
			if (i/40+n)%5 == 0 {
				continue
			}
			p := price[id]
			m.candles = append(m.candles, &eventsv1.CandleRecord{Body: &eventsv1.CandleRecord_Candle{Candle: &eventsv1.Candle{
				CoinId: id, Start: end - int64(time.Minute), Open: p, High: p * 1.01, Low: p * 0.99, Close: p, Volume24H: p * 1e6 * r.Float64(), Accepted: uint32(n + 1),
			}}})
		}
		for n, id := range coins {
			for _, source := range []string{"coingecko", "coinpaprika"} {
				if r.IntN(12) != 0 {
					continue
				}
				reported := &eventsv1.CoinMarket{
					Source: source, SourceId: id, Symbol: id[:1], Name: id, Price: decimal(price[id] * (1 + (r.Float64()-0.5)/20)),
					CirculatingSupply: decimal(float64(1e6 * (20 - n))), Volume24H: decimal(1e9 * r.Float64()), Change24H: decimal(10 * (r.Float64() - 0.5)),
					Change7D: decimal(30 * (r.Float64() - 0.5)), High24H: decimal(price[id] * 1.1), Low24H: decimal(price[id] * 0.9),
					Ath: decimal(price[id] * 3), EventTime: end - int64(r.IntN(300))*int64(time.Second), IngestTime: end - int64(time.Second),
				}
				switch r.IntN(10) {
				case 0:
					reported.Price = decimal(price[id] * 7)
				case 1:
					reported.CirculatingSupply = decimal(1e15)
				case 2:
					reported.CirculatingSupply, reported.MaxSupply = "", decimal(5e7)
				case 3:
					reported.EventTime = end - int64(72*time.Hour)
				}
				if source == "coinpaprika" {
					reported.Symbol, reported.Name = "BTC", "Bitcoin"
				}
				m.observations = append(m.observations, &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_CoinMarket{CoinMarket: reported}})
			}
		}
		minutes = append(minutes, m)
	}
	return minutes
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func whole(t testing.TB, minutes []logMinute, observationsFirst bool) []output {
	t.Helper()
	fold := markets.New(schemas.Coins())
	var written []output
	for _, m := range minutes {
		written = append(written, closeMinute(t, fold, m, observationsFirst, false))
	}
	return written
}

// A fold that begins again at any minute writes the same bytes as one that never stopped.
func TestRestartAtAnyMinuteChangesNothing(t *testing.T) {
	for _, seed := range streamtest.Seeds(t, 0, 1, 17) { // 17 forgets a coin in a minute in which its state is due, and is due in the next
		minutes := random(seed, 260)
		want := whole(t, minutes, false)
		for at := 0; at < len(minutes)-1; at++ {
			fold := takeOver(t, minutes, want, at)
			for i := at + 1; i < min(len(minutes), at+70); i++ {
				if got := closeMinute(t, fold, minutes[i], false, false); !equal(got, want[i]) {
					t.Fatalf("seed %d: begun again behind minute %d, minute %d has other bytes:\n%s", seed, at, i, difference(got, want[i]))
				}
			}
		}
	}
}

func TestTheSameLogGivesTheSameBytes(t *testing.T) {
	minutes := random(2, 200)
	want := whole(t, minutes, false)
	records := 0
	for i, got := range whole(t, minutes, true) {
		records += len(got.records)
		if !equal(got, want[i]) {
			t.Fatalf("with the topics read in another order, minute %d has other bytes:\n%s", i, difference(got, want[i]))
		}
	}
	if records < 1000 {
		t.Errorf("the script causes only %d records", records)
	}
}

// The ranks of a minute are those of all caps sorted, though only the coins whose rows are new are sorted.
func TestRanksAreThoseOfAllCapsSorted(t *testing.T) {
	c := newCrowd(200)
	rows := map[string]*eventsv1.Market{}
	for round := range 60 {
		records := c.records()
		for i, rec := range records {
			if reference, ok := rec.(*eventsv1.ReferenceRecord); ok {
				reference.GetCoinMarket().CirculatingSupply = []string{"1234567.8", "1000", "1000", "90000", ""}[(i*7+round)%5] // some have no cap
				reference.GetCoinMarket().Price = decimal(float64(100 + (i+round)%8))                                           // and some the same
			}
		}
		c.close(records)
		for _, o := range c.out.List {
			if row := o.Record.(*eventsv1.MarketRecord).GetMarket(); row != nil {
				rows[row.CoinId] = row
			}
		}
		if round < observedEvery {
			continue // not all have been reported
		}
		sorted := slices.SortedFunc(maps.Values(rows), func(a, b *eventsv1.Market) int {
			return cmp.Or(cmp.Compare(b.GetMarketCap(), a.GetMarketCap()), strings.Compare(a.CoinId, b.CoinId))
		})
		for i, row := range sorted {
			want := uint32(i + 1)
			if row.MarketCap == nil {
				want = 0
			}
			if row.Rank != want {
				t.Fatalf("minute %d: %s with a cap of %v has rank %d, want %d", round, row.CoinId, row.GetMarketCap(), row.Rank, want)
			}
		}
	}
}

func difference(got, want output) string {
	for i := range max(len(got.records), len(want.records)) {
		switch {
		case i >= len(got.records):
			return fmt.Sprintf("record %d is missing: want %v", i, want.records[i])
		case i >= len(want.records):
			return fmt.Sprintf("record %d should not be: got %v", i, got.records[i])
		case !bytes.Equal(got.bytes[i], want.bytes[i]):
			return fmt.Sprintf("record %d:\n got %.1500v\nwant %.1500v", i, got.records[i], want.records[i])
		}
	}
	return "none"
}
