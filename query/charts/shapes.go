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
	Resolution string       `json:"resolution" enum:"5m,1h,1d"`
	DataPoints []Point      `json:"dataPoints,omitzero" required:"false" doc:"In the format ohlc, oldest first"`
	Prices     [][2]float64 `json:"prices,omitzero" required:"false" doc:"In the format simple, oldest first: start of the interval in milliseconds, last price"`
	Stats      Stats        `json:"stats"`
}

// Point is the candle of an interval, or of several where there were too many.
type Point struct {
	Timestamp string  `json:"timestamp" format:"date-time" doc:"Start of the interval"`
	Price     float64 `json:"price" doc:"Equal to close"`
	Open      float64 `json:"open"`
	High      float64 `json:"high"`
	Low       float64 `json:"low"`
	Close     float64 `json:"close"`
	Volume    float64 `json:"volume" doc:"Base traded at the accepted venues, in the minutes that have closed; of what is back-filled at all of its venues"`
	VolumeUSD float64 `json:"volumeUsd"`
	Trades    *uint64 `json:"trades,omitempty" doc:"Left out where some of the volume is of the venues' own candles, which tell no trades"`
	Complete  bool    `json:"complete" doc:"Whether every minute of it has closed with a price, or is in the venues' own candle; false of the interval under way. A complete live candle never changes; one whose origin is backfill or mixed changes only when more of its interval is back-filled: from another venue, with a rate that was missing, or minutes that fill a gap"`
	Origin    string  `json:"origin" enum:"live,backfill,mixed" doc:"live: folded from published prices; backfill: made of the venues' own candles, which tell no trades; mixed: of both"`
}

// Stats are over all intervals, also where fewer points are answered. Without a price only the number
// of points is told.
type Stats struct {
	MinPrice    *float64 `json:"minPrice,omitempty" doc:"Least low"`
	MaxPrice    *float64 `json:"maxPrice,omitempty" doc:"Greatest high"`
	AvgPrice    *float64 `json:"avgPrice,omitempty" doc:"Mean of the closes"`
	ChangePct   *float64 `json:"changePct,omitempty" doc:"From the first open to the last close, in percent"`
	TotalPoints int      `json:"totalPoints" doc:"Points answered"`
}

// ChartBody answers GET /api/v1/charts/{coinId}.
type ChartBody struct {
	Data Chart     `json:"data"`
	Meta ChartMeta `json:"meta"`
}

// ChartMeta tells about a chart.
type ChartMeta struct {
	query.Meta
	Reason string `json:"reason,omitempty" doc:"not_traded: it is empty, since no venue of ours traded the coin in that time"`
}

func draw(coin schemas.Coin, frame timeframe, format string, candles []schemas.Candle) Chart {
	c := Chart{CoinID: coin.ID, Timeframe: frame.name, Resolution: frame.resolution, Stats: stats(candles)}
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
		c.DataPoints = append(c.DataPoints, Point{
			Timestamp: query.FormatTime(m.Start.UnixNano()), Price: m.Close, Open: m.Open, High: m.High, Low: m.Low, Close: m.Close,
			Volume: m.Volume.InexactFloat64(), VolumeUSD: m.VolumeUSD, Trades: trades(m.Candle),
			Complete: m.Minutes == m.intervals*int(frame.step/time.Minute), Origin: string(m.Origin),
		})
	}
	c.Stats.TotalPoints = len(c.DataPoints)
	return c
}

// trades are those of a candle; nil where some of its volume is of an unknown number of them.
func trades(c schemas.Candle) *uint64 {
	if c.Origin != schemas.OriginLive && !c.Volume.IsZero() {
		return nil
	}
	return &c.Trades
}

func stats(candles []schemas.Candle) Stats {
	if len(candles) == 0 {
		return Stats{}
	}
	first, last := candles[0], candles[len(candles)-1]
	least, greatest, sum := first.Low, first.High, 0.0
	for _, c := range candles {
		least, greatest = min(least, c.Low), max(greatest, c.High)
		sum += c.Close
	}
	mean := views.Mean(sum, len(candles), least, greatest)
	s := Stats{MinPrice: &least, MaxPrice: &greatest, AvgPrice: &mean}
	if first.Open > 0 {
		change := (last.Close - first.Open) / first.Open * 100
		s.ChangePct = &change
	}
	return s
}
