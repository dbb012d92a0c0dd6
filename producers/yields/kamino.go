package yields

import (
	"encoding/json"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/answer"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// kamino reads what is lent and borrowed in the markets of Kamino Lend on Solana: first which there are, then the reserves
// of each. Paths and fields are on https://kamino.com/docs/build/recipes/borrow/get-market-reserve-apys and
// https://kamino.com/build/api-reference/borrow, with sample answers in
// https://github.com/Kamino-Finance/kamino-api-docs. Rates are fractions, compounded; numbers come as text.
func kamino() poll.Source {
	markets := &kaminoMarkets{}
	return poll.Source{
		Slug: "kamino", Name: "Kamino", Version: 1, Aliases: []string{"kamino-lend"},
		URL:         "https://api.kamino.finance",
		License:     "public interface without a key; no licence of the values is stated",
		Terms:       "https://kamino.com/terms",
		Attribution: "Source: Kamino",
		Kinds:       []string{poll.KindRate},
		Feeds: []poll.Feed{
			{Name: "markets",
				Evidence: producers.Documented("https://github.com/Kamino-Finance/kamino-api-docs").And(
					yieldServer("kamino-lend"), defiCLI("kamino/client_test.go")),
				Interval: 6 * time.Hour, Requests: poll.Fixed("/v2/kamino-market")},
			{Name: "reserves",
				Evidence: producers.Documented("https://github.com/Kamino-Finance/kamino-api-docs").And(
					yieldServer("kamino-lend"), defiCLI("kamino/client_test.go")).But("maxLtv, which the second client does not read"),
				Interval: 30 * time.Minute, Requests: poll.Gets(markets.paths), Skips: true},
		},
		Moves:    30 * time.Minute,     // by what is borrowed, which changes with every slot
		Requests: 30, Per: time.Minute, // no limit is published
		MaxBody: 8 << 20,
		Decode:  markets.decode,
	}
}

// kaminoMarkets are the names of the markets that the list had last, by their keys.
type kaminoMarkets struct {
	names atomic.Pointer[map[string]string]
}

// kaminoMain is the market that is read before the list is known.
const kaminoMain = "7u3HeHxYDLhnCoErrtycNokbQYbWGzLs6JSDqGAv5PfF"

func (k *kaminoMarkets) paths(poll.Known) []string {
	markets := []string{kaminoMain}
	if names := k.names.Load(); names != nil {
		markets = slices.Sorted(maps.Keys(*names))
	}
	for i, market := range markets {
		markets[i] = "/kamino-market/" + market + "/reserves/metrics?env=mainnet-beta"
	}
	return markets
}

func (k *kaminoMarkets) decode(path string, body []byte, out *poll.Readings) error {
	rows, err := answer.Rows(body)
	if err != nil {
		return err
	}
	parts := answer.Endpoint(path)
	switch {
	case answer.SomeRow(rows, "reserve"):
		market := ""
		if len(parts) > 1 {
			market = parts[1]
		}
		name := k.name(market)
		answer.EachRow(rows, out, func(row json.RawMessage, out *poll.Readings) error { return readKaminoReserve(row, name, out) })
		return nil
	case answer.SomeRow(rows, "lendingMarket"):
		k.take(rows, out)
		return nil
	case len(rows) == 0 && parts[len(parts)-1] == "metrics": // a market that has just been opened
		return nil
	}
	return producers.Unreadable("a list of neither markets nor reserves")
}

func (k *kaminoMarkets) name(market string) string {
	if names := k.names.Load(); names != nil {
		return (*names)[market]
	}
	return ""
}

func (k *kaminoMarkets) take(rows []json.RawMessage, out *poll.Readings) {
	names := map[string]string{}
	answer.EachRow(rows, out, func(row json.RawMessage, _ *poll.Readings) error {
		var m struct {
			Market string `json:"lendingMarket"`
			Name   string `json:"name"`
		}
		var f answer.Fields
		if !f.Parse(row, &m) {
			return f.Err
		}
		if !base58Only(m.Market) { // it becomes a part of an address
			return producers.Unreadable("lendingMarket is %.60q", m.Market)
		}
		names[m.Market] = m.Name
		return nil
	})
	if len(names) > 0 {
		k.names.Store(&names)
	}
}

// base58Only reports whether a text can be a key of Solana.
func base58Only(s string) bool {
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return len(s) >= 32 && len(s) <= 44
}

func readKaminoReserve(row json.RawMessage, market string, out *poll.Readings) error {
	var r struct {
		Reserve   string        `json:"reserve"`
		Symbol    string        `json:"liquidityToken"`
		Mint      string        `json:"liquidityTokenMint"`
		MaxLTV    producers.Num `json:"maxLtv"`
		Supply    producers.Num `json:"supplyApy"`
		Borrow    producers.Num `json:"borrowApy"`
		SupplyUSD producers.Num `json:"totalSupplyUsd"`
		BorrowUSD producers.Num `json:"totalBorrowUsd"`
	}
	var f answer.Fields
	if !f.Parse(row, &r) {
		return f.Err
	}
	rate := func(category string, raw, value producers.Num) *eventsv1.Rate {
		return &eventsv1.Rate{
			Project: "kamino-lend", Chain: "Solana", Pool: r.Reserve, Name: market, Category: category,
			Raw: string(raw), RawUnit: "apy_fraction",
			Term: "flexible", Symbol: r.Symbol, Tokens: addresses(r.Mint), TvlUsd: rounded(value),
		}
	}
	lending := rate(schemas.RateLending, r.Supply, r.SupplyUSD)
	lending.MaxLtv = string(r.MaxLTV)
	out.Rate(lending)
	out.Rate(rate(schemas.RateBorrowing, r.Borrow, r.BorrowUSD))
	return nil
}
