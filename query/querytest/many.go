package querytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// ManyCoins lets a source list n coins, coin1 to coinN, and report the details of each, as long as those of real ones.
func ManyCoins(w *Fixture, n int) {
	at := w.Now.UnixNano()
	for i := range n {
		listed := &eventsv1.Coin{Source: "coingecko", SourceId: fmt.Sprintf("coin%d", i+1), Part: "list", Symbol: fmt.Sprintf("c%d", i), Name: fmt.Sprintf("Coin %d", i+1), IngestTime: at}
		w.Said(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Coin{Coin: listed}})
		detailed := &eventsv1.Coin{
			Source: "coingecko", SourceId: listed.SourceId, Part: "detail", Symbol: listed.Symbol, Name: listed.Name, IngestTime: at,
			Description: fmt.Sprintf("%s is a coin among %d. %900s", listed.Name, n, "It has a description of about a thousand letters."),
			ImageUrl:    fmt.Sprintf("https://images.example/coins/images/%d/large/coin.png", i),
			Categories:  []string{fmt.Sprintf("Category %d", i%7), fmt.Sprintf("Category %d", 10+i%31), fmt.Sprintf("Category %d", 100+i%151)},
			CreatedAt:   fmt.Sprintf("20%02d-0%d-11", 10+i%15, 1+i%9),
		}
		for p := range i % 4 {
			detailed.Platforms = append(detailed.Platforms, &eventsv1.Platform{Name: fmt.Sprintf("chain-%d", p), Address: fmt.Sprintf("0x%040x", i)})
		}
		for _, kind := range []string{"homepage", "explorer", "twitter", "repository"} {
			detailed.Links = append(detailed.Links, &eventsv1.Link{Kind: kind, Url: fmt.Sprintf("https://%s.example/coin%d", kind, i)})
		}
		w.Said(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Coin{Coin: detailed}})
	}
}

// ManyRows ends a minute in which four of five of the n coins had a row; each fifth is known by name alone.
func ManyRows(w *Fixture, n int) {
	at := w.Now.UnixNano()
	of := func(v float64) *float64 { return &v }
	rank := uint32(0)
	for i := range n {
		if i%5 == 4 {
			continue
		}
		rank++
		price := 100_000 / float64(i+1)
		w.Folded(w.Now, &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Market{Market: &eventsv1.Market{
			CoinId: fmt.Sprintf("coin%d", i+1), Symbol: fmt.Sprintf("C%d", i), Name: fmt.Sprintf("Coin %d", i+1), Time: at, Price: price, PriceSource: "median", PriceTime: at,
			MarketCap: of(price * 1e7), Rank: rank, FullyDilutedValuation: of(price * 2e7), Volume24H: of(float64(1_000 * (1 + i*7919%n))), High24H: of(price * 1.02), Low24H: of(price * 0.97),
			PriceChange24H: of(price * 0.01), Change1H: of(0.1), Change24H: of(float64(i*104729%200)/10 - 10), Change7D: of(-2), Change14D: of(3), Change30D: of(4),
			Change60D: of(5), Change200D: of(6), Change1Y: of(7), MarketCapChange24H: of(price * 1e5), MarketCapChangePct24H: of(1), Ath: of(price * 2), AthTime: at,
			Atl: of(price / 9), AtlTime: at, CirculatingSupply: of(1e7), TotalSupply: of(1.5e7), MaxSupply: of(2e7), SupplySource: "coingecko", SupplyTime: at,
		}}})
	}
	w.Minute(w.Now)
}

// Decode reads the answer of an address, which must be a success.
func Decode(t testing.TB, address string, into any) {
	t.Helper()
	response, err := http.Get(address)
	must(t, err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s answers %d", address, response.StatusCode)
	}
	must(t, json.NewDecoder(response.Body).Decode(into))
}
