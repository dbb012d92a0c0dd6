package processors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/faults"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/latest"
)

// Bounds of a sink's batch: large ones cost less a row, small ones are seen sooner.
const (
	sinkMaxRows  = 50_000
	sinkInterval = 500 * time.Millisecond
)

// Sink materializes one derived topic: every record becomes its rows in history and, for prices, the
// latest value, exactly once in effect. It reads the topic in the order of the log, inserts, and
// only then writes down how far it came. What was inserted but not written down is inserted again,
// which changes nothing.
type Sink struct {
	Topic      string
	Log        stream.Config
	History    *history.Store
	Latest     *latest.Store // nil but for prices
	Generation uint32
	Logger     *slog.Logger
}

// Run materializes until the context ends; what was read by then is inserted.
func (s *Sink) Run(ctx context.Context) error {
	topic, err := schemas.TopicNamed(s.Topic)
	if err != nil {
		return err
	}
	m := &sinkMember{sink: s, positions: map[int32]*position{}, name: topic.Name}
	err = stream.RunGroup(ctx, s.Log, "sink-"+s.Topic, s.Topic, m)
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if flushErr := m.flush(drain); err == nil && ctx.Err() == nil {
		err = flushErr
	}
	return err
}

// position is where a sink stands in one partition.
type position struct {
	progress history.Progress
	inserted int64
	changed  bool
}

type sinkMember struct {
	sink      *Sink
	name      string
	positions map[int32]*position
	batch     history.Batch
	latest    []latest.Record
	since     time.Time
	// failed ends the member: rows that could not be inserted are read again by its successor.
	failed error
}

func (m *sinkMember) Assigned(ctx context.Context, partitions []int32) (map[int32]int64, error) {
	progress, err := m.sink.History.Progress(ctx, m.name, m.sink.Generation)
	if err != nil {
		return nil, err
	}
	starts := map[int32]int64{}
	for _, p := range partitions {
		at, ok := progress[p]
		if !ok {
			at = history.Progress{Partition: p, Marks: map[int32]*eventsv1.Mark{}}
		}
		m.positions[p] = &position{progress: at, inserted: at.Next}
		starts[p] = at.Next
	}
	m.sink.Logger.Info("materializing", "topic", m.name, "partitions", len(partitions))
	return starts, nil
}

func (m *sinkMember) Records(ctx context.Context, partition int32, records []*kgo.Record) error {
	pos := m.positions[partition]
	if pos == nil {
		return nil // given back while the records were on their way
	}
	for _, rec := range records {
		m.take(pos, rec)
		if m.batch.Len() >= sinkMaxRows {
			if err := m.flush(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *sinkMember) take(pos *position, rec *kgo.Record) {
	if rec.Offset < pos.progress.Next {
		return
	}
	if m.since.IsZero() {
		m.since = time.Now()
	}
	if pos.progress.Next == 0 {
		pos.progress.First = rec.Offset
	}
	pos.progress.Next, pos.changed = rec.Offset+1, true
	pos.progress.LogTime = max(pos.progress.LogTime, rec.Timestamp.UnixNano())
	record, err := stream.DecodeMarked(rec.Topic, rec.Value)
	if err != nil {
		m.sink.Logger.Error("passing over a record that is not ours", "topic", rec.Topic, "partition", rec.Partition, "offset", rec.Offset, "error", err)
		return
	}
	if mark := record.GetMark(); mark != nil {
		if !mark.After(pos.progress.Marks[mark.Partition]) {
			return
		}
		pos.progress.Marks[mark.Partition] = mark
	}
	m.batch.Add(history.Place{Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset}, record)
	if m.sink.Latest == nil {
		return
	}
	if price, ok := record.(*eventsv1.PriceRecord); ok && price.GetPrice() != nil {
		m.latest = append(m.latest, latest.Record{Partition: rec.Partition, Offset: rec.Offset, Mark: price.Mark, Price: price.GetPrice()})
	}
}

// Due flushes what has waited long enough.
func (m *sinkMember) Due(ctx context.Context) error {
	if m.failed != nil {
		return m.failed
	}
	if m.since.IsZero() || time.Since(m.since) < sinkInterval {
		return nil
	}
	return m.flush(ctx)
}

// flush inserts the batch, then the latest values, then writes the ledger. While a store is away
// it tries again, and the log waits: nothing is read meanwhile.
func (m *sinkMember) flush(ctx context.Context) error {
	var progress []history.Progress
	next := map[int32]int64{}
	for p, pos := range m.positions {
		if pos.changed {
			progress = append(progress, pos.progress)
			next[p] = pos.progress.Next
		}
	}
	if len(progress) == 0 {
		return nil
	}
	faults.Hit("sink.insert")
	err := m.insist(ctx, func() error { return m.sink.History.Insert(ctx, &m.batch, "") })
	if err != nil {
		return err
	}
	faults.Hit("sink.inserted")
	if m.sink.Latest != nil {
		if err := m.insist(ctx, func() error { return m.sink.Latest.Put(ctx, m.sink.Generation, m.latest, next) }); err != nil {
			return err
		}
	}
	faults.Hit("sink.cached")
	err = m.insist(ctx, func() error {
		return m.sink.History.Record(ctx, m.name, m.sink.Generation, progress)
	})
	if err != nil {
		return err
	}
	faults.Hit("sink.recorded")
	for p := range next {
		m.positions[p].changed = false
		m.positions[p].inserted = next[p]
	}
	m.batch.Reset()
	m.latest = m.latest[:0]
	m.since = time.Time{}
	return nil
}

// Pauses between tries at a store that is away.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
)

// insist repeats what may be repeated until it succeeds or the context ends. What ClickHouse itself
// refuses is a defect of ours and ends the role.
func (m *sinkMember) insist(ctx context.Context, do func() error) error {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := do()
		if err == nil || !errors.Is(err, stream.ErrUnavailable) {
			return err
		}
		m.sink.Logger.Warn("waiting for a store", "topic", m.name, "error", err)
		select {
		case <-ctx.Done():
			return fmt.Errorf("giving up: %w", err)
		case <-time.After(pause):
		}
	}
}

// Lost inserts what is held before another member takes over.
func (m *sinkMember) Lost(ctx context.Context, partitions []int32) {
	if err := m.flush(ctx); err != nil {
		m.failed = fmt.Errorf("giving back partitions of %s: %w", m.name, err)
	}
	for _, p := range partitions {
		delete(m.positions, p)
	}
}

// Done is where the ledger stands.
func (m *sinkMember) Done() map[int32]int64 {
	done := map[int32]int64{}
	for p, pos := range m.positions {
		if pos.inserted > 0 {
			done[p] = pos.inserted
		}
	}
	return done
}
