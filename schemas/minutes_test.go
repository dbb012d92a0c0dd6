package schemas_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

func TestMinuteClosesFiveSecondsAfterItsEnd(t *testing.T) {
	start := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		event     time.Duration
		watermark time.Duration
		closed    bool
	}{
		{0, 65 * time.Second, true},
		{0, 65*time.Second - 1, false},
		{time.Minute - 1, 65 * time.Second, true},
		{time.Minute, 65 * time.Second, false},
		{time.Minute, 125 * time.Second, true},
	} {
		got := schemas.MinuteClosed(start.Add(test.event).UnixNano(), start.Add(test.watermark).UnixNano())
		if got != test.closed {
			t.Errorf("a trade at +%s with the watermark at +%s: got closed=%v, want %v", test.event, test.watermark, got, test.closed)
		}
	}
	if schemas.MinuteClosed(start.UnixNano(), 0) {
		t.Error("a minute is closed before the watermark is known")
	}
}

func TestMinuteHoldsItsTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.Int64Range(0, time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()).Draw(t, "time")
		start := schemas.Minute(at)
		if start%int64(time.Minute) != 0 || at < start || at >= start+int64(time.Minute) {
			t.Fatalf("Minute(%d) = %d", at, start)
		}
	})
}

func TestTradeTimeIsTheVenuesIfItHasOne(t *testing.T) {
	if got := schemas.TradeTime(&eventsv1.Tick{EventTime: 7, IngestTime: 9}); got != 7 {
		t.Errorf("got %d, want the event time 7", got)
	}
	if got := schemas.TradeTime(&eventsv1.Tick{IngestTime: 9}); got != 9 {
		t.Errorf("without an event time: got %d, want the ingest time 9", got)
	}
}
