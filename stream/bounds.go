package stream

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Offsets are offsets by topic and partition.
type Offsets map[string]map[int32]int64

// Bounds are the first offset of each partition of some topics, and that after its last record. It fails if one of them is
// not known.
func Bounds(ctx context.Context, client *kgo.Client, topics ...string) (starts, ends Offsets, err error) {
	admin := kadm.NewClient(client)
	if starts, err = listed(admin.ListStartOffsets(ctx, topics...)); err != nil {
		return nil, nil, fmt.Errorf("listing start offsets of %s: %w", strings.Join(topics, ", "), err)
	}
	if ends, err = Ends(ctx, client, topics...); err != nil {
		return nil, nil, err
	}
	return starts, ends, nil
}

// Ends are the offsets after the last record of each partition of some topics. It fails if one of them is not known.
func Ends(ctx context.Context, client *kgo.Client, topics ...string) (Offsets, error) {
	ends, err := listed(kadm.NewClient(client).ListEndOffsets(ctx, topics...))
	if err != nil {
		return nil, fmt.Errorf("listing end offsets of %s: %w", strings.Join(topics, ", "), err)
	}
	return ends, nil
}

// Bounds are those of the function of that name, by a client of its own.
func (c Config) Bounds(ctx context.Context, topics ...string) (starts, ends Offsets, err error) {
	client, err := c.NewClient()
	if err != nil {
		return nil, nil, fmt.Errorf("opening a client: %w", err)
	}
	defer client.Close()
	return Bounds(ctx, client, topics...)
}

// OffsetsFrom are the offsets of the first records with a timestamp at or after a time, to the millisecond; the end of a
// partition where there is none.
func OffsetsFrom(ctx context.Context, client *kgo.Client, at time.Time, topics ...string) (Offsets, error) {
	offsets, err := listed(kadm.NewClient(client).ListOffsetsAfterMilli(ctx, at.UnixMilli(), topics...))
	if err != nil {
		return nil, fmt.Errorf("finding %s in %s: %w", at.UTC().Format(time.RFC3339), strings.Join(topics, ", "), err)
	}
	return offsets, nil
}

// listed are the offsets of an answer without an error in it.
func listed(answer kadm.ListedOffsets, err error) (Offsets, error) {
	if err == nil {
		err = answer.Error()
	}
	if err != nil {
		return nil, err
	}
	offsets := Offsets{}
	for topic, partitions := range answer {
		offsets[topic] = make(map[int32]int64, len(partitions))
		for partition, o := range partitions {
			offsets[topic][partition] = o.Offset
		}
	}
	return offsets, nil
}
