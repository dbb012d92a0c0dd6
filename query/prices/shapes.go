package prices

import (
	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Aggregated is the price of a coin over its providers.
type Aggregated struct {
	Symbol     string  `json:"symbol" example:"BTC" doc:"Symbol of the coin, upper case"`
	CoinID     string  `json:"coinId" example:"bitcoin"`
	Price      float64 `json:"price" explain:"price-in/{vs|usd}/{meta.region|all}/{coinId}" doc:"The median over the accepted providers, or the price of priceSource; in USD unless vs is given"`
	Providers  int     `json:"providers" explain:"price-in/{vs|usd}/{meta.region|all}/{coinId}/providers" doc:"Number of accepted providers; 0 if priceSource is not median"`
	Min        float64 `json:"min" explain:"price-in/{vs|usd}/{meta.region|all}/{coinId}/min" doc:"Lowest accepted price, in the currency of the price; equal to price if priceSource is not median"`
	Max        float64 `json:"max" explain:"price-in/{vs|usd}/{meta.region|all}/{coinId}/max" doc:"Highest accepted price, in the currency of the price; equal to price if priceSource is not median"`
	Median     float64 `json:"median" explain:"price-in/{vs|usd}/{meta.region|all}/{coinId}" doc:"Equal to price"`
	Timestamp  string  `json:"timestamp" format:"date-time" doc:"The evaluated second, or the time of the price of priceSource"`
	Rejected   int     `json:"rejected" explain:"price-in/{vs|usd}/{meta.region|all}/{coinId}/rejected" doc:"Number of rejected providers"`
	Confidence float64 `json:"confidence,omitempty" explain:"price-in/{vs|usd}/{meta.region|all}/{coinId}/confidence" doc:"Half width of the confidence interval, in the currency of the price; absent if priceSource is not median"`
	// Score is nil where it is not known.
	Score       *float64 `json:"score,omitempty" explain:"price-in/{vs|usd}/{meta.region|all}/{coinId}/score" minimum:"0" maximum:"1" doc:"0 to 1; absent if priceSource is not median"`
	Source      string   `json:"source" doc:"The accepted provider nearest to the price, or priceSource if that is not median"`
	PriceSource string   `json:"priceSource" example:"median" doc:"median: computed from venues; else the reference source of the price, if no venue provides one"`
	Volume24h   *float64 `json:"volume24h,omitempty" explain:"price-in/{vs|usd}/{meta.region|all}/{coinId}/volume24h" doc:"Sum over the accepted providers, or as reported by the reference source, in the currency of the price"`
	IsStale     bool     `json:"isStale" doc:"Older than 30 s by the server's clock (reference sources: 15 minutes), or retained for the given reason"`
	IsCritical  bool     `json:"isCritical" doc:"Older than two hours"`
	Reason      string   `json:"reason,omitempty" doc:"Why the last price was retained: no_fresh_inputs or no_consensus"`
}

// Staleness reports of an answer with several prices how many of them are old.
type Staleness struct {
	IsStale    bool `json:"isStale" doc:"At least one of the prices is stale"`
	StaleCount int  `json:"staleCount,omitempty" doc:"Number of stale prices"`
}

func (s *Staleness) count(fresh views.Freshness) {
	if fresh.Stale {
		s.IsStale = true
		s.StaleCount++
	}
}

// Row is what one market of a provider reports.
type Row struct {
	Provider     string   `json:"provider"`
	Symbol       string   `json:"symbol" doc:"Symbol of the coin, upper case"`
	Price        *float64 `json:"price,omitempty" doc:"In the currency of the response; absent if it could not be converted"`
	Category     string   `json:"category" enum:"price" doc:"Kind of data, always price"`
	UpdatedAt    string   `json:"updated_at,omitempty" format:"date-time" doc:"When data of the market was last received"`
	VenueSymbol  string   `json:"venueSymbol" doc:"As spelled by the exchange"`
	Quote        string   `json:"quote" doc:"Quote asset: symbol of a coin or code of a currency"`
	QuoteCoinID  string   `json:"quoteCoinId,omitempty" doc:"Coin id of the quote asset, if it is a coin"`
	Raw          float64  `json:"raw,omitempty" doc:"In the quote asset"`
	Basis        string   `json:"basis,omitempty" doc:"last, bid, ask or mid"`
	RateUsed     float64  `json:"rateUsed,omitempty" doc:"USD per unit of the quote asset"`
	Accepted     bool     `json:"accepted" doc:"Whether it contributed to the price"`
	Reason       string   `json:"reason,omitempty" doc:"Why it was rejected"`
	DeviationPct *float64 `json:"deviationPct,omitempty" doc:"Deviation from the first median, percent; only for the input that represents the provider"`
	Simulated    bool     `json:"simulated,omitempty"`
}

// aggregated converts a price. That of a reference source has no providers.
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
		quote, quoteCoin := u.priceCache.Quote(in.QuoteId)
		all[i] = Row{
			Provider: in.Provider, Symbol: symbol, Category: "price", UpdatedAt: query.FormatTime(received(in)),
			VenueSymbol: in.Symbol, Quote: quote, QuoteCoinID: quoteCoin, Raw: in.Value, Basis: in.Basis, RateUsed: in.Rate,
			Accepted: in.Accepted, Reason: in.Reason, DeviationPct: deviation(in), Simulated: simulated,
		}
		if in.PriceUsd > 0 {
			all[i].Price = &in.PriceUsd
		}
	}
	return all
}

// deviation is only known of a market that was compared with the first median.
func deviation(in *eventsv1.PriceInput) *float64 {
	if in.Accepted || in.Reason == schemas.InputOutlier || in.Reason == schemas.InputExcluded && in.DeviationPct != 0 {
		return &in.DeviationPct
	}
	return nil
}

// received is when a market was last received.
func received(in *eventsv1.PriceInput) int64 { return max(in.LastHeard, in.QuoteHeard) }

// find turns what a path names into a coin.
func (u *Unit) find(snapshot *views.Snapshot, name string) (views.Named, error) {
	named, ok := snapshot.Find(name)
	if !ok {
		return views.Named{}, query.NoCoin(snapshot, name)
	}
	return named, nil
}

// started refuses to call a coin without a price before any was read.
func (u *Unit) started() error {
	if u.priceCache.Now() == 0 {
		return query.Starting("no price was read yet")
	}
	return nil
}
