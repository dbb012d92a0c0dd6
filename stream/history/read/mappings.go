package read

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
)

// Mappings reads the mappings that hold, overrides first and then by source and symbol.
func (r Reader) Mappings(ctx context.Context, limit int) ([]schemas.SymbolMapping, error) {
	found, err := history.Select(ctx, r.store, `SELECT toString(source), symbol, coin_id, toString(method), confidence, valid_from FROM default.v_mappings
		WHERE valid_to IS NULL ORDER BY confidence = 100 DESC, source, symbol, coin_id LIMIT ?`, []any{limit}, scanMapping)
	if err != nil {
		return nil, fmt.Errorf("reading the mappings of symbols: %w", err)
	}
	return found, nil
}

// MappingsAsOf reads the mappings that held at an instant, by the ticks and overrides that had been read by then, in the order of Mappings. Until when ticks meant a coin
// was known only later: what counts is which coin a symbol had been read as last.
func (r Reader) MappingsAsOf(ctx context.Context, at time.Time, limit int) ([]schemas.SymbolMapping, error) {
	found, err := history.Select(ctx, r.store, `SELECT * FROM (
			SELECT toString(source), symbol, coin_id, toString(method), confidence, valid_from FROM default.v_mappings
			WHERE valid_from <= (fromUnixTimestamp64Nano(?, 'UTC') AS at) AND NOT (method = 'manual_override' AND ifNull(valid_to <= at, false))
			ORDER BY valid_from DESC, coin_id LIMIT 1 BY source, symbol, method = 'manual_override')
		ORDER BY confidence = 100 DESC, 1, symbol, coin_id LIMIT ?`, []any{at.UnixNano(), limit}, scanMapping)
	if err != nil {
		return nil, fmt.Errorf("reading the mappings of symbols as of %s: %w", at.UTC().Format(time.RFC3339), err)
	}
	return found, nil
}

func scanMapping(rows driver.Rows) (m schemas.SymbolMapping, err error) {
	var confidence uint8
	var method string
	err = rows.Scan(&m.Source, &m.Symbol, &m.CoinID, &method, &confidence, &m.Since)
	m.Method, m.Confidence, m.Since = schemas.SymbolMethod(method), int(confidence), m.Since.UTC()
	return m, err
}

// OldestTick reads when the oldest tick was read that is kept; the zero time where none is.
func (r Reader) OldestTick(ctx context.Context) (time.Time, error) {
	var oldest *time.Time
	if err := r.store.Conn().QueryRow(ctx, "SELECT minOrNull(ingest_time) FROM ticks").Scan(&oldest); err != nil {
		return time.Time{}, fmt.Errorf("reading since when ticks are kept: %w", history.Unavailable(err))
	}
	return orZero(oldest), nil
}

// Overrides reads all overrides of symbols that operators ever made, in the order of time.
func (r Reader) Overrides(ctx context.Context) ([]*eventsv1.SymbolOverride, error) {
	found, err := history.Select(ctx, r.store, `SELECT toString(source), symbol, coin_id, reason, time FROM overrides FINAL ORDER BY time, source, symbol`, nil,
		func(rows driver.Rows) (*eventsv1.SymbolOverride, error) {
			o := &eventsv1.SymbolOverride{}
			var at time.Time
			err := rows.Scan(&o.Source, &o.Symbol, &o.CoinId, &o.Reason, &at)
			o.Time = at.UnixNano()
			return o, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading the overrides of symbols: %w", err)
	}
	return found, nil
}
