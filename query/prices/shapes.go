package prices

import (
	"strings"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Aggregated is the price of a coin over its providers.
type Aggregated struct {
	Symbol     string  `json:"symbol" example:"BTC"`
	CoinID     string  `json:"coinId" example:"bitcoin"`
	Price      float64 `json:"price" doc:"The median over the accepted providers, or what priceSource tells; in USD where no vs is named"`
	Providers  int     `json:"providers" doc:"Number of accepted providers; 0 where priceSource is not median"`
	Min        float64 `json:"min"`
	Max        float64 `json:"max"`
	Median     float64 `json:"median" doc:"Equal to price"`
	Timestamp  string  `json:"timestamp" format:"date-time" doc:"The second that was evaluated, or when priceSource told the price"`
	Rejected   int     `json:"rejected" doc:"Number of providers that did not count"`
	Confidence float64 `json:"confidence,omitempty" doc:"Half width of the confidence interval, in the currency of the price; left out where priceSource is not median"`
	// Score is nil where it is not known.
	Score       *float64 `json:"score,omitempty" minimum:"0" maximum:"1" doc:"0 to 1; left out where priceSource is not median"`
	Source      string   `json:"source" doc:"The accepted provider nearest to the price, or priceSource where that is not median"`
	PriceSource string   `json:"priceSource" example:"median" doc:"median: made by venues; else the reference source that tells the price, since no venue makes one"`
	Volume24h   *float64 `json:"volume24h,omitempty" doc:"Over the accepted providers, or as a source tells it, in the currency of the price"`
	IsStale     bool     `json:"isStale" doc:"Older than 30 s by the clock of the server, of a reference source than 15 minutes; or kept for a reason"`
	IsCritical  bool     `json:"isCritical" doc:"Older than two hours"`
	Reason      string   `json:"reason,omitempty" doc:"Why the last price was kept: no_fresh_inputs or no_consensus"`
}

// Staleness says of an answer with several prices how many of them are old.
type Staleness struct {
	IsStale    bool `json:"isStale" doc:"At least one of the prices is stale"`
	StaleCount int  `json:"staleCount,omitempty" doc:"How many of the prices are stale"`
}

func (s *Staleness) count(fresh views.Freshness) {
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

// aggregated tells a price. What a reference source tells is of no providers.
func aggregated(coin *views.CatalogCoin, s views.Spot) *Aggregated {
	a := &Aggregated{
		Symbol: coin.Symbol, CoinID: coin.ID, Price: s.Price, Min: s.Price, Max: s.Price, Median: s.Price, Timestamp: query.FormatTime(s.Time),
		Source: s.Source, PriceSource: s.Source, Volume24h: s.Volume24h, IsStale: s.Stale, IsCritical: s.Critical,
	}
	if s.Entry != nil {
		p := s.Entry.Price
		a.Providers, a.Rejected, a.Min, a.Max = int(p.Accepted), int(p.Rejected), p.Min, p.Max
		a.Confidence, a.Score, a.Source, a.Reason = p.Confidence, &p.Score, p.Source, s.Entry.Latest.Reason
	}
	return a
}

func (u *Unit) rows(symbol string, inputs []*eventsv1.PriceInput, simulated bool) []Row {
	all := make([]Row, len(inputs))
	for i, in := range inputs {
		quote, quoteCoin := u.board.Quote(in.QuoteId)
		all[i] = Row{
			Provider: in.Provider, Symbol: symbol, Category: "price", UpdatedAt: query.FormatTime(heard(in)),
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

// find turns what a path names into a coin.
func (u *Unit) find(snapshot *views.Snapshot, name string) (views.Named, error) {
	named, ok := snapshot.Find(name)
	if !ok {
		return views.Named{}, query.NotFound("no coin has the symbol or id %q", strings.ToValidUTF8(name, "�"))
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
