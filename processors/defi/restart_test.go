package defi_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/defi"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// logMinute is what the inputs hold of one minute, topic by topic.
type logMinute struct {
	end    int64
	topics [3][]eventsv1.Marked
}

// Places of the topics in a minute.
const (
	inMarkets = iota
	inRates
	inReference
)

// output is what a fold wrote in one minute.
type output struct {
	minute  int64
	records []*eventsv1.DefiRecord
	bytes   [][]byte
}

func (o output) equal(other output) bool {
	return o.minute == other.minute && slices.EqualFunc(o.bytes, other.bytes, bytes.Equal)
}

// summary is the one of the minute, nil for none.
func (o output) summary() *eventsv1.DefiSummary {
	for _, rec := range o.records {
		if s := rec.GetSummary(); s != nil {
			return s
		}
	}
	return nil
}

// closeMinute folds one minute; its topics the other way round if they were read so.
func closeMinute(t testing.TB, fold processors.MinuteFold, m logMinute, backwards, loaded bool) output {
	t.Helper()
	topics := m.topics
	if backwards {
		slices.Reverse(topics[:])
	}
	for _, records := range topics {
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
		value, err := o.Record.(*eventsv1.DefiRecord).MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		decoded := &eventsv1.DefiRecord{}
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
	fold := defi.New()
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

// generator invents what the inputs hold.
type generator struct {
	*rand.Rand
	end int64
	// repeated is when what other folds repeat each hour was last written, by key.
	repeated map[string]int64
	rates    map[string]*eventsv1.RateRecord
	markets  map[string]*eventsv1.MarketRecord
	m        logMinute
}

var (
	categories     = []string{"Lending", "Liquid Staking", "Staking Pool", "CEX", "Dexs", "CDP", "Liquid Restaking"}
	onChains       = []string{"Ethereum", "Solana", "Base", "OP Mainnet"}
	generatedCoins = []string{"bitcoin", "ethereum", "solana", "uniswap", "chainlink", "dogecoin", "usd-coin"}
)

// random is a few hours with all that goes wrong in them: minutes that nobody received, protocols that come, change their
// category and go, words that are taken back, nonsense, rates that end, expire, are shadowed and come back.
func random(seed uint64, length int) []logMinute {
	w := &generator{
		Rand: rand.New(rand.NewPCG(seed, 1)), end: time.Date(2026, 1, 5, 22, 0, 0, 0, time.UTC).UnixNano(),
		repeated: map[string]int64{}, rates: map[string]*eventsv1.RateRecord{}, markets: map[string]*eventsv1.MarketRecord{},
	}
	var minutes []logMinute
	for i := range length {
		w.end += int64(time.Minute)
		if i%97 == 50 {
			w.end += int64(w.IntN(200)) * int64(time.Minute) // silence
		}
		if seed%2 == 1 && i == length/2 {
			w.end += int64(9 * 24 * time.Hour)
		}
		w.m = logMinute{end: w.end}
		w.protocols(i)
		w.words()
		w.rate()
		w.market()
		minutes = append(minutes, w.m)
	}
	return minutes
}

func (w *generator) write(rec *eventsv1.ReferenceRecord) {
	w.m.topics[inReference] = append(w.m.topics[inReference], rec)
}

// protocols are reported all at once, and after that the changed ones from time to time.
func (w *generator) protocols(i int) {
	if i%23 != 3 {
		return
	}
	for n := range 30 {
		if i > 3 && w.IntN(3) != 0 || n%10 == 9 && i > 100 {
			continue
		}
		p := &eventsv1.Protocol{
			Source: "defillama", Slug: "p" + strconv.Itoa(n), Name: "P " + strconv.Itoa(n), Category: categories[(n+w.IntN(20)/19)%len(categories)],
			Tvl: decimal(1e9 * w.Float64()), Change1D: decimal(w.Float64() - 0.5), IngestTime: w.end - int64(time.Second),
		}
		for _, chain := range onChains[:1+w.IntN(len(onChains))] {
			p.Chains = append(p.Chains, &eventsv1.ChainAmount{Chain: chain, Amount: decimal(1e8 * w.Float64())})
			if n%2 == 0 {
				p.Chains = append(p.Chains, &eventsv1.ChainAmount{Chain: chain + "-borrowed", Amount: decimal(1e7 * w.Float64())})
			}
		}
		if n%4 == 0 {
			p.Chains = append(p.Chains, &eventsv1.ChainAmount{Chain: "borrowed", Amount: decimal(1e8 * w.Float64())}, &eventsv1.ChainAmount{Chain: "pool2", Amount: "77"})
		}
		switch w.IntN(25) {
		case 0:
			p.Tvl, p.Chains = "", nil
		case 1:
			p.Tvl = "-12"
		case 2:
			p.Tvl = "1e40"
		case 3:
			p.Source = "another"
		}
		w.write(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Protocol{Protocol: p}})
	}
	fetch := &eventsv1.Fetch{Source: "defillama", Feed: "protocols", Started: w.end - int64(2*time.Second)}
	if w.IntN(3) == 0 {
		fetch.Error = "timeout"
	}
	w.write(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Fetch{Fetch: fetch}})
}

// words are reports sent once in a while: of chains, of coins, of the source itself.
func (w *generator) words() {
	if w.IntN(15) == 0 {
		chain := onChains[w.IntN(len(onChains))]
		record := &eventsv1.ChainTvl{Source: "defillama", Chain: chain, CoinId: generatedCoins[w.IntN(3)]}
		if w.IntN(6) == 0 {
			record.CoinId = ""
		}
		w.write(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_ChainTvl{ChainTvl: record}})
	}
	if w.IntN(8) == 0 {
		id := generatedCoins[w.IntN(len(generatedCoins))]
		known, _ := schemas.Coins().ByID(id)
		record := &eventsv1.Coin{Source: "coingecko", SourceId: id, Symbol: known.Symbol, Name: known.Name, Part: []string{"list", "detail"}[w.IntN(2)]}
		if w.IntN(2) == 0 && id != "usd-coin" { // an id that goes on after the name USDC would prove nothing
			record.Source = "some-source"
		}
		record.Categories = [][]string{nil, {"DeFi"}, {"Memes"}, {"Memes", "Decentralized Finance (DeFi)"}}[w.IntN(4)]
		w.write(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Coin{Coin: record}})
	}
	if w.IntN(60) == 0 {
		w.write(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Notice{Notice: &eventsv1.SourceNotice{Source: "defillama", Simulated: w.IntN(2) == 0}}})
	}
}

// rate writes entries when they are reported, when they end and each hour, as their fold does.
func (w *generator) rate() {
	for n := range 40 {
		key := strconv.Itoa(n)
		if w.IntN(20) == 0 && !(n%5 == 0 && w.end/int64(time.Hour)%3 == 0) {
			e := &eventsv1.RateEntry{
				Provider: "p" + strconv.Itoa(n%30), Source: []string{"defillama-yields", "aave"}[n%2], Category: []string{"lending", "staking", "borrowing", "vault"}[n%4],
				CoinId: generatedCoins[n%len(generatedCoins)], Symbol: generatedCoins[n%len(generatedCoins)][:3], Pool: "pool " + key, Chain: onChains[n%3], Apr: 100*w.Float64() - 20,
				Time: w.end, Heard: w.end - int64(w.IntN(60))*int64(time.Second), Said: &eventsv1.Rate{Interval: int64(10 * time.Minute)},
			}
			e.Apy = e.Apr * 1.07
			if w.IntN(5) != 0 {
				tvl := 1e8 * w.Float64()
				e.TvlUsd = &tvl
			}
			switch w.IntN(12) {
			case 0:
				e.Ended = true
			case 1:
				e.Shadowed = "aave"
			case 2:
				e.CoinId, e.Unattached = "", "coin_unknown"
			case 3:
				e.Chain = ""
			case 4:
				e.Simulated = true
			}
			w.rates[key] = &eventsv1.RateRecord{Body: &eventsv1.RateRecord_Entry{Entry: e}}
			w.repeated["rate "+key] = 0
		}
		if rec := w.rates[key]; rec != nil && w.end-w.repeated["rate "+key] >= int64(time.Hour) {
			w.m.topics[inRates] = append(w.m.topics[inRates], rec)
			w.repeated["rate "+key] = w.end
		}
	}
}

// market writes rows that change, all once an hour, and the whole market every minute. In quiet minutes nothing moves.
func (w *generator) market() {
	quiet := w.IntN(3) == 0
	for _, id := range generatedCoins {
		if !quiet && w.IntN(3) == 0 {
			row := &eventsv1.Market{CoinId: id}
			if w.IntN(20) != 0 {
				marketCap := 1e10 * w.Float64()
				row.MarketCap = &marketCap
			}
			w.markets[id] = &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Market{Market: row}}
			w.repeated[id] = 0
		}
		if rec := w.markets[id]; rec != nil && w.end-w.repeated[id] >= int64(time.Hour) {
			w.m.topics[inMarkets] = append(w.m.topics[inMarkets], rec)
			w.repeated[id] = w.end
		}
	}
	if !quiet {
		w.markets["all"] = &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Summary{
			Summary: &eventsv1.Summary{TotalMarketCap: 1e11 + w.Float64(), Simulated: w.IntN(50) == 0},
		}}
	}
	if all := w.markets["all"]; all != nil {
		w.m.topics[inMarkets] = append(w.m.topics[inMarkets], all)
	}
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func whole(t testing.TB, minutes []logMinute, backwards bool) []output {
	t.Helper()
	fold := defi.New()
	var written []output
	for _, m := range minutes {
		written = append(written, closeMinute(t, fold, m, backwards, false))
	}
	return written
}

// A fold that begins again at any minute writes the same bytes as one that never stopped.
func TestRestartAtAnyMinuteChangesNothing(t *testing.T) {
	for _, seed := range streamtest.Seeds(t, 0, 1) {
		minutes := random(seed, 116)
		want := whole(t, minutes, false)
		for at := int(seed % 5); at < len(minutes)-1; at += 5 {
			fold := takeOver(t, minutes, want, at)
			for i := at + 1; i < min(len(minutes), at+64); i++ {
				if got := closeMinute(t, fold, minutes[i], false, false); !got.equal(want[i]) {
					t.Fatalf("seed %d: begun again behind minute %d, minute %d has other bytes:\n%s", seed, at, i, difference(got, want[i]))
				}
			}
		}
	}
}

func TestTheSameLogGivesTheSameBytes(t *testing.T) {
	minutes := random(2, 260)
	want := whole(t, minutes, false)
	summaries, states := 0, 0
	for i, got := range whole(t, minutes, true) {
		for _, rec := range got.records {
			if rec.GetSummary() != nil {
				summaries++
			} else if rec.GetState() != nil {
				states++
			}
		}
		if !got.equal(want[i]) {
			t.Fatalf("with the topics read in another order, minute %d has other bytes:\n%s", i, difference(got, want[i]))
		}
	}
	if summaries < 100 || states < 60 {
		t.Errorf("the log causes only %d summaries and %d states", summaries, states)
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
