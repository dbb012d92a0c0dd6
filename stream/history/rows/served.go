package rows

import (
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/native"
)

// servedRows are rows of served_prices, served_minutes, served_topics, served_sources, served_pegs, served_candles, served_figures and served_series: one for each step of a record.
type servedRows struct {
	prices, minutes, topics, sources, pegs, candles, figures, series columnBatch[servedStep]
}

// servedStep is a step and the process that took it.
type servedStep struct {
	*eventsv1.ServedStep
	replica string
}

// topic is that of the minute that a step is of, where it has no table of its own.
func (s servedStep) topic() string {
	if _, defi := s.Read.(*eventsv1.ServedStep_Defi); defi {
		return schemas.TopicDefi
	}
	return schemas.TopicRates
}

func newServedRows() topicRows {
	at := func(s servedStep) int64 { return s.Time }
	replica := func(s servedStep) string { return s.replica }
	return &servedRows{
		newColumnBatch("served_prices", statusOf("partition", func(s servedStep) int32 { return s.GetPrices().GetPartition() }), instantOf("time", at),
			lowCardinalityOf("replica", replica), integerOf("ticks_offset", func(s servedStep) int64 { return s.GetPrices().GetOffset() })),
		newColumnBatch("served_minutes", instantOf("time", at), lowCardinalityOf("replica", replica), secondOf("minute", func(s servedStep) int64 { return s.GetMinute() })),
		newColumnBatch("served_topics", lowCardinalityOf("topic", servedStep.topic), instantOf("time", at),
			lowCardinalityOf("replica", replica), integerOf("read", func(s servedStep) int64 { return (s.GetRates() + s.GetDefi()) / int64(time.Second) })),
		newColumnBatch("served_sources", instantOf("time", at), lowCardinalityOf("replica", replica), integerOf("first", func(s servedStep) int64 { return s.GetSources().GetFirst() }),
			integerOf("last", func(s servedStep) int64 { return s.GetSources().GetLast() }), integerOf("coins", func(s servedStep) int64 { return s.GetSources().GetCoins() }), instantOf("clock", func(s servedStep) int64 { return s.GetSources().GetClock() })),
		newColumnBatch("served_pegs", instantOf("time", at), lowCardinalityOf("replica", replica), nestedOf("coins", func(s servedStep) []*eventsv1.ServedPeg { return s.GetPegs().GetCoins() },
			lowCardinalityOf("id", (*eventsv1.ServedPeg).GetCoinId), floatOf("mean_bps", (*eventsv1.ServedPeg).GetMeanBps), floatOf("p95_bps", (*eventsv1.ServedPeg).GetP95Bps),
			countOf("samples", (*eventsv1.ServedPeg).GetSamples))),
		newColumnBatch("served_candles", instantOf("time", at), lowCardinalityOf("replica", replica), secondsOf("closed", func(s servedStep) []int64 { return s.GetCandles().GetClosed() }),
			integerOf("folded", func(s servedStep) int64 { return s.GetCandles().GetFolded() }), integerOf("fixings", func(s servedStep) int64 { return s.GetCandles().GetFixings() })),
		newColumnBatch("served_figures", instantOf("time", at), lowCardinalityOf("replica", replica), secondOf("minute", func(s servedStep) int64 { return s.GetFigures().GetTime() }),
			flagOf("whole", func(s servedStep) bool { return s.GetFigures().GetWhole() }), nestedOf("coins", func(s servedStep) []*eventsv1.ServedFigure { return s.GetFigures().GetCoins() },
				lowCardinalityOf("id", (*eventsv1.ServedFigure).GetCoinId), floatOf("day_ago", (*eventsv1.ServedFigure).GetDayAgo),
				floatOf("high", (*eventsv1.ServedFigure).GetHigh), floatOf("low", (*eventsv1.ServedFigure).GetLow), flagOf("whole", (*eventsv1.ServedFigure).GetWhole),
				floatOf("highest", (*eventsv1.ServedFigure).GetHighest), instantOf("highest_at", (*eventsv1.ServedFigure).GetHighestAt),
				floatOf("lowest", (*eventsv1.ServedFigure).GetLowest), instantOf("lowest_at", (*eventsv1.ServedFigure).GetLowestAt),
				floatOf("days30_ago", (*eventsv1.ServedFigure).GetDays30Ago), floatOf("days60_ago", (*eventsv1.ServedFigure).GetDays60Ago),
				floatOf("days200_ago", (*eventsv1.ServedFigure).GetDays200Ago), floatOf("year_ago", (*eventsv1.ServedFigure).GetYearAgo))),
		newColumnBatch("served_series", instantOf("time", at), lowCardinalityOf("replica", replica), secondOf("written", func(s servedStep) int64 { return s.GetSeries().GetWritten() }),
			integerOf("past", func(s servedStep) int64 { return s.GetSeries().GetPast() })),
	}
}

func (r *servedRows) all() []native.Rows {
	return []native.Rows{&r.prices, &r.minutes, &r.topics, &r.sources, &r.pegs, &r.candles, &r.figures, &r.series}
}

func (r *servedRows) add(p Place, record eventsv1.Marked) bool {
	rec := record.(*eventsv1.ServedRecord)
	for _, s := range rec.Steps {
		switch s.Read.(type) {
		case *eventsv1.ServedStep_Prices:
			r.prices.appendRaw(p, servedStep{s, rec.Replica})
		case *eventsv1.ServedStep_Minute:
			r.minutes.appendRaw(p, servedStep{s, rec.Replica})
		case *eventsv1.ServedStep_Rates, *eventsv1.ServedStep_Defi:
			r.topics.appendRaw(p, servedStep{s, rec.Replica})
		case *eventsv1.ServedStep_Sources:
			r.sources.appendRaw(p, servedStep{s, rec.Replica})
		case *eventsv1.ServedStep_Pegs:
			r.pegs.appendRaw(p, servedStep{s, rec.Replica})
		case *eventsv1.ServedStep_Candles:
			r.candles.appendRaw(p, servedStep{s, rec.Replica})
		case *eventsv1.ServedStep_Figures:
			r.figures.appendRaw(p, servedStep{s, rec.Replica})
		case *eventsv1.ServedStep_Series:
			r.series.appendRaw(p, servedStep{s, rec.Replica})
		}
	}
	return len(rec.Steps) > 0
}
