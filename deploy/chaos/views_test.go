package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/deploy/chaos/oracle"
)

// rows asks for rows in JSON, one a line.
func rows[T any](ctx context.Context, in *installation, statement string) ([]T, error) {
	body, err := in.query(ctx, statement+" FORMAT JSONEachRow")
	if err != nil {
		return nil, err
	}
	var list []T
	decoder := json.NewDecoder(bytes.NewReader(body))
	for decoder.More() {
		var row T
		if err := decoder.Decode(&row); err != nil {
			return nil, fmt.Errorf("reading a row of %.100s: %w", statement, err)
		}
		list = append(list, row)
	}
	return list, nil
}

// views reads the prices and candles that analysts see.
func servedRows(t *testing.T, in *installation) oracle.Views {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	type input struct {
		Provider, Symbol, Reason, Basis string
		Quote                           string `json:"quote_id"`
		Value, Rate                     float64
		PriceUSD                        float64 `json:"price_usd"`
		Accepted                        bool
		Partition                       int32
		Offset                          int64
	}
	var v oracle.Views
	prices, err := rows[struct {
		Coin                                        string `json:"coin_id"`
		Symbol                                      string
		Second                                      int64
		Price, Median0, Min, Max, Confidence, Score float64 // NULL leaves 0
		Accepted, Rejected                          uint32
		Volume24h                                   float64 `json:"volume_24h"`
		Source, Reason                              string
		Partition                                   int32 `json:"log_partition"`
		Offset                                      int64 `json:"log_offset"`
		Inputs                                      []input
	}](t.Context(), in, "SELECT *, toUnixTimestamp(time) AS second FROM v_prices")
	must(err)
	for _, p := range prices {
		price := oracle.Price{
			Coin: p.Coin, Symbol: p.Symbol, Second: p.Second, Price: p.Price, Median0: p.Median0, Min: p.Min, Max: p.Max,
			Confidence: p.Confidence, Score: p.Score, Accepted: p.Accepted, Rejected: p.Rejected, Volume24h: p.Volume24h,
			Source: p.Source, Reason: p.Reason, Partition: p.Partition, Offset: p.Offset,
		}
		for _, i := range p.Inputs {
			price.Inputs = append(price.Inputs, oracle.Input{
				Provider: i.Provider, Symbol: i.Symbol, Quote: i.Quote, Value: i.Value, Rate: i.Rate, PriceUSD: i.PriceUSD,
				Accepted: i.Accepted, Reason: i.Reason, Basis: i.Basis, Partition: i.Partition, Offset: i.Offset,
			})
		}
		v.Prices = append(v.Prices, price)
	}

	candles, err := rows[struct {
		Coin                   string `json:"coin_id"`
		Second                 int64
		Open, High, Low, Close float64
		Base                   string
		VolumeUSD              float64 `json:"volume_usd"`
		Trades                 uint64
	}](t.Context(), in, "SELECT *, toUnixTimestamp(start) AS second, volume_exact AS base FROM v_candles_1m WHERE origin = 'live'")
	must(err)
	for _, c := range candles {
		v.Candles = append(v.Candles, oracle.Candle{
			Coin: c.Coin, Start: c.Second, Open: c.Open, High: c.High, Low: c.Low, Close: c.Close,
			Volume: exact(t, c.Base), VolumeUSD: c.VolumeUSD, Trades: c.Trades,
		})
	}

	markets, err := rows[struct {
		Venue, Symbol string
		Coin          string `json:"coin_id"`
		Quote         string `json:"quote_id"`
		Second        int64
		O, H, L, C, V string
		Trades        uint64
	}](t.Context(), in, `SELECT venue, symbol, coin_id, quote_id, trades, toUnixTimestamp(start) AS second,
		toString(open) AS o, toString(high) AS h, toString(low) AS l, toString(close) AS c, volume_exact AS v FROM v_venue_candles_1m`)
	must(err)
	for _, c := range markets {
		v.VenueCandles = append(v.VenueCandles, oracle.VenueCandle{
			Venue: c.Venue, Symbol: c.Symbol, Coin: c.Coin, Quote: c.Quote, Start: c.Second,
			Open: exact(t, c.O), High: exact(t, c.H), Low: exact(t, c.L), Close: exact(t, c.C), Volume: exact(t, c.V), Trades: c.Trades,
		})
	}
	return v
}

func exact(t *testing.T, decimal string) *big.Rat {
	t.Helper()
	n, ok := new(big.Rat).SetString(decimal)
	if !ok {
		t.Fatalf("%q in a view is no number", decimal)
	}
	return n
}

// event is one row of v_ticks or v_dead_letters.
type event struct {
	ID     string `json:"event_id"`
	Coin   string `json:"coin_id"`
	Kind   string
	Flags  []string
	Reason string
}

func (e event) rowKey() string { return e.Coin + " " + e.Kind + " " + strings.Join(e.Flags, ",") }

// events reads the ticks, and the dead letters that have an event id.
func events(ctx context.Context, in *installation) (ticks, dead []event, err error) {
	if ticks, err = rows[event](ctx, in, "SELECT event_id, coin_id, kind, flags FROM v_ticks"); err != nil {
		return nil, nil, err
	}
	dead, err = rows[event](ctx, in, "SELECT event_id, reason FROM v_dead_letters WHERE event_id != ''")
	return ticks, dead, err
}
