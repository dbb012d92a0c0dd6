package views_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/fiat"
	"github.com/marketlog/marketlog/query/prices"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/stablecoins"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// Whatever currency prices are reported in, they are those in USD times the rate that the fiat endpoint answers.
func TestPricesAreConvertedByTheRatesOfFiat(t *testing.T) {
	table := schemas.Coins()
	w := querytest.NewFixture(t, table)
	w.Now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.Price("bitcoin", w.Now, 84_123.45)
	w.Price("cnh-tether", w.Now, 0.139)
	w.Run("now 2026-11-20T10:00:00Z")
	for i, currency := range table.Fiats() {
		if currency.Code == schemas.USD {
			continue
		}
		// Two sources that differ, as they do: one quoted by the dollar, the other by the euro.
		w.Run(fmt.Sprintf(`said fixing: {source: "coinbasefiat" base: "USD" quote: %q rate: "%d.37" date: "2026-11-20" event_time: %d}`, currency.Code, i+1, w.Now.UnixNano()))
		if i%2 == 0 && currency.Code != "EUR" && currency.Code != "CNH" {
			w.Run(fmt.Sprintf(`said fixing: {source: "ecb" base: "EUR" quote: %q rate: "%d.51" date: "2026-11-19"}`, currency.Code, i+1))
		}
	}
	w.Run(`said fixing: {source: "ecb" base: "EUR" quote: "USD" rate: "1.1" date: "2026-11-19"}`)
	w.Run("minute 2026-11-20T10:00:00Z")
	w.Serve(append(append(prices.New(w.Prices, w.Catalog, views.NewConverter(w.Prices, w.Catalog, nil), nil, nil).Endpoints(), fiat.New(table, w.Catalog, nil, nil).Endpoints()...),
		stablecoins.New(w.Prices, w.Catalog, noPegs{}, stablecoins.Served{}).Endpoints()...))
	for _, currency := range table.Fiats() {
		var answer fiat.CurrencyBody
		querytest.Decode(t, w.Base()+"/api/v1/fiat/"+currency.Code, &answer)
		var list prices.ListBody
		querytest.Decode(t, w.Base()+"/api/v1/prices?symbols=bitcoin&vs="+strings.ToLower(currency.Code), &list)
		if len(list.Prices) != 1 || list.Prices[0].Price == nil {
			t.Errorf("%s: no price, and fiat answers %v", currency.Code, answer.Data.ExchangeRate)
			continue
		}
		if p := list.Prices[0]; *p.Price != p.PriceUSD*answer.Data.ExchangeRate {
			t.Errorf("%s: price %v, want %v x %v", currency.Code, *p.Price, p.PriceUSD, answer.Data.ExchangeRate)
		}
	}
	var pegged stablecoins.StabilityBody
	querytest.Decode(t, w.Base()+"/api/v1/stablecoins/CNHT/peg-stability", &pegged)
	var answer fiat.CurrencyBody
	querytest.Decode(t, w.Base()+"/api/v1/fiat/CNH", &answer)
	if want := 1 / answer.Data.ExchangeRate; pegged.PegTarget != want {
		t.Errorf("the peg of CNHT, whose currency has no fixing of a central bank, is %v, want %v", pegged.PegTarget, want)
	}
}

// noPegs is a past in which no peg was measured.
type noPegs struct{ stablecoins.History }

func (noPegs) PegSeries(context.Context, string, time.Time, time.Time, time.Duration) ([]views.PegSample, error) {
	return nil, nil
}

func (noPegs) PegStatistics(context.Context, time.Time) ([]views.PegStatistic, error) {
	return nil, nil
}

func (noPegs) PegEpisodes(context.Context, string, time.Time, time.Time, int64) ([]schemas.PegEpisode, error) {
	return nil, nil
}
