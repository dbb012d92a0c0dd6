package processors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/faults"
	"github.com/marketlog/marketlog/stream/history/shadow"
)

// restating is one attempt of a replay to record what it changes.
//
// Rows are recorded while the replay can still be given up, and do not count. That it has entered stateExchanging decides: from then on
// it is only finished, and before the first table is exchanged it writes which attempt counts, as often as it is taken up. So of a
// replay that was given up nothing counts, and of one that was interrupted what its last attempt found, whole and once.
type restating struct {
	Run     string          `json:"run"`
	Attempt uint32          `json:"attempt"`
	Time    int64           `json:"time"`
	Tables  []restatedTable `json:"tables"`
}

// restatedTable is what one table's rows come to.
type restatedTable struct {
	Table string `json:"table"`
	View  string `json:"view"`
	shadow.Restated
}

const (
	// mostRestated is how many rows of a table are recorded one by one. The log keeps them for ever.
	mostRestated = 100_000
	// restatedAhead bounds the bytes of records that the sink has not read: the embedded log holds some tens of megabytes of them.
	restatedAhead = 8 << 20
)

// Causes of restatements.
const (
	causeReplay     = "replay"
	causeSymbols    = "symbols"
	causeLogic      = "logic"
	causeCorrection = "correction"
)

// restate records the rows of a table that the rebuilt one has otherwise, and returns how many there are. All are acknowledged when it
// returns.
func (r *Replay) restate(ctx context.Context, j *journal, table rebuilt, parts []*partReplay, bounds []shadow.Bounds) (int64, error) {
	if err := r.attempt(ctx, j); err != nil {
		return 0, err
	}
	w, err := r.newRestatementWriter(ctx, j.Restating)
	if err != nil {
		return 0, err
	}
	defer w.close()
	meter := r.meter("recording what changes of " + table.Name)
	found, err := shadow.Of(r.History).Restatements(ctx, table.Name, j.Generation, bounds, cmp.Or(r.MostRestated, mostRestated),
		func(restatement *eventsv1.Restatement) error {
			restatement.View, restatement.Cause = table.topic.View, r.causeOf(table.topic, parts, restatement)
			return w.write(time.Unix(0, j.Restating.Time), &eventsv1.RestatementRecord{Body: &eventsv1.RestatementRecord_Restatement{Restatement: restatement}})
		}, meter.set)
	if err == nil {
		err = w.flush()
	}
	if err != nil {
		return 0, fmt.Errorf("recording what changes of %s: %w", table.Name, err)
	}
	faults.Hit("replay.restated")
	j.Restating.Tables = append(j.Restating.Tables, restatedTable{table.Name, table.topic.View, found})
	if rest := found.All() - found.Listed; rest > 0 {
		err = r.emit(&ReplayNote{Note: fmt.Sprintf("%d rows of %s change: the first %d by time are recorded one by one, the other %d are counted in v_restated_tables",
			found.All(), table.Name, found.Listed, rest)})
	}
	return found.All(), err
}

// attempt begins to record, unless this run of the replay has: what an earlier one recorded must not count.
func (r *Replay) attempt(ctx context.Context, j *journal) error {
	if j.Restating == nil {
		j.Restating = &restating{}
	}
	now := time.Now().UTC()
	if j.Restating.Run == "" {
		// Tables that are lost take the journal with them, and generations begin again.
		j.Restating.Run = fmt.Sprintf("replay-%d-%s", j.Generation, now.Format("20060102T150405.000000000"))
	}
	if j.attempted {
		return nil
	}
	j.Restating.Attempt++
	j.Restating.Time, j.Restating.Tables = now.UnixNano(), nil
	if err := j.enter(ctx, r.History, stateFolding); err != nil {
		return err
	}
	j.attempted = true
	return nil
}

func (r *Replay) causeOf(topic schemas.Topic, parts []*partReplay, row *eventsv1.Restatement) string {
	if r.Corrected {
		if id := r.correctionOf(parts, row.CoinId, row.EventTime); id != "" {
			return causeCorrection + " " + id
		}
	}
	switch {
	case topic.Name == schemas.TopicTicks:
		return causeSymbols
	case row.LogicBefore != row.LogicAfter && row.LogicBefore != 0 && row.LogicAfter != 0:
		return fmt.Sprintf("%s %d", causeLogic, row.LogicAfter)
	default:
		return causeReplay
	}
}

// countRestated writes of each table how many rows were restated, by which the rows of this attempt count, with the current time. It is written before the tables are
// exchanged, so that no change is without its record, and again after that: whoever asks for an answer as of an instant in between must be told that it was
// made of other rows.
func (r *Replay) countRestated(ctx context.Context, j *journal) error {
	if j.Restating == nil || len(j.Restating.Tables) == 0 {
		return nil
	}
	w, err := r.newRestatementWriter(ctx, j.Restating)
	if err != nil {
		return err
	}
	defer w.close()
	now := time.Now().UTC()
	for _, t := range j.Restating.Tables {
		err := w.write(now, &eventsv1.RestatementRecord{Body: &eventsv1.RestatementRecord_Table{Table: &eventsv1.RestatedTable{
			Table: t.Table, View: t.View, Added: t.Added, Removed: t.Removed, Changed: t.Changed, Renewed: t.Renewed, Listed: t.Listed,
		}}})
		if err != nil {
			return err
		}
	}
	if err := w.flush(); err != nil {
		return fmt.Errorf("recording how much changes: %w", err)
	}
	faults.Hit("replay.counted")
	return nil
}

// restatementWriter appends to restatements.v1.
type restatementWriter struct {
	ctx      context.Context
	replay   *Replay
	to       *restating
	producer *kgo.Client
	// failed holds the first record that was not acknowledged.
	failed chan error
	// ahead counts bytes since the sink was last waited for, next is the offset after the last acknowledged record.
	ahead int
	next  int64
}

func (r *Replay) newRestatementWriter(ctx context.Context, to *restating) (*restatementWriter, error) {
	producer, err := r.Log.NewProducer()
	if err != nil {
		return nil, fmt.Errorf("opening a producer: %w", err)
	}
	return &restatementWriter{ctx: ctx, replay: r, to: to, producer: producer, failed: make(chan error, 1)}, nil
}

func (w *restatementWriter) close() { w.producer.Close() }

func (w *restatementWriter) write(at time.Time, record *eventsv1.RestatementRecord) error {
	record.Run, record.Attempt, record.Time = w.to.Run, w.to.Attempt, at.UnixNano()
	value, err := record.MarshalVT()
	if err != nil {
		return fmt.Errorf("encoding a restatement: %w", err)
	}
	w.producer.Produce(w.ctx, &kgo.Record{Topic: schemas.TopicRestatements, Value: value, Timestamp: time.Unix(0, record.Time)}, func(rec *kgo.Record, err error) {
		if err != nil {
			select {
			case w.failed <- err:
			default:
			}
			return
		}
		w.next = rec.Offset + 1 // records of one partition are acknowledged in order, by one goroutine
	})
	if w.ahead += len(value); w.ahead < restatedAhead {
		return nil
	}
	if err := w.flush(); err != nil {
		return err
	}
	w.ahead = 0
	return w.awaitSink()
}

// flush returns when all is acknowledged.
func (w *restatementWriter) flush() error {
	if err := w.producer.Flush(w.ctx); err != nil {
		return fmt.Errorf("writing restatements into the log: %w", err)
	}
	select {
	case err := <-w.failed:
		return fmt.Errorf("writing restatements into the log: %w", err)
	default:
		return nil
	}
}

// awaitSink waits until the tables hold what was written: the embedded log would lose it to what follows.
func (w *restatementWriter) awaitSink() error {
	moved, last := time.Now(), int64(-1)
	for {
		progress, err := w.replay.History.Progress(w.ctx, schemas.TopicRestatements, 0)
		if err != nil {
			return err
		}
		at := progress[0].Next
		switch {
		case at >= w.next:
			return nil
		case at > last:
			moved, last = time.Now(), at
		case time.Since(moved) > liveStall:
			return errors.New("the tables do not take in what changes: start the processors first")
		}
		select {
		case <-w.ctx.Done():
			return fmt.Errorf("waiting for the tables: %w", w.ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}
