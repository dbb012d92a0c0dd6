package resolve

import (
	"slices"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// overrideSettles is within what time an operator's word reaches those who resolve: a tick of that time may be resolved by
// it or not.
const overrideSettles = 10 * time.Second

// Reresolve resolves a tick of ticks.v1 again by a coin table and overrides, at the log time now, and leaves the
// recorded one as it is. Where the quote is the same asset as it was, the recorded rate stays, or the
// lack of one; another quote gets its rate of that moment from past.
func Reresolve(coins *schemas.CoinTable, overrides *schemas.SymbolOverrides, past *RateHistory, recorded *eventsv1.ResolvedTick, now int64) *eventsv1.ResolvedTick {
	const joined = schemas.Unmapped | schemas.NoRate | schemas.NotSpot | schemas.Doubtful
	resolved := &eventsv1.ResolvedTick{Tick: recorded.Tick}
	named, at := names{coins, overrides}, now
	if t := recorded.Tick; t.Base != "" {
		before := now - int64(overrideSettles)
		coin, _ := named.coin(t.Venue, t.Base, now)
		coinBefore, _ := named.coin(t.Venue, t.Base, before)
		quote, _ := overrides.Quote(coins, t.Venue, t.Quote, now)
		quoteBefore, _ := overrides.Quote(coins, t.Venue, t.Quote, before)
		if coin != coinBefore && coinBefore == recorded.CoinId || quote != quoteBefore && quoteBefore.ID == recorded.QuoteId {
			at = before // the word had not been received yet
		}
	}
	flags := join(named, rejoinRates{recorded, past, now}, at, 0, recorded.Tick, resolved)
	if schemas.Flag(recorded.Flags)&schemas.Doubtful != 0 {
		// The prices of other venues at that time are not at hand. Only an override of this very symbol settles it.
		if named.bySymbol(recorded.Tick.Venue, recorded.Tick.Base, at) {
			resolved.CoinId = ""
			flags |= schemas.Unmapped | schemas.Doubtful
		}
	}
	resolved.Flags = uint32(schemas.Flag(recorded.Flags)&^joined | flags)
	return resolved
}

// rejoinRates judge freshness themselves, by the log time of the tick.
type rejoinRates struct {
	recorded *eventsv1.ResolvedTick
	past     *RateHistory
	now      int64
}

func (r rejoinRates) Rate(quoteID string) (Rate, bool) {
	if quoteID == r.recorded.QuoteId {
		known := schemas.Flag(r.recorded.Flags)&schemas.NoRate == 0
		return Rate{USD: r.recorded.Rate, Time: r.recorded.RateTime, Offset: r.recorded.RateOffset}, known
	}
	rate, ok := r.past.at(quoteID, r.now)
	return rate, ok && r.now-rate.Time <= int64(RateFor)
}

// RateHistory is what quotes.v1 holds of every quote asset. It is filled first, in the order of the
// log, and may then be read concurrently.
type RateHistory struct{ rates map[string][]Rate }

// Apply takes one record of quotes.v1 and its offset.
func (h *RateHistory) Apply(offset int64, rec *eventsv1.QuoteRecord) {
	rate := rec.GetRate()
	if rate == nil {
		return
	}
	if h.rates == nil {
		h.rates = map[string][]Rate{}
	}
	h.rates[rate.QuoteId] = append(h.rates[rate.QuoteId], Rate{USD: rate.Rate, Time: rate.Time, Offset: offset})
}

// at is the newest rate not later than a log time.
func (h *RateHistory) at(quoteID string, now int64) (Rate, bool) {
	rates := h.rates[quoteID]
	n, _ := slices.BinarySearchFunc(rates, now+1, func(r Rate, at int64) int {
		if r.Time < at {
			return -1
		}
		return 1
	})
	if n == 0 {
		return Rate{}, false
	}
	return rates[n-1], true
}
