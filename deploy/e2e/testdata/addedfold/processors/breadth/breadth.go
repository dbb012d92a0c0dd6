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
		out.Emit(Topic, 0, "", minute, &eventsv1.BreadthRecord{Body: &eventsv1.BreadthRecord_Breadth{
			Breadth: &eventsv1.Breadth{Time: minute, Rising: f.rising, Falling: f.falling, Unchanged: f.unchanged},
		}})
		out.Emit(Topic, 0, "", minute, &eventsv1.BreadthRecord{Body: &eventsv1.BreadthRecord_Pulse{
			Pulse: &eventsv1.Pulse{Now: minute, Watermark: minute},
		}})
	}
	*f = fold{}
}
