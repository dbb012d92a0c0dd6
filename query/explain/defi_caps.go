package explain

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// categorizedCap is the share of the market cap of coins of which sources state any category.
const categorizedCap = "categorizedMarketCap"

// capsOfDefi reads the market caps at the minute of the summary, and which coins are of DeFi.
func (w *work) capsOfDefi(ctx context.Context, whole *wholeDefi) (err error) {
	if whole.market != nil {
		return nil
	}
	if whole.market, err = w.marketAt(ctx, whole.summary.Time); err != nil {
		return err
	}
	whole.in.Caps, whole.in.TotalMarketCap = map[string]float64{}, whole.market.summary.GetTotalMarketCap()
	for id, row := range whole.market.rows {
		if row.MarketCap != nil {
			whole.in.Caps[id] = *row.MarketCap
		}
	}
	for _, id := range slices.Sorted(maps.Keys(whole.coins)) {
		if c := whole.coins[id].value; c != nil && schemas.DefiCoinCounts(c) {
			whole.in.Coins = append(whole.in.Coins, id)
		}
	}
	whole.make()
	return nil
}

// marketAt is the market that the log has as of the end of a minute; for the past it fails where the log begins after that.
func (w *work) marketAt(ctx context.Context, at int64) (*loggedMarket, error) {
	if w.past {
		if err := w.agedOut(ctx, schemas.TopicMarkets, at); err != nil {
			return nil, err
		}
	}
	return w.loggedMarket(ctx, at)
}

// defiCap explains a number that is made of the market caps of the coins of DeFi.
func (w *work) defiCap(ctx context.Context, whole *wholeDefi, field defiField, depth int) (*Node, error) {
	if err := w.capsOfDefi(ctx, whole); err != nil {
		return nil, err
	}
	n := whole.node("defi/"+field.name, field.value(whole.summary), field.unit, field.formula)
	whole.compare(n, field.value)
	if err := w.addCaps(ctx, n, whole.market, whole.coins, whole.in.Coins, depth); err != nil {
		return nil, err
	}
	if total := whole.market.total(); field.name == defiDominance && total != nil {
		n.Inputs = append(n.Inputs, total)
	}
	return n, nil
}

// addCaps gives a number the market caps of coins, the largest first, each with the record that has its categories too.
func (w *work) addCaps(ctx context.Context, n *Node, market *loggedMarket, coins map[string]statedThing[*eventsv1.DefiCoin], ids []string, depth int) error {
	var rows []*eventsv1.Market
	for _, id := range ids {
		if row := market.rows[id]; row.GetMarketCap() > 0 {
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows, func(a, b *eventsv1.Market) int { return cmp.Compare(*b.MarketCap, *a.MarketCap) })
	for _, row := range rows {
		in := stated("market/"+row.CoinId+"/marketCap", row.MarketCap, usd, row.Time, market.places[row.CoinId])
		if len(n.Inputs) < shown && w.expands(depth-1) {
			var err error
			if in, err = w.capOf(ctx, row, depth-1); err != nil {
				return err
			}
		}
		if at := coins[row.CoinId].at; at.Topic != "" {
			in.Records = append(in.Records, at)
		}
		n.Inputs = append(n.Inputs, in)
	}
	n.fewer(true)
	return nil
}

// categorized explains how much of the market cap of coins is of those whose categories are known. What is served is of the coins at
// hand: it is held against the rows that the log has as of their minute, and what it has of their categories.
func (w *work) categorized(ctx context.Context, whole *wholeDefi, field defiField, depth int) (*Node, error) {
	at := whole.summary.Time
	if !w.past {
		if at = w.snapshot.Time; at == 0 {
			return nil, query.Starting("no minute of markets was folded yet")
		}
	}
	market, err := w.marketAt(ctx, at)
	if err != nil {
		return nil, err
	}
	described, later := whole.coins, map[string]bool{}
	if !w.past {
		if described, later, err = w.categoriesNow(ctx, whole); err != nil {
			return nil, err
		}
	}
	var again []*views.CatalogCoin
	var ids []string
	for _, row := range market.rows {
		if row.Price <= 0 { // nothing but names
			continue
		}
		coin := &views.CatalogCoin{ID: row.CoinId, Rank: int(row.Rank), Market: row}
		known := slices.ContainsFunc(described[row.CoinId].value.GetWords(), func(word *eventsv1.DefiWord) bool { return views.Describes(word.Source) })
		if later[row.CoinId] {
			held := w.snapshot.ByID(row.CoinId)
			known = held != nil && len(held.Categories) > 0
		}
		if known {
			coin.Categories = []string{"known"}
			ids = append(ids, row.CoinId)
		}
		again = append(again, coin)
	}
	slices.SortFunc(again, func(a, b *views.CatalogCoin) int {
		return cmp.Or(cmp.Compare(uint(a.Rank)-1, uint(b.Rank)-1), cmp.Compare(a.ID, b.ID)) // those without a rank come last
	})
	slices.Sort(ids)
	recomputed := views.CategorizedShare(again)
	n := headline("defi/"+field.name, recomputed, field.unit, at)
	n.Method = &Method{Name: "categorized-share", Version: 1, Formula: field.formula}
	if w.past {
		n.Note = "the rows and categories are those of the minute of the summary of DeFi, and the value is of the coins as they were served, where these are kept"
		served, err := w.Coins.CategorizedShare(ctx, w.asOf)
		if aged := (*views.AgedOutError)(nil); err != nil && !errors.As(err, &aged) {
			return nil, query.FaultOfPast(err, w.asOf)
		} else if err == nil {
			n.Value = served
		}
	} else {
		n.Value = views.CategorizedShare(w.snapshot.Coins)
		n.compare(recomputed)
	}
	return n, w.addCaps(ctx, n, market, described, ids, depth)
}

// categoriesNow is what sources state of the categories of coins by the clock of the coins at hand. Later are those of which more was
// stated after it, that may be at hand or not.
func (w *work) categoriesNow(ctx context.Context, whole *wholeDefi) (described map[string]statedThing[*eventsv1.DefiCoin], later map[string]bool, err error) {
	described, later = maps.Clone(whole.coins), map[string]bool{}
	since, until := whole.summary.Time, schemas.Minute(w.snapshot.SourcesTime)
	err = w.reportsSince(ctx, schemas.TopicReferenceRaw, since, endless, func(end int64, rec *eventsv1.ReferenceRecord, at Place) {
		if rec.GetCoin() == nil {
			return
		}
		if id := categorize(described, end, rec.GetCoin(), at); id != "" && end > until {
			later[id] = true
		}
	})
	return described, later, err
}
