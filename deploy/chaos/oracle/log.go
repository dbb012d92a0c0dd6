// Package oracle is a second opinion on the pipeline: it reads the log and works out, the slow and
// obvious way, which ticks, refusals, quote rates, prices and candles must follow from it, and every column of
// the views of coins, sources, currencies, pegs and markets. It shares no code with the processors and the
// sinks, nor with the rules that they use: only the generated types of the log's records.
//
// It knows the two venues and the few coins that the crash test's scripted venues trade.
package oracle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"
)

// Record is one record of a partition.
type Record struct {
	Offset int64
	Value  []byte
}

const (
	readWait    = 250 * time.Millisecond
	readTimeout = 30 * time.Second
)

// Read returns all records of a topic, by partition and in order.
func Read(ctx context.Context, broker, topic string) (map[int32][]Record, error) {
	partitions, err := kafka.LookupPartitions(ctx, "tcp", broker, topic)
	if err != nil {
		return nil, fmt.Errorf("looking up the partitions of %s: %w", topic, err)
	}
	read := make([][]Record, len(partitions))
	g, ctx := errgroup.WithContext(ctx)
	for i, p := range partitions {
		g.Go(func() (err error) {
			if read[i], err = readPartition(ctx, broker, topic, p.ID); err != nil {
				return fmt.Errorf("reading %s/%d: %w", topic, p.ID, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	records := map[int32][]Record{}
	for i, p := range partitions {
		records[int32(p.ID)] = read[i]
	}
	return records, nil
}

// Ends returns the offset after the last record of each partition.
func Ends(ctx context.Context, broker, topic string) (map[int32]int64, error) {
	partitions, err := kafka.LookupPartitions(ctx, "tcp", broker, topic)
	if err != nil {
		return nil, fmt.Errorf("looking up the partitions of %s: %w", topic, err)
	}
	ends := map[int32]int64{}
	for _, p := range partitions {
		if _, ends[int32(p.ID)], err = bounds(ctx, broker, topic, p.ID); err != nil {
			return nil, err
		}
	}
	return ends, nil
}

func bounds(ctx context.Context, broker, topic string, partition int) (first, end int64, err error) {
	conn, err := kafka.DialLeader(ctx, "tcp", broker, topic, partition)
	if err != nil {
		return 0, 0, fmt.Errorf("dialling the leader of %s/%d: %w", topic, partition, err)
	}
	defer conn.Close()
	if first, end, err = conn.ReadOffsets(); err != nil {
		return 0, 0, fmt.Errorf("reading the bounds of %s/%d: %w", topic, partition, err)
	}
	return first, end, nil
}

func readPartition(ctx context.Context, broker, topic string, partition int) ([]Record, error) {
	first, end, err := bounds(ctx, broker, topic, partition)
	if err != nil {
		return nil, err
	}
	if first != 0 {
		return nil, fmt.Errorf("the first record has offset %d: retention has cut what the views were made from", first)
	}
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{broker}, Topic: topic, Partition: partition,
		MinBytes: 1, MaxBytes: 16 << 20, MaxWait: readWait,
	})
	defer reader.Close()
	if err := reader.SetOffset(0); err != nil {
		return nil, fmt.Errorf("seeking the start: %w", err)
	}
	var records []Record
	for next := int64(0); next < end; {
		waiting, cancel := context.WithTimeout(ctx, readTimeout)
		m, err := reader.ReadMessage(waiting)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, fmt.Errorf("no record at %d for %s, and the end is %d", next, readTimeout, end)
		}
		if err != nil {
			return nil, fmt.Errorf("reading at %d: %w", next, err)
		}
		if m.Offset != next {
			return nil, fmt.Errorf("offset %d follows %d", m.Offset, next-1)
		}
		next++
		records = append(records, Record{Offset: m.Offset, Value: m.Value})
	}
	return records, nil
}
