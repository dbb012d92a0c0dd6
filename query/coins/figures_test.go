package coins_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/past"
	"github.com/marketlog/marketlog/stream/history/rows"
)

// A coin that was back-filled a minute ago, and has live candles of an hour: its row, what the stream compares with, and its
// candles agree on the change, high, low, and extremes.
func TestRowsStreamAndCandlesAgree(t *testing.T) {
	w := newFixture(t)
	w.Lines["store"](nil)
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.Now = now
	number := func(f float64) string { return fmt.Sprint(f) }
	var candles rows.Batch
	backfill := func(length time.Duration, start time.Time, open, high, low, end float64) {
		candles.Add(rows.Place{Topic: schemas.TopicBackfillRaw, Offset: w.Offset()}, &eventsv1.BackfillRecord{Producer: "kraken", Body: &eventsv1.BackfillRecord_Candle{
			Candle: &eventsv1.BackfillCandle{Venue: "kraken", Symbol: "BTC/USD", Base: "BTC", Quote: "USD", Start: start.UnixNano(), Interval: uint32(length / time.Second),
				Open: number(open), High: number(high), Low: number(low), Close: number(end), Volume: "1"}}})
	}
	for day := 1; day <= 70; day++ {
		high, low := 150.0, 50.0
		if day == 20 {
			high, low = 337, 20
		}
		backfill(24*time.Hour, now.Truncate(24*time.Hour).Add(-time.Duration(day)*24*time.Hour), 100, high, low, 100)
	}
	for hour := 2; hour <= 48; hour++ {
		backfill(time.Hour, now.Add(-time.Duration(hour)*time.Hour), 100, 110+float64(hour%24), 90-float64(hour%24), 100)
	}
	for minute := 61; minute <= 24*60+3; minute++ {
		backfill(time.Minute, now.Add(-time.Duration(minute)*time.Minute), 100, 101, 99, 80+float64(minute-24*60))
	}
	w.Must(candles.Insert(t.Context(), w.Store, ""))
	_, err := past.NewFold(w.Store).Pass(t.Context())
	w.Must(err)
	w.Candles("bitcoin", now.Add(-time.Hour), 60, "1m", 118, 0.1)
	price := 124.0
	w.Price("bitcoin", now, price)
	w.Pulse()
	w.Folded(now, &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Market{Market: &eventsv1.Market{
		Time: now.UnixNano(), CoinId: "bitcoin", Symbol: "BTC", Name: "Bitcoin", Price: price, PriceSource: schemas.PriceSourceMedian, PriceTime: now.UnixNano(),
		Rank: 1, MarketCap: new(1000.0), Change24H: new(-0.99), PriceChange24H: new(-1.0), High24H: new(111.0), Low24H: new(100.0), Ath: new(162.0), Atl: new(60.0),
		OwnChanges: []string{"1h"}}}})
	w.Minute(now)
	figures := views.NewFigures(w.Prices, w.History(), w.Catalog.Measure)
	w.Must(figures.Refresh(t.Context()))

	var message struct {
		Data struct {
			PriceChangePercentage60d, PriceChangePercentage24h, PriceChange24h, High24h, Low24h, ATH, ATL, MarketCapChangePercentage24h float64
			ATHDate, ATLDate                                                                                                            time.Time
		}
		Meta struct{ OwnChanges []string }
	}
	response, err := http.Get(w.Base() + "/api/v1/coins/bitcoin/market-data")
	w.Must(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	w.Must(err)
	w.Must(json.Unmarshal(body, &message))

	bitcoin, _ := w.Prices.Coins().ByID("bitcoin")
	before, known := figures.DayAgo(bitcoin, now.UnixNano())
	minutes, err := w.History().Intervals(t.Context(), "bitcoin", time.Minute, now.Add(-24*time.Hour-time.Minute), now.Add(-24*time.Hour))
	w.Must(err)
	if len(minutes) != 1 || !known || before != minutes[0].Close || before != 81 {
		t.Fatalf("a day ago: got %g, %t, and the candles %+v; want 81", before, known, minutes)
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: got %g, want %g", what, got, want)
		}
	}
	near("change", message.Data.PriceChangePercentage24h, 100*(price-before)/before)
	near("change of the market cap", message.Data.MarketCapChangePercentage24h, 100*(price-before)/before)
	near("change in USD", message.Data.PriceChange24h, price-before)
	// Neither the fold nor a source reports it.
	near("change over 60 days", message.Data.PriceChangePercentage60d, 100*(price-100)/100)
	if fmt.Sprint(message.Meta.OwnChanges) != "[1h 24h 30d 60d]" {
		t.Errorf("got own changes %v", message.Meta.OwnChanges)
	}

	extremes := func(step time.Duration, intervals int) (high, low float64, highAt time.Time) {
		candles, err := views.NewCandles(w.Prices, w.History()).Read(t.Context(), bitcoin, step, intervals, now)
		w.Must(err)
		var e schemas.Extremes
		for _, c := range candles {
			e.Reach(c)
		}
		return e.High, e.Low, e.HighAt
	}
	high, low, _ := extremes(time.Hour, 24)
	near("high of the day", message.Data.High24h, high)
	near("low of the day", message.Data.Low24h, low)
	high, low, at := extremes(24*time.Hour, 1825)
	near("all-time high", message.Data.ATH, high)
	near("all-time low", message.Data.ATL, low)
	if high != 337 || low != 20 || !message.Data.ATHDate.Equal(at) || !message.Data.ATLDate.Equal(at) {
		t.Errorf("got extremes of %s and %s, want %g and %g of %s", message.Data.ATHDate, message.Data.ATLDate, high, low, at)
	}
}

// A coin has a change over 60 days exactly if a candle of a day, live or back-filled from whatever venue, ended 60 to 66 days
// ago, and it could be converted; otherwise the field is left out.
func TestAChangeIsServedExactlyWhereACandleReachesItsSpan(t *testing.T) {
	w := newFixture(t)
	w.Lines["store"](nil)
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.Now = now
	cases := []struct {
		coin, symbol, quote string
		started             int // the day of its only candle, in days before today
		served              bool
	}{
		{"bitcoin", "BTC", "USD", 61, true}, {"ethereum", "ETH", "USD", 66, true}, {"solana", "SOL", "USD", 67, false},
		{"ripple", "XRP", "USD", 60, false}, {"cardano", "ADA", "KRW", 61, false}, {"dogecoin", "DOGE", "USD", 0, false},
	}
	var candles rows.Batch
	for _, c := range cases {
		if c.started > 0 {
			candles.Add(rows.Place{Topic: schemas.TopicBackfillRaw, Offset: w.Offset()},
				&eventsv1.BackfillRecord{Producer: "kraken", Body: &eventsv1.BackfillRecord_Candle{
					Candle: &eventsv1.BackfillCandle{Venue: "kraken", Symbol: c.symbol + "/" + c.quote, Base: c.symbol,
						Quote: c.quote, Interval: 86400,
						Start: now.Truncate(24*time.Hour).AddDate(0, 0, -c.started).UnixNano(), Open: "1", High: "1", Low: "1",
						Close: "1", Volume: "1"}}})
		}
		w.Price(c.coin, now, 3)
	}
	w.Must(candles.Insert(t.Context(), w.Store, ""))
	_, err := past.NewFold(w.Store).Pass(t.Context())
	w.Must(err)
	w.Pulse()
	for i, c := range cases {
		w.Folded(now, &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Market{Market: &eventsv1.Market{
			Time: now.UnixNano(), CoinId: c.coin, Symbol: c.symbol, Price: 3, PriceSource: schemas.PriceSourceMedian,
			PriceTime: now.UnixNano(), Rank: uint32(i + 1)}}})
	}
	w.Minute(now)
	w.Must(views.NewFigures(w.Prices, w.History(), w.Catalog.Measure).Refresh(t.Context()))
	for _, c := range cases {
		var served struct {
			Data struct{ PriceChangePercentage60d *float64 }
		}
		querytest.Decode(t, w.Base()+"/api/v1/coins/"+c.coin+"/market-data", &served)
		switch change := served.Data.PriceChangePercentage60d; {
		case (change != nil) != c.served:
			t.Errorf("%s, whose candle began %d days before today in %s: a change is served: %v, want %v", c.coin, c.started,
				c.quote, change != nil, c.served)
		case change != nil && math.Abs(*change-200) > 1e-9:
			t.Errorf("%s: got %g, want 200", c.coin, *change)
		}
	}
}
