package explain

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/http"
	"slices"
	"time"

	"github.com/shopspring/decimal"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	ofVenuesName = "candles-of-venues"
	// pastFormula is that of a candle of which it is not looked up whether venues have one of its length.
	pastFormula = "of venues' own candles of the interval, or of its minutes where they have none"
)

// pastFormulas are how a field of a back-filled candle is made of venues' own candles.
var pastFormulas = map[string]string{
	"volume": "exact sum of the volumes of all markets of the venues that vote", fieldVolumeUSD: "volume x mean of open, high, low and close", "trades": "none: venues' own candles state no number of trades",
}

func pastFormulaOf(field string) string {
	if formula, ok := pastFormulas[field]; ok {
		return formula
	}
	return "median over the venues of the " + field + " of the venue's best market x the " + field + " of its quote in USD"
}

// candleOfVenues explains a number of a candle that was made of venues' own candles of its length; false where it is one of minutes.
func (w *work) candleOfVenues(ctx context.Context, n *Node, coin *views.CatalogCoin, c schemas.Candle, field candleField, interval string, depth int) (ofVenues bool, err error) {
	step := intervals[interval]
	again, ok, err := w.History.RefoldPast(ctx, coin.ID, step, c.Start)
	if err != nil || !ok {
		return false, err
	}
	n.Method = &Method{Name: ofVenuesName, Version: schemas.FoldMarketsVersion, Formula: pastFormulaOf(field.name)}
	lacking, why, err := w.recordedMarkets(ctx, again.Markets, step)
	if err != nil {
		return true, err
	}
	if err := w.comparePast(ctx, n, refoldedOf(again, step), field); err != nil {
		return true, err
	}
	if n.Note == "" && lacking > 0 {
		n.Note = fmt.Sprintf("%d of the venues' candles are taken as the tables have them: %s", lacking, why)
	}
	n.Inputs, err = w.markets(ctx, again.Markets, field.name, interval, depth)
	n.fewer(false)
	return true, err
}

// comparePast compares a number of a back-filled candle with the same of one that was folded again, nil for none.
func (w *work) comparePast(ctx context.Context, n *Node, again *schemas.Candle, field candleField) error {
	var recomputed *float64
	if again != nil {
		recomputed = known(field.value(*again))
	}
	n.compare(recomputed)
	return w.unlessDue(ctx, n)
}

// unlessDue takes back that a number of the past is another one than it was computed to while something waits to be folded again.
func (w *work) unlessDue(ctx context.Context, n *Node) error {
	if *n.Reproduced {
		return nil
	}
	due, err := w.History.PastDue(ctx)
	if err == nil && due > 0 {
		n.Reproduced, n.Recomputed = nil, nil
		n.Note = "not computed again: something came that the past is made of, and it is being folded again"
	}
	return err
}

// refoldedOf folds a candle of what its markets are; nil for none.
func refoldedOf(of views.Refolded, step time.Duration) *schemas.Candle {
	var candles []schemas.MarketCandle
	rates := map[string]*schemas.OHLC{}
	for _, m := range of.Markets {
		candles = append(candles, m.MarketCandle)
		rates[m.QuoteID] = m.Rate
	}
	folded := schemas.FoldMarkets(candles, step, func(quoteID string, _ time.Time) (schemas.OHLC, bool) {
		rate := rates[quoteID]
		if rate == nil {
			return schemas.OHLC{}, false
		}
		return *rate, true
	})
	if len(folded) != 1 {
		return nil
	}
	return &folded[0]
}

const noRecords = "the log no longer has their records"

// recordedMarkets puts what the records of the log state in place of what the tables have, and counts the records that it did not read, with why.
func (w *work) recordedMarkets(ctx context.Context, markets []views.RefoldedMarket, step time.Duration) (lacking int, why string, err error) {
	for i := range markets {
		m := &markets[i]
		if w.reads++; w.reads > mostReads {
			return lacking + len(markets) - i, "the rest would need " + errTooManyReads.Error(), nil
		}
		found := false
		if !w.comesTo(ctx, place(schemas.TopicBackfillRaw, m.Partition, m.Offset)) {
			lacking, why = lacking+1, noRecords
			continue
		}
		err := w.Log.Range(ctx, schemas.TopicBackfillRaw, m.Partition, m.Offset, m.Offset, func(r *kgo.Record) error {
			record, err := schemas.DecodeRecord(schemas.TopicBackfillRaw, r.Value)
			if err != nil {
				return fmt.Errorf("reading the candle of %s %s: %w", m.Venue, m.Symbol, err)
			}
			of, _ := record.(*eventsv1.BackfillRecord)
			if stated := of.GetCandle(); stated != nil {
				found = found || takeRecord(m, stated, step)
			}
			return nil
		})
		if err != nil && lacks(err) == "" {
			return lacking, why, err
		}
		if !found {
			lacking, why = lacking+1, noRecords
		}
	}
	return lacking, why, nil
}

// takeRecord puts what a record states in place of what the tables have of a market's candle; false where it is of another one.
func takeRecord(m *views.RefoldedMarket, stated *eventsv1.BackfillCandle, step time.Duration) bool {
	if stated.Venue != m.Venue || stated.Symbol != m.Symbol || stated.Start != m.Start.UnixNano() || time.Duration(stated.Interval)*time.Second != step || stated.Withdrawn {
		return false
	}
	m.OHLC = schemas.OHLC{Open: columnFloat(stated.Open), High: columnFloat(stated.High), Low: columnFloat(stated.Low), Close: columnFloat(stated.Close)}
	volume, err := decimal.NewFromString(stated.Volume)
	if err == nil {
		m.Volume = volume.Truncate(columnDigits)
	}
	return err == nil
}

// columnDigits is how many digits after the point the tables keep of a price or a volume.
const columnDigits = 18

// columnFloat is a decimal of the log as the tables answer it for a float: the whole number of its last digits, divided, which may differ by a last digit from
// the float next to the decimal.
func columnFloat(text string) float64 {
	d, err := decimal.NewFromString(text)
	if err != nil {
		return math.NaN()
	}
	whole, _ := new(big.Float).SetInt(d.Shift(columnDigits).BigInt()).Float64()
	return whole / math.Pow10(columnDigits)
}

// markets are the venues' own candles that a field of a candle is made of, with what their quotes cost.
func (w *work) markets(ctx context.Context, markets []views.RefoldedMarket, field, interval string, depth int) (inputs []*Node, err error) {
	voted := map[string]bool{}
	for _, m := range markets {
		value, unit, of := m.Volume.InexactFloat64(), "", "volume"
		i := slices.Index(ohlcFields, field)
		if i >= 0 {
			value, unit, of = pricesOf(m.OHLC)[i], m.QuoteID, field
		}
		in := stated("backfill/"+m.Venue+"/"+m.Symbol+"/"+interval+"/"+m.Start.UTC().Format(time.RFC3339)+"/"+of, &value, unit, m.Start.UnixNano(),
			place(schemas.TopicBackfillRaw, m.Partition, m.Offset))
		switch {
		case m.Rate == nil:
			in.Note = "does not vote: what its quote cost is not known"
		case voted[m.Venue]:
			in.Note = "does not vote: a better market of the venue does; its volume counts"
		default:
			voted[m.Venue] = true
			if i >= 0 && m.QuoteID != schemas.USD {
				rate, err := w.quoteCost(ctx, m, i, interval, depth-1)
				if err != nil {
					return nil, err
				}
				in.Inputs = []*Node{rate}
			}
		}
		inputs = append(inputs, in)
	}
	return inputs, nil
}

// quoteCost is what a market's quote cost, of a field of ohlcFields.
func (w *work) quoteCost(ctx context.Context, m views.RefoldedMarket, i int, interval string, depth int) (*Node, error) {
	value, field := pricesOf(*m.Rate)[i], ohlcFields[i]
	coin := w.snapshot.ByID(m.QuoteID)
	if coin == nil {
		return w.dayRate(ctx, "fixing/"+m.QuoteID+"/"+m.Start.UTC().Format(time.DateOnly), m.QuoteID, m.Start, value, views.AllFixings, depth)
	}
	if w.expands(depth) {
		c, ok, err := w.storedCandle(ctx, m.QuoteID, intervals[interval], m.Start)
		if err != nil {
			return nil, err
		}
		// Live minutes that do not fill the interval convert it where there is nothing else, and are not what is shown.
		if ok && pricesOf(schemas.OHLC{Open: c.Open, High: c.High, Low: c.Low, Close: c.Close})[i] == value {
			n, err := w.candle(ctx, coin, interval, m.Start, field, depth)
			if fault := (*query.Error)(nil); !errors.As(err, &fault) || fault.Status != http.StatusGone {
				return n, err
			}
		}
	}
	return headline(candleNumber(m.QuoteID, interval, m.Start)+"/"+field, &value, usd, m.Start.UnixNano()), nil
}

// ohlcFields are the prices of a candle in the order of pricesOf.
var ohlcFields = []string{"open", "high", "low", "close"}

func pricesOf(p schemas.OHLC) []float64 { return []float64{p.Open, p.High, p.Low, p.Close} }
