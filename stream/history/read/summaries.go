package read

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"

	"github.com/marketlog/marketlog/stream/history"
)

// maxPoints is how many points a series may have.
const maxPoints = 100_000

// checkSeries refuses a step of no whole seconds, and more points than a series may have.
func checkSeries(from, to time.Time, step time.Duration) error {
	if step < time.Second || step%time.Second != 0 {
		return fmt.Errorf("a step of %s is not one of whole seconds", step)
	}
	if n := to.Sub(from) / step; n > maxPoints {
		return fmt.Errorf("%d points are more than %d: take a longer step than %s", n, maxPoints, step)
	}
	return nil
}

// Summaries reads what the whole market was in (from, to], oldest first: of each step the last summary, with its own
// time, which is the end of its minute. They come without sentiment. One of a minute before any coin had a market cap has no values
// and is passed over.
func (r Reader) Summaries(ctx context.Context, from, to time.Time, step time.Duration) ([]*eventsv1.Summary, error) {
	if err := checkSeries(from, to, step); err != nil {
		return nil, fmt.Errorf("reading summaries: %w", err)
	}
	// The end of the last minute of a step is the beginning of the next step.
	summaries, err := history.Select(ctx, r.store, summaryQuery+"WHERE time > ? AND time <= ? AND total_market_cap > 0 ORDER BY time DESC LIMIT 1 BY intDiv(toUnixTimestamp(time) - 1, ?)",
		[]any{from, to, int64(step / time.Second)}, scanSummary)
	if err != nil {
		return nil, fmt.Errorf("reading summaries: %w", err)
	}
	slices.Reverse(summaries)
	return summaries, nil
}

// SummaryAt reads the newest summary of a minute that ended by an instant, with its sentiment; nil where there is none.
func (r Reader) SummaryAt(ctx context.Context, at time.Time) (*eventsv1.Summary, error) {
	found, err := history.Select(ctx, r.store, summaryQuery+"WHERE time <= ? AND total_market_cap > 0 ORDER BY time DESC LIMIT 1", []any{at.UTC()}, scanSummary)
	if err != nil {
		return nil, fmt.Errorf("reading the summary of %s: %w", at.UTC().Format(time.RFC3339), err)
	}
	if len(found) == 0 {
		return nil, nil
	}
	s := found[0]
	of := map[string]*eventsv1.Sentiment{}
	segments, err := history.Select(ctx, r.store, `SELECT range, positive, negative, neutral, total, ratio, classification, average_change_24h, median_change_24h
		FROM sentiment FINAL WHERE time = ?`, []any{time.Unix(0, s.Time).UTC()},
		func(rows driver.Rows) (*eventsv1.Sentiment, error) {
			of := &eventsv1.Sentiment{}
			return of, rows.Scan(&of.Range, &of.Positive, &of.Negative, &of.Neutral, &of.Total, &of.Ratio, &of.Classification, &of.AverageChange24H, &of.MedianChange24H)
		})
	if err != nil {
		return nil, fmt.Errorf("reading the sentiment of %s: %w", at.UTC().Format(time.RFC3339), err)
	}
	for _, segment := range segments {
		of[segment.Range] = segment
	}
	for _, ranks := range append(slices.Clone(schemas.RankRanges), schemas.AllRanks) {
		if segment := of[ranks.String()]; segment != nil {
			s.Sentiment = append(s.Sentiment, segment)
		}
	}
	return s, nil
}

// SummariesWritten reads the end of the last minute up to which all summaries are kept; the zero time where none was ever written.
func (r Reader) SummariesWritten(ctx context.Context) (time.Time, error) {
	progress, err := r.store.Progress(ctx, schemas.TopicMarkets, 0)
	if p, written := progress[0]; err == nil && written {
		return time.Unix(0, p.LogTime).UTC(), nil
	}
	return time.Time{}, err
}

// SummariesView names the table of summaries that is live: another one since a replay has put another in its place.
func (r Reader) SummariesView(ctx context.Context) (string, error) {
	return r.store.TableID(ctx, "summaries")
}

const summaryQuery = `SELECT time, total_market_cap, total_volume_24h, btc_dominance, eth_dominance,
	dominance.coin_id, dominance.symbol, dominance.percent, market_cap_change_24h, volume_change_24h, active_coins, active_markets,
	stablecoin_market_cap, stablecoin_dominance, fear_greed, components.name, components.value, simulated FROM summaries FINAL `

func scanSummary(rows driver.Rows) (*eventsv1.Summary, error) {
	s := &eventsv1.Summary{}
	var end time.Time
	var coins, symbols, names []string
	var percents, values []float64
	var index *uint8
	err := rows.Scan(&end, &s.TotalMarketCap, &s.TotalVolume24H, &s.BtcDominance, &s.EthDominance, &coins, &symbols, &percents, &s.MarketCapChange24H, &s.VolumeChange24H,
		&s.ActiveCoins, &s.ActiveMarkets, &s.StablecoinMarketCap, &s.StablecoinDominance, &index, &names, &values, &s.Simulated)
	if err != nil {
		return nil, err
	}
	s.Time = end.UnixNano()
	for i, id := range coins {
		s.Dominance = append(s.Dominance, &eventsv1.Share{CoinId: id, Symbol: symbols[i], Percent: percents[i]})
	}
	if index != nil {
		s.FearGreed = &eventsv1.FearGreedComputed{Value: uint32(*index)}
		for i, name := range names {
			s.FearGreed.Components = append(s.FearGreed.Components, &eventsv1.Statistic{Name: name, Value: values[i]})
		}
	}
	return s, nil
}

// SummaryMetrics are the figures of a summary that SummaryOHLC reads.
var SummaryMetrics = []string{"total_market_cap", "total_volume_24h", "btc_dominance", "eth_dominance", "stablecoin_market_cap", "stablecoin_dominance"}

// SummaryOHLC is what a figure of the summaries did in a step. Average is the mean of its samples: of the whole market one
// a minute, of DeFi one for each minute in which it changed and one at least every five.
type SummaryOHLC struct {
	Start                           time.Time
	Open, High, Low, Close, Average float64
	Samples                         int
}

// SummaryOHLC reads what one of SummaryMetrics did in the minutes that ended in (from, to], where from is the beginning of a step, oldest first; a step
// under way as far as it has come, one without a summary not at all. Minutes before any coin had a market cap are passed over.
func (r Reader) SummaryOHLC(ctx context.Context, metric string, from, to time.Time, step time.Duration) ([]SummaryOHLC, error) {
	if !slices.Contains(SummaryMetrics, metric) {
		return nil, fmt.Errorf("reading summaries: there is no metric %q; use one of %v", metric, SummaryMetrics)
	}
	return r.figureOHLC(ctx, "summaries", metric, "total_market_cap > 0", from, to, step)
}

// figureOHLC reads what a column of a table did whose rows are of the ends of minutes, of those rows for which counts holds.
func (r Reader) figureOHLC(ctx context.Context, table, column, counts string, from, to time.Time, step time.Duration) ([]SummaryOHLC, error) {
	if err := checkSeries(from, to, step); err != nil {
		return nil, fmt.Errorf("reading %s of %s: %w", column, table, err)
	}
	candles, err := history.Select(ctx, r.store, `SELECT toDateTime(step * ?, 'UTC'), argMin(value, time), max(value), min(value), argMax(value, time),
			arrayAvg(arraySort(groupArray(value))), count()
		FROM (SELECT time, assumeNotNull(`+column+`) AS value, intDiv(toUnixTimestamp(time) - 1, ?) AS step FROM `+table+` FINAL WHERE time > ? AND time <= ? AND `+counts+`)
		GROUP BY step ORDER BY step`,
		[]any{int64(step / time.Second), int64(step / time.Second), from.UTC(), to.UTC()},
		func(rows driver.Rows) (c SummaryOHLC, err error) {
			var samples uint64
			err = rows.Scan(&c.Start, &c.Open, &c.High, &c.Low, &c.Close, &c.Average, &samples)
			c.Start, c.Samples = c.Start.UTC(), int(samples)
			return c, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading %s of %s: %w", column, table, err)
	}
	return candles, nil
}

// ceilTo is the first beginning of a step that is not before an instant.
func ceilTo(t time.Time, step time.Duration) time.Time {
	return t.UTC().Add(step - time.Nanosecond).Truncate(step)
}

// mostDays bounds how many days of an index are read, about 14 years of one source.
const mostDays = 5_000

// FearGreedHistory reads what sources published of the days that begin in [from, to), by day, then by source. No more than the
// first 5,000 are read.
func (r Reader) FearGreedHistory(ctx context.Context, from, to time.Time) ([]*eventsv1.FearGreed, error) {
	days, err := history.Select(ctx, r.store, `SELECT source, value, classification, event_time, next_update, ingest_time
		FROM fear_greed FINAL WHERE day >= ? AND day < ? ORDER BY day, source LIMIT ?`,
		[]any{ceilTo(from, day).Format(time.DateOnly), ceilTo(to, day).Format(time.DateOnly), mostDays},
		func(rows driver.Rows) (*eventsv1.FearGreed, error) {
			f := &eventsv1.FearGreed{}
			var value uint8
			var event, next, ingest time.Time
			if err := rows.Scan(&f.Source, &value, &f.Classification, &event, &next, &ingest); err != nil {
				return nil, err
			}
			f.Value, f.EventTime, f.NextUpdate, f.IngestTime = uint32(value), event.UnixNano(), next.UnixNano(), ingest.UnixNano()
			return f, nil
		})
	if err != nil {
		return nil, fmt.Errorf("reading fear and greed: %w", err)
	}
	return days, nil
}
