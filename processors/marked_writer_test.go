package processors_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// What was handed over is written, in the order of its marks and without a gap, although the context of those who handed
// it over ends before it leaves the process: others may go on after it.
func TestEndedContextLeavesNoHoleInTheMarks(t *testing.T) {
	log, _ := newLog(t)
	producer, err := log.NewClient(kgo.RequiredAcks(kgo.AllISRAcks()), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(time.Minute)) // until it is flushed, all lies in the client
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	w := processors.NewMarkedWriter(producer)
	var want []int64
	for begin := int64(1); begin <= 101; begin += 50 {
		ctx, cancel := context.WithCancel(t.Context())
		for offset := begin; offset < begin+50; offset++ {
			want = append(want, offset)
			err := w.Write(ctx, processors.Output{Topic: schemas.TopicPrices, Time: time.Now().UnixNano(), Record: &eventsv1.PriceRecord{
				Mark: &eventsv1.Mark{LogicVersion: 1, Offset: offset}, Body: &eventsv1.PriceRecord_Pulse{Pulse: &eventsv1.Pulse{Now: offset}},
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
		cancel()
	}
	if err := producer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	ends, err := kadm.NewClient(producer).ListEndOffsets(t.Context(), schemas.TopicPrices)
	if err != nil {
		t.Fatal(err)
	}
	end, _ := ends.Lookup(schemas.TopicPrices, 0)
	var got []int64
	err = stream.ReadRange(t.Context(), log, schemas.TopicPrices, 0, 0, end.Offset, func(r *kgo.Record) error {
		got = append(got, decode(r).GetMark().GetOffset())
		return nil
	})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got the marks %v, %v; want all of 1 to 150", got, err)
	}
}
