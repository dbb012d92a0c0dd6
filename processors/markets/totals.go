package markets

import (
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	totalsStep = 5 * time.Minute
	totalsFor  = 27 * time.Hour
	// totalsOff is how far from a day before a total may lie that is taken for it.
	totalsOff = 144 * time.Minute
)

// totals are the whole market's volumes of the last 27 hours, one of every five minutes: that at the end of the last minute
// in it. Oldest first.
type totals struct {
	list []*eventsv1.MarketTotal
	// loaded is the minute that they were at when they were read back: minutes up to it are in them.
	loaded int64
}

func (t *totals) add(minute int64, volume24h float64) {
	if minute <= t.loaded {
		return
	}
	start := (minute - 1) / int64(totalsStep) * int64(totalsStep/time.Second)
	for len(t.list) > 0 && t.list[0].Start < (minute-int64(totalsFor))/int64(time.Second) {
		t.list = t.list[1:]
	}
	total := &eventsv1.MarketTotal{Start: start, Volume24H: volume24h} // those that were written are not changed
	if n := len(t.list); n > 0 && t.list[n-1].Start == start {
		t.list = append(t.list[:n-1:n-1], total)
		return
	}
	t.list = append(t.list, total)
}

// dayBefore is the total of the last five minutes that were over 24 hours before a minute, 0 for none.
func (t *totals) dayBefore(minute int64) float64 {
	at := (minute - int64(24*time.Hour)) / int64(time.Second)
	volume := 0.0
	for _, total := range t.list {
		end := total.Start + int64(totalsStep/time.Second)
		if end > at {
			break
		}
		if at-end <= int64(totalsOff/time.Second) {
			volume = total.Volume24H
		}
	}
	return volume
}

func (t *totals) remembered(minute int64) *eventsv1.MarketState {
	return &eventsv1.MarketState{Minute: minute, Totals: t.list}
}
