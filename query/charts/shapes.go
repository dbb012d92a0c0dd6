package charts

import (
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// Formats of charts.
const (
	formatOHLC   = "ohlc"
	formatSimple = "simple"
)

// Chart is the history of a coin's price in USD.
type Chart struct {
	CoinID     string       `json:"coinId" example:"bitcoin"`
	Timeframe  string       `json:"timeframe" example:"24h"`
	Resolution string       `json:"resolution" enum:"5m,1h,1d" doc:"Length of an interval"`
	DataPoints []Point      `json:"dataPoints,omitzero" required:"false" doc:"For format ohlc, oldest first"`
	Prices     [][2]float64 `json:"prices,omitzero" required:"false" explain:"chart-point/{coinId}/{resolution}/{0}" doc:"For format simple, oldest first: start of the interval in milliseconds, last price"`
	Stats      Stats        `json:"stats" doc:"Over all intervals, also where points were merged or left out"`
}

// Point is the candle of an interval, or of several where there were too many.
type Point struct {
	Timestamp string  `json:"timestamp" format:"date-time" doc:"Start of the interval"`
	Price     float64 `json:"price" explain:"candles/{coinId}/{resolution}/{timestamp}/{intervals|1}/close" doc:"Equal to close"`
	Open      float64 `json:"open" explain:"candles/{coinId}/{resolution}/{timestamp}/{intervals|1}/open"`
	High      float64 `json:"high" explain:"candles/{coinId}/{resolution}/{timestamp}/{intervals|1}/high"`
	Low       float64 `json:"low" explain:"candles/{coinId}/{resolution}/{timestamp}/{intervals|1}/low"`
	Close     float64 `json:"close" explain:"candles/{coinId}/{resolution}/{timestamp}/{intervals|1}/close"`
	Volume    float64 `json:"volume" explain:"candles/{coinId}/{resolution}/{timestamp}/{intervals|1}/volume" doc:"Traded amount of the coin at the accepted venues in closed minutes; if backfilled, at all backfilled venues"`
	VolumeUSD float64 `json:"volumeUsd" explain:"candles/{coinId}/{resolution}/{timestamp}/{intervals|1}/volumeUsd" doc:"The same in USD, at the price of each trade"`
	Trades    *uint64 `json:"trades,omitempty" explain:"candles/{coinId}/{resolution}/{timestamp}/{intervals|1}/trades" doc:"Absent if part of the volume is from the venues' candles, which have no number of trades"`
	Complete  bool    `json:"complete" doc:"Whether every minute has closed with a price or is covered by the venues' candles; false for the current interval. A complete live candle never changes; one with another origin than live changes only if more of its interval is backfilled: from another venue, with a missing exchange rate, or with missing minutes"`
	Intervals int     `json:"intervals,omitempty" doc:"Number of intervals that were merged into the point, where there were too many; absent for one"`
	Origin    string  `json:"origin" enum:"live,backfill,import,mixed" doc:"live: from published prices; backfill: from the venues' candles, which have no number of trades; import: from such candles that were all imported from files; mixed: from published prices and others"`
}

// Stats are over all intervals, also where fewer points are answered. Without a price only the number
// of points is reported.
type Stats struct {
	MinPrice    *float64 `json:"minPrice,omitempty" explain:"chart/{coinId}/{resolution}/{from}/{until}/minPrice" doc:"Lowest low"`
	MaxPrice    *float64 `json:"maxPrice,omitempty" explain:"chart/{coinId}/{resolution}/{from}/{until}/maxPrice" doc:"Highest high"`
	AvgPrice    *float64 `json:"avgPrice,omitempty" explain:"chart/{coinId}/{resolution}/{from}/{until}/avgPrice" doc:"Mean of the closes"`
	ChangePct   *float64 `json:"changePct,omitempty" explain:"chart/{coinId}/{resolution}/{from}/{until}/changePct" doc:"Change from the first open to the last close, percent"`
	From        string   `json:"from,omitempty" format:"date-time" doc:"Start of the first interval"`
	Until       string   `json:"until,omitempty" format:"date-time" doc:"The second up to which published prices are in the last interval; its start if it carries an older price"`
	TotalPoints int      `json:"totalPoints" doc:"Number of points returned"`
}

// ChartBody answers GET /api/v1/charts/{coinId}.
type ChartBody struct {
	Data Chart     `json:"data"`
	Meta ChartMeta `json:"meta"`
}

// ChartMeta describes a chart.
type ChartMeta struct {
	query.Meta
	Reason string `json:"reason,omitempty" doc:"not_traded: the chart is empty, since none of our venues traded the coin in that period"`
}

func draw(coin schemas.Coin, frame timeframe, format string, candles []schemas.Candle, now time.Time) Chart {
	c := Chart{CoinID: coin.ID, Timeframe: frame.name, Resolution: frame.resolution, Stats: stats(candles, now)}
	if format == formatSimple {
		c.Prices = [][2]float64{}
		for _, i := range triangles(candles, maxPoints) {
			c.Prices = append(c.Prices, [2]float64{float64(candles[i].Start.UnixMilli()), candles[i].Close})
		}
		c.Stats.TotalPoints = len(c.Prices)
		return c
	}
	c.DataPoints = []Point{}
	for _, m := range merged(candles, maxPoints) {
		c.DataPoints = append(c.DataPoints, pointOf(m, frame.step))
	}
	c.Stats.TotalPoints = len(c.DataPoints)
	return c
}

// pointOf is the candle of one or more intervals of a step.
func pointOf(m joined, step time.Duration) Point {
	return Point{
		Intervals: severalIntervals(m), Timestamp: query.FormatTime(m.Start.UnixNano()), Price: m.Close, Open: m.Open, High: m.High, Low: m.Low, Close: m.Close,
		Volume: m.Volume.InexactFloat64(), VolumeUSD: m.VolumeUSD, Trades: trades(m.Candle),
		Complete: m.Minutes == m.intervals*int(step/time.Minute), Origin: string(m.Origin),
	}
}

// severalIntervals is the number of intervals of a point that is of more than one.
func severalIntervals(m joined) int {
	if m.intervals == 1 {
		return 0
	}
	return m.intervals
}

// trades are those of a candle; nil where some of its volume is of an unknown number of them.
func trades(c schemas.Candle) *uint64 {
	if c.Origin != schemas.OriginLive && !c.Volume.IsZero() {
		return nil
	}
	return &c.Trades
}

func stats(candles []schemas.Candle, now time.Time) Stats {
	s, ok := views.StatsOf(candles)
	if !ok {
		return Stats{}
	}
	return Stats{MinPrice: &s.Min, MaxPrice: &s.Max, AvgPrice: &s.Mean, ChangePct: s.ChangePct, From: query.FormatTime(candles[0].Start.UnixNano()),
		Until: query.FormatTime(views.PricedUntil(candles[len(candles)-1], now).UnixNano())}
}
