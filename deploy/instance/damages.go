package instance

import (
	"context"
	"fmt"
	"time"

	"github.com/marketlog/marketlog/deploy/embedded"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ReasonDamage is a gap's reason where records of the log itself are lost, or rows that it has no records of any more;
// venueLog and venueTables are what represents the log and for the tables there.
const (
	ReasonDamage = "damage"
	VenueLog     = "log"
	VenueTables  = "tables"
)

// EmbeddedBroker is the broker of this process; nil where the log is outside.
func (in *Instance) EmbeddedBroker() *embedded.Broker {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.broker
}

// logWaiting reports why the embedded log is not as it should be; empty: it is.
func (in *Instance) logWaiting() string {
	broker := in.EmbeddedBroker()
	if broker == nil {
		return ""
	}
	if err := broker.Held(); err != nil {
		return "the log does not advance until it can be written: " + err.Error()
	}
	damages := broker.Damages()
	if len(damages) == 0 {
		return ""
	}
	return fmt.Sprintf("the log is damaged in %d places, the first: %s. `marketlog rebuild` restores the views from the log and acknowledges the damage; the lost offsets cannot be restored", len(damages), damages[0])
}

// DamageGaps are the gaps of the damages of the log that are not settled.
func (in *Instance) DamageGaps() (gaps []*eventsv1.Gap) {
	broker := in.EmbeddedBroker()
	if broker == nil {
		return nil
	}
	for _, d := range broker.Damages() {
		gap := &eventsv1.Gap{Venue: VenueLog, Symbol: fmt.Sprintf("%s/%d", d.Topic, d.Partition), Reason: ReasonDamage, FromTime: unixNano(d.After), ToTime: unixNano(d.Before)}
		if gap.ToTime == 0 {
			gap.ToTime = max(gap.FromTime, in.Began.UnixNano())
		}
		if gap.FromTime == 0 {
			gap.FromTime = gap.ToTime
		}
		if !d.Open {
			gap.Missed = uint64(d.Next - d.From)
		}
		gaps = append(gaps, gap)
	}
	return gaps
}

// WriteGaps writes gaps that no producer of ticks knows of, and returns when they are kept. Written again, one is the same
// row.
func (in *Instance) WriteGaps(ctx context.Context, gaps []*eventsv1.Gap) error {
	if len(gaps) == 0 {
		return nil
	}
	topic, err := schemas.TopicNamed(schemas.TopicTicksRaw)
	if err != nil {
		return err
	}
	producer, err := in.Stream.NewProducer()
	if err != nil {
		return fmt.Errorf("connecting to the log: %w", err)
	}
	defer producer.Close()
	records := make([]*kgo.Record, len(gaps))
	for i, gap := range gaps {
		raw := &eventsv1.RawRecord{Producer: VenueLog, Epoch: in.Began.UnixNano(), Body: &eventsv1.RawRecord_Gap{Gap: gap}}
		value, err := raw.MarshalVT()
		if err != nil {
			return fmt.Errorf("encoding a gap of %s: %w", gap.Symbol, err)
		}
		key := gap.Venue + "|"
		records[i] = &kgo.Record{Topic: topic.Name, Partition: stream.PartitionFor(key, topic.Partitions), Key: []byte(key), Value: value, Timestamp: in.Clock.Now()}
	}
	if err := producer.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("writing %d gaps: %w", len(gaps), err)
	}
	return nil
}

func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
