package globalstats

import (
	"slices"
	"time"

	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// pastValue is a metric at a moment, as a source reported it afterwards; coverage is in percent, nil if it is not known.
type pastValue struct {
	time     time.Time
	value    float64
	coverage *float64
}

// withPastPoints adds the last value that was reported of each step in which nothing was measured.
func withPastPoints(points []MetricPoint, past []pastValue, step time.Duration) []MetricPoint {
	taken := map[int64]bool{}
	for _, p := range points {
		taken[stepOf(p.Timestamp*int64(time.Second), step)] = true
	}
	for _, values := range untaken(past, step, taken) {
		last := values[len(values)-1]
		points = append(points, MetricPoint{Timestamp: last.time.Unix(), Value: last.value, Provenance: provenance(values)})
	}
	slices.SortFunc(points, func(a, b MetricPoint) int { return int(a.Timestamp - b.Timestamp) })
	return points
}

// withPastCandles adds a candle of what was reported of each step in which nothing was measured.
func withPastCandles(candles []MetricCandle, past []pastValue, step time.Duration) []MetricCandle {
	taken := map[int64]bool{}
	for _, c := range candles {
		taken[c.Timestamp*int64(time.Second)/int64(step)] = true
	}
	for _, values := range untaken(past, step, taken) {
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
