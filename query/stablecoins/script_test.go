package stablecoins_test

import (
	"testing"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/stablecoins"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// newFixture has a part of the embedded table, since the store knows the pegs of that.
func newFixture(t testing.TB) *querytest.Fixture {
	coins, err := schemas.ParseCoins(`id,symbol,name,rank,kind,peg,aliases
bitcoin,BTC,Bitcoin,1,coin,,
tether,USDT,Tether,2,stablecoin,USD,
usd-coin,USDC,USDC,3,stablecoin,USD,
euro-coin,EURC,EURC,4,stablecoin,EUR,
other-tether,USDT,Other Tether,5,token,,
cnh-tether,CNHT,CNH Tether,6,stablecoin,CNH,
`, "code,name,aliases\nCNH,Offshore Yuan,\nEUR,Euro,\nJPY,Japanese Yen,\nUSD,United States Dollar,\n")
	if err != nil {
		t.Fatal(err)
	}
	w := querytest.NewFixture(t, coins)
	w.Open(enginetest.Migrated(t))
	w.Lines["minute-closes"] = func(words []string) { // coin, end of the first minute, closes
		at := w.Time(words[2])
		var candles []*eventsv1.Candle
		for _, word := range words[3:] {
			price := w.Number(word)
			candles = append(candles, &eventsv1.Candle{CoinId: words[1], Start: at.Add(-60e9).UnixNano(), Open: price, High: price, Low: price, Close: price, Volume: "1"})
			at = at.Add(60e9)
		}
		w.AddCandles(candles...)
	}
	w.Serve(stablecoins.New(w.Prices, w.Catalog, w.History(), stablecoins.Served{}).Endpoints())
	return w
}

func TestAnswersReadAsTheirScripts(t *testing.T) {
	querytest.Run(t, func(t *testing.T) func(string) string { return newFixture(t).Run })
}
