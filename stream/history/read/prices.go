package read

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"

	"github.com/marketlog/marketlog/stream/history"
)

// recentPrices is how far before the newest price of all LatestPrices looks into prices, which has
// a row for every second; what is older comes from the last record of a minute.
const recentPrices = 2 * 24 * time.Hour

// LatestPrices reads, per coin, its last record with a price and, if there is a newer one, the record
// that says why there is none; of the coins that are known to the caller it reads nothing. Marks name the record of ticks.v1
// that caused it.
func (r Reader) LatestPrices(ctx context.Context, known []string) ([]*eventsv1.PriceRecord, error) {
	var newest time.Time
	if err := r.store.Conn().QueryRow(ctx, "SELECT max(time) FROM prices").Scan(&newest); err != nil {
		return nil, fmt.Errorf("reading the newest price: %w", history.Unavailable(err))
	}
	// The times are found by the narrow columns first: the inputs of two days would be gigabytes.
	latest, err := r.readPrices(ctx, priceQuery+`WHERE (coin_id, time) IN (
		SELECT coin_id, arrayJoin([maxIf(time, reason = ''), maxIf(time, reason != '')])
		FROM prices FINAL WHERE coin_id NOT IN (?) AND time > ? GROUP BY coin_id
	) ORDER BY coin_id, time`, known, newest.Add(-recentPrices))
	if err != nil {
		return nil, fmt.Errorf("reading the latest prices: %w", err)
	}
	priced := map[string]bool{}
	var kept []*eventsv1.PriceRecord
	for _, rec := range latest {
		p := rec.GetPrice()
		if p.Reason == "" {
			priced[p.CoinId] = true
		}
	}
	older, err := r.readHours(ctx, hourQuery+`WHERE (coin_id, hour) IN (
		SELECT coin_id, max(hour) FROM prices_1h WHERE coin_id NOT IN (?) GROUP BY coin_id
	) ORDER BY coin_id`, known)
	if err != nil {
		return nil, fmt.Errorf("reading the latest hours: %w", err)
	}
	for _, rec := range older {
		if !priced[rec.GetPrice().CoinId] {
			kept = append(kept, rec)
		}
	}
	for i, rec := range latest {
		// In the order of time; a reason that a price follows is over.
		over := i+1 < len(latest) && latest[i+1].GetPrice().CoinId == rec.GetPrice().CoinId
		if rec.GetPrice().Reason == "" || !over {
			kept = append(kept, rec)
		}
	}
	return kept, nil
}

// PriceSecond names the record of a coin's price in a second (Unix).
type PriceSecond struct {
	CoinID string
	Second int64
}

// PricesOfSeconds reads records of prices, those that have a reason in place of a price among them, in no order; what is not kept is
// left out. Their marks name the record of ticks.v1 that caused each.
func (r Reader) PricesOfSeconds(ctx context.Context, seconds []PriceSecond) ([]*eventsv1.PriceRecord, error) {
	if len(seconds) == 0 {
		return nil, nil
	}
	first, last := seconds[0].Second, seconds[0].Second
	named, args := make([]string, len(seconds)), []any{}
	for i, s := range seconds {
		first, last = min(first, s.Second), max(last, s.Second)
		named[i] = "(?, toDateTime(?, 'UTC'))"
		args = append(args, s.CoinID, s.Second)
	}
	found, err := r.readPrices(ctx, priceQuery+"WHERE time >= toDateTime(?, 'UTC') AND time <= toDateTime(?, 'UTC') AND (coin_id, time) IN ("+
		strings.Join(named, ", ")+")", append([]any{first, last}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("reading prices of %d seconds: %w", len(seconds), err)
	}
	return found, nil
}

// soonRepeated is longer than a price lies back that stands: it is published again every schemas.PriceRepeat.
const soonRepeated = 3 * schemas.PriceRepeat

// PricesPublishedAt reads what had been written of coins by an instant of log time, and served, unless that is nil: of each the newest
// record with a price, from prices or, where these are not kept so far back, the last of an earlier hour, and the newest record of all
// if that one has a reason in place of a price. They come in no order, one of a coin without any not at all.
func (r Reader) PricesPublishedAt(ctx context.Context, coins []string, at time.Time, served ServedPrices) ([]*eventsv1.PriceRecord, error) {
	newest, err := r.newestPrices(ctx, coins, at, served, "")
	if err != nil {
		return nil, fmt.Errorf("reading the prices published by %s: %w", at.UTC().Format(time.RFC3339Nano), err)
	}
	priced := map[string]bool{}
	for _, rec := range newest {
		if p := rec.GetPrice(); p.Reason == "" {
			priced[p.CoinId] = true
		}
	}
	lacking := slices.DeleteFunc(slices.Clone(coins), func(id string) bool { return priced[id] })
	if len(lacking) == 0 {
		return newest, nil
	}
	// Of these there is a reason, or nothing.
	older, err := r.newestPrices(ctx, lacking, at, served, "AND reason = ''")
	if err != nil {
		return nil, fmt.Errorf("reading the prices published by %s: %w", at.UTC().Format(time.RFC3339Nano), err)
	}
	for _, rec := range older {
		priced[rec.GetPrice().CoinId] = true
	}
	newest = append(newest, older...)
	if lacking = slices.DeleteFunc(lacking, func(id string) bool { return priced[id] }); len(lacking) == 0 {
		return newest, nil
	}
	// The hour that the instant lies in may end later.
	hours, err := r.readHours(ctx, hourQuery+"WHERE coin_id IN (?) AND hour <= ? ORDER BY coin_id, hour DESC LIMIT 2 BY coin_id", lacking, at.UTC().Truncate(time.Hour))
	if err != nil {
		return nil, fmt.Errorf("reading the hours of prices by %s: %w", at.UTC().Format(time.RFC3339Nano), err)
	}
	for _, rec := range hours {
		if p := rec.GetPrice(); !priced[p.CoinId] && max(p.Time, p.Published) <= at.UnixNano() && served.Had(rec.Mark) {
			priced[p.CoinId] = true
			newest = append(newest, rec)
		}
	}
	return newest, nil
}

// newestPrices reads the newest record of each coin that had been written by an instant, and served, and for which a condition holds.
// Most lie close before it; where others are is found by the narrow columns first.
func (r Reader) newestPrices(ctx context.Context, coins []string, at time.Time, served ServedPrices, condition string) ([]*eventsv1.PriceRecord, error) {
	second := at.UTC().Truncate(time.Second)
	where, bounds := "WHERE coin_id IN (?) AND time > ? AND time <= ? AND published <= ? ", []any{at.UnixNano()}
	if len(served) > 0 {
		partitions, offsets := served.columns()
		where, bounds = where+"AND log_offset <= transform(log_partition, ?, ?, toInt64(-1)) ", append(bounds, partitions, offsets)
	}
	newest, err := r.readPrices(ctx, priceQuery+where+condition+" ORDER BY coin_id, time DESC LIMIT 1 BY coin_id",
		append([]any{coins, second.Add(-soonRepeated), second}, bounds...)...)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, rec := range newest {
		found[rec.GetPrice().CoinId] = true
	}
	silent := slices.DeleteFunc(slices.Clone(coins), func(id string) bool { return found[id] })
	if len(silent) == 0 {
		return newest, nil
	}
	older, err := r.readPrices(ctx, priceQuery+`WHERE (coin_id, time) IN (
		SELECT coin_id, max(time) FROM prices FINAL `+where+condition+` GROUP BY coin_id)`, append([]any{silent, time.Unix(0, 0).UTC(), second.Add(-soonRepeated)}, bounds...)...)
	return append(newest, older...), err
}

// PricesWritten reads up to which log time all prices are kept, by partition of prices.v1; one of which none were ever written is
// not among them.
func (r Reader) PricesWritten(ctx context.Context) (map[int32]time.Time, error) {
	progress, err := r.store.Progress(ctx, schemas.TopicPrices, 0)
	if err != nil {
		return nil, err
	}
	until := make(map[int32]time.Time, len(progress))
	for partition, p := range progress {
		until[partition] = time.Unix(0, p.LogTime).UTC()
	}
	return until, nil
}

const hourQuery = "SELECT record, log_partition, log_offset, toUInt32(bitShiftRight(version, 64)) FROM prices_1h FINAL "

func (r Reader) readHours(ctx context.Context, query string, args ...any) ([]*eventsv1.PriceRecord, error) {
	return history.Select(ctx, r.store, query, args, func(rows driver.Rows) (*eventsv1.PriceRecord, error) {
		var record string
		mark := &eventsv1.Mark{}
		if err := rows.Scan(&record, &mark.Partition, &mark.Offset, &mark.LogicVersion); err != nil {
			return nil, err
		}
		p := &eventsv1.Price{}
		if err := p.UnmarshalVT([]byte(record)); err != nil {
			return nil, fmt.Errorf("decoding a price: %w", err)
		}
		return &eventsv1.PriceRecord{Mark: mark, Body: &eventsv1.PriceRecord_Price{Price: p}}, nil
	})
}

const priceQuery = "SELECT coin_id, time, symbol, price, median0, min, max, confidence, score, accepted, rejected, volume_24h, source, reason, simulated, " +
	"inputs.provider, inputs.symbol, inputs.quote_id, inputs.bid, inputs.ask, inputs.last, inputs.quote_heard, inputs.last_heard, " +
	"inputs.event_time, inputs.rate, inputs.rate_time, inputs.rate_offset, inputs.range60, inputs.volume_24h, inputs.partition, inputs.offset, " +
	"inputs.unpriced, inputs.value, inputs.price_usd, inputs.accepted, inputs.reason, inputs.deviation_pct, inputs.basis, " +
	"inputs.fresh_for, method, published, log_partition, log_offset, toUInt32(bitShiftRight(version, 64)) FROM prices FINAL "

func (r Reader) readPrices(ctx context.Context, query string, args ...any) ([]*eventsv1.PriceRecord, error) {
	return history.Select(ctx, r.store, query, args, func(rows driver.Rows) (*eventsv1.PriceRecord, error) {
		p, mark := &eventsv1.Price{}, &eventsv1.Mark{}
		var second time.Time
		var in struct {
			provider, symbol, quoteID, reason, basis                                       []string
			bid, ask, last, rate, range60, volume24h, value, priceUSD, deviation           []float64
			quoteReceived, lastReceived, eventTime, rateTime, rateOffset, offset, freshFor []int64
			partition                                                                      []int32
			unpriced, accepted                                                             []bool
		}
		err := rows.Scan(&p.CoinId, &second, &p.Symbol, &p.Price, &p.Median0, &p.Min, &p.Max, &p.Confidence, &p.Score, &p.Accepted, &p.Rejected,
			&p.Volume24H, &p.Source, &p.Reason, &p.Simulated,
			&in.provider, &in.symbol, &in.quoteID, &in.bid, &in.ask, &in.last, &in.quoteReceived, &in.lastReceived,
			&in.eventTime, &in.rate, &in.rateTime, &in.rateOffset, &in.range60, &in.volume24h, &in.partition, &in.offset,
			&in.unpriced, &in.value, &in.priceUSD, &in.accepted, &in.reason, &in.deviation, &in.basis,
			&in.freshFor, &p.Method, &p.Published, &mark.Partition, &mark.Offset, &mark.LogicVersion)
		if err != nil {
			return nil, err
		}
		p.Time = second.UnixNano()
		for i := range in.provider {
			p.Inputs = append(p.Inputs, &eventsv1.PriceInput{
				Provider: in.provider[i], Symbol: in.symbol[i], QuoteId: in.quoteID[i],
				Bid: in.bid[i], Ask: in.ask[i], Last: in.last[i], QuoteHeard: in.quoteReceived[i], LastHeard: in.lastReceived[i],
				EventTime: in.eventTime[i], Rate: in.rate[i], RateTime: in.rateTime[i], RateOffset: in.rateOffset[i],
				Range60: in.range60[i], Volume24H: in.volume24h[i], Partition: in.partition[i], Offset: in.offset[i],
				Unpriced: in.unpriced[i], Value: in.value[i], PriceUsd: in.priceUSD[i], Accepted: in.accepted[i],
				Reason: in.reason[i], DeviationPct: in.deviation[i], Basis: in.basis[i], FreshFor: in.freshFor[i],
			})
		}
		return &eventsv1.PriceRecord{Mark: mark, Body: &eventsv1.PriceRecord_Price{Price: p}}, nil
	})
}
