// Package breadth counts, for each log minute, the coins whose price rose and fell in it.
package breadth

import (
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Topic is what the fold writes.
const Topic = "breadth.v1"

// Minutes is the declaration of this processor; the caller adds the log.
func Minutes() *processors.Minutes {
	return &processors.Minutes{
		Name: "breadth", Inputs: []string{schemas.TopicCandles}, Output: Topic, New: func() processors.MinuteFold { return &fold{} },
	}
}

// fold has no state beyond the open minute, so nothing is loaded.
type fold struct{ rising, falling, unchanged uint32 }

func (f *fold) Load(eventsv1.Marked) {}

func (f *fold) Take(_ int64, _ processors.Input, rec eventsv1.Marked) {
	candle := rec.(*eventsv1.CandleRecord).GetCandle()
	switch {
	case candle.Close > candle.Open:
		f.rising++
	case candle.Close < candle.Open:
		f.falling++
	default:
		f.unchanged++
	}
}

func (f *fold) Close(minute int64, out *processors.Outputs) {
	if out != nil {
		row := &eventsv1.Sentiment{Positive: f.rising, Negative: f.falling, Neutral: f.unchanged}
		out.Emit(Topic, 0, "", minute, &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Summary{
			Summary: &eventsv1.Summary{Time: minute, Sentiment: []*eventsv1.Sentiment{row}},
		}})
		out.Emit(Topic, 0, "", minute, &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Pulse{
			Pulse: &eventsv1.Pulse{Now: minute, Watermark: minute},
		}})
	}
	*f = fold{}
}
