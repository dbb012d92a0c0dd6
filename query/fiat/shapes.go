package fiat

import (
	"maps"
	"slices"
	"strings"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// Currency is what one US dollar costs in a currency.
type Currency struct {
	ID           string   `json:"id" example:"eur" doc:"Currency code in lower case"`
	Symbol       string   `json:"symbol" example:"EUR" doc:"Currency code (ISO 4217)"`
	Name         string   `json:"name" example:"Euro" doc:"Name of the currency"`
	CoinType     string   `json:"coinType" enum:"fiat" doc:"Always fiat"`
	ExchangeRate float64  `json:"exchangeRate" explain:"fiat/{symbol}" doc:"Units of the currency per US dollar: the median of the accepted sources"`
	LastFiatSync string   `json:"lastFiatSync,omitempty" format:"date-time" doc:"When a source of exchange rates was last polled"`
	CreatedAt    string   `json:"createdAt,omitempty" format:"date-time" doc:"When a source first reported a rate for this currency"`
	UpdatedAt    string   `json:"updatedAt" format:"date-time" doc:"Time of the newest accepted rate; for a daily rate, the start of its day"`
	IsStale      bool     `json:"isStale" doc:"No source has a fresh rate; this is the newest known one"`
	Sources      []string `json:"sources" doc:"Accepted sources; empty for the US dollar itself"`
}

// DetailedCurrency is a currency with what each source reports of it.
type DetailedCurrency struct {
	Currency
	Inputs []Input `json:"inputs" doc:"The rate of each source, accepted or not"`
}

// Input is what one source reports of a currency.
type Input struct {
	Source      string   `json:"source" doc:"Slug of the source"`
	Rate        float64  `json:"rate" doc:"Units of the currency per US dollar"`
	Date        string   `json:"date" doc:"The day the rate is for"`
	UpdatedAt   string   `json:"updatedAt" format:"date-time" doc:"Time of the rate; for a daily rate, the start of its day"`
	Daily       bool     `json:"daily" doc:"Published once per business day"`
	Accepted    bool     `json:"accepted" doc:"Whether it counts in the exchange rate"`
	Reason      string   `json:"reason,omitempty" enum:"stale,outlier,repeats" doc:"Why the rate is not accepted: too old, more than 50% away from the median, or computed from other sources that are accepted themselves"`
	Providers   []string `json:"providers,omitempty" doc:"The sources it was computed from"`
	Attribution string   `json:"attribution,omitempty" doc:"Attribution to show with the rate"`
}

// Attribution is what a source wants shown with its rates.
type Attribution struct {
	Source string `json:"source" doc:"Slug of the source"`
	Text   string `json:"text" doc:"Attribution to show"`
}

// Meta describes an answer.
type Meta struct {
	query.Meta
	Attributions []Attribution `json:"attributions" doc:"Attribution to show with the rates"`
}

func (c *current) meta(count int) Meta {
	return Meta{query.Meta{Count: count, LastUpdated: query.FormatTime(c.at)}, c.attributions}
}

// attributions are those of the sources that were received, by slug.
func attributions(snapshot *views.Snapshot, received map[string]bool) []Attribution {
	all := []Attribution{}
	for _, slug := range slices.Sorted(maps.Keys(received)) {
		if text := snapshot.Notices[slug].GetAttribution(); text != "" {
			all = append(all, Attribution{slug, text})
		}
	}
	return all
}

func (u *Unit) currency(now *current, rate schemas.FiatRate) Currency {
	named, _ := u.coins.Fiat(rate.Code)
	c := Currency{
		ID: strings.ToLower(rate.Code), Symbol: rate.Code, Name: named.Name, CoinType: "fiat", ExchangeRate: rate.Rate,
		UpdatedAt: query.FormatTime(rate.Time), IsStale: rate.Stale, Sources: []string{},
	}
	if !now.sync.last.IsZero() {
		c.LastFiatSync = query.FormatTime(now.sync.last.UnixNano())
	}
	if since, ok := now.since[rate.Code]; ok {
		c.CreatedAt = query.FormatTime(since.UnixNano())
	}
	for _, s := range rate.Sources {
		if s.Reason == "" {
			c.Sources = append(c.Sources, s.Source)
		}
	}
	return c
}

func inputs(now *current, rate schemas.FiatRate) []Input {
	all := []Input{}
	for _, s := range rate.Sources {
		in := Input{Source: s.Source, Rate: s.Rate, Date: s.Date, UpdatedAt: query.FormatTime(s.Time), Daily: s.Daily, Accepted: s.Reason == "",
			Reason: s.Reason, Providers: s.Providers}
		for _, a := range now.attributions {
			if a.Source == s.Source {
				in.Attribution = a.Text
			}
		}
		all = append(all, in)
	}
	return all
}
