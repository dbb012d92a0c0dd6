package processors

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/restate"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/latest"
)

// Bounds of a sink's batch: large ones cost less a row, small ones are seen sooner. Two batches are
// held, one that is filled and one that is written; what comes after them waits in the log.
const (
	sinkMaxRows  = 50_000
	sinkMaxBytes = 16 << 20        // of records; prices with all their inputs are large
	sinkInterval = 2 * time.Second // docs/decisions/0135
	// sinkKept bounds what a batch may ever have had whose memory is used again although it is not full: what a start or a back-fill took is let go of.
	sinkKept = 1 << 20
)

// Sink materializes one derived topic: every record becomes its rows in history and, for prices, the
// latest value, exactly once in effect. It reads the topic in the order of the log, inserts, and
// only then has the ledger record how far it came. What was inserted but not recorded is inserted again,
// which changes nothing. While a store is away it tries again, and the log waits.
type Sink struct {
	Topic   string
	Log     stream.Config
	History *history.Store
	Latest  *latest.Store // nil but for prices
	// Ledger is shared by the sinks of a process; nil for one of its own.
	Ledger     *Ledger
	Generation uint32
	Logger     *slog.Logger
	// Undecodable is called once for each record that is passed over, with the topic that it lies in; nil for nobody. It is
	// called by one goroutine.
	Undecodable func(topic string)
	// Metrics measures the sink; nil for nobody.
	Metrics *Metrics
}

// SinkGroups begins the names of the consumer groups of sinks; their topic follows.
const SinkGroups = "sink-"

// Run materializes until the context ends; what was read by then is inserted, if the stores answer
// within a few seconds.
func (s *Sink) Run(ctx context.Context) error {
	topic, err := schemas.TopicNamed(s.Topic)
	if err != nil {
		return err
	}
	writing, stop := context.WithCancel(context.WithoutCancel(ctx))
	metrics := s.Metrics.sink(topic.Name)
	ledger := s.Ledger
	if ledger == nil {
		ledger = NewLedger(s.History, s.Logger)
	}
	progress := ledger.join(topic.Name, s.Generation)
	defer progress.leave()
	m := &sinkMember{
		sink: s, topic: topic, running: ctx, positions: map[int32]*position{}, batch: newSinkBatch(), progress: progress,
		borrower: stream.NewBorrower(topic.Name), writing: writing, metrics: metrics,
		writer: &sinkWriter{
			sink: s, topic: topic, progress: progress, metrics: metrics,
			restater: restate.Sources{Log: s.Log, History: s.History, Logger: s.Logger},
		},
	}
	err = stream.RunGroup(ctx, s.Log.Gathering(), SinkGroups+s.Topic, s.Topic, m)
	stop() // leaving the group has given all partitions back, and waited for what they held
	if m.flight != nil {
		<-m.flight.done
	}
	m.close(ctx)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// close gives back what the writer holds.
func (m *sinkMember) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if err := m.writer.restater.Close(ctx); err != nil {
		m.sink.Logger.Debug("leaving tables in memory", "topic", m.topic.Name, "error", err)
	}
}

// position is how far a sink has come in one partition.
type position struct {
	progress history.Progress
	// launched is the end of what was given to the writer.
	launched int64
}

// sinkBatch is what one flush writes.
type sinkBatch struct {
	rows     rows.Batch
	shadows  map[uint32]*rows.Batch // by the generation of a replay: rows that it gets too
	bytes    int                    // of records
	most     int                    // bytes that it ever had
	latest   map[latestField]latest.Record
	progress []history.Progress
	covered  map[int32]latest.Range
}

// latestField separates the last price of a coin from the last record that says why it has none.
type latestField struct {
	coinID string
	priced bool
}

func newSinkBatch() *sinkBatch {
	return &sinkBatch{
		shadows: map[uint32]*rows.Batch{}, latest: map[latestField]latest.Record{}, covered: map[int32]latest.Range{},
	}
}

// full means that no more should be added.
func (b *sinkBatch) full() bool { return b.rows.Len() >= sinkMaxRows || b.bytes >= sinkMaxBytes }

func (b *sinkBatch) reset() {
	b.rows.Reset()
	clear(b.shadows) // replays are rare
	b.bytes = 0
	clear(b.latest)
	b.progress = b.progress[:0]
	clear(b.covered)
}

// flight is a batch on its way. Its fields may be read when done is closed.
type flight struct {
	batch *sinkBatch
	err   error
	done  chan struct{}
}

// sinkMember is a Sink's presence in its group: it fills one batch while another is written.
type sinkMember struct {
	sink      *Sink
	topic     schemas.Topic
	running   context.Context // ends with Run
	positions map[int32]*position
	progress  *sinkProgress
	borrower  *stream.Borrower
	batch     *sinkBatch
	since     time.Time // when the batch got its first record; zero if it has none
	writer    *sinkWriter
	writing   context.Context // ends when nobody waits for what is written any more
	flight    *flight         // nil if nothing is on its way
	spare     *sinkBatch      // the batch that was written last, whose memory is used again
	metrics   *sinkMetrics
}

// Assigned begins at the ledger's position.
func (m *sinkMember) Assigned(ctx context.Context, partitions []int32) (map[int32]int64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.running, cancel)()
	var progress map[int32]history.Progress
	err := m.writer.retryUntilAvailable(ctx, func() (err error) {
		progress, err = m.sink.History.Progress(ctx, m.topic.Name, m.sink.Generation)
		return err
	})
	if err != nil {
		return nil, err
	}
	ends, err := m.ends(ctx)
	if err != nil {
		return nil, err
	}
	starts := map[int32]int64{}
	var begun []history.SinkProgress
	for _, p := range partitions {
		at, known := progress[p]
		if !known {
			at = history.Progress{Partition: p, Marks: map[int32]*eventsv1.Mark{}}
		}
		end, ok := ends.Lookup(m.topic.Name, p)
		if ok && end.Err == nil && at.Next > end.Offset {
			// Read on, it would take new records for old ones until they are as many.
			return nil, &stream.PastEndError{Topic: m.topic.Name, Partition: p, Start: at.Next, End: end.Offset}
		}
		if !known && ok && end.Offset > 0 {
			begun = append(begun, history.SinkProgress{Sink: m.topic.Name, Generation: m.sink.Generation, Progress: at})
		}
		m.positions[p] = &position{progress: at, launched: at.Next}
		m.progress.begin(p, at.Next)
		m.metrics.hold(p, at.Next)
		starts[p] = at.Next
	}
	// Of a log that has records already the ledger says that none is kept yet: without a row readers would take it for one
	// that has none.
	if len(begun) > 0 {
		if err := m.writer.retryUntilAvailable(ctx, func() error { return m.sink.History.Record(ctx, begun) }); err != nil {
			return nil, err
		}
	}
	m.sink.Logger.Debug("materializing", "topic", m.topic.Name, "partitions", len(partitions))
	return starts, nil
}

func (m *sinkMember) ends(ctx context.Context) (kadm.ListedOffsets, error) {
	client, err := m.sink.Log.NewClient()
	if err != nil {
		return nil, fmt.Errorf("opening a client: %w", err)
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, m.topic.Name)
	if err != nil {
		return nil, fmt.Errorf("listing end offsets of %s: %w", m.topic.Name, err)
	}
	return ends, nil
}

// Records adds records to the batch. When that is full it waits for the one before: this is what
// holds the log back.
func (m *sinkMember) Records(ctx context.Context, partition int32, records []*kgo.Record) error {
	pos := m.positions[partition]
	if pos == nil {
		return nil // given back while the records were on their way
	}
	for _, rec := range records {
		m.take(pos, rec)
		if !m.batch.full() {
			continue
		}
		if err := m.land(ctx); err != nil {
			return err
		}
		m.launch()
	}
	return nil
}

// Full lists nothing: a batch is filled from all partitions, and Records holds them back together.
func (m *sinkMember) Full() []int32 { return nil }

func (m *sinkMember) take(pos *position, rec *kgo.Record) {
	if rec.Offset < pos.progress.Next {
		return
	}
	if m.since.IsZero() {
		m.since = time.Now()
	}
	if rec.Offset > pos.progress.Next {
		if pos.progress.Next > 0 && !m.topic.Compacted {
			m.sink.Logger.Error("the log dropped records before they were materialized", "topic", rec.Topic, "partition", rec.Partition, "from", pos.progress.Next, "to", rec.Offset)
		}
		pos.progress.First = rec.Offset
	}
	pos.progress.Next = rec.Offset + 1
	if m.topic.Compacted && len(rec.Value) == 0 {
		return // it ends a key
	}
	record, err := m.borrower.Decode(rec.Value)
	if err != nil {
		m.deadLetter(pos, rec, err)
		return
	}
	// The time of a record that is not ours may be anything.
	pos.progress.LogTime = max(pos.progress.LogTime, rec.Timestamp.UnixNano())
	if dead, ok := record.(*eventsv1.DeadRecord); ok && dead.Letter != nil {
		m.metrics.letter(rec.Topic, dead.Letter.Reason)
		if dead.Letter.Topic != "" && dead.Letter.Reason == string(schemas.Undecodable) {
			m.passedOver(dead.Letter.Topic) // a fold did, which puts it here
		}
	}
	if mark := record.GetMark(); mark != nil {
		if !mark.After(pos.progress.Marks[mark.Partition]) {
			return
		}
		if kept := pos.progress.Marks[mark.Partition]; kept != nil {
			kept.LogicVersion, kept.Offset, kept.Index = mark.LogicVersion, mark.Offset, mark.Index
		} else {
			pos.progress.Marks[mark.Partition] = copyOf(mark)
		}
	}
	if c := schemas.ControlOf(record); c != nil {
		if !slices.ContainsFunc(schemas.ViewTopics(c.View), func(t schemas.Topic) bool { return t.Name == m.topic.Name }) {
			return // it concerns another sink: folds hand on what they find in their input
		}
		pos.progress.Replay = applyControl(c, pos.progress.Replay)
		return
	}
	if candle, ok := record.(*eventsv1.CandleRecord); ok {
		pos.progress.ClosedUntil = max(pos.progress.ClosedUntil, closedUntil(candle.GetPulse().GetWatermark()))
	}
	b := m.batch
	b.bytes += len(rec.Value)
	place := rows.Place{Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset}
	b.rows.Add(place, record)
	if replay := pos.progress.Replay; replay != 0 {
		if b.shadows[replay] == nil {
			b.shadows[replay] = &rows.Batch{}
		}
		b.shadows[replay].Add(place, record)
	}
	if m.sink.Latest == nil {
		return
	}
	if p, ok := record.(*eventsv1.PriceRecord); ok && p.GetPrice() != nil {
		b.latest[latestField{p.GetPrice().CoinId, p.GetPrice().Reason == ""}] = latest.Record{
			Partition: rec.Partition, Offset: rec.Offset, Mark: p.Mark, Price: p.GetPrice(),
		}
	}
}

// closedUntil is the end of the last minute that is closed at a watermark; 0 before the first minute.
func closedUntil(watermark int64) int64 {
	return schemas.Minute(max(0, watermark-int64(schemas.AllowedLateness)))
}

// maxDeadPayload is how much of a record is kept in the dead letters; the whole lies in the log.
const maxDeadPayload = 64 << 10

// deadLetter makes a dead letter of a record that cannot be decoded. It is a row like those of other records: inserted twice it
// counts once, and it is not made again once the ledger has come past its record.
func (m *sinkMember) deadLetter(pos *position, rec *kgo.Record, why error) {
	m.sink.Logger.Error("passing over a record that cannot be decoded", "topic", rec.Topic, "partition", rec.Partition, "offset", rec.Offset, "error", why)
	m.passedOver(rec.Topic)
	m.metrics.letter(rec.Topic, string(schemas.Undecodable))
	at := pos.progress.LogTime
	if at == 0 {
		at = rec.Timestamp.UnixNano()
	}
	kept := rec.Value[:min(len(rec.Value), maxDeadPayload)]
	m.batch.bytes += len(kept)
	m.batch.rows.AddUndecodable(&eventsv1.DeadLetter{
		Reason: string(schemas.Undecodable), Detail: why.Error(), Payload: kept, Truncated: len(kept) < len(rec.Value), IngestTime: at,
		Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset,
	})
}

func (m *sinkMember) passedOver(topic string) {
	if m.sink.Undecodable != nil {
		m.sink.Undecodable(topic)
	}
}

func copyOf(m *eventsv1.Mark) *eventsv1.Mark {
	return &eventsv1.Mark{LogicVersion: m.LogicVersion, Partition: m.Partition, Offset: m.Offset, Index: m.Index}
}

// applyControl returns the replay that gets a partition's rows too from a control on.
func applyControl(c *eventsv1.Control, replay uint32) uint32 {
	switch {
	case c.Action == controlPrepare:
		return c.Generation
	case c.Action == controlFinish && c.Generation == replay:
		return 0
	default:
		return replay
	}
}

// Due writes what has waited long enough, if nothing else is on its way.
func (m *sinkMember) Due(ctx context.Context) error {
	if err := m.progress.refused(); err != nil {
		return err
	}
	if m.flight != nil {
		select {
		case <-m.flight.done:
		default:
			return nil
		}
		if err := m.land(ctx); err != nil {
			return err
		}
	}
	if !m.since.IsZero() && time.Since(m.since) >= sinkInterval {
		m.launch()
	}
	return nil
}

// launch gives the batch to the writer and begins another. Nothing is on its way before.
func (m *sinkMember) launch() {
	b := m.batch
	for p, pos := range m.positions {
		if pos.progress.Next == pos.launched {
			continue
		}
		progress := pos.progress
		progress.Marks = make(map[int32]*eventsv1.Mark, len(pos.progress.Marks))
		for partition, mark := range pos.progress.Marks {
			progress.Marks[partition] = copyOf(mark)
		}
		b.progress = append(b.progress, progress)
		b.covered[p] = latest.Range{From: pos.launched, Next: progress.Next}
		pos.launched = progress.Next
	}
	m.batch, m.spare, m.since = m.spare, nil, time.Time{}
	if m.batch == nil {
		m.batch = newSinkBatch()
	}
	f := &flight{batch: b, done: make(chan struct{})}
	m.flight = f
	go func() {
		defer close(f.done)
		f.err = m.writer.write(m.writing, b)
	}()
}

// land waits until nothing is on its way. A batch that could not be written is never left: its error comes again.
func (m *sinkMember) land(ctx context.Context) error {
	f := m.flight
	if f == nil {
		return nil
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if f.err != nil {
		return f.err // it stays: with what comes after it the ledger would come past rows that are not kept
	}
	m.flight = nil
	for _, p := range f.batch.progress {
		if m.positions[p.Partition] != nil {
			m.metrics.reached(p.Partition, p.Next, p.LogTime)
		}
	}
	if f.batch.most = max(f.batch.most, f.batch.bytes); f.batch.full() || f.batch.most <= sinkKept {
		f.batch.reset()
		m.spare = f.batch
	}
	return nil
}

// Lost writes what is held before another member takes over. If a store is away that member
// reads it again from the log; rows that both insert are the same.
func (m *sinkMember) Lost(ctx context.Context, partitions []int32) {
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	err := m.land(drain)
	if err == nil && !m.since.IsZero() {
		m.launch()
		err = m.land(drain)
	}
	if err == nil {
		err = m.progress.flush(drain)
	}
	if err != nil {
		m.sink.Logger.Warn("giving back partitions before all was written", "topic", m.topic.Name, "partitions", partitions, "error", err)
	}
	for _, p := range partitions {
		delete(m.positions, p)
		m.metrics.release(p)
	}
	// Their rows may stay in the batch, but what they cover is not ours to record any more.
	maps.DeleteFunc(m.batch.latest, func(_ latestField, r latest.Record) bool { return m.positions[r.Partition] == nil })
}

// Done is the ledger's position.
func (m *sinkMember) Done() map[int32]int64 {
	done := map[int32]int64{}
	for p := range m.positions {
		if next := m.progress.recordedTo(p); next > 0 {
			done[p] = next
		}
	}
	return done
}
