package providers_test

import (
	"testing"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query/providers"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/views"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

func newFixture(t testing.TB) *querytest.Fixture {
	w := querytest.NewFixture(t, querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,", "ethereum,ETH,Ethereum,2,coin,,"))
	w.Open(enginetest.Migrated(t))
	w.Serve(providers.New(w.Prices, w.Catalog, w.Yields, w.History(), providers.Served{}, []views.Provider{
		{Slug: "kraken", Name: "Kraken", Refuses: []string{"JP"}, Terms: "https://kraken.example/terms"},
		{Slug: "okx", Name: "OKX"},
		{Slug: "upbit", Name: "Upbit"},
	}).Endpoints())
	return w
}

func TestAnswersReadAsTheirScripts(t *testing.T) {
	querytest.Run(t, func(t *testing.T) func(string) string { return newFixture(t).Run })
}
