package globalstats

import (
	"slices"
	"time"

	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// pastValue is a metric at a moment, as a source reported it afterwards; coverage is in percent, nil if it is not known, and told the total that it is
// a share of.
type pastValue struct {
	time        time.Time
	value, told float64
	coverage    *float64
}

// withPastPoints adds the last value of each step that was reported.
func withPastPoints(points []MetricPoint, reported [][]pastValue) []MetricPoint {
	for _, values := range reported {
		last := values[len(values)-1]
		points = append(points, MetricPoint{Timestamp: last.time.Unix(), Value: last.value, Provenance: provenance(values)})
	}
	slices.SortFunc(points, func(a, b MetricPoint) int { return int(a.Timestamp - b.Timestamp) })
	return points
}

// withPastCandles adds a candle of each step that was reported.
func withPastCandles(candles []MetricCandle, reported [][]pastValue, step time.Duration) []MetricCandle {
	for _, values := range reported {
		c := MetricCandle{
			Timestamp: stepOf(values[0].time.UnixNano(), step) * int64(step/time.Second), Open: values[0].value, High: values[0].value, Low: values[0].value,
			Close: values[len(values)-1].value, Samples: len(values), Provenance: provenance(values),
		}
		sum := 0.0
		for _, v := range values {
			c.High, c.Low = max(c.High, v.value), min(c.Low, v.value)
			sum += v.value
		}
		c.Avg = views.Mean(sum, len(values), c.Low, c.High)
		candles = append(candles, c)
	}
	slices.SortFunc(candles, func(a, b MetricCandle) int { return int(a.Timestamp - b.Timestamp) })
	return candles
}

// takenBy are the steps of rows.
func takenBy[T any](rows []T, step func(T) int64) map[int64]bool {
	taken := make(map[int64]bool, len(rows))
	for _, row := range rows {
		taken[step(row)] = true
	}
	return taken
}

// untaken are the values of the past by steps, of those in which nothing was measured: a step never mixes both, since they
// count otherwise.
func untaken(past []pastValue, step time.Duration, taken map[int64]bool) [][]pastValue {
	var steps [][]pastValue
	at := int64(-1)
	for _, v := range past {
		switch s := stepOf(v.time.UnixNano(), step); {
		case taken[s]:
		case s == at:
			steps[len(steps)-1] = append(steps[len(steps)-1], v)
		default:
			at, steps = s, append(steps, []pastValue{v})
		}
	}
	return steps
}

// stepOf numbers the step that an instant ends or is in: the end of a step's last minute is the beginning of the next.
func stepOf(at int64, step time.Duration) int64 { return (at - 1) / int64(step) }

// provenance marks a row that was reported afterwards, by the least that its values cover.
func provenance(values []pastValue) Provenance {
	t := Provenance{Origin: string(schemas.OriginBackfill)}
	for _, v := range values {
		if v.coverage != nil && (t.Coverage == nil || *v.coverage < *t.Coverage) {
			t.Coverage = v.coverage
		}
	}
	return t
}
