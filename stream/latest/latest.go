// Package latest keeps the newest price of each coin in Redis, or in this process, so that a reader that starts has all
// of them at once. Values never go back: a write is compared with what is kept, by generation and
// offset, and all writes of a flush to one partition are one step.
package latest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// Record is one price record and where it lies in prices.v1. One that was read from history has the
// offset 0: every record of the log is newer.
type Record struct {
	Partition int32
	Offset    int64
	// Mark names the record of ticks.v1 that caused the price.
	Mark  *eventsv1.Mark
	Price *eventsv1.Price
}

// Snapshot is what the cache holds.
type Snapshot struct {
	// Records are, per coin, the last one with a price and, if newer, the one that says why there is none.
	Records []Record
	// Next is, per partition, the offset below which every record is in the snapshot.
	Next map[int32]int64
}

// Store is the cache. Safe for concurrent use.
type Store struct{ hashes hashes }

// New uses an open client, which stays the caller's.
func New(client redis.UniversalClient) *Store { return &Store{redisHashes{client}} }

// NewMemory keeps the values in this process, which forgets them when it ends.
func NewMemory() *Store { return &Store{&memoryHashes{partitions: map[int32]map[string]string{}}} }

// hashes are a hash of fields for each partition of prices.v1. A field holds generation, offset and payload.
type hashes interface {
	// put sets the fields that are newer than what is kept, and returns whether everything below covered.Next is kept.
	put(ctx context.Context, partition int32, generation uint32, covered Range, fields []fieldValue) (whole bool, err error)
	load(ctx context.Context, partition int32) (map[string]string, error)
}

// fieldValue is a field to put.
type fieldValue struct {
	name    string
	offset  int64
	payload []byte
}

// nextField holds the offset below which a partition is complete. Coin ids never begin with a dot.
const nextField = ".next"

// lostSuffix marks the field of a record without a price.
const lostSuffix = "!"

// Range is a stretch of offsets of one partition, [From, Next).
type Range struct{ From, Next int64 }

// Put keeps the records that are newer than what is kept; those of one partition are in the order of
// the log. Covered says, per partition, for which stretch they are all that matter. It returns the
// partitions whose cache lacks what lies before that stretch, since it was flushed or never filled:
// a reader does not take it for complete until a Put covers them from 0. An error that is
// stream.ErrUnavailable leaves open what was kept: put the same again.
func (s *Store) Put(ctx context.Context, generation uint32, records []Record, covered map[int32]Range) (gaps []int32, err error) {
	fields := map[int32][]fieldValue{}
	for f, r := range newest(records) {
		record := eventsv1.PriceRecord{Mark: r.Mark, Body: &eventsv1.PriceRecord_Price{Price: r.Price}}
		payload, err := record.MarshalVT()
		if err != nil {
			return nil, fmt.Errorf("encoding the price of %s: %w", r.Price.CoinId, err)
		}
		if _, ok := covered[r.Partition]; !ok {
			return nil, fmt.Errorf("caching a price of %s: partition %d is not covered", r.Price.CoinId, r.Partition)
		}
		fields[r.Partition] = append(fields[r.Partition], fieldValue{f.name, r.Offset, payload})
	}
	for _, partition := range slices.Sorted(maps.Keys(covered)) {
		whole, err := s.hashes.put(ctx, partition, generation, covered[partition], fields[partition])
		if err != nil {
			return nil, fmt.Errorf("%w: caching prices of partition %d: %w", stream.ErrUnavailable, partition, err)
		}
		if !whole {
			gaps = append(gaps, partition)
		}
	}
	return gaps, nil
}

type field struct {
	partition int32
	name      string
}

// newest leaves the last record of each field.
func newest(records []Record) map[field]Record {
	last := make(map[field]Record, len(records))
	for _, r := range records {
		name := r.Price.CoinId
		if r.Price.Reason != "" {
			name += lostSuffix
		}
		last[field{r.Partition, name}] = r
	}
	return last
}

// Load reads what is kept of the given number of partitions.
func (s *Store) Load(ctx context.Context, partitions int32) (Snapshot, error) {
	snap := Snapshot{Next: map[int32]int64{}}
	for p := range partitions {
		priced, lost := map[string]Record{}, map[string]Record{}
		fields, err := s.hashes.load(ctx, p)
		if err != nil {
			return Snapshot{}, fmt.Errorf("%w: reading cached prices of partition %d: %w", stream.ErrUnavailable, p, err)
		}
		for field, value := range fields {
			offset, payload, err := split(value)
			if err != nil {
				return Snapshot{}, fmt.Errorf("reading %s of partition %d: %w", field, p, err)
			}
			if field == nextField {
				snap.Next[p] = offset
				continue
			}
			record := &eventsv1.PriceRecord{}
			if err := record.UnmarshalVT([]byte(payload)); err != nil {
				return Snapshot{}, fmt.Errorf("decoding %s of partition %d: %w", field, p, err)
			}
			r := Record{Partition: p, Offset: offset, Mark: record.Mark, Price: record.GetPrice()}
			if coin, ok := strings.CutSuffix(field, lostSuffix); ok {
				lost[coin] = r
			} else {
				priced[field] = r
			}
		}
		for coin, r := range lost {
			if after, ok := priced[coin]; ok && after.Price.GetTime() >= r.Price.GetTime() {
				delete(lost, coin)
			}
		}
		snap.Records = slices.AppendSeq(snap.Records, maps.Values(priced))
		snap.Records = slices.AppendSeq(snap.Records, maps.Values(lost))
	}
	return snap, nil
}

// headSize is the length of generation (10 digits) and offset (20 digits), which are padded so that
// they can be compared as strings.
const headSize = 10 + 20

func split(value string) (offset int64, payload string, err error) {
	if len(value) < headSize {
		return 0, "", fmt.Errorf("a value of %d bytes has no generation and offset", len(value))
	}
	offset, err = strconv.ParseInt(value[headSize-20:headSize], 10, 64)
	return offset, value[headSize:], err
}
