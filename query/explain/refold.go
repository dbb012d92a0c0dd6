package explain

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	minute = int64(time.Minute)
	hour   = int64(time.Hour)
)

// clocksBefore is how long before a state the clocks of sources are read, so that one is known when it begins.
const clocksBefore = 2 * minute

// refolded is a coin's row, made again by the fold's own state machine of its state of the hour before and of what came since.
type refolded struct {
	row   *eventsv1.Market
	coin  *schemas.CoinState
	state *Place // the record with the state; nil where the log begins within the hour
	// candle is the newest closed minute, at its place.
	candle   *eventsv1.Candle
	candleAt Place
	// reported are the newest observations that count, by source, with the places of those that came since the state.
	reported   map[string]*eventsv1.CoinMarket
	reportedAt map[string]Place
	folded     int // candles since the state
}

var (
	errNoState = errors.New("the log no longer has the state of the coin from the hour before")
	errNoPrice = errors.New("the log has no price of the coin")
)

// refold makes the row of a coin as of the end of a minute again from the log: it reads the coin's state of the hour before, and folds
// what came since, minute by minute. An observation belongs to the minute of the clock before it, a candle to its own: so the fold of
// markets takes them.
func (w *work) refold(ctx context.Context, coinID string, at int64) (*refolded, error) {
	if known := w.refolded[coinID]; known != nil && known.row.GetTime() == at {
		return known, nil
	}
	r := &refolded{reported: map[string]*eventsv1.CoinMarket{}, reportedAt: map[string]Place{}, coin: &schemas.CoinState{}}
	since, err := w.recall(ctx, r, coinID, at-minute)
	if err != nil {
		return nil, err
	}
	events := map[int64]*arrived{}
	if err := w.candlesSince(ctx, coinID, since, at, events); err != nil {
		return nil, err
	}
	if err := w.observationsSince(ctx, coinID, since, at, events); err != nil {
		return nil, err
	}
	for _, end := range slices.Sorted(maps.Keys(events)) {
		r.take(end, events[end])
	}
	r.coin.Forget(at)
	if r.row = r.coin.Row(at); r.row == nil {
		return nil, errNoPrice
	}
	r.row.CoinId = coinID
	w.refolded[coinID] = r
	return r, nil
}

// recall takes the state of a coin from the hour before a minute, and returns the minute that it is of. Of a coin that the fold remembered
// nothing of then there is none: what came since is all of it.
func (w *work) recall(ctx context.Context, r *refolded, coinID string, before int64) (since int64, err error) {
	due := schemas.MarketStateDue(coinID, before)
	first, since, err := w.stateSince(ctx, r, coinID, due, before)
	if err != nil || r.state != nil || first == 0 {
		return since, err
	}
	// The minute in which it was due may have been silent; that of the hour before it is the state then.
	due -= int64(stateEvery)
	first, since, err = w.stateSince(ctx, r, coinID, due, before)
	switch {
	case err != nil || r.state != nil || first == 0:
		return since, err
	case !w.reachesBack(ctx, schemas.TopicMarkets, 0, first):
		return 0, errNoState
	}
	return due, nil
}

// stateSince takes the first state of a coin that was written in a span, and returns the minute that it is of, 0 for none, and the first offset of the span.
func (w *work) stateSince(ctx context.Context, r *refolded, coinID string, from, to int64) (first, since int64, err error) {
	var broken error
	first, err = w.scan(ctx, schemas.TopicMarkets, 0, from, to, func(rec *kgo.Record) bool {
		if string(rec.Key) != coinID {
			return true
		}
		record, err := schemas.DecodeRecord(schemas.TopicMarkets, rec.Value)
		if market, ok := record.(*eventsv1.MarketRecord); err == nil && ok && market.State != nil {
			held := place(schemas.TopicMarkets, 0, rec.Offset)
			r.state, since, r.coin = &held, market.State.Minute, schemas.RecallCoinState(market.State)
			for _, reported := range market.State.Sources {
				r.reported[reported.Source] = reported
			}
			return false
		}
		broken = errors.Join(broken, err)
		return true
	})
	return first, since, errors.Join(err, broken)
}

// arrived is what the fold takes of a coin in a minute.
type arrived struct {
	candle     *eventsv1.Candle
	candleAt   Place
	reported   []*eventsv1.CoinMarket
	reportedAt []Place
}

func of(events map[int64]*arrived, end int64) *arrived {
	e := events[end]
	if e == nil {
		e = &arrived{}
		events[end] = e
	}
	return e
}

func (r *refolded) take(end int64, e *arrived) {
	if e.candle != nil {
		r.coin.AddCandle(e.candle)
		r.candle, r.candleAt, r.folded = e.candle, e.candleAt, r.folded+1
	}
	for i, reported := range e.reported {
		if r.coin.Observe(reported) {
			r.reported[reported.Source], r.reportedAt[reported.Source] = reported, e.reportedAt[i]
		}
	}
	r.coin.Forget(end)
}

// candlesSince reads the closed minutes of a coin that ended after one time and by another. It ends with the pulse that closes the
// last of them.
func (w *work) candlesSince(ctx context.Context, coinID string, since, until int64, events map[int64]*arrived) error {
	topic, _ := schemas.TopicNamed(schemas.TopicCandles)
	p := partition(coinID, topic.Partitions)
	_, err := w.scan(ctx, topic.Name, p, since, endless, func(rec *kgo.Record) bool {
		if len(rec.Key) > 0 && string(rec.Key) != coinID {
			return true
		}
		record, err := schemas.DecodeRecord(topic.Name, rec.Value)
		if err != nil {
			return true
		}
		if pulse := record.GetPulse(); pulse != nil {
			return pulse.Watermark < until+int64(schemas.AllowedLateness)
		}
		if r, ok := record.(*eventsv1.CandleRecord); ok && r.GetCandle() != nil {
			if end := r.GetCandle().Start + minute; end > since && end <= until {
				e := of(events, end)
				e.candle, e.candleAt = r.GetCandle(), place(topic.Name, p, rec.Offset)
			}
		}
		return true
	})
	return err
}

// observationsSince reads what sources stated of a coin in the minutes after one and up to another.
func (w *work) observationsSince(ctx context.Context, coinID string, since, until int64, events map[int64]*arrived) error {
	return w.reportsSince(ctx, schemas.TopicCoinMarketsRaw, since, until, func(end int64, rec *eventsv1.ReferenceRecord, at Place) {
		market := rec.GetCoinMarket()
		if market == nil {
			return
		}
		if id, ok := schemas.CanonicalCoin(market.Source, market.SourceId, market.Symbol, market.Name); ok && id == coinID {
			e := of(events, end)
			e.reported, e.reportedAt = append(e.reported, market), append(e.reportedAt, at)
		}
	})
}

// reportsSince reads what sources stated in the minutes after one and up to another. A record belongs to the minute of the clock before it,
// and what came before the first clock of a log that counts to the minute after that.
func (w *work) reportsSince(ctx context.Context, topic string, since, until int64, visit func(end int64, rec *eventsv1.ReferenceRecord, at Place)) error {
	type early struct {
		rec *eventsv1.ReferenceRecord
		at  Place
	}
	reached := int64(0)
	var clocks schemas.Clocks // of which the first ones do not count yet, as in the fold
	var first []early
	add := func(end int64, rec *eventsv1.ReferenceRecord, at Place) {
		if end > since && end <= until {
			visit(end, rec, at)
		}
	}
	_, err := w.scan(ctx, topic, 0, max(0, since-clocksBefore), endless, func(r *kgo.Record) bool {
		record, err := schemas.DecodeRecord(topic, r.Value)
		rec, ok := record.(*eventsv1.ReferenceRecord)
		if err != nil || !ok {
			return true
		}
		at, clock := place(topic, 0, r.Offset), rec.GetClock()
		switch {
		case clock == nil && reached == 0:
			first = append(first, early{rec, at})
			return true
		case clock == nil:
			add(reached+minute, rec, at)
			return true
		}
		clocks.Observe(rec.Producer, rec.Epoch, clock.Time)
		before := reached
		if now := clocks.Now(); now > 0 {
			reached = max(reached, schemas.Minute(now))
		}
		if before == 0 && reached > 0 {
			for _, e := range first {
				add(reached+minute, e.rec, e.at)
			}
			first = nil
		}
		return reached < until
	})
	return err
}
