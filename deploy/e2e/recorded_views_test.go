package e2e

import (
	"context"
	"fmt"
	"math/big"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/deploy/chaos/oracle"
	"github.com/marketlog/marketlog/stream/history"
)

// scanAll reads all rows of a query.
func scanAll(ctx context.Context, store *history.Store, query string, scan func(driver.Rows) error) error {
	rows, err := store.Conn().Query(ctx, query)
	if err != nil {
		return fmt.Errorf("%.80s: %w", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return fmt.Errorf("%.80s: %w", query, err)
		}
	}
	return rows.Err()
}

// readViews reads the prices and candles of a log as its tables have them.
func readViews(t *testing.T, store *history.Store) (v oracle.Views) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(scanAll(t.Context(), store, `SELECT coin_id, toInt64(toUnixTimestamp(time)), price, median0, min, max, confidence, score, accepted, rejected,
		volume_24h, source, reason, log_partition, log_offset, inputs.provider, inputs.symbol, inputs.quote_id, inputs.value, inputs.rate,
		inputs.price_usd, inputs.accepted, inputs.reason, inputs.basis, inputs.partition, inputs.offset FROM prices FINAL`, func(rows driver.Rows) error {
		var p oracle.Price
		var provider, symbol, quote, reason, basis []string
		var value, rate, usd []float64
		var accepted []bool
		var partition []int32
		var offset []int64
		if err := rows.Scan(&p.Coin, &p.Second, &p.Price, &p.Median0, &p.Min, &p.Max, &p.Confidence, &p.Score, &p.Accepted, &p.Rejected,
			&p.Volume24h, &p.Source, &p.Reason, &p.Partition, &p.Offset, &provider, &symbol, &quote, &value, &rate, &usd, &accepted,
			&reason, &basis, &partition, &offset); err != nil {
			return err
		}
		if p.Reason != "" { // what a row without a price has in these columns means nothing
			p.Price, p.Median0, p.Min, p.Max, p.Confidence, p.Score = 0, 0, 0, 0, 0, 0
		}
		for i := range provider {
			p.Inputs = append(p.Inputs, oracle.Input{
				Provider: provider[i], Symbol: symbol[i], Quote: quote[i], Value: value[i], Rate: rate[i], PriceUSD: usd[i],
				Accepted: accepted[i], Reason: reason[i], Basis: basis[i], Partition: partition[i], Offset: offset[i],
			})
		}
		v.Prices = append(v.Prices, p)
		return nil
	}))
	must(scanAll(t.Context(), store, `SELECT coin_id, toInt64(toUnixTimestamp(start)), open, high, low, close, toString(volume), volume_usd, trades
		FROM candles_1m FINAL`, func(rows driver.Rows) error {
		var c oracle.Candle
		var volume string
		if err := rows.Scan(&c.Coin, &c.Start, &c.Open, &c.High, &c.Low, &c.Close, &volume, &c.VolumeUSD, &c.Trades); err != nil {
			return err
		}
		c.Volume = exactly(t, volume)
		v.Candles = append(v.Candles, c)
		return nil
	}))
	must(scanAll(t.Context(), store, `SELECT venue, symbol, coin_id, quote_id, toInt64(toUnixTimestamp(start)),
		toString(open), toString(high), toString(low), toString(close), toString(volume), trades FROM venue_candles_1m FINAL`, func(rows driver.Rows) error {
		var c oracle.VenueCandle
		var open, high, low, last, volume string
		if err := rows.Scan(&c.Venue, &c.Symbol, &c.Coin, &c.Quote, &c.Start, &open, &high, &low, &last, &volume, &c.Trades); err != nil {
			return err
		}
		c.Open, c.High, c.Low, c.Close, c.Volume = exactly(t, open), exactly(t, high), exactly(t, low), exactly(t, last), exactly(t, volume)
		v.VenueCandles = append(v.VenueCandles, c)
		return nil
	}))
	return v
}

func exactly(t *testing.T, decimal string) *big.Rat {
	t.Helper()
	n, ok := new(big.Rat).SetString(decimal)
	if !ok {
		t.Fatalf("%q in a view is no number", decimal)
	}
	return n
}

// readEvents reads how often each event id is in the ticks, and with which reasons in the dead letters.
func readEvents(t *testing.T, store *history.Store) (ticks map[string]int, dead map[string][]string) {
	t.Helper()
	ticks, dead = map[string]int{}, map[string][]string{}
	err := scanAll(t.Context(), store, `SELECT hex(event_id) FROM ticks FINAL`, func(rows driver.Rows) error {
		var id string
		err := rows.Scan(&id)
		ticks[id]++
		return err
	})
	if err == nil {
		err = scanAll(t.Context(), store, `SELECT upper(event_id), reason FROM dead_letters FINAL WHERE event_id != ''`, func(rows driver.Rows) error {
			var id, reason string
			err := rows.Scan(&id, &reason)
			dead[id] = append(dead[id], reason)
			return err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return ticks, dead
}
