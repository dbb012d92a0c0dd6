package reference

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/answer"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// defillama reads what is locked in protocols and on chains, and stablecoins. Paths and hosts are those of
// https://defillama.com/docs/api and its description in https://github.com/DefiLlama/api-docs; the fields, which that
// leaves out, were read in the servers that write the answers: getProtocols.ts and getChains.ts of
// https://github.com/DefiLlama/defillama-server, getPeggedAssets.ts of its server of stablecoins.
//
// It has a host for each subject, and is one source all the same: it is one party with one set of terms, which is
// switched on and off as one. Those of 2025-06-24 count the public interface among what they cover (clause 1), and allow
// neither commercial use nor to republish the values (clauses 7 and 8): src/pages/terms.tsx of
// https://github.com/DefiLlama/defillama-app, which is the page of Terms.
func defillama() poll.Source {
	return poll.Source{
		Slug: "defillama", Name: "DefiLlama", Version: 1, Aliases: []string{"defillama-stablecoins"},
		URL:         "https://api.llama.fi",
		License:     "personal, non-commercial use; republished in no form without its permission",
		Terms:       "https://defillama.com/terms",
		Attribution: "Data: DefiLlama, https://defillama.com",
		Off:         "its terms allow personal, non-commercial use and no republishing without its permission",
		OwnUse:      "its terms allow no republishing without its permission",
		Kinds:       []string{poll.KindStablecoin, poll.KindTVL},
		Feeds: []poll.Feed{
			{Name: "stablecoins", URL: "https://stablecoins.llama.fi",
				Evidence: producers.Recorded("defillama/stablecoins-2026-09-02-reshaped.json").But(
					"the names of the fields were put back by hand"),
				Interval: time.Hour, Requests: poll.Fixed("/stablecoins?includePrices=true")},
			{Name: "chains",
				Evidence: producers.Documented("https://github.com/DefiLlama/api-docs").And(defiLlamaClients...),
				Interval: time.Hour, Requests: poll.Fixed("/v2/chains")},
			// Its numbers change each hour, and only what changed is written: some 1.5 MB an hour of 7,000 protocols.
			{Name: "protocols",
				Evidence: producers.Documented("https://github.com/DefiLlama/api-docs").And(defiLlamaClients...).But(
					"slug, gecko_id and mcap, which these clients do not read; they are in the code of the server"),
				Interval: schemas.DefiReadEvery, Requests: poll.Fixed("/protocols")},
		},
		// No limit is published; throttling reportedly begins far above.
		Moves:    time.Hour, // counted once an hour
		Requests: 6, Per: time.Minute,
		MaxBody: 64 << 20, // the protocols have some 10 MB, with a description each
		Past:    defiLlamaPast(),
		Decode:  decodeDefiLlama,
	}
}

// defiLlamaClients have the rows of both lists in their types; the second one's have fewer fields.
var defiLlamaClients = []string{
	github("tigusigalpa/defillama-go", "main", "types.go"),
	github("ggonzalez94/defi-cli", "HEAD", "internal/providers/defillama/client.go"),
}

// defiLlamaPast is the total of all chains by days since the source began to count. Its value of a day is that of the day's
// beginning. It leaves out what the source knows to be counted twice, which our total does not: see docs/formulas.md.
func defiLlamaPast() *poll.Past {
	past := dailyFile("all-chains", "", "/v2/historicalChainTvl", time.Date(2017, 9, 27, 0, 0, 0, 0, time.UTC),
		producers.Documented("https://github.com/DefiLlama/api-docs").AfterSearching(
			"v2/historicalChainTvl; what was found reads date in seconds and tvl, in code of a repository that is not known"))
	past.Settle = time.Hour // a day's beginning is long counted when the day ends
	return past
}

func decodeDefiLlama(path string, body []byte, out *poll.Readings) error {
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return llamaStablecoins(body, out)
	}
	rows, err := answer.Rows(body)
	switch parts := answer.Endpoint(path); {
	case err != nil:
		return err
	case len(rows) == 0:
		return producers.Unreadable("no row in it")
	case parts[len(parts)-1] == "protocols", answer.SomeRow(rows, "slug"):
		if !answer.SomeRow(rows, "slug", "tvl") {
			return producers.Unreadable("a list, and none of its rows is a protocol")
		}
		answer.EachRow(rows, out, llamaProtocol)
	case answer.SomeRow(rows, "name", "tvl"):
		answer.EachRow(rows, out, llamaChain)
	case answer.SomeRow(rows, "date", "tvl"):
		answer.EachRow(rows, out, llamaPast)
	default:
		return producers.Unreadable("a list of neither protocols nor chains, nor of days")
	}
	return nil
}

func llamaStablecoins(body []byte, out *poll.Readings) error {
	var response struct {
		PeggedAssets []json.RawMessage `json:"peggedAssets"`
	}
	if err := json.Unmarshal(body, &response); err != nil {
		return producers.Unreadable("parsing: %w", err)
	}
	if len(response.PeggedAssets) == 0 {
		return producers.Unreadable("no peggedAssets in it; it says %.200s", answer.ErrorText(answer.Keys(body)))
	}
	answer.EachRow(response.PeggedAssets, out, llamaStablecoin)
	return nil
}

// llamaStablecoin reads amounts under the name of what they are pegged to: {"peggedUSD": 1000}.
func llamaStablecoin(row json.RawMessage, out *poll.Readings) error {
	type amounts map[string]producers.Num
	var s struct {
		ID           producers.Num `json:"id"`
		Name         string        `json:"name"`
		Symbol       string        `json:"symbol"`
		GeckoID      string        `json:"gecko_id"`
		PegType      string        `json:"pegType"`
		PegMechanism string        `json:"pegMechanism"`
		Price        producers.Num `json:"price"`
		Circulating  amounts       `json:"circulating"`
		// Chains are listed by what the chain calls them, with the amounts of today and before.
		Chains map[string]struct {
			Current amounts `json:"current"`
		} `json:"chainCirculating"`
		// A coin that is given up is marked in one of these ways.
		Deprecated bool    `json:"deprecated"`
		Delisted   bool    `json:"delisted"`
		DeadFrom   *string `json:"deadFrom"`
	}
	var f answer.Fields
	if !f.Parse(row, &s) {
		return f.Err
	}
	coin := &eventsv1.Stablecoin{
		SourceId: string(s.ID), Symbol: s.Symbol, Name: s.Name, CoinId: s.GeckoID, PegType: s.PegType, PegMechanism: s.PegMechanism,
		Price: string(s.Price), Circulating: string(s.Circulating[s.PegType]),
		Dead: s.Deprecated || s.Delisted || s.DeadFrom != nil && *s.DeadFrom != "",
	}
	for _, chain := range slices.Sorted(maps.Keys(s.Chains)) {
		if amount := s.Chains[chain].Current[s.PegType]; amount != "" {
			coin.Chains = append(coin.Chains, &eventsv1.ChainAmount{Chain: chain, Amount: string(amount)})
		}
	}
	out.Stablecoin(coin)
	return nil
}

func llamaProtocol(row json.RawMessage, out *poll.Readings) error {
	var p struct {
		Slug      string                   `json:"slug"`
		Name      string                   `json:"name"`
		Symbol    string                   `json:"symbol"`
		Category  string                   `json:"category"`
		GeckoID   string                   `json:"gecko_id"`
		TVL       producers.Num            `json:"tvl"`
		ChainTVLs map[string]producers.Num `json:"chainTvls"`
		Change1D  producers.Num            `json:"change_1d"`
		Change7D  producers.Num            `json:"change_7d"`
		MarketCap producers.Num            `json:"mcap"`
	}
	var f answer.Fields
	if !f.Parse(row, &p) {
		return f.Err
	}
	protocol := &eventsv1.Protocol{
		Slug: p.Slug, Name: p.Name, Symbol: llamaSymbol(p.Symbol), Category: p.Category, CoinId: p.GeckoID, Tvl: string(p.TVL),
		Change1D: string(p.Change1D), Change7D: string(p.Change7D), MarketCap: string(p.MarketCap),
	}
	for _, chain := range slices.Sorted(maps.Keys(p.ChainTVLs)) {
		if amount := p.ChainTVLs[chain]; amount != "" {
			protocol.Chains = append(protocol.Chains, &eventsv1.ChainAmount{Chain: chain, Amount: string(amount)})
		}
	}
	out.Protocol(protocol)
	return nil
}

func llamaChain(row json.RawMessage, out *poll.Readings) error {
	var c struct {
		Name    string        `json:"name"`
		Symbol  string        `json:"tokenSymbol"`
		GeckoID string        `json:"gecko_id"`
		TVL     producers.Num `json:"tvl"`
	}
	var f answer.Fields
	if !f.Parse(row, &c) {
		return f.Err
	}
	out.ChainTvl(&eventsv1.ChainTvl{Chain: c.Name, CoinId: c.GeckoID, Symbol: llamaSymbol(c.Symbol), Tvl: string(c.TVL)})
	return nil
}

// llamaPast reads what was locked at a moment, in Unix seconds. Of one without a number nothing is known.
func llamaPast(row json.RawMessage, out *poll.Readings) error {
	var day struct {
		Date producers.Num `json:"date"`
		TVL  producers.Num `json:"tvl"`
	}
	var f answer.Fields
	if !f.Parse(row, &day) {
		return f.Err
	}
	if day.Date == "" {
		return producers.Unreadable("a value %.40q of no date", string(day.TVL))
	}
	past := &eventsv1.DefiPast{TotalTvl: string(day.TVL), EventTime: f.Known("date", string(day.Date), producers.Unix(day.Date, time.Second))}
	if f.Err == nil && day.TVL != "" {
		out.DefiPast(past)
	}
	return f.Err
}

// llamaSymbol takes the dash that means none.
func llamaSymbol(s string) string {
	if s == "-" {
		return ""
	}
	return s
}
