package read

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/past"
)

// AllFixings is the offset before which all rates of currencies were told.
const AllFixings int64 = math.MaxInt64

// PegSample is the price of a stablecoin at a moment.
type PegSample struct {
	schemas.PegPoint
	// Price and Target, the unit of its peg, are in USD.
	Price, Target float64
}

// PegSeries reads how far a stablecoin lay from its peg in (from, to], oldest first: of each step the last close of a minute, or
// where no minutes are kept of a longer candle, at its own time. Back-filled candles count where there are no live
// ones. The unit of the peg costs what central banks fixed; where none fixes the currency, the median of what sources gave
// last for the day. A time for which there is neither is left out. The coin table names the peg; a coin without one is an error.
func (r Reader) PegSeries(ctx context.Context, coinID string, from, to time.Time, step time.Duration) ([]PegSample, error) {
	coin, interval, err := pegged(coinID, from, to, step)
	if err != nil {
		return nil, err
	}
	candles, err := r.Intervals(ctx, coinID, interval, from.Add(-interval), to)
	if err != nil {
		return nil, err
	}
	return r.pegSamples(ctx, coin, candles, interval, from, to, step, AllFixings)
}

// PegSeriesAsOf reads what PegSeries does when no more of the candles, and of the rates of the peg's currency, counts than what is named. It fails as IntervalsAsOf does.
func (r Reader) PegSeriesAsOf(ctx context.Context, coinID string, from, to time.Time, step time.Duration, of CandlesAsOf) ([]PegSample, error) {
	coin, interval, err := pegged(coinID, from, to, step)
	if err != nil {
		return nil, err
	}
	// The interval that the end lies in has the minutes before it alone.
	if of.Closed.After(to) {
		of.Closed = to
	}
	if of.ClosedAll.After(to) {
		of.ClosedAll = to
	}
	candles, err := r.IntervalsAsOf(ctx, coinID, interval, from.Add(-interval), to.Add(interval-time.Nanosecond).Truncate(interval), of)
	if err != nil {
		return nil, err
	}
	return r.pegSamples(ctx, coin, candles, interval, from, to, step, of.Fixings)
}

// pegged is the coin of a series of its peg, and the interval of the candles that it is made of.
func pegged(coinID string, from, to time.Time, step time.Duration) (coin schemas.Coin, interval time.Duration, err error) {
	if coin, _ = schemas.Coins().ByID(coinID); coin.Peg == "" {
		return coin, 0, fmt.Errorf("reading the peg of %s: the coin table names none", coinID)
	}
	if err := checkSeries(from, to, step); err != nil {
		return coin, 0, fmt.Errorf("reading the peg of %s: %w", coinID, err)
	}
	switch {
	case step >= day:
		return coin, day, nil
	case step >= time.Hour:
		return coin, time.Hour, nil
	}
	return coin, time.Minute, nil
}

// pegSamples are the samples that candles give, in steps, by rates that had been told before an offset of reference.raw.v1.
func (r Reader) pegSamples(ctx context.Context, coin schemas.Coin, candles []schemas.Candle, interval time.Duration, from, to time.Time, step time.Duration, told int64) ([]PegSample, error) {
	target := func(time.Time) (float64, bool) { return 1, true }
	if coin.Peg != schemas.USD {
		fixings, err := past.DayRates(ctx, r.store, fmt.Sprintf("peg_rates(before = %d)", told), []string{coin.Peg}, from.Add(-interval), to)
		if err != nil {
			return nil, err
		}
		target = fixingAt(fixings)
	}
	var samples []PegSample
	for _, c := range candles {
		ended := c.Start.Add(interval)
		if !c.Newest.IsZero() {
			ended = c.Newest.Add(time.Minute) // the interval under way
		}
		peg, ok := target(c.Start)
		if !ok || !ended.After(from) || ended.After(to) {
			continue
		}
		sample := PegSample{schemas.PegPoint{Time: ended, DeviationBps: schemas.PegDeviationBps(c.Close, peg)}, c.Close, peg}
		if n := len(samples); n > 0 && stepOf(samples[n-1].Time, step) == stepOf(ended, step) {
			samples[n-1] = sample
			continue
		}
		samples = append(samples, sample)
	}
	return samples, nil
}

// stepOf numbers the step that ends at or after an instant.
func stepOf(at time.Time, step time.Duration) int64 { return (at.Unix() - 1) / int64(step/time.Second) }

// fixingAt finds what a currency cost on the day of an instant, or lately before.
func fixingAt(fixings []schemas.Fixing) func(time.Time) (float64, bool) {
	slices.SortFunc(fixings, func(a, b schemas.Fixing) int { return a.Day.Compare(b.Day) })
	return func(at time.Time) (float64, bool) {
		of := at.UTC().Truncate(day)
		i, found := slices.BinarySearchFunc(fixings, of, func(f schemas.Fixing, at time.Time) int { return f.Day.Compare(at) })
		if !found {
			i--
		}
		if i < 0 || of.Sub(fixings[i].Day) > schemas.FixingDays*day {
			return 0, false
		}
		return fixings[i].USD, true
	}
}

// StatedFixing is how much of a quote currency a central bank stated for a euro, and the record that states it.
type StatedFixing struct {
	Source, Quote string
	Day           time.Time
	Rate          float64
	Partition     int32
	Offset        int64
}

// Fixings reads what the cost of a currency on a day is made of: what was said last of the dollar for a euro, and, unless it is the euro, of the currency, on the
// newest day that has both, at most schemas.FixingDays before. No record of before or a later offset counts. There are none of a currency that no central bank
// states a rate of.
func (r Reader) Fixings(ctx context.Context, currency string, of time.Time, before int64) ([]StatedFixing, error) {
	quotes := []string{schemas.USD}
	if currency != schemas.EUR {
		quotes = append(quotes, currency)
	}
	fixings, err := history.Select(ctx, r.store, `SELECT argMax(source, log_offset), quote, day, toFloat64(argMax(rate, log_offset)) AS units, argMax(log_partition, log_offset), max(log_offset)
		FROM fixings_told WHERE base = ? AND quote IN (?) AND day > ? AND day <= ? AND log_offset < ? GROUP BY quote, day HAVING units > 0 ORDER BY day DESC, quote = ? DESC`,
		[]any{schemas.EUR, quotes, of.UTC().AddDate(0, 0, -schemas.FixingDays-1).Format(time.DateOnly), of.UTC().Format(time.DateOnly), before, schemas.USD},
		func(rows driver.Rows) (f StatedFixing, err error) {
			err = rows.Scan(&f.Source, &f.Quote, &f.Day, &f.Rate, &f.Partition, &f.Offset)
			return f, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading what rates of %s are made of: %w", currency, err)
	}
	for i := 0; i+len(quotes) <= len(fixings); i++ {
		if whole := fixings[i : i+len(quotes)]; whole[0].Quote == schemas.USD && whole[0].Day.Equal(whole[len(whole)-1].Day) {
			return whole, nil
		}
	}
	return nil, nil
}

// PegStatistic is how well a stablecoin kept its peg.
type PegStatistic struct {
	CoinID string
	// Score and its parts are of the closes of live minutes.
	schemas.PegScore
	// Newest is the last of them.
	Newest PegSample
}

// PegStatistics reads how every stablecoin of the coin table has kept its peg in the live minutes that ended after since, by
// coin id. One that has no minute is left out.
func (r Reader) PegStatistics(ctx context.Context, since time.Time) ([]PegStatistic, error) {
	statistics, err := history.Select(ctx, r.store, `SELECT coin_id, arrayAvg(deviations), deviations[intDiv(length(deviations) * 95 + 99, 100)], length(deviations), newest, price, target
		FROM (
			SELECT coin_id, arraySort(groupArray(abs(deviation_bps))) AS deviations, max(time) AS newest, argMax(price, time) AS price, argMax(target_usd, time) AS target
			FROM peg_minutes(before = ?) WHERE time > ? GROUP BY coin_id
		) ORDER BY coin_id`, []any{AllFixings, since},
		func(rows driver.Rows) (p PegStatistic, err error) {
			var samples uint64
			var mean, p95 float64
			err = rows.Scan(&p.CoinID, &mean, &p95, &samples, &p.Newest.Time, &p.Newest.Price, &p.Newest.Target)
			if err != nil {
				return p, err
			}
			p.Newest.Time = p.Newest.Time.UTC()
			p.Newest.DeviationBps = schemas.PegDeviationBps(p.Newest.Price, p.Newest.Target)
			p.PegScore = schemas.PegScoreOf(mean, p95, math.Abs(p.Newest.DeviationBps), int(samples))
			return p, nil
		})
	if err != nil {
		return nil, fmt.Errorf("reading how stablecoins keep their pegs: %w", err)
	}
	return statistics, nil
}

// mostPegMinutes bounds the minutes that episodes are found in: almost two years of a coin that never holds its peg.
const mostPegMinutes = 1_000_000

// PegEpisodes reads when a stablecoin had lost its peg in the live minutes that ended in (from, to], oldest first, by
// the rule of schemas.PegEpisodes, and by the rates of its currency that had been told before an offset of reference.raw.v1, such as AllFixings.
// One that began before shows from there on.
func (r Reader) PegEpisodes(ctx context.Context, coinID string, from, to time.Time, told int64) ([]schemas.PegEpisode, error) {
	// A minute that held the peg, after one that did, changes nothing, and almost all are such.
	points, err := history.Select(ctx, r.store, `SELECT time, deviation_bps
		FROM (
			SELECT time, deviation_bps, lagInFrame(abs(deviation_bps)) OVER (ORDER BY time ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS before
			FROM peg_minutes(before = ?) WHERE coin_id = ? AND time > ? AND time <= ?
		) WHERE abs(deviation_bps) >= ? OR before >= ? ORDER BY time LIMIT ?`,
		[]any{told, coinID, from, to, schemas.PegHeldBps, schemas.PegHeldBps, mostPegMinutes},
		func(rows driver.Rows) (p schemas.PegPoint, err error) {
			err = rows.Scan(&p.Time, &p.DeviationBps)
			p.Time = p.Time.UTC()
			return p, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading when %s lost its peg: %w", coinID, err)
	}
	return schemas.PegEpisodes(points), nil
}
