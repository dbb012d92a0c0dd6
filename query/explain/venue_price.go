package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// venuePrice explains what a venue's market contributes to the price of a coin, which lists of rates have in the category price: by the venue's
// own symbol of the market, or by the id that lists have of it.
func (w *work) venuePrice(ctx context.Context, name string, parts []string) (*Node, error) {
	entry, input, err := w.marketNamed(ctx, name, parts, 3)
	if err != nil {
		return nil, err
	}
	n := w.vote(ctx, input, nil)
	n.Number = "rate/" + input.Provider + "/" + categoryPrice + "/" + input.Symbol
	if len(n.Records) == 0 { // the log has its price, which holds its inputs
		n.Note = cmp.Or(n.Note, "the tick itself is not in the log any more")
	}
	again, isKnown := marketAgain(entry.Latest, input)
	if !isKnown {
		n.notReproduced(fmt.Sprintf("version %d of the rule of prices is newer than this service", entry.Latest.Method))
		return n, nil
	}
	n.compare(known(again.PriceUsd))
	return n, nil
}

// marketAgain is a market of a price as aggregating it again values it; false where this service does not know the rule.
func marketAgain(p *eventsv1.Price, input *eventsv1.PriceInput) (again *eventsv1.PriceInput, isKnown bool) {
	_, considered, isKnown := aggregatedAgain(p)
	for _, in := range considered {
		if in.Provider == input.Provider && in.Symbol == input.Symbol {
			return in, isKnown
		}
	}
	return nil, false
}

// marketNamed finds the market that a name means among those that prices are made from, and the price: its second part is the venue, and from one on the
// venue's symbol follows.
func (w *work) marketNamed(ctx context.Context, name string, parts []string, from int) (*views.Entry, *eventsv1.PriceInput, error) {
	venue, symbol := parts[1], strings.Join(parts[from:], "/")
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
		return nil, nil, w.nearField(name, parts, 1, venues)
	case entry == nil:
		return nil, nil, w.nearField(name, append(slices.Clone(parts[:from]), symbol), from, symbols)
	}
	if w.past {
		entries, err := w.Prices.AsOf(ctx, w.History, []schemas.Coin{entry.Coin}, w.asOf)
		if err != nil {
			return nil, nil, query.FaultOfPast(err, w.asOf)
		}
		if entry = entries[entry.Coin.ID]; entry == nil || of(entry) == nil {
			return nil, nil, query.NotFound("%s had no price of %s by %s", venue, strings.ToValidUTF8(symbol, "�"), query.FormatTime(w.asOf.UnixNano()))
		}
	}
	w.simulated = w.simulated || entry.Latest.Simulated
	return entry, of(entry), nil
}
