package processors

import (
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
)

// measuredBatch is what folds and sinks measure of one batch.
func measuredBatch() (measure func()) {
	m := NewMetrics(prometheus.NewRegistry())
	fold, sink := m.fold("prices", schemas.TopicTicks), m.sink(schemas.TopicPrices)
	fold.hold(schemas.TopicTicks, 3, 0)
	sink.hold(3, 0)
	began := time.Now()
	batch := []*kgo.Record{{Topic: schemas.TopicTicks, Partition: 3, Offset: 41, Timestamp: began}}
	return func() {
		fold.folded(batch, 7, began.UnixNano(), began)
		fold.closed(began.UnixNano(), 9, 7, began)
		sink.inserted(500, time.Second)
		sink.reached(3, 42, began.UnixNano())
		sink.retried()
	}
}

func TestMeasuringABatchAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(1000, measuredBatch()); n > 0 {
		t.Errorf("measuring a batch allocates %v times, want none", n)
	}
}

func BenchmarkMeasuringABatch(b *testing.B) {
	measure := measuredBatch()
	b.ReportAllocs()
	for b.Loop() {
		measure()
	}
}

// Nobody who is not measured pays for it.
func TestWithoutMetricsNothingIsMeasured(t *testing.T) {
	var none *Metrics
	fold, sink := none.fold("prices", schemas.TopicTicks), none.sink(schemas.TopicPrices)
	fold.hold(schemas.TopicTicks, 0, 0)
	fold.folded([]*kgo.Record{{Topic: schemas.TopicTicks}}, 1, 1, time.Now())
	fold.closed(1, 1, 1, time.Now())
	fold.release(schemas.TopicTicks, 0)
	sink.hold(0, 0)
	sink.inserted(1, time.Second)
	sink.reached(0, 1, 1)
	sink.retried()
	asked := sink.asks()
	sink.failed(asked, errors.New("refused"))
	sink.answered(asked)
	sink.letter(schemas.TopicTicksRawDead, string(schemas.Absurd))
	sink.cached(1, 1, time.Second)
	sink.release(0)
}

// A reason that is not in the list, as anybody may write one, makes no series of its own.
func TestReasonsOfLettersAreBounded(t *testing.T) {
	registry := prometheus.NewRegistry()
	sink := NewMetrics(registry).sink(schemas.TopicTicksRawDead)
	for _, reason := range []string{string(schemas.Absurd), "invented", "invented too", ""} {
		sink.letter(schemas.TopicTicksRawDead, reason)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "marketlog_dead_letters_total" {
			continue
		}
		for _, m := range family.Metric { // by reason, then topic
			if m.Label[1].GetValue() == schemas.TopicTicksRawDead {
				got[m.Label[0].GetValue()] = m.Counter.GetValue()
			}
		}
	}
	if len(got) != len(schemas.Reasons)+1 || got[string(schemas.Absurd)] != 1 || got["other"] != 3 {
		t.Errorf("got %v, want the reasons of the list and three others", got)
	}
}

// A store that is asked for long is away, whether it refuses or reports nothing, until it has answered; tries in between change nothing.
func TestAStoreThatIsAskedForLongIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMetrics(prometheus.NewRegistry())
		want := func(what string, want map[string]string) {
			t.Helper()
			if got := m.Waiting(); !maps.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", what, got, want)
			}
		}
		prices, ticks := m.sink(schemas.TopicPrices), m.sink(schemas.TopicTicks)
		silent, refusing := prices.asks(), ticks.asks()
		time.Sleep(WaitingAfter - time.Second)
		ticks.failed(refusing, errors.New("inserting 3 rows: connection refused"))
		want("asked for a moment", nil)
		time.Sleep(time.Second)
		want("asked for long", map[string]string{
			schemas.TopicPrices: "waiting for a store: it has not answered yet",
			schemas.TopicTicks:  "waiting for a store: inserting 3 rows: connection refused",
		})
		prices.answered(silent)
		quick := prices.asks()
		want("one has answered, and is asked again", map[string]string{schemas.TopicTicks: "waiting for a store: inserting 3 rows: connection refused"})
		ticks.answered(refusing)
		prices.answered(quick)
		want("both have answered", nil)
	})
}
