package read

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"

	"github.com/marketlog/marketlog/stream/history"
)

// recentPrices is how far before the newest price of all LatestPrices looks into prices, which has
// a row for every second; what is older comes from the last record of a minute.
const recentPrices = 2 * 24 * time.Hour

// LatestPrices reads, per coin, its last record with a price and, if there is a newer one, the record
// that states why there is none; of the coins that are known to the caller it reads nothing. Marks name the record of ticks.v1
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
	older, err := r.readMinutes(ctx, minuteQuery+`WHERE (coin_id, minute) IN (
		SELECT coin_id, max(minute) FROM prices_1m WHERE coin_id NOT IN (?) GROUP BY coin_id
	) ORDER BY coin_id`, known)
	if err != nil {
		return nil, fmt.Errorf("reading the latest minutes: %w", err)
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

// PriceAt reads the newest record of a coin with a price whose second is at or before an instant: from
// prices while they are kept, else the last of an earlier minute. It is nil where none is kept. Its mark
// names the record of ticks.v1 that caused it.
func (r Reader) PriceAt(ctx context.Context, coinID string, at time.Time) (*eventsv1.PriceRecord, error) {
	return r.priceAt(ctx, coinID, at, "", func(p *eventsv1.Price) int64 { return p.Time })
}

// PricePublishedAt is PriceAt of what had been written by an instant of log time, which may lie after its second.
func (r Reader) PricePublishedAt(ctx context.Context, coinID string, at time.Time) (*eventsv1.PriceRecord, error) {
	return r.priceAt(ctx, coinID, at, fmt.Sprintf("AND published <= %d ", at.UnixNano()), func(p *eventsv1.Price) int64 { return max(p.Time, p.Published) })
}

func (r Reader) priceAt(ctx context.Context, coinID string, at time.Time, further string, known func(*eventsv1.Price) int64) (*eventsv1.PriceRecord, error) {
	found, err := r.readPrices(ctx, priceQuery+"WHERE coin_id = ? AND time <= ? AND reason = '' "+further+"ORDER BY time DESC LIMIT 1", coinID, at.Truncate(time.Second))
	if err == nil && len(found) == 0 {
		// A minute that at lies in may end later than at.
		found, err = r.readMinutes(ctx, minuteQuery+"WHERE coin_id = ? AND minute <= ? ORDER BY minute DESC LIMIT 2", coinID, at.Truncate(time.Minute))
	}
	if err != nil {
		return nil, fmt.Errorf("reading the price of %s at %s: %w", coinID, at.UTC().Format(time.RFC3339), err)
	}
	for _, rec := range found {
		if known(rec.GetPrice()) <= at.UnixNano() {
			return rec, nil
		}
	}
	return nil, nil
}

const minuteQuery = "SELECT record, log_partition, log_offset, toUInt32(bitShiftRight(version, 64)) FROM prices_1m FINAL "

func (r Reader) readMinutes(ctx context.Context, query string, args ...any) ([]*eventsv1.PriceRecord, error) {
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
			provider, symbol, quoteID, reason, basis                                 []string
			bid, ask, last, rate, range60, volume24h, value, priceUSD, deviation     []float64
			quoteHeard, lastHeard, eventTime, rateTime, rateOffset, offset, freshFor []int64
			partition                                                                []int32
			unpriced, accepted                                                       []bool
		}
		err := rows.Scan(&p.CoinId, &second, &p.Symbol, &p.Price, &p.Median0, &p.Min, &p.Max, &p.Confidence, &p.Score, &p.Accepted, &p.Rejected,
			&p.Volume24H, &p.Source, &p.Reason, &p.Simulated,
			&in.provider, &in.symbol, &in.quoteID, &in.bid, &in.ask, &in.last, &in.quoteHeard, &in.lastHeard,
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
				Bid: in.bid[i], Ask: in.ask[i], Last: in.last[i], QuoteHeard: in.quoteHeard[i], LastHeard: in.lastHeard[i],
				EventTime: in.eventTime[i], Rate: in.rate[i], RateTime: in.rateTime[i], RateOffset: in.rateOffset[i],
				Range60: in.range60[i], Volume24H: in.volume24h[i], Partition: in.partition[i], Offset: in.offset[i],
				Unpriced: in.unpriced[i], Value: in.value[i], PriceUsd: in.priceUSD[i], Accepted: in.accepted[i],
				Reason: in.reason[i], DeviationPct: in.deviation[i], Basis: in.basis[i], FreshFor: in.freshFor[i],
			})
		}
		return &eventsv1.PriceRecord{Mark: mark, Body: &eventsv1.PriceRecord_Price{Price: p}}, nil
	})
}
