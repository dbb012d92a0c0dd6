package prices

import (
	"strings"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Aggregated is the price of a coin over its providers.
type Aggregated struct {
	Symbol     string  `json:"symbol" example:"BTC"`
	CoinID     string  `json:"coinId" example:"bitcoin"`
	Price      float64 `json:"price" doc:"The median over the accepted providers; in USD where no vs is named"`
	Providers  int     `json:"providers" doc:"Number of accepted providers"`
	Min        float64 `json:"min"`
	Max        float64 `json:"max"`
	Median     float64 `json:"median" doc:"Equal to price"`
	Timestamp  string  `json:"timestamp" format:"date-time" doc:"The second that was evaluated"`
	Rejected   int     `json:"rejected" doc:"Number of providers that did not count"`
	Confidence float64 `json:"confidence" doc:"Half width of the confidence interval, in the currency of the price"`
	Score      float64 `json:"score" doc:"0 to 1"`
	Source     string  `json:"source" doc:"The accepted provider nearest to the price"`
	Volume24h  float64 `json:"volume24h" doc:"Over the accepted providers, in the currency of the price"`
	IsStale    bool    `json:"isStale" doc:"Older than 30 s by the clock of the server, or kept for a reason"`
	IsCritical bool    `json:"isCritical" doc:"Older than two hours"`
	Reason     string  `json:"reason,omitempty" doc:"Why the last price was kept: no_fresh_inputs or no_consensus"`
}

// Staleness says of an answer with several prices how many of them are old.
type Staleness struct {
	IsStale    bool `json:"isStale" doc:"At least one of the prices is stale"`
	StaleCount int  `json:"staleCount,omitempty" doc:"How many of the prices are stale: older than 30 s, or kept for a reason"`
}

func (s *Staleness) count(fresh query.Freshness) {
	if fresh.Stale {
		s.IsStale = true
		s.StaleCount++
	}
}

// Row is what one market of a provider says.
type Row struct {
	Provider     string   `json:"provider"`
	Symbol       string   `json:"symbol"`
	Price        *float64 `json:"price,omitempty" doc:"In the currency of the answer; left out where it could not be converted"`
	Category     string   `json:"category" enum:"price"`
	UpdatedAt    string   `json:"updated_at,omitempty" format:"date-time" doc:"When the market was last heard"`
	VenueSymbol  string   `json:"venueSymbol"`
	Quote        string   `json:"quote" doc:"What it is told in: symbol of a coin or code of a currency"`
	QuoteCoinID  string   `json:"quoteCoinId,omitempty" doc:"Where the quote is a coin"`
	Raw          float64  `json:"raw,omitempty" doc:"In the quote"`
	Basis        string   `json:"basis,omitempty" doc:"last, bid, ask or mid"`
	RateUsed     float64  `json:"rateUsed,omitempty" doc:"USD for one unit of the quote"`
	Accepted     bool     `json:"accepted"`
	Reason       string   `json:"reason,omitempty" doc:"Why it did not count"`
	DeviationPct *float64 `json:"deviationPct,omitempty" doc:"From the first median, in percent; only of a provider's own vote"`
	Simulated    bool     `json:"simulated,omitempty"`
}

// Alternative is another coin with the same symbol.
type Alternative struct {
	CoinID string `json:"coinId"`
	Name   string `json:"name"`
	Rank   int    `json:"rank"`
}

func aggregated(e *query.Entry, fresh query.Freshness) *Aggregated {
	p := e.Price
	return &Aggregated{
		Symbol: e.Coin.Symbol, CoinID: e.Coin.ID, Price: p.Price, Providers: int(p.Accepted), Min: p.Min, Max: p.Max, Median: p.Price,
		Timestamp: query.FormatTime(p.Time), Rejected: int(p.Rejected), Confidence: p.Confidence, Score: p.Score,
		Source: p.Source, Volume24h: p.Volume24H, IsStale: fresh.Stale, IsCritical: fresh.Critical, Reason: e.Latest.Reason,
	}
}

func (u *Unit) rows(coin schemas.Coin, inputs []*eventsv1.PriceInput, simulated bool) []Row {
	all := make([]Row, len(inputs))
	for i, in := range inputs {
		quote, quoteCoin := u.board.Quote(in.QuoteId)
		all[i] = Row{
			Provider: in.Provider, Symbol: coin.Symbol, Category: "price", UpdatedAt: query.FormatTime(heard(in)),
			VenueSymbol: in.Symbol, Quote: quote, QuoteCoinID: quoteCoin, Raw: in.Value, Basis: in.Basis, RateUsed: in.Rate,
			Accepted: in.Accepted, Reason: in.Reason, DeviationPct: deviation(in), Simulated: simulated,
		}
		if in.PriceUsd > 0 {
			all[i].Price = &in.PriceUsd
		}
	}
	return all
}

// deviation is only known of a market that stood against the first median.
func deviation(in *eventsv1.PriceInput) *float64 {
	if in.Accepted || in.Reason == schemas.InputOutlier {
		return &in.DeviationPct
	}
	return nil
}

// heard is when a market was last heard.
func heard(in *eventsv1.PriceInput) int64 { return max(in.LastHeard, in.QuoteHeard) }

func alternatives(coins []schemas.Coin) []Alternative {
	var all []Alternative
	for _, c := range coins {
		all = append(all, Alternative{c.ID, c.Name, c.Rank})
	}
	return all
}

// find turns what a path names into a coin.
func (u *Unit) find(name string) (query.Named, error) {
	named, ok := u.board.Find(name)
	if !ok {
		return query.Named{}, query.NotFound("no coin has the symbol or id %q", strings.ToValidUTF8(name, "�"))
	}
	return named, nil
}

// started refuses to call a coin without a price before any was read.
func (u *Unit) started() error {
	if u.board.Now() == 0 {
		return query.Starting("no price was read yet")
	}
	return nil
}
