package schemas

import (
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// AllowedLateness is how long a minute waits for slow venues after its end. Longer catches more
// trades and delays every candle by as much; venues seen so far are under 2 s.
const AllowedLateness = 5 * time.Second

// Minute is the start of the minute that a time (Unix nanoseconds) lies in.
func Minute(at int64) int64 { return at - at%int64(time.Minute) }

// Hour is the start of the hour that a time (Unix nanoseconds) lies in.
func Hour(at int64) int64 { return at - at%int64(time.Hour) }

// MinuteClosed reports whether the minute of a time is over, lateness included, at a watermark
// (both Unix nanoseconds).
func MinuteClosed(at, watermark int64) bool {
	return Minute(at)+int64(time.Minute)+int64(AllowedLateness) <= watermark
}

// TradeTime is when a trade happened: at the venue if that gives one, else when it was received.
func TradeTime(t *eventsv1.Tick) int64 {
	if t.EventTime != 0 {
		return t.EventTime
	}
	return t.IngestTime
}

// Traded reports whether a tick is a trade that counts in candles: of a spot market of a coin, in time, neither read twice nor excluded by a correction.
func Traded(r *eventsv1.ResolvedTick) bool {
	const inNone = Late | Unmapped | NotSpot | Repeat | Excluded
	return r.Tick.Kind == eventsv1.TickKind_TICK_KIND_TRADE && Flag(r.Flags)&inNone == 0
}

// USD is the id of the quote asset that needs no rate.
const USD = "USD"

// EUR is the currency that central banks' rates are stated for.
const EUR = "EUR"
