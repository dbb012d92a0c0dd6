package explain

import (
	"context"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// loggedSymbols are coins of which records of the log state what a question is decided on. Others are as they are served: none of them is among the
// candidates, so that neither their size nor their price decides.
type loggedSymbols struct {
	*work
	asked     askedSymbol
	req       schemas.SymbolRequest
	coins     map[string]schemas.SymbolCoin
	overrides []*eventsv1.SymbolOverride
	inputs    []*Node
	// lost says what of it the log does not have any more.
	lost  string
	depth int
}

// read finds in the log what was decided on.
func (l *loggedSymbols) read(ctx context.Context, q schemas.SymbolQuestion, got schemas.ResolvedSymbol) error {
	if l.req = l.asked.req; l.asked.rate != nil {
		in, err := l.quoteRate(ctx, l.asked.rate)
		if err != nil {
			return err
		}
		if again := in.again(); again != nil {
			l.req.Price = q.Price * *again
		} else {
			l.lost = "the record of the exchange rate is not in the log any more"
		}
		l.inputs = append(l.inputs, in)
	}
	if err := l.said(ctx, q); err != nil {
		return err
	}
	for i, c := range got.Candidates {
		coin := l.asked.coins.ByID(c.Coin.ID)
		if coin == nil { // it is known by the coin table or an override alone
			continue
		}
		decided := i == 0 && got.Coin != nil
		if err := l.coin(ctx, coin, c.Coin, l.req.Price > 0, decided && got.Method == schemas.MethodRanking, decided && got.Method == schemas.MethodProvider); err != nil {
			return err
		}
	}
	return nil
}

// coin makes again of the log what a question is decided on of a coin.
func (l *loggedSymbols) coin(ctx context.Context, coin *views.CatalogCoin, is schemas.SymbolCoin, priced, ranked, issued bool) error {
	logged := is
	if is.MarketCap > 0 {
		in, err := l.rowNumber(ctx, coin, "marketCap")
		if err != nil {
			return err
		}
		logged.MarketCap = orZero(in.again())
	}
	switch {
	case is.Rank > 0 && coin.Rank == 0:
		in := headline("coin-table/"+is.ID+"/rank", known(float64(is.Rank)), "", 0)
		in.Time, in.Note = "", "a constant of the coin table of this service"
		l.inputs = append(l.inputs, in)
	case is.Rank > 0 && (ranked || is.MarketCap == 0):
		in, err := l.rowNumber(ctx, coin, "rank")
		if err != nil {
			return err
		}
		logged.Rank = int(orZero(in.again()))
	}
	if priced && is.Price > 0 {
		in, err := l.priceOf(ctx, coin)
		if err != nil {
			return err
		}
		logged.Price = orZero(in.again())
	}
	if issued && len(is.Platforms) > 0 {
		if err := l.platforms(ctx, coin, &logged); err != nil {
			return err
		}
	}
	l.coins[is.ID] = logged
	return nil
}

// orZero is a number, 0 where it is not known.
func orZero(value *float64) float64 {
	if value == nil {
		return 0
	}
	return *value
}

// rowNumber is a number of a coin's row among the inputs.
func (l *loggedSymbols) rowNumber(ctx context.Context, coin *views.CatalogCoin, name string) (*Node, error) {
	field, _ := marketFieldNamed(name)
	in, err := l.marketServed(ctx, coin, field, l.depth)
	return l.input(in, err)
}

// priceOf is the price that a given one is compared with: the one that is served. As of an instant it is that of the row where venues had none then that counted.
func (l *loggedSymbols) priceOf(ctx context.Context, coin *views.CatalogCoin) (*Node, error) {
	if l.past {
		entries, err := l.Prices.AsOf(ctx, l.History, []schemas.Coin{coin.Own}, l.asOf)
		if err != nil {
			return nil, query.FaultOfPast(err, l.asOf)
		}
		if _, counts := l.Prices.SpotOf(entries[coin.ID], l.asOf); !counts {
			return l.rowNumber(ctx, coin, fieldPrice)
		}
	}
	in, err := l.price(ctx, coin, priceFields[0], l.depth)
	return l.input(in, err)
}

func (l *loggedSymbols) input(in *Node, err error) (*Node, error) {
	if err != nil {
		return nil, err
	}
	if l.inputs = append(l.inputs, in); in.again() == nil {
		l.lost = in.Number + " could not be computed again"
	}
	return in, nil
}

// platforms are where a coin is issued, as a source says.
func (l *loggedSymbols) platforms(ctx context.Context, coin *views.CatalogCoin, logged *schemas.SymbolCoin) error {
	by := firstWith(coin, func(c *eventsv1.Coin) bool { return len(c.GetPlatforms()) > 0 })
	in := headline("platforms/"+coin.ID, known(float64(len(by.GetPlatforms()))), "", by.GetIngestTime())
	l.inputs = append(l.inputs, in)
	recorded, at, err := l.description(ctx, by)
	switch {
	case err != nil:
		return err
	case recorded == nil:
		in.Note, l.lost = noDescription, noDescription
		return nil
	}
	in.Records, logged.Platforms = []Place{at}, nil
	for _, p := range recorded.Platforms {
		logged.Platforms = append(logged.Platforms, schemas.SymbolPlatform{Name: p.Name, Address: p.Address})
	}
	return nil
}

// said finds the operators' overrides that the question may be about: those of its source and of all sources whose symbol is a part of what was asked, as
// every spelling is.
func (l *loggedSymbols) said(ctx context.Context, q schemas.SymbolQuestion) error {
	asked := strings.ToUpper(q.Symbol)
	for _, o := range l.asked.by.Overrides.InForce(l.asked.at.UnixNano()) {
		source := schemas.VenueSlug(o.Source)
		if source != schemas.GeneralSource && source != schemas.VenueSlug(q.Source) && source != schemas.VenueSlug(q.Context.Exchange) || !strings.Contains(asked, strings.ToUpper(o.Symbol)) {
			continue
		}
		in, recorded, err := l.override(ctx, o)
		if err != nil {
			return err
		}
		if l.inputs = append(l.inputs, in); recorded == nil {
			l.lost = "the record of an operator's override is not in the log any more"
			continue
		}
		l.overrides = append(l.overrides, recorded)
	}
	return nil
}

// override finds the record of an operator's override; nil where the log no longer has it.
func (w *work) override(ctx context.Context, o *eventsv1.SymbolOverride) (in *Node, recorded *eventsv1.SymbolOverride, err error) {
	in = headline("override/"+o.Source+"/"+o.Symbol, nil, "", o.Time)
	_, err = w.scan(ctx, schemas.TopicReferenceRaw, 0, o.Time-minute, o.Time+minute, func(r *kgo.Record) bool {
		rec, err := schemas.DecodeRecord(schemas.TopicReferenceRaw, r.Value)
		reference, is := rec.(*eventsv1.ReferenceRecord)
		if found := reference.GetOverride(); err == nil && is && found != nil && found.Source == o.Source && found.Symbol == o.Symbol && found.Time == o.Time {
			recorded, in.Records = found, []Place{place(schemas.TopicReferenceRaw, 0, r.Offset)}
		}
		return recorded == nil
	})
	if in.Note = "an operator's word: " + o.CoinId; recorded == nil {
		in.Note = "its record is not in the log any more"
	}
	return in, recorded, err
}

// quoteRate is what a unit of a quote asset costs, by the record that states it.
func (w *work) quoteRate(ctx context.Context, rate *eventsv1.QuoteRate) (*Node, error) {
	n := headline("quote-rate/"+rate.QuoteId, &rate.Rate, usd, rate.Time)
	_, err := w.scan(ctx, schemas.TopicQuotes, 0, rate.Time, rate.Time+int64(views.PublishedWithin), func(r *kgo.Record) bool {
		record, err := schemas.DecodeRecord(schemas.TopicQuotes, r.Value)
		stated, is := record.(*eventsv1.QuoteRecord)
		if found := stated.GetRate(); err == nil && is && found.GetQuoteId() == rate.QuoteId && found.GetTime() == rate.Time {
			n.Records = []Place{place(schemas.TopicQuotes, 0, r.Offset)}
			n.compare(&found.Rate)
		}
		return true
	})
	if len(n.Records) == 0 {
		n.Note = "the record that states it is not in the log any more"
	}
	return n, err
}

func (l loggedSymbols) logged(coins []schemas.SymbolCoin) []schemas.SymbolCoin {
	coins = slices.Clone(coins)
	for i, c := range coins {
		if logged, ok := l.coins[c.ID]; ok {
			coins[i] = logged
		}
	}
	return coins
}

// BySymbol implements schemas.SymbolCatalog.
func (l loggedSymbols) BySymbol(symbol string) []schemas.SymbolCoin {
	return l.logged(l.asked.by.Catalog.BySymbol(symbol))
}

// ByID implements schemas.SymbolCatalog.
func (l loggedSymbols) ByID(id string) (schemas.SymbolCoin, bool) {
	c, ok := l.asked.by.Catalog.ByID(id)
	return l.logged([]schemas.SymbolCoin{c})[0], ok
}

// ByContract implements schemas.SymbolCatalog.
func (l loggedSymbols) ByContract(address string) []schemas.SymbolCoin {
	return slices.DeleteFunc(l.logged(l.asked.by.Catalog.ByContract(address)), func(c schemas.SymbolCoin) bool {
		return !slices.ContainsFunc(c.Platforms, func(p schemas.SymbolPlatform) bool { return strings.EqualFold(p.Address, address) })
	})
}

// ByName implements schemas.SymbolCatalog.
func (l loggedSymbols) ByName(name string) ([]schemas.SymbolCoin, bool) {
	coins, whole := l.asked.by.Catalog.ByName(name)
	return l.logged(coins), whole
}

// Ranked implements schemas.SymbolCatalog.
func (l loggedSymbols) Ranked() int { return l.asked.by.Catalog.Ranked() }
