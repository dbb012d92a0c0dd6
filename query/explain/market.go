package explain

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// minuteRows are where the rows of a minute lie in the log, by coin id, and its summary.
type minuteRows struct {
	places    map[string]Place
	rows      map[string]*eventsv1.Market
	summary   *eventsv1.Summary
	summaryAt *Place
	// logic is the version of the fold that wrote them, 0 where nothing was written.
	logic uint32
}

// minute reads what the fold of markets wrote of a minute.
func (w *work) minute(ctx context.Context, at int64) (*minuteRows, error) {
	if held := w.minutes[at]; held != nil {
		return held, nil
	}
	m := &minuteRows{places: map[string]Place{}, rows: map[string]*eventsv1.Market{}}
	_, err := w.scan(ctx, schemas.TopicMarkets, 0, at, at, func(rec *kgo.Record) bool {
		record, err := schemas.DecodeRecord(schemas.TopicMarkets, rec.Value)
		market, ok := record.(*eventsv1.MarketRecord)
		if err != nil || !ok {
			return true
		}
		m.logic = market.Mark.GetLogicVersion()
		held := place(schemas.TopicMarkets, 0, rec.Offset)
		switch body := market.Body.(type) {
		case *eventsv1.MarketRecord_Market:
			m.places[body.Market.CoinId], m.rows[body.Market.CoinId] = held, body.Market
		case *eventsv1.MarketRecord_Summary:
			m.summary, m.summaryAt = body.Summary, &held
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	w.minutes[at] = m
	return m, nil
}

// stateEvery is how often each coin's row is written even if it is unchanged.
const stateEvery = time.Hour

// row is the row of a coin as of the end of the last minute: of the one that was served at the instant asked for, or the newest. It is
// the one that the fold wrote; what candles show of it is added when it is served.
func (w *work) row(ctx context.Context, coin *views.CatalogCoin) (*eventsv1.Market, error) {
	if !w.past {
		if coin.FoldedRow == nil {
			return nil, query.NotFound("%s has no row yet: no minute with a price of it was folded", coin.ID)
		}
		return coin.FoldedRow, nil
	}
	last, err := w.lastMinute(ctx)
	if err != nil {
		return nil, err
	}
	// Most rows change each minute, so that the last minutes are read first.
	for span, until := minute, last; until > last-int64(stateEvery)-minute; span *= 4 {
		from := max(until-span+minute, last-int64(stateEvery))
		var found *eventsv1.Market
		first, err := w.scan(ctx, schemas.TopicMarkets, 0, from, until, func(rec *kgo.Record) bool {
			if string(rec.Key) == coin.ID {
				if record, err := schemas.DecodeRecord(schemas.TopicMarkets, rec.Value); err == nil && record.(*eventsv1.MarketRecord).GetMarket() != nil {
					found = record.(*eventsv1.MarketRecord).GetMarket()
				}
			}
			return true
		})
		if err != nil {
			return nil, err
		}
		if found != nil && found.Price > 0 {
			return found, nil
		}
		if found != nil || first == 0 {
			break
		}
		until = from - minute
	}
	if err := w.agedOut(ctx, schemas.TopicMarkets, last); err != nil {
		return nil, err
	}
	return nil, query.NotFound("%s had no row by %s", coin.ID, query.FormatTime(last))
}

// agedOut fails where the log of a topic of minutes begins after one.
func (w *work) agedOut(ctx context.Context, topic string, at int64) error {
	begins := int64(0)
	first, err := w.scan(ctx, topic, 0, 0, endless, func(rec *kgo.Record) bool {
		begins = rec.Timestamp.UnixNano()
		return false
	})
	if err != nil {
		return err
	}
	if first > 0 && begins > at-int64(stateEvery) {
		return query.AgedOut(time.Unix(0, begins).Add(stateEvery).UTC(), "%s begins at %s, and has all of what held at a minute from an hour later on",
			topic, query.FormatTime(begins))
	}
	return nil
}

// market explains a field of a coin's row.
func (w *work) market(ctx context.Context, coin *views.CatalogCoin, field marketField, depth int) (*Node, error) {
	row, err := w.row(ctx, coin)
	if err != nil {
		return nil, err
	}
	w.simulated = w.simulated || row.Simulated || w.snapshot.Notices[row.PriceSource].GetSimulated()
	if !w.past {
		served, folded := field.value(coin.Market), field.value(row)
		if (served == nil) != (folded == nil) || served != nil && *served != *folded {
			return w.measured(ctx, coin, row, field, depth)
		}
	}
	return w.fieldOf(ctx, coin, row, field, depth)
}

// marketServed explains a field of the row of a coin of coinsServed, which it is of as of the instant asked for too.
func (w *work) marketServed(ctx context.Context, coin *views.CatalogCoin, field marketField, depth int) (*Node, error) {
	if !w.past {
		return w.market(ctx, coin, field, depth)
	}
	w.simulated = w.simulated || coin.Market.Simulated || w.snapshot.Notices[coin.Market.PriceSource].GetSimulated()
	served, folded := field.value(coin.Market), field.value(coin.FoldedRow)
	if (served == nil) != (folded == nil) || served != nil && *served != *folded {
		return w.measuredThen(ctx, coin, field, depth)
	}
	return w.fieldOf(ctx, coin, coin.FoldedRow, field, depth)
}

// fieldOf explains a field of a row as the fold wrote it.
func (w *work) fieldOf(ctx context.Context, coin *views.CatalogCoin, row *eventsv1.Market, field marketField, depth int) (*Node, error) {
	n := headline("market/"+coin.ID+"/"+field.name, field.value(row), field.unit, row.Time)
	n.Method = field.method(slices.Contains(row.OwnChanges, field.change))
	if !w.expands(depth) {
		return n, nil
	}
	written, err := w.minute(ctx, row.Time)
	if err != nil {
		return nil, err
	}
	if at, ok := written.places[coin.ID]; ok {
		n.Records, n.Method.Version = []Place{at}, written.logic
	}
	if field.name == "rank" {
		return n, w.rankOf(ctx, n, coin, row, depth)
	}
	again, err := w.refold(ctx, coin.ID, row.Time)
	if err != nil {
		why := lacks(err)
		if why == "" {
			return nil, err
		}
		n.notReproduced("not computed again: " + why)
		return n, nil
	}
	n.compare(field.value(again.row))
	n.Inputs, err = w.rowInputs(ctx, coin, row, again, field, depth)
	return n, err
}

// rowInputs are what a field was made of.
func (w *work) rowInputs(ctx context.Context, coin *views.CatalogCoin, row *eventsv1.Market, again *refolded, field marketField, depth int) ([]*Node, error) {
	fields := func(names ...string) (inputs []*Node, err error) {
		for _, name := range names {
			of, _ := marketFieldNamed(name)
			n, err := w.fieldOf(ctx, coin, row, of, depth-1)
			if err != nil {
				return nil, err
			}
			inputs = append(inputs, n)
		}
		return inputs, nil
	}
	own := row.PriceSource == schemas.PriceSourceMedian
	switch name := field.name; {
	case field.value(row) == nil:
		return nil, nil
	case name == "price" && own:
		return []*Node{w.candleInput(coin, again, "close")}, nil
	case name == "price":
		return []*Node{again.observation(row.PriceSource, name, field.value(row), usd)}, nil
	case name == "marketCap":
		return fields("price", "circulatingSupply")
	case name == "fullyDilutedValuation" && row.MaxSupply != nil:
		return fields("price", "maxSupply")
	case name == "fullyDilutedValuation":
		return fields("price", "totalSupply")
	case name == "priceChange24h":
		return fields("price", "change24h")
	case name == "marketCapChange24h":
		return fields("marketCap", "change24h")
	case name == "athChange":
		return fields("price", "ath")
	case name == "atlChange":
		return fields("price", "atl")
	case name == "volumeToMarketCap":
		return fields("volume24h", "marketCap")
	case name == "marketCapChangePercent24h":
		return fields("change24h")
	case strings.HasSuffix(name, "Supply"):
		return []*Node{again.observation(row.SupplySource, name, field.value(row), "")}, nil
	case field.change != "" && slices.Contains(row.OwnChanges, field.change):
		inputs, err := fields("price")
		if closed, end, ok := again.coin.ChangeBasis(row.Time, field.change); ok && err == nil {
			basis := again.remembered(fmt.Sprintf("close/%s/%s", coin.ID, time.Unix(0, end).UTC().Format(time.RFC3339)), &closed, usd, end)
			inputs = append(inputs, basis)
		}
		return inputs, err
	case name == "volume24h" && own && again.candle != nil && again.candle.Volume24H == *row.Volume24H:
		return []*Node{w.candleInput(coin, again, "volume24h")}, nil
	}
	// What several intervals and sources give together is all in the state and in what came since.
	inputs := []*Node{again.remembered("state/"+coin.ID, nil, "", again.stateTime())}
	if again.candle != nil {
		inputs = append(inputs, w.candleInput(coin, again, "close"))
	}
	for _, source := range slices.Sorted(maps.Keys(again.reported)) {
		inputs = append(inputs, again.observation(source, field.name, nil, field.unit))
	}
	return inputs, nil
}

// candleInput is what the newest closed minute has.
func (w *work) candleInput(coin *views.CatalogCoin, again *refolded, field string) *Node {
	c := again.candle
	if c == nil { // it is in the state: nothing has closed since
		price := again.row.Price
		return again.remembered("close/"+coin.ID, &price, usd, again.row.PriceTime)
	}
	value, number := c.Close, candleNumber(coin.ID, "1m", time.Unix(0, c.Start))
	if field == "volume24h" {
		value, number = c.Volume24H, number+"/volume24h"
	}
	return stated(number, &value, usd, c.Start, again.candleAt)
}

// observation is what a source reports about a field; its record is the state where it came before that.
func (r *refolded) observation(source, field string, value *float64, unit string) *Node {
	observed := r.reported[source]
	n := headline("observation/"+source+"/"+observed.GetSourceId()+"/"+field, value, unit, observed.GetIngestTime())
	if at, ok := r.reportedAt[source]; ok {
		n.Records = []Place{at}
	} else if r.state != nil {
		n.Records = []Place{*r.state}
	}
	return n
}

// remembered is what the state of the hour before holds.
func (r *refolded) remembered(number string, value *float64, unit string, at int64) *Node {
	n := headline(number, value, unit, at)
	switch {
	case r.state != nil:
		n.Records = []Place{*r.state}
	case r.candle != nil:
		n.Records = []Place{r.candleAt}
	}
	return n
}

func (r *refolded) stateTime() int64 {
	if r.candle != nil {
		return r.candle.Start + minute
	}
	return r.row.Time
}

// rankOf explains a rank by the coins around it.
func (w *work) rankOf(ctx context.Context, n *Node, coin *views.CatalogCoin, row *eventsv1.Market, depth int) error {
	if row.MarketCap == nil {
		n.compare(nil)
		n.Note = "a coin without a market cap has no rank"
		return nil
	}
	all, err := w.whole(ctx)
	if err != nil {
		return err
	}
	before := 0
	for _, other := range all.ranked {
		if c := other.Row; c.CoinId != coin.ID && (*c.MarketCap > *row.MarketCap || *c.MarketCap == *row.MarketCap && c.CoinId < coin.ID) {
			before++
		}
	}
	rank := float64(before + 1)
	n.compare(&rank)
	for i := max(0, before-2); i < min(len(all.ranked), before+3); i++ {
		in, err := w.capOf(ctx, all.ranked[i].Row, depth-1)
		if err != nil {
			return err
		}
		n.Inputs = append(n.Inputs, in)
	}
	if rest := len(all.ranked) - len(n.Inputs); rest > 0 {
		n.LeftOut = &LeftOut{Count: rest}
	}
	return nil
}

// capOf is the market cap of a row among others.
func (w *work) capOf(ctx context.Context, row *eventsv1.Market, depth int) (*Node, error) {
	field, _ := marketFieldNamed("marketCap")
	if coin := w.snapshot.ByID(row.CoinId); w.expands(depth) && coin != nil {
		return w.fieldOf(ctx, coin, row, field, depth)
	}
	n := headline("market/"+row.CoinId+"/marketCap", row.MarketCap, usd, row.Time)
	written, err := w.minute(ctx, row.Time)
	if err != nil {
		return nil, err
	}
	if at, ok := written.places[row.CoinId]; ok {
		n.Records = []Place{at}
	}
	return n, nil
}
