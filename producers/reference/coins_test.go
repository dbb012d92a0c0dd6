package reference

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers/poll"
)

// The request decides how its answer is read: an empty page after the last coin is not a list without coins.
func TestAnswersAreReadByWhatWasAskedFor(t *testing.T) {
	const (
		row    = `{"id":"harbor","symbol":"hbr","name":"Harbor","current_price":1}`
		listed = `{"id":"harbor","symbol":"hbr","name":"Harbor","is_active":true}`
		chart  = `{"market_caps":[[1767567600000,7],[1767571200000,8.5],[1767574800000,null],[1767578400000,0]],"total_volumes":[[1767567600000,1]]}`
		ticker = `{"id":"hbr-harbor","symbol":"HBR","name":"Harbor","quotes":{"USD":{"price":1}}}`
	)
	for _, c := range []struct {
		source       poll.Source
		path, answer string
		records      int
		reads        bool
	}{
		{coingecko(), "/coins/markets?vs_currency=usd&page=1", "[]", 0, false},
		{coingecko(), "/coins/markets?vs_currency=usd", "[]", 0, false},
		{coingecko(), "/coins/markets?vs_currency=usd&page=68", "[]", 0, true},
		{coingecko(), "/coins/markets?vs_currency=usd&page=68", "[" + row + "]", 1, true},
		{coingecko(), "/coins/list?include_platform=true", "[]", 0, false},
		{coingecko(), "/coins/list?include_platform=true", "[" + row + "]", 1, true},
		{coingecko(), "/coins/markets?page=2", "[" + listed + "]", 0, false},
		{coingecko(), "https://api.coingecko.com/api/v3/coins/list", "[" + listed + "]", 1, true},
		{coingecko(), "/coins/categories", "[" + row + "]", 0, false},
		{coingecko(), "/coins/harbor?localization=false", listed, 1, true},
		{coingecko(), "/coins/harbor/tickers", listed, 0, false},
		{coingecko(), "/simple/price?ids=harbor", listed, 0, false},
		{coingecko(), "/global", `{"data":{"total_market_cap":{"usd":1}}}`, 1, true},
		{coingecko(), "/global/decentralized_finance_defi", `{"data":{"total_market_cap":{"usd":1}}}`, 0, false},
		{coingecko(), "/coins/harbor/market_chart?days=30", chart, 2, true},
		{coingecko(), "/coins/harbor/market_chart?days=30", `{"market_caps":[],"total_volumes":[]}`, 0, true},
		{coingecko(), "/coins/harbor/market_chart?days=30", `{"prices":[[1767571200000,1]]}`, 0, false},
		{coingecko(), "/coins/harbor/market_chart?days=30", `{"error":"coin not found"}`, 0, false},
		{coingecko(), "/coins/harbor/market_chart?days=30", "[]", 0, false},
		{coingecko(), "/coins/harbor/ohlc?days=30", chart, 0, false},
		{coinpaprika(), "/tickers?quotes=USD", "[" + ticker + "]", 1, true},
		{coinpaprika(), "/tickers/hbr-harbor", ticker, 1, true},
		{coinpaprika(), "/coins", "[" + listed + "]", 1, true},
		{coinpaprika(), "/coins", "[]", 0, false},
		{coinpaprika(), "/coins", "[" + ticker + "]", 0, false},
		{coinpaprika(), "/coins/hbr-harbor", listed, 1, true},
		{coinpaprika(), "/coins/hbr-harbor/twitter", "[" + listed + "]", 0, false},
		{coinpaprika(), "/people/satoshi", listed, 0, false},
		{coinpaprika(), "%zz", listed, 0, false},
	} {
		var readings poll.Readings
		err := c.source.Decode(c.path, []byte(c.answer), &readings)
		if (err == nil) != c.reads || len(readings.Records) != c.records || len(readings.Refused) > 0 {
			t.Errorf("%s of %s: %d records, %v, refused %v, want %d and read: %t", c.path, c.source.Slug, len(readings.Records), err, readings.Refused, c.records, c.reads)
		}
	}
}

// A point of a chart keeps its time and its values, by days; what was not reported is unknown.
func TestChartsAreReadByDays(t *testing.T) {
	const body = `{"prices":[[1767567600123,2]],"market_caps":[[1767567600123,7e0],[1767571200000,8.5],[1767574800000,null],[1767578400000,0],[1767582000000]],` +
		`"total_volumes":[[1767567600123,1.50],[1767571200000,null],[1767574800000,3]]}`
	var readings poll.Readings
	if err := decodeCoinGecko("/coins/harbor/market_chart?days=30", []byte(body), &readings); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, rec := range readings.Records {
		p := rec.GetCoinPast()
		got = append(got, fmt.Sprint(p.SourceId, " ", time.Unix(0, p.Day).UTC().Format(time.RFC3339)))
		for _, point := range p.Points {
			got = append(got, fmt.Sprint(point.Time, " ", point.MarketCap, " ", point.Volume24H))
		}
	}
	want := []string{"harbor 2026-01-04T00:00:00Z", "1767567600123000000 7 1.5", "harbor 2026-01-05T00:00:00Z", "1767571200000000000 8.5 "}
	if !slices.Equal(got, want) || len(readings.Refused) != 1 {
		t.Errorf("read are %q, refused %v, want %q and one point without a value refused", got, readings.Refused, want)
	}
	for name, body := range map[string]string{
		"a negative cap": `{"market_caps":[[1767567600000,-7]],"total_volumes":[]}`, "no number": `{"market_caps":[[1767567600000,"much"]],"total_volumes":[]}`,
		"no time": `{"market_caps":[["then",7]],"total_volumes":[]}`,
	} {
		var readings poll.Readings
		if err := decodeCoinGecko("/coins/harbor/market_chart", []byte(body), &readings); err != nil || len(readings.Records) > 0 || len(readings.Refused) != 1 {
			t.Errorf("%s: read are %v, refused %v, %v, want one refusal", name, readings.Records, readings.Refused, err)
		}
	}
}

// The past of the largest coins is read whole at first and where a process was away for long, else each day what is new; and
// not before it is known which are the largest.
func TestThePastOfTheLargestIsReadOnce(t *testing.T) {
	k := knownCoins(60)
	paths := func() string { return fmt.Sprint(coinGeckoPasts(k)) }
	if got := paths(); got != "[]" {
		t.Errorf("before the ranks are known, asked for is %s", got)
	}
	k.Read[coinGeckoMarkets(1, 1)[0]] = k.Now
	all, few := coinGeckoChart("coin-00000", 30), coinGeckoChart("coin-00000", 2)
	if got := coinGeckoPasts(k); len(got) != 50 || got[0] != all || got[49] != coinGeckoChart("coin-00049", 30) {
		t.Errorf("at first, asked for are %d: %q", len(got), got)
	}
	for i := 1; i < 50; i++ {
		k.Read[coinGeckoChart(k.Ranked[i], 30)] = k.Now
	}
	for _, c := range []struct {
		all, few time.Duration // ago; 0 is never
		want     string
	}{
		{0, 0, "[" + all + "]"}, {23 * time.Hour, 0, "[]"}, {24 * time.Hour, 0, "[" + few + "]"}, {47 * time.Hour, 0, "[" + all + "]"},
		{70 * time.Hour, 23 * time.Hour, "[]"}, {70 * time.Hour, 25 * time.Hour, "[" + few + "]"}, {200 * time.Hour, 100 * time.Hour, "[" + all + "]"},
	} {
		delete(k.Read, all)
		delete(k.Read, few)
		if c.all > 0 {
			k.Read[all] = k.Now.Add(-c.all)
		}
		if c.few > 0 {
			k.Read[few] = k.Now.Add(-c.few)
		}
		if got := paths(); got != c.want {
			t.Errorf("read %s and %s ago, asked for is %s, want %s", c.all, c.few, got, c.want)
		}
	}
}

// knownCoins are more than the sources have.
func knownCoins(n int) poll.Known {
	k := poll.Known{Now: time.Unix(1e9, 0), Read: map[string]time.Time{}}
	for i := range n {
		k.Ranked = append(k.Ranked, fmt.Sprintf("coin-%05d", i))
	}
	return k
}

// hourly is what the rounds of a feed ask for in an hour.
func hourly(f poll.Feed, k poll.Known) float64 {
	return float64(len(f.Requests(k))) * float64(time.Hour) / float64(f.Interval)
}

// The crawl of coins takes what the other feeds leave, which is not nothing.
func TestFeedsLeaveRoomForTheCrawl(t *testing.T) {
	for _, s := range []poll.Source{coingecko(), coinpaprika()} {
		allowed := float64(s.Requests) * float64(time.Hour) / float64(s.Per)
		needed := 0.0
		for _, f := range s.Feeds {
			if !f.Skips {
				needed += hourly(f, knownCoins(20_000))
			}
		}
		if needed > allowed/2 {
			t.Errorf("the feeds of %s need %.1f requests an hour, want at most half of %.1f", s.Slug, needed, allowed)
		}
	}
}

func TestCoinPaprikaStaysWithinItsMonth(t *testing.T) {
	s := coinpaprika()
	allowed := float64(s.Requests) * float64(time.Hour) / float64(s.Per)
	if month := allowed * 24 * 31; month > 20_000*0.95 {
		t.Errorf("the budget is %.0f requests in a month, want some room below 20,000", month)
	}
	needed := 0.0
	for _, f := range s.Feeds {
		needed += hourly(f, knownCoins(60_000))
	}
	if needed > allowed {
		t.Errorf("the feeds need %.1f requests an hour of %.1f", needed, allowed)
	}
	// All of the coins that are crawled have their turn in the time after which they are read again.
	crawl := s.Feeds[slices.IndexFunc(s.Feeds, func(f poll.Feed) bool { return f.Skips })]
	if turns := hourly(crawl, knownCoins(60_000)) * refreshAfter.Hours(); turns < coinPaprikaDetails {
		t.Errorf("%.0f coins are read in %s, want all %d", turns, refreshAfter, coinPaprikaDetails)
	}
}

func TestPagesOfMarketsEndWithTheCoins(t *testing.T) {
	for coins, want := range map[int]int{0: 0, 999: 0, 1000: 0, 1001: 1, 17_000: 64, 300_000: coinGeckoPages - coinGeckoTop} {
		if got := len(coinGeckoRest(knownCoins(coins))); got != want {
			t.Errorf("%d coins: %d pages beside the first %d, want %d", coins, got, coinGeckoTop, want)
		}
	}
}
