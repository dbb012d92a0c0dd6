package providers

import (
	"slices"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// States of providers.
const (
	healthy  = "healthy"
	degraded = "degraded"
	down     = "down"
	disabled = "disabled"
)

const (
	// downAfter is how long an exchange may be silent before it counts as down.
	downAfter = 10 * time.Minute
	// downFailures in a row make a source count as down.
	downFailures = 3
	// goodPercent of the requests of a day must succeed.
	goodPercent = 95
)

// received is what the current prices show of an exchange.
type received struct {
	// last is when any of its markets was received, Unix nanoseconds.
	last int64
	// coins have a fresh market of it, by id.
	coins map[string]bool
}

// listen goes through the inputs of all prices.
func (k *known) listen() map[string]received {
	byVenue := map[string]received{}
	k.prices(func(e *views.Entry) {
		for _, in := range e.Latest.Inputs {
			h, at := byVenue[in.Provider], max(in.LastHeard, in.QuoteHeard)
			h.last = max(h.last, at)
			if h.coins == nil {
				h.coins = map[string]bool{}
			}
			if k.at.UnixNano()-at <= int64(schemas.FreshFor) {
				h.coins[e.Coin.ID] = true
			}
			byVenue[in.Provider] = h
		}
	})
	return byVenue
}

// describe puts together what a provider declares and how reading it goes.
func (u *Unit) describe(n *eventsv1.SourceNotice, h views.SourceHealth, prices received, now time.Time) views.ProviderState {
	p := views.ProviderState{
		Slug: n.Source, Name: n.Name, Categories: append([]string{}, n.Kinds...), Kind: kindReference,
		Source:      views.ProviderSource{Transport: "poll", URL: n.Url, Docs: n.Terms, License: n.License},
		Attribution: n.Attribution, StaleAfterSeconds: 3 * n.Interval / int64(time.Second), Simulated: n.Simulated,
	}
	p.SetRegions(u.region(n.Source))
	if slices.Contains(n.Kinds, categoryPrice) {
		p.Kind, p.Source.Transport = kindExchange, "stream"
		p.StaleAfterSeconds = int64(schemas.FreshFor / time.Second)
		p.SymbolCount, p.LastSuccess = len(prices.coins), query.FormatTime(prices.last)
		p.Status = exchangeStatus(n, prices, now)
		return p
	}
	p.Status = sourceStatus(n, h)
	setRequests(&p, n, h)
	return p
}

// setRequests adds how requests to a source went, nil where none declares itself.
func setRequests(p *views.ProviderState, source *eventsv1.SourceNotice, h views.SourceHealth) {
	p.ConsecutiveFailures, p.LastError = h.ConsecutiveFailures, failure(h)
	p.SuccessRate24h, p.SuccessRate7d = percent(h.Succeeded24h, h.Requests24h), percent(h.Succeeded7d, h.Requests7d)
	if !h.LastSuccess.IsZero() {
		p.LastSuccess = query.FormatTime(h.LastSuccess.UnixNano())
	}
	if h.Requests7d > 0 && !h.LastAttempt.IsZero() {
		p.LastAttempt = query.FormatTime(h.LastAttempt.UnixNano())
	}
	if what, since := standstill(source, h); what != "" {
		p.Standstill = &views.Standstill{Reason: what, Since: query.FormatTime(since.UnixNano())}
	}
	if h.Succeeded24h > 0 {
		p.LatencyMs = &views.ProviderLatency{P50: milliseconds(h.LatencyP50), P95: milliseconds(h.LatencyP95)}
	}
}

func exchangeStatus(n *eventsv1.SourceNotice, prices received, now time.Time) string {
	switch silent := time.Duration(now.UnixNano() - prices.last); {
	case !n.Enabled:
		return disabled
	case silent <= schemas.FreshFor:
		return healthy
	case silent <= downAfter:
		return degraded
	}
	return down
}

// standstill is how a source serves nothing new, by what it declares, and since when.
func standstill(source *eventsv1.SourceNotice, h views.SourceHealth) (what string, since time.Time) {
	return h.Standstill(time.Duration(source.GetInterval()), time.Duration(source.GetMoves()))
}

// sourceStatus is by the rule of v_sources.
func sourceStatus(n *eventsv1.SourceNotice, h views.SourceHealth) string {
	stands, _ := standstill(n, h)
	switch {
	case !n.Enabled:
		return disabled
	case h.Requests7d == 0 || h.LastSuccess.IsZero() || h.ConsecutiveFailures >= downFailures:
		return down
	case h.ConsecutiveFailures > 0 || 100*h.Succeeded24h < goodPercent*h.Requests24h, stands != "":
		return degraded
	}
	return healthy
}

// percent is nil of nothing.
func percent(part, whole int) *float64 {
	if whole == 0 {
		return nil
	}
	p := 100 * float64(part) / float64(whole)
	return &p
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
