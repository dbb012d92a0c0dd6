package explain_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/explain"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/streamtest"
)

func TestAnswersReadAsTheirScripts(t *testing.T) {
	querytest.Run(t, func(t *testing.T) func(string) string { return newFixture(t).Run })
}

// ask explains a number.
func (w *fixture) ask(number, params string) *explain.Node {
	w.T.Helper()
	response, err := http.Get(w.Base() + "/api/v1/explain/" + number + params)
	w.Must(err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	w.Must(err)
	if response.StatusCode != http.StatusOK {
		w.T.Fatalf("%s%s is answered with %d %s", number, params, response.StatusCode, content)
	}
	var body explain.Body
	w.Must(json.Unmarshal(content, &body))
	return body.Data
}

var fields = []string{
	"price", "marketCap", "rank", "fullyDilutedValuation", "volume24h", "high24h", "low24h", "priceChange24h", "change1h", "change24h", "change7d",
	"marketCapChange24h", "marketCapChangePercent24h", "ath", "atl", "circulatingSupply", "totalSupply", "maxSupply",
}

// TestEveryFieldOfARowIsReproduced lets a market wander for more than an hour and explains fields of its rows now and at random past
// minutes, with a state of the hour before and, in the first hour of the log, without one. Each must be reproduced; one that follows
// from a candle of which the log has something else must not.
func TestEveryFieldOfARowIsReproduced(t *testing.T) {
	random := streamtest.Rand(t)
	w := newFixture(t)
	w.Store = nil // rows are explained from the log
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.Now = start
	coins := []string{"bitcoin", "tether"}
	names := map[string][]string{"bitcoin": {"BTC", "btc-bitcoin"}, "tether": {"USDT", "usdt-tether"}}
	prices := map[string]float64{"bitcoin": 97_000, "tether": 1}
	const minutes = 75
	for i := range minutes {
		end := start.Add(time.Duration(i+1) * time.Minute)
		for _, coin := range coins {
			if random.IntN(4) == 0 || i == 0 {
				prices[coin] *= 1 + (random.Float64()-0.5)/100
				w.Now = end.Add(-time.Duration(random.IntN(50)+1) * time.Second)
				source, id := "coingecko", coin
				if random.IntN(2) == 0 {
					source, id = "coinpaprika", names[coin][1]
				}
				w.observed(&eventsv1.CoinMarket{Source: source, SourceId: id, Symbol: names[coin][0], Name: coin, Price: fmt.Sprint(prices[coin]),
					CirculatingSupply: fmt.Sprint(1e6 * (1 + random.Float64())), MaxSupply: "21000000", TotalSupply: "20000000", Volume24H: fmt.Sprint(1e9 * random.Float64()),
					High24H: fmt.Sprint(prices[coin] * 1.02), Low24H: fmt.Sprint(prices[coin] * 0.98), Ath: fmt.Sprint(prices[coin] * 1.3), Atl: "0.5",
					AthTime: start.UnixNano(), AtlTime: start.UnixNano(), Change24H: "1.5", Change7D: "-3.25", IngestTime: w.Now.UnixNano()})
			}
			if coin == "bitcoin" && random.IntN(5) > 0 { // nobody trades tether: its price is a source's
				p := prices[coin] * (1 + (random.Float64()-0.5)/500)
				w.traded(coin, end.Add(-time.Minute), p, p*1.001, p*0.999, p*(1+(random.Float64()-0.5)/1000), 1e9*random.Float64())
			}
		}
		w.close(end.UnixNano())
	}
	for _, field := range fields {
		w.reproduced("market/bitcoin/"+field, "", true)
	}
	for _, number := range []string{"market/tether/price", "market/tether/volume24h", "global/totalMarketCap?depth=2", "global/btcDominance",
		"global/stablecoinMarketCap", "sentiment/all/medianChange24h", "fear-greed/computed"} {
		w.reproduced(number, "", true)
	}
	for range 10 {
		at := start.Add(2*time.Minute + time.Duration(random.IntN(minutes*60-120))*time.Second)
		n := w.reproduced("market/"+coins[random.IntN(2)]+"/"+fields[random.IntN(len(fields))], "?asOf="+at.Format(time.RFC3339), true)
		if n.Time > query.FormatTime(at.Add(-time.Minute).UnixNano()) { // within a minute it may not have been published
			t.Errorf("as of %s a row of %s is explained", at, n.Time)
		}
	}
	w.reproduced("global/totalMarketCap", "?asOf="+start.Add(70*time.Minute).Format(time.RFC3339), true)
	w.bounded("global/totalMarketCap?depth=9")
	w.traded("bitcoin", time.Unix(0, w.ended), 90_000, 90_000, 89_000, 89_500, 5)
	w.states["bitcoin"].Days[len(w.states["bitcoin"].Days)-1].Close *= 1.01
	w.close(w.ended + minute)
	w.reproduced("market/bitcoin/price", "", false)
}

// A coin about which nothing was known yet when its state was due has none: what came since is all of it.
func TestCoinsYoungerThanTheirStateAreReproduced(t *testing.T) {
	w := newFixture(t)
	w.Store = nil
	due := time.Unix(0, schemas.MarketStateDue("ethereum", time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC).UnixNano())).UTC()
	for i := -5; i <= 10; i++ {
		end := due.Add(time.Duration(i) * time.Minute)
		w.Now = end.Add(-30 * time.Second)
		w.observed(&eventsv1.CoinMarket{Source: "coingecko", SourceId: "bitcoin", Symbol: "BTC", Name: "bitcoin", Price: fmt.Sprint(97_000 + i), CirculatingSupply: "1000", IngestTime: w.Now.UnixNano()})
		if i > 2 {
			w.observed(&eventsv1.CoinMarket{Source: "coingecko", SourceId: "ethereum", Symbol: "ETH", Name: "ethereum", Price: fmt.Sprint(2_000 + i), CirculatingSupply: "1000", Change24H: "1.5",
				IngestTime: w.Now.UnixNano()})
		}
		w.close(end.UnixNano())
	}
	for _, field := range []string{"price", "marketCap", "change24h", "rank"} {
		w.reproduced("market/ethereum/"+field, "", true)
	}
}

// A live minute is in the table when it closes, a moment before the ledger says that those of all partitions have.
func TestAMinuteThatIsStoredHasClosed(t *testing.T) {
	w := newFixture(t)
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.traded("bitcoin", start, 97_000, 97_010, 96_990, 97_005, 5)
	w.Must(w.Store.Conn().Exec(t.Context(), "INSERT INTO ledger (sink, generation, log_partition, next_offset) VALUES ('candles.v1', 0, 0, 1)"))
	n := w.ask("candle/bitcoin/1m/2026-11-20T10:00:00Z/close", "")
	if n.Value == nil || *n.Value != 97_005 {
		t.Errorf("got %v, want 97005", n.Value)
	}
	response, err := http.Get(w.Base() + "/api/v1/explain/candle/bitcoin/5m/2026-11-20T10:00:00Z/close")
	w.Must(err)
	response.Body.Close()
	if response.StatusCode != http.StatusNotFound {
		t.Errorf("a candle of five minutes of which one has closed is answered with %d, want 404", response.StatusCode)
	}
}

// reproduced asks for a number and reports whether it is reproduced as wanted.
func (w *fixture) reproduced(number, params string, want bool) *explain.Node {
	w.T.Helper()
	n := w.ask(number, params)
	if n.Reproduced == nil || *n.Reproduced != want {
		text, _ := json.Marshal(n)
		w.T.Errorf("%s%s: reproduced is not %t: %.600s", number, params, want, text)
	}
	return n
}

// answered asks for numbers, with their parameters, and reports whether they are answered with these statuses.
func (w *fixture) answered(statuses map[string]int) {
	w.T.Helper()
	for number, want := range statuses {
		response, err := http.Get(w.Base() + "/api/v1/explain/" + number)
		w.Must(err)
		response.Body.Close()
		if response.StatusCode != want {
			w.T.Errorf("%s is answered with %d, want %d", number, response.StatusCode, want)
		}
	}
}

// bounded asks for more levels than there may be.
func (w *fixture) bounded(number string) {
	w.T.Helper()
	response, err := http.Get(w.Base() + "/api/v1/explain/" + number)
	w.Must(err)
	defer response.Body.Close()
	var body explain.Body
	w.Must(json.NewDecoder(response.Body).Decode(&body))
	if body.Meta.Depth != 4 || body.Meta.Clamped["depth"] != 4 {
		w.T.Errorf("got %+v, want a depth of 4, clamped", body.Meta)
	}
	if !slices.ContainsFunc(body.Data.Inputs, func(n *explain.Node) bool { return len(n.Inputs) > 0 }) {
		w.T.Error("the inputs have no inputs")
	}
}
