package processors_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/apy"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// ratesOfADay writes what sources report of three rates every ten minutes, from before one midnight until after the next: one
// is reported each time, one every half hour, and one no more in the second half. A year before, one of them was another.
func ratesOfADay(t *testing.T, producer *kgo.Client) {
	t.Helper()
	var records []*kgo.Record
	write := func(topic string, at int64, rec *eventsv1.ReferenceRecord) {
		rec.Producer, rec.Epoch = "sources", 1
		value, err := rec.MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, &kgo.Record{Topic: topic, Value: value, Timestamp: time.Unix(0, at)})
	}
	rate := func(at int64, r *eventsv1.Rate) {
		r.Source, r.Project, r.Symbol, r.Category, r.RawUnit, r.IngestTime = "lido", "lido", "ETH", schemas.RateStaking, "apy_percent", at
		write(schemas.TopicRatesRaw, at, &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Rate{Rate: r}})
	}
	start := time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC).UnixNano()
	const step = int64(10 * time.Minute)
	for i := range int64(28 * 6) {
		at := start + i*step
		for _, topic := range []string{schemas.TopicRatesRaw, schemas.TopicReferenceRaw} {
			write(topic, at, &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Clock{Clock: &eventsv1.Clock{Time: at}}})
		}
		rate(at+1, &eventsv1.Rate{Pool: "often", Raw: fmt.Sprint(3+i%7) + ".5", Interval: step})
		if i%3 == 0 {
			rate(at+2, &eventsv1.Rate{Pool: "seldom", Raw: fmt.Sprint(-i / 2), Interval: 3 * step})
		}
		if i < 80 {
			rate(at+3, &eventsv1.Rate{Pool: "gone", Raw: "1", Interval: step})
		}
	}
	rate(start, &eventsv1.Rate{Pool: "often", Raw: "7", Past: true, EventTime: start - 365*24*int64(time.Hour)})
	if err := producer.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func TestRatesAreReplayed(t *testing.T) {
	log, producer := newLog(t)
	store, _ := newStore(t)
	ratesOfADay(t, producer)
	liveMinutes(t, log, store, apy.Minutes(), schemas.TopicRates, schemas.TopicRatesRaw, schemas.TopicReferenceRaw)
	replay := func(what, view string, verify bool, least int64, change func(*replayer)) processors.ReplayResult {
		t.Helper()
		r := newReplay(t, log, store, view, verify)
		r.Minutes = []*processors.Minutes{apy.Minutes()}
		change(r)
		result := r.run(t)
		if result.Differing != 0 || result.Compared < least {
			t.Fatalf("%s: got %+v %v %q, want no difference in %d rows at least", what, result, r.differences, r.notes, least)
		}
		return result
	}
	as := func(*replayer) {}
	// Some 320 rows and 70 hours, and five or six days.
	all := replay("at first", schemas.ViewRates, true, 380, as)
	middle := time.Date(2026, 3, 2, 6, 0, 0, 0, time.UTC)
	part := replay("six hours", schemas.ViewRates, true, 36, func(r *replayer) { r.From, r.To = middle, middle.Add(6*time.Hour) })
	if part.Compared+part.Outside != all.Compared {
		t.Errorf("six hours: got %+v, want %d rows in all", part, all.Compared)
	}
	replay("rebuilt", schemas.ViewRates, false, all.Compared, func(r *replayer) { r.BatchRows = 37 })
	replay("again", schemas.ViewRates, true, all.Compared, as)
	replay("what was reported afterwards", schemas.ViewReference, true, 1, as)
}
