package views_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/charts"
	"github.com/marketlog/marketlog/query/coins"
	"github.com/marketlog/marketlog/query/prices"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/rates"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// nothingYet is a past in which nothing was published.
type nothingYet struct {
	reach
	views.PublishedPrices // nobody asks for it
}

func (*nothingYet) Intervals(context.Context, string, time.Duration, time.Time, time.Time) ([]schemas.Candle, error) {
	return nil, nil
}

func (*nothingYet) CandleTail(context.Context, string, time.Duration, time.Time, time.Time) ([]schemas.Candle, error) {
	return nil, nil
}

func (*nothingYet) FirstPriced(context.Context) (map[string]time.Time, error) { return nil, nil }

// Every coin of the catalog has one price, which all operations serve from the same source, whether venues make it or a
// reference source reports it; and every name means the same coin in all operations.
func TestOneCatalogAndOnePriceEverywhere(t *testing.T) {
	w := querytest.NewFixture(t, querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,*:XBT", "aptos,APT,Aptos,2,coin,,", "ssv-network,SSV,SSV Network,3,token,,",
		"frax-share,FRAX,Frax,4,token,,*:FXS", "frax,FRAX,Legacy Frax Dollar,5,stablecoin,USD,", "unpriced,UNP,Unpriced,6,coin,,"))
	w.Now = w.Time("2026-11-20T10:00:00Z")
	at := func(ago time.Duration) int64 { return w.Now.Add(-ago).UnixNano() }
	own := map[string]float64{"bitcoin": 100_000, "aptos": 5, "frax-share": 0.73, "frax": 1}
	for id, price := range own {
		w.Price(id, w.Now, price)
	}
	w.Price("ssv-network", w.Now.Add(-11*time.Minute), 0.09) // no venue sends it any more, and a source does
	for _, line := range []string{
		`said notice: {source: "coingecko" name: "CoinGecko" simulated: true}`,
		`said coin: {source: "coingecko" source_id: "azure-badger-dao" part: "list" symbol: "abd" name: "Azure Badger DAO"}`,
		`said coin: {source: "coingecko" source_id: "apricot" part: "list" symbol: "apt" name: "Apricot"}`,
		fmt.Sprintf(`row coin_id: "bitcoin" rank: 1 price: 100000 price_source: "median" price_time: %d`, at(30*time.Second)),
		fmt.Sprintf(`row coin_id: "ssv-network" rank: 2 price: 0.08 price_source: "coingecko" price_time: %d volume24h: 7`, at(time.Minute)),
		fmt.Sprintf(`row coin_id: "azure-badger-dao" rank: 3 price: 0.002 price_source: "coingecko" price_time: %d`, at(2*time.Minute)),
		fmt.Sprintf(`row coin_id: "apricot" rank: 4 price: 3 price_source: "coinpaprika" price_time: %d`, at(time.Hour)),
		"rate lido lending bitcoin 2.5 interval=24h", "rated 2026-11-20T10:00:00Z",
		"now 2026-11-20T10:00:00Z", "minute 2026-11-20T10:00:00Z",
	} {
		w.Run(line)
	}
	past := &nothingYet{}
	candles, rateCharts := views.NewCandles(w.Prices, past), views.NewRateCharts(w.Yields, past)
	w.Serve(slices.Concat(prices.New(w.Prices, w.Catalog, views.NewConverter(w.Prices, w.Catalog, nil), nil, nil).Endpoints(),
		charts.New(w.Prices, w.Catalog, candles, nil, w.Yields, rateCharts).Endpoints(), coins.New(w.Prices, w.Catalog, w.Yields, candles, coins.Served{}, past).Endpoints(),
		rates.New(w.Yields, w.Prices, w.Catalog, past, rates.Served{}, rateCharts, nil, nil).Endpoints()))

	var all prices.SummaryBody
	querytest.Decode(t, w.Base()+"/api/v1/prices/summary", &all)
	for _, test := range []struct {
		id     string
		price  float64
		source string
		stale  bool
	}{
		{"bitcoin", 100_000, "median", false}, {"aptos", 5, "median", false}, {"frax", 1, "median", false}, {"frax-share", 0.73, "median", false},
		{"ssv-network", 0.08, "coingecko", false}, {"azure-badger-dao", 0.002, "coingecko", false}, {"apricot", 3, "coinpaprika", true},
	} {
		var one struct {
			Data struct{ Aggregated *prices.Aggregated }
		}
		querytest.Decode(t, w.Base()+"/api/v1/prices/"+test.id, &one)
		if a := one.Data.Aggregated; a == nil || a.CoinID != test.id || a.Price != test.price || a.PriceSource != test.source || a.IsStale != test.stale || test.source != "median" && (a.Min != a.Price || a.Max != a.Price || a.Providers != 0) {
			t.Errorf("prices/%s: got %+v, want %+v", test.id, a, test)
		}
		var list prices.ListBody
		querytest.Decode(t, w.Base()+"/api/v1/prices?vs=btc&symbols="+test.id, &list)
		if len(list.Prices) != 1 || list.Prices[0].CoinID != test.id || list.Prices[0].PriceUSD != test.price || list.Prices[0].PriceSource != test.source || *list.Prices[0].Price != test.price/100_000 {
			t.Errorf("prices of %s: got %+v, want %+v", test.id, list, test)
		}
		var current charts.CurrentBody
		querytest.Decode(t, w.Base()+"/api/v1/charts/"+test.id+"/current", &current)
		if got := current.Data; got.CoinID != test.id || got.Price == nil || *got.Price != test.price || got.PriceSource != test.source || got.Source == "" || got.IsStale != test.stale {
			t.Errorf("charts/%s/current: got %+v, want %+v", test.id, got, test)
		}
		var chart charts.ChartBody
		querytest.Decode(t, w.Base()+"/api/v1/charts/"+test.id+"?timeframe=1h", &chart)
		if chart.Data.CoinID != test.id || (chart.Meta.Reason == "not_traded") != (chart.Meta.Count == 0) {
			t.Errorf("charts/%s: got %+v", test.id, chart)
		}
	}
	for symbol, want := range map[string]string{"BTC": "bitcoin", "APT": "aptos", "SSV": "ssv-network", "ABD": "azure-badger-dao", "FRAX": "frax-share"} {
		if got := all.Data.Prices[symbol]; got == nil || got.CoinID != want {
			t.Errorf("prices/summary: %s is %+v, want %s", symbol, got, want)
		}
	}
	slices.Sort(all.Meta.Shadowed)
	if !slices.Equal(all.Meta.Shadowed, []string{"apricot", "frax"}) || all.Data.Count != len(all.Data.Prices) {
		t.Errorf("prices/summary: shadowed %v, count %d of %d", all.Meta.Shadowed, all.Data.Count, len(all.Data.Prices))
	}
	var none prices.PriceBody
	querytest.Decode(t, w.Base()+"/api/v1/prices/unpriced", &none)
	if none.Data.Aggregated.Value != nil || none.Meta.Reason != "no_price" {
		t.Errorf("prices/unpriced: got %+v", none)
	}
	for _, test := range []struct {
		name, want string
		ambiguous  bool
	}{
		{"FRAX", "frax-share", true}, {"frax", "frax", true}, {"APT", "aptos", true}, {"aptos", "aptos", false}, {"fxs", "frax-share", false},
		{"XBT", "bitcoin", false}, {"id:apricot", "apricot", false}, {"Bitcoin", "bitcoin", false},
	} {
		name, answers := test.name, map[string]string{}
		note := func(path, coin string, ambiguous bool) { answers[path] = fmt.Sprint(coin, " ", ambiguous) }
		var p prices.PriceBody
		querytest.Decode(t, w.Base()+"/api/v1/prices/"+name, &p)
		note("prices/{symbol}", p.Data.CoinID, p.Data.Ambiguous)
		var l prices.ListBody
		querytest.Decode(t, w.Base()+"/api/v1/prices?symbols="+name, &l)
		note("prices", l.Prices[0].CoinID, l.Prices[0].Ambiguous)
		var c coins.CoinBody
		querytest.Decode(t, w.Base()+"/api/v1/coins/"+name, &c)
		note("coins/{coinId}", c.Data.ID, c.Data.Ambiguous)
		var h coins.HistoryBody
		querytest.Decode(t, w.Base()+"/api/v1/coins/history/"+name, &h)
		note("coins/history/{symbol}", h.CoinID, h.Ambiguous)
		var r rates.SymbolBody
		querytest.Decode(t, w.Base()+"/api/v1/rates/"+name, &r)
		note("rates/{symbol}", r.Data.CoinID, r.Data.Ambiguous)
		for path, got := range answers {
			if want := fmt.Sprint(test.want, " ", test.ambiguous); got != want {
				t.Errorf("%s of %s: got %s, want %s", path, name, got, want)
			}
		}
		var chart charts.CurrentBody
		querytest.Decode(t, w.Base()+"/api/v1/charts/"+name+"/current", &chart)
		if chart.Data.CoinID != test.want {
			t.Errorf("charts of %s: got %s, want %s", name, chart.Data.CoinID, test.want)
		}
		explained := w.Base() + "/api/v1/prices/" + name + "/explain"
		if test.want == "apricot" { // what a source reports is made of no inputs of ours
			if response, err := http.Get(explained); err != nil || response.StatusCode != http.StatusNotFound {
				t.Errorf("explaining %s: got %v (%v), want 404", name, response, err)
			}
			continue
		}
		var x prices.ExplainBody
		querytest.Decode(t, explained, &x)
		if x.Data.CoinID != test.want {
			t.Errorf("explaining %s: got %s, want %s", name, x.Data.CoinID, test.want)
		}
	}
}
