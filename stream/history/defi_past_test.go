package history_test

import (
	"fmt"
	"testing"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"

	"github.com/marketlog/marketlog/stream/history/read"
)

// The past of DeFi is what its source reported last of a time, and says how much of our own total that source counts.
func TestThePastOfDefiIsThatOfItsSource(t *testing.T) {
	store := newStore(t)
	midnight, day := noon-12*int64(time.Hour), 24*int64(time.Hour)
	offset := int64(0)
	past := func(source string, days int64, tvl string) logged {
		offset++
		return sourceRecord(offset, &eventsv1.DefiPast{Source: source, TotalTvl: tvl, EventTime: midnight + days*day})
	}
	insert(t, store, defiAt(midnight+60e9, &eventsv1.DefiSummary{TotalTvl: 1000}), defiAt(midnight+120e9, &eventsv1.DefiSummary{TotalTvl: 2000}),
		past("defillama", -2, "900"), past("defillama", -2, "1000"), // reported again
		past("defillama", -1, "0"), past("defillama", 0, "1100"), past("defillama", 1, "1200.5"))
	checkRows(t, store, fmt.Sprintf(`SELECT concatWithSeparator(' ', (toUnixTimestamp(time) - %d) / 86400, source, total_tvl, coverage, toUInt8(measured), origin)
		FROM default.v_defi_past ORDER BY time`, midnight/1e9),
		"-2 defillama 1000 60.025 0 backfill", "0 defillama 1100 60.025 0 backfill", "1 defillama 1200.5 60.025 1 backfill")
	insert(t, store, past("another", 0, "1800"), past("another", 2, "2800"))
	from := time.Unix(0, midnight).UTC()
	got, err := read.From(store).DefiPast(t.Context(), from.Add(-72*time.Hour), from.Add(72*time.Hour))
	if err != nil || len(got) != 2 || got[0].TotalTVL != 1000 || *got[0].Coverage != 60.025 || !got[1].Time.Equal(from) || got[1].TotalTVL != 1800 || *got[1].Coverage != 100 {
		t.Errorf("there is %+v, %v, want the two days before the first minute, by who covers most", got, err)
	}
	if got, err := read.From(store).DefiPast(t.Context(), from.Add(-48*time.Hour), from.Add(-time.Second)); err != nil || len(got) != 0 {
		t.Errorf("between the two days there is %+v, %v, want nothing", got, err)
	}
}
