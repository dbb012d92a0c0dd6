package symbols

import (
	"strings"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
)

// Resolution is which coin a symbol means. It has the fields of both documented forms.
type Resolution struct {
	Input      string  `json:"input" doc:"As in the request"`
	Question   string  `json:"question,omitempty" doc:"What was asked, as names of numbers hold it"`
	Resolved   bool    `json:"resolved" doc:"Whether the symbol means a coin"`
	CatalogID  string  `json:"catalogId,omitempty" doc:"Canonical id of the coin"`
	CoinID     string  `json:"coinId,omitempty" doc:"The same as catalogId"`
	Symbol     string  `json:"symbol,omitempty" doc:"The coin's symbol, upper case"`
	Name       string  `json:"name,omitempty" doc:"Name of the coin"`
	Confidence *int    `json:"confidence,omitempty" minimum:"0" maximum:"100" explain:"symbol/{question}/confidence" doc:"Percent"`
	Method     string  `json:"method,omitempty" enum:"manual_override,provider_mapping,exchange_mapping,unique_symbol,price_context,coin_database,market_cap_ranking,catalog_search" doc:"The rule that decided; absent if no coin was found"`
	Units      float64 `json:"units,omitempty" explain:"symbol/{question}/units" doc:"Units of the coin per unit of the symbol, if not 1: 1000 for 1000SHIB"`
	Fiat       string  `json:"fiat,omitempty" doc:"Code of the currency, if the symbol is a currency and not a coin"`
	Reason     string  `json:"reason,omitempty" enum:"no_rate" doc:"no_rate: the price was ignored, since the context's quote asset cannot be converted to USD now"`
	// Candidates are nil where they are not reported.
	Candidates []Candidate `json:"candidates,omitzero" required:"false" doc:"Candidates, best first"`
}

// Candidate is a coin that came into question.
type Candidate struct {
	CoinID string   `json:"coinId"`
	Symbol string   `json:"symbol" doc:"Symbol of the coin, upper case"`
	Name   string   `json:"name" doc:"Name of the coin"`
	Rank   int      `json:"rank,omitempty" explain:"market/{coinId}/rank" doc:"By market cap, 1 is the largest"`
	Price  *float64 `json:"price,omitempty" explain:"price/{coinId}" doc:"USD"`
	Score  int      `json:"score" minimum:"0" maximum:"100" explain:"symbol/{question}/score/{coinId}" doc:"Confidence of the decision for the chosen coin; for others lower, by market cap"`
}

// ResolutionBody is the reference form.
type ResolutionBody struct {
	Data Resolution `json:"data"`
}

// BatchBody has both documented forms side by side.
type BatchBody struct {
	Resolved []Resolution `json:"resolved" doc:"In request order"`
	Data     BatchData    `json:"data"`
}

// BatchData is the reference form of a batch.
type BatchData struct {
	Resolved  map[string]Resolution `json:"resolved" doc:"By the symbol as in the request"`
	Source    string                `json:"source" doc:"As in the request; general if none was given"`
	Count     int                   `json:"count"`
	Timestamp string                `json:"timestamp,omitempty" format:"date-time" doc:"Log time up to which the views behind this response are complete"`
}

// MappingsBody answers GET /api/v1/symbols/mappings.
type MappingsBody struct {
	Data MappingsData `json:"data"`
	Meta MappingsMeta `json:"meta"`
}

// MappingsMeta describes a page of mappings.
type MappingsMeta struct {
	query.Meta
	Offset    int  `json:"offset" doc:"Mappings that were skipped"`
	Total     int  `json:"total" doc:"Number of mappings in force"`
	Truncated bool `json:"truncated,omitempty" doc:"There are more: repeat the request with the offset raised by count"`
}

// MappingsData are the mappings that hold.
type MappingsData struct {
	Mappings  []Mapping `json:"mappings" doc:"Overrides first, then by source and symbol"`
	Count     int       `json:"count"`
	Timestamp string    `json:"timestamp,omitempty" format:"date-time" doc:"Log time of the response; mappings may have been read up to five minutes before"`
}

// Mapping is one symbol of a venue or source.
type Mapping struct {
	Source     string `json:"source" doc:"Venue or source where the symbol is used; general for all"`
	Symbol     string `json:"symbol" doc:"As spelled there"`
	CatalogID  string `json:"catalogId" doc:"Canonical id of the coin"`
	Confidence int    `json:"confidence" explain:"symbol-mapping/{method}/{source}/{symbol}" doc:"Percent; what the method gives at least"`
	Method     string `json:"method" doc:"manual_override, exchange_mapping, unique_symbol or coin_database, as in the resolution of a symbol"`
	CreatedAt  string `json:"createdAt" format:"date-time" doc:"When it was first observed in the stored ticks, or when the operator set it"`
}

// describe is the answer to a question, of which the symbol is repeated as it was given.
func describe(q schemas.SymbolQuestion, input string, got schemas.ResolvedSymbol) Resolution {
	answer := Resolution{Input: strings.ToValidUTF8(input, "\uFFFD"), Question: q.String(), Method: string(got.Method), Confidence: &got.Confidence, Fiat: got.Fiat, Candidates: []Candidate{}}
	if got.Units != 1 {
		answer.Units = got.Units
	}
	if got.Coin != nil {
		answer.Resolved = true
		answer.CatalogID, answer.CoinID = got.Coin.ID, got.Coin.ID
		answer.Symbol, answer.Name = got.Coin.Symbol, got.Coin.Name
	}
	for _, c := range got.Candidates {
		candidate := Candidate{CoinID: c.Coin.ID, Symbol: c.Coin.Symbol, Name: c.Coin.Name, Rank: c.Coin.Rank, Score: c.Score}
		if c.Coin.Price > 0 {
			candidate.Price = &c.Coin.Price
		}
		answer.Candidates = append(answer.Candidates, candidate)
	}
	return answer
}
