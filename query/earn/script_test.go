package earn_test

import (
	"testing"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query/earn"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/views"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

func newFixture(t testing.TB) *querytest.Fixture {
	coins := querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,", "ethereum,ETH,Ethereum,2,coin,,", "tether,USDT,Tether,3,stablecoin,USD,", "usd-coin,USDC,USDC,4,stablecoin,USD,",
		"other-tether,USDT,Other Tether,5,token,,")
	w := querytest.NewFixture(t, coins)
	w.Open(enginetest.Migrated(t))
	w.Serve(earn.New(coins, w.Catalog, w.History(), []views.Provider{{Slug: "okx", Refuses: []string{"US", "CA"}}, {Slug: "kraken", Serves: []string{"CH", "DE"}}}).Endpoints())
	return w
}

func TestAnswersReadAsTheirScripts(t *testing.T) {
	querytest.Run(t, func(t *testing.T) func(string) string { return newFixture(t).Run })
}
