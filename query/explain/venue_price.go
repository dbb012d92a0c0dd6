package explain

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// venuePrice explains what a venue's market contributes to the price of a coin, which lists of rates have in the category price: by the venue's
// own symbol of the market, or by the id that lists have of it.
func (w *work) venuePrice(ctx context.Context, name string, parts []string) (*Node, error) {
	venue, symbol := parts[1], strings.Join(parts[3:], "/")
	symbol = strings.TrimPrefix(symbol, venue+"|"+categoryPrice+"|")
	of := func(e *views.Entry) (found *eventsv1.PriceInput) {
		for _, in := range e.Latest.GetInputs() {
			if in.Provider == venue && in.Symbol == symbol {
				found = in
			}
		}
		return found
	}
	var entry *views.Entry
	var venues, symbols []string
	w.Prices.Entries(func(e *views.Entry) {
		if of(e) != nil {
			entry = e
		}
		for _, in := range e.Latest.GetInputs() {
			if venues = append(venues, in.Provider); in.Provider == venue {
				symbols = append(symbols, in.Symbol)
			}
		}
	})
	switch {
	case entry == nil && len(symbols) == 0:
		return nil, w.nearField(name, parts, 1, venues)
	case entry == nil:
		return nil, w.nearField(name, []string{parts[0], venue, categoryPrice, symbol}, 3, symbols)
	}
	if w.past {
		entries, err := w.Prices.AsOf(ctx, w.History, []schemas.Coin{entry.Coin}, w.asOf)
		if err != nil {
			return nil, query.FaultOfPast(err, w.asOf)
		}
		if entry = entries[entry.Coin.ID]; entry == nil || of(entry) == nil {
			return nil, query.NotFound("%s had no price of %s by %s", venue, strings.ToValidUTF8(symbol, "�"), query.FormatTime(w.asOf.UnixNano()))
		}
	}
	p := entry.Latest
	w.simulated = w.simulated || p.Simulated
	n := w.vote(ctx, of(entry), nil)
	n.Number = "rate/" + venue + "/" + categoryPrice + "/" + symbol
	if len(n.Records) == 0 { // the log has its price, which holds its inputs
		n.Note = cmp.Or(n.Note, "the tick itself is not in the log any more")
	}
	_, considered, isKnown := aggregatedAgain(p)
	if !isKnown {
		n.notReproduced(fmt.Sprintf("version %d of the rule of prices is newer than this service", p.Method))
		return n, nil
	}
	for _, in := range considered {
		if in.Provider == venue && in.Symbol == symbol {
			n.compare(known(in.PriceUsd))
		}
	}
	return n, nil
}
