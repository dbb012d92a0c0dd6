package explain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// moved is a market of four coins in two categories, two minutes after a day of which candles remember the end; bitcoin rose by them, and
// fell by what a source reports.
func (w *fixture) moved() {
	w.Now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for coin, categories := range map[string][]string{"bitcoin": {"Layer 1 (L1)", "layer-1 l1", "Proof of Work"}, "ethereum": {"Layer 1 (L1)"}, "tether": {"Stablecoins"}} {
		w.Said(&eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_Coin{Coin: &eventsv1.Coin{Source: "coingecko", SourceId: coin, Part: "detail",
			Symbol: coin, Name: coin, Categories: categories, IngestTime: w.Now.UnixNano()}}})
	}
	before := w.Now.Add(-24*time.Hour + time.Minute)
	w.AddCandles(&eventsv1.Candle{CoinId: "bitcoin", Start: before.UnixNano(), Open: 90_000, High: 90_000, Low: 90_000, Close: 90_000, Volume: "1"})
	for i, prices := range [][]float64{{97_000, 4_000, 1}, {98_123.4, 3_987.6, 0.9993}} {
		end := w.Now.Truncate(time.Minute).Add(time.Minute)
		for j, coin := range []string{"bitcoin", "ethereum", "tether"} {
			w.Now = end.Add(-20 * time.Second)
			w.observed(&eventsv1.CoinMarket{Source: "coingecko", SourceId: coin, Symbol: []string{"BTC", "ETH", "USDT"}[j], Name: coin, Price: fmt.Sprint(prices[j]), High24H: "110000", Low24H: "1",
				CirculatingSupply: []string{"19999999.5", "120000000.1", "150000000000"}[j], Volume24H: "90000", Change24H: []string{"-2.5", "-1.25", ""}[j], IngestTime: w.Now.UnixNano()})
			if i == 0 || j != 1 {
				w.traded(coin, end.Add(-time.Minute), prices[j], prices[j], prices[j], prices[j], 1e8+prices[j])
			}
		}
		w.close(end.UnixNano())
	}
	w.Must(w.figures.Refresh(w.T.Context()))
	w.Now = w.Now.Add(9 * time.Second)
}

// Sums over the coins of a category, how many coins moved, how many markets there are, and members of maps are explained where they are answered.
func TestSumsOverCoinsAreReproduced(t *testing.T) {
	w := newFixture(t)
	w.moved()
	w.fixing(&eventsv1.Fixing{Source: "ecb", Base: "USD", Quote: "EUR", Rate: "0.92", Date: "2026-11-20", IngestTime: w.Now.UnixNano()})
	w.fixing(&eventsv1.Fixing{Source: "ecb", Base: "USD", Quote: "JPY", Rate: "151.25", Date: "2026-11-20", IngestTime: w.Now.UnixNano()})
	w.Minute(w.Now)
	for path, want := range map[string][]string{
		"/api/v1/coins/categories?explain=1": {"category/layer-1-l1/marketCap", "category/layer-1-l1/marketCapChangePercentage24h", "category/proof-of-work/volume24h",
			"category/stablecoins/marketCap"},
		"/api/v1/global-stats/movers?segment=1-50&explain=1":               {"movers/1-50/50000/totalGainers", "movers/1-50/50000/totalLosers"},
		"/api/v1/global-stats/movers/1-250?min_volume=100000000&explain=1": {"movers/1-250/1e+08/totalGainers"},
		"/api/v1/global-stats/metrics?explain=1":                           {"global/activeMarkets", "global/dominance/BTC", "global/dominance/ETH", "global/dominance/USDT"},
		"/api/v1/global-stats/fear-greed?explain=1":                        {"fear-greed/computed", "fear-greed/computed/momentum", "fear-greed/computed/breadth"},
		"/api/v1/fiat/rates/usd?explain=1":                                 {"fiat/EUR", "fiat/JPY"},
	} {
		numbers, in := w.explained(path)
		for _, number := range want {
			if !slices.ContainsFunc(numbers, func(n string) bool {
				return n == number || strings.HasPrefix(number, "movers/1-250/") && n == "movers/1-250/100000000/totalGainers"
			}) {
				t.Errorf("%s explains %s, and not %s", path, numbers, number)
			}
		}
		if in.LeftOut != 0 {
			t.Errorf("%s leaves out %d numbers", path, in.LeftOut)
		}
	}
	if n := w.reproduced("category/layer-1-l1/marketCap", "?depth=2", true); len(n.Inputs) != 2 || n.Inputs[1].Number != "market/ethereum/marketCap" || *n.Value != *n.Inputs[0].Value+*n.Inputs[1].Value ||
		len(n.Inputs[0].Inputs) != 2 || n.Inputs[0].Reproduced == nil || !*n.Inputs[0].Reproduced {
		t.Errorf("got %+v of %+v", n, n.Inputs)
	}
	if n := w.reproduced("category/layer-1-l1/marketCapChangePercentage24h", "", true); len(n.Inputs) != 4 || !(*n.Value > 0) || len(n.Inputs[0].Records) != 1 || n.Inputs[0].Records[0].Topic != schemas.TopicMarkets {
		t.Errorf("got %+v of %+v", n, n.Inputs)
	}
	if n := w.reproduced("movers/all/50000/totalGainers", "", true); *n.Value != 1 || len(n.Inputs) != 1 || n.Inputs[0].Number != "market/bitcoin/change24h" {
		t.Errorf("got %+v of %+v", n, n.Inputs)
	}
	if n := w.reproduced("global/activeMarkets", "", true); *n.Value != 6 || len(n.Inputs) != 3 || n.Inputs[0].Records[0].Topic != schemas.TopicCandles {
		t.Errorf("got %+v of %+v", n, n.Inputs)
	}
	w.Now = w.Now.Add(2 * time.Minute)
	before := "?asOf=" + w.Now.Add(-time.Minute).Format(time.RFC3339)
	w.reproduced("global/activeMarkets", before, true)
	w.reproduced("global/dominance/bitcoin", before, true)
	for number, want := range map[string]string{
		"category/layer-1-l2/marketCap": "did you mean category/layer-1-l1/marketCap?", "category/stablecoins/volume24": "did you mean category/stablecoins/volume24h?",
		"movers/1-51/50000/totalGainers": "did you mean movers/1-50/50000/totalGainers?", "movers/1-50/x/totalLosers": "did you mean movers/1-50/50000/totalLosers?",
		"movers/1-50/-1/totalLosers": "there is no number", "movers/1-50/50000/totalLoser": "did you mean movers/1-50/50000/totalLosers?",
		"global/dominance/BTX": "did you mean global/dominance/BTC?", "global/dominanc/BTC": "did you mean global/dominance/BTC?", "global/dominance/btc": `"number":"global/dominance/BTC"`,
		"category/stablecoins/marketCap" + before: "AGED_OUT", "movers/all/50000/totalGainers" + before: "AGED_OUT",
	} {
		if got := w.Get("/api/v1/explain/" + number); !strings.Contains(got, want) {
			t.Errorf("%s: got %.400s, want %s", number, got, want)
		}
	}
}

// What the log has otherwise than it was served is not called reproduced.
func TestSumsOverOtherRowsAreNotReproduced(t *testing.T) {
	w := newFixture(t)
	w.moved()
	w.reproduced("category/layer-1-l1/marketCapChangePercentage24h", "", true)
	w.reproduced("movers/1-50/0/totalGainers", "", true)
	// Candles of a day ago were restated.
	w.AddCandles(&eventsv1.Candle{CoinId: "bitcoin", Start: w.Now.Truncate(time.Minute).Add(-24*time.Hour - time.Minute).UnixNano(), Open: 99_000, High: 99_000, Low: 99_000, Close: 99_000, Volume: "1"})
	w.reproduced("category/layer-1-l1/marketCapChangePercentage24h", "", false)
	w.reproduced("movers/1-50/0/totalGainers", "", false)
	w.reproduced("category/layer-1-l1/marketCap", "", true)
	// Another row is in the log.
	row := proto.CloneOf(w.rows["ethereum"])
	*row.MarketCap++
	w.append(schemas.TopicMarkets, 0, row.CoinId, row.Time, &eventsv1.MarketRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Offset: row.Time}, Body: &eventsv1.MarketRecord_Market{Market: row}})
	w.flush()
	if n := w.reproduced("category/layer-1-l1/marketCap", "", false); n.Recomputed == nil || *n.Recomputed != *n.Value+1 {
		t.Errorf("recomputed %v of %v", n.Recomputed, n.Value)
	}
	w.reproduced("category/stablecoins/marketCap", "", true)
	// A candle is in the log that the fold did not count.
	w.reproduced("global/activeMarkets", "", true)
	end := w.Now.Truncate(time.Minute).Add(time.Minute)
	c := &eventsv1.Candle{CoinId: "euro-coin", Start: end.Add(-time.Minute).UnixNano(), Close: 1, Accepted: 3}
	w.append(schemas.TopicCandles, views.PartitionOf(c.CoinId, 8), c.CoinId, c.Start, &eventsv1.CandleRecord{Mark: &eventsv1.Mark{LogicVersion: 2, Offset: w.Offset()}, Body: &eventsv1.CandleRecord_Candle{Candle: c}})
	w.close(end.UnixNano())
	if n := w.reproduced("global/activeMarkets", "", false); n.Recomputed == nil || *n.Recomputed != *n.Value+3 {
		t.Errorf("recomputed %v of %v", n.Recomputed, n.Value)
	}
}
