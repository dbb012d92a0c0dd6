package stream_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// Whatever lies between them, the newest mark and checkpoint of each origin are found: repeats of two writers, what no fold wrote, and
// an origin that was last received thousands of records ago.
func TestLastAppliedFindsTheNewestOfEachOrigin(t *testing.T) {
	const origins = 3
	lengths := []int{0, 7, 900, 9_000}
	for _, seed := range streamtest.Seeds(t, 1) {
		random := rand.New(rand.NewPCG(seed, 0))
		log := stream.Config{Brokers: []string{streamtest.Kfake(t)}, ClientID: "test"}
		client, err := log.NewProducer()
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if err := stream.CreateTopics(t.Context(), client, schemas.Topics, 1, stream.ClusterTopicConfigs); err != nil {
			t.Fatal(err)
		}
		want := map[int32]map[int32]stream.Applied{}
		for p, length := range lengths {
			partition := int32(p)
			want[partition] = map[int32]stream.Applied{}
			var offsets [origins]int64
			for i := range length {
				origin := int32(random.IntN(origins))
				if length > 1_000 && i > 1_500 {
					origin %= origins - 1 // the last one falls silent
				}
				record := randomRecord(random, origin, &offsets[origin])
				value, err := record.MarshalVT()
				if err != nil {
					t.Fatal(err)
				}
				switch random.IntN(20) {
				case 0: // its mark lies ahead of all, and it is not a record
					value, err = (&eventsv1.ResolvedRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Partition: origin, Offset: 1e12}}).MarshalVT()
					if err != nil {
						t.Fatal(err)
					}
				case 1:
					value = value[:len(value)-1]
				default:
					a := want[partition][origin]
					if record.Mark.After(a.Mark) {
						a.Mark = record.Mark
					}
					if c := record.GetPulse().GetCheckpoint(); c != nil {
						a.Checkpoint, a.Watermark = c, record.GetPulse().Watermark
					}
					want[partition][origin] = a
				}
				client.Produce(t.Context(), &kgo.Record{Topic: schemas.TopicTicks, Partition: partition, Value: value, Timestamp: time.Unix(1, 0)},
					func(_ *kgo.Record, err error) {
						if err != nil {
							t.Error(err)
						}
					})
			}
		}
		if err := client.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := stream.LastApplied(t.Context(), log, schemas.TopicTicks, []int32{0, 1, 2, 3}, origins)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("seed %d: want(-), got(+):\n%s", seed, diff)
		}
	}
}

// randomRecord is the next that a fold of an origin writes, or one that it wrote before.
func randomRecord(random *rand.Rand, origin int32, offset *int64) *eventsv1.ResolvedRecord {
	mark := &eventsv1.Mark{LogicVersion: 1, Partition: origin, Offset: *offset, Index: uint32(random.IntN(2))}
	if random.IntN(10) > 0 {
		*offset++
		mark.Offset = *offset
	}
	pulse := &eventsv1.Pulse{Now: *offset, Watermark: *offset - 1}
	switch random.IntN(10) {
	case 0:
		pulse.Checkpoint = &eventsv1.Checkpoint{Offset: *offset / 2, Marks: []*eventsv1.Mark{{LogicVersion: 1, Partition: origin, Offset: *offset / 2}}}
		fallthrough
	case 1:
		return &eventsv1.ResolvedRecord{Mark: mark, Body: &eventsv1.ResolvedRecord_Pulse{Pulse: pulse}}
	}
	return &eventsv1.ResolvedRecord{Mark: mark, Body: &eventsv1.ResolvedRecord_Tick{Tick: &eventsv1.ResolvedTick{
		CoinId: "bitcoin", Tick: &eventsv1.Tick{Venue: "okx", Symbol: "BTC-USD", EventId: make([]byte, 16), IngestTime: 5},
	}}}
}
