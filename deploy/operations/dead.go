package operations

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/resolve"
	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/backfill"
	"github.com/marketlog/marketlog/producers/fetch"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/faults"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/read"
)

// RetryInput reports which letters are retried; empty fields mean all.
type RetryInput struct {
	Source string    `json:"source"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since,omitzero"`
	DryRun bool      `json:"dryRun"`
}

// Outcomes of a letter.
const (
	// retried: all that its message says is in ticks.v1 now; in a dry run: would be.
	outcomeRetried = "retried"
	// refused: it cannot be read today either, or not all of it.
	outcomeRefused = "refused"
	// recent: the processors may still remember that they refused its events.
	outcomeRecent = "recent"
	// expired: the ticks of its day are gone, so nobody can know which of its events were read then.
	outcomeExpired = "expired"
	// pending: its ticks are in ticks.raw.v1, and not in ticks.v1 yet.
	outcomePending = "pending"
)

// RetryLine is what became of one letter.
type RetryLine struct {
	Offset     int64     `json:"offset"`
	Source     string    `json:"source"`
	Reason     string    `json:"reason"`
	IngestTime time.Time `json:"ingestTime"`
	Outcome    string    `json:"outcome"`
	// Ticks were not in ticks.v1 before.
	Ticks  int    `json:"ticks"`
	Detail string `json:"detail,omitempty"`
}

// RetrySum ends the answer.
type RetrySum struct {
	Letters int            `json:"letters"`
	Ticks   int            `json:"ticks"`
	Outcome map[string]int `json:"outcomes"`
}

// refusalMemory is how old a letter must be: the processors know for as long which events they saw, and would skip
// them as duplicates of what they refused.
const refusalMemory = processors.WindowMemory + 2*time.Minute

// settleLimit is how long the processors may take to come to the end of ticks.raw.v1.
const settleLimit = 30 * time.Second

// retryVerb reads dead letters again with the adapters and rules of today. Every event enters ticks.v1 once: before and
// after writing, its id is looked up in the view, which the processors have brought to the end of the log by then. A
// letter counts as retried only once its events are seen there, so that a retry killed anywhere is repeated as a whole
// and writes nothing twice.
func retryVerb(in *instance.Instance) admin.Command {
	return admin.Command{Name: "dead.retry", Run: func(ctx context.Context, raw json.RawMessage, emit func(any) error) error {
		var input RetryInput
		if err := json.Unmarshal(raw, &input); err != nil {
			return fmt.Errorf("reading the input of dead.retry: %w", err)
		}
		if !in.Retrying.TryLock() {
			return errors.New("another retry is running; wait for its end")
		}
		defer in.Retrying.Unlock()
		r := &deadRetry{in: in, input: input, emit: emit, now: in.Clock.Now(), markets: map[string]*retriedMarkets{}}
		return r.run(ctx)
	}}
}

type deadRetry struct {
	in      *instance.Instance
	input   RetryInput
	emit    func(any) error
	now     time.Time
	store   *history.Store
	client  *kgo.Client
	markets map[string]*retriedMarkets
	// ticksSince is since when the table of ticks has all.
	ticksSince time.Time
}

// retriedMarkets are those of a venue.
type retriedMarkets struct {
	venue adapter.Venue
	list  adapter.Instruments
	want  func(adapter.Instrument) bool
	err   error
}

// retriedLetter is a letter and the records that are to be written for it.
type retriedLetter struct {
	RetryLine
	records map[schemas.EventID]*kgo.Record
	version uint32
}

func (r *deadRetry) run(ctx context.Context) (err error) {
	if r.store, err = r.in.History(ctx); err != nil {
		return err
	}
	if r.ticksSince, err = r.store.KeptSince(ctx, "ticks", r.now); err != nil {
		return err
	}
	if r.client, err = r.in.Stream.NewProducer(); err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	defer r.client.Close()
	letters, err := r.letters(ctx)
	if err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	sum := RetrySum{Letters: len(letters), Outcome: map[string]int{}}
	const at = 200 // letters; each may hold hundreds of events
	for chunk := range slices.Chunk(letters, at) {
		if err := r.retry(ctx, chunk, &sum); err != nil {
			return err
		}
	}
	return r.emit(sum)
}

// letters are those that are wanted and were not retried yet, the oldest first. A letter that a processor wrote again
// when it was started again counts once.
func (r *deadRetry) letters(ctx context.Context) ([]*retriedLetter, error) {
	const topic = schemas.TopicTicksRawDead
	type origin struct {
		topic     string
		partition int32
		offset    int64
	}
	done, seen := map[int64]bool{}, map[origin]bool{}
	found := map[int64]*eventsv1.DeadLetter{}
	start, end, err := r.bounds(ctx, topic)
	if err != nil {
		return nil, err
	}
	err = stream.ReadRange(ctx, r.in.Stream, topic, 0, start[0], end[0], func(k *kgo.Record) error {
		record, err := schemas.DecodeRecord(topic, k.Value)
		if err != nil {
			return nil // the sink of the topic reports it
		}
		rec, ok := record.(*eventsv1.DeadRecord)
		if !ok {
			return nil
		}
		if rec.Retry != nil {
			done[rec.Retry.Offset] = true
		}
		l := rec.Letter
		if l == nil || r.input.Source != "" && l.Source != r.input.Source || r.input.Reason != "" && l.Reason != r.input.Reason ||
			l.IngestTime < r.input.Since.UnixNano() && !r.input.Since.IsZero() {
			return nil
		}
		if o := (origin{l.Topic, l.Partition, l.Offset}); l.Topic != "" {
			if seen[o] {
				return nil
			}
			seen[o] = true
		}
		found[k.Offset] = l
		return nil
	})
	if err != nil {
		return nil, err
	}
	var letters []*retriedLetter
	for offset, l := range found {
		if !done[offset] {
			letters = append(letters, r.read(ctx, offset, l))
		}
	}
	slices.SortFunc(letters, func(a, b *retriedLetter) int { return cmp.Compare(a.Offset, b.Offset) })
	return letters, nil
}

// read decodes a letter as far as it can be.
func (r *deadRetry) read(ctx context.Context, offset int64, l *eventsv1.DeadLetter) *retriedLetter {
	letter := &retriedLetter{
		RetryLine: RetryLine{Offset: offset, Source: l.Source, Reason: l.Reason, IngestTime: time.Unix(0, l.IngestTime).UTC()},
		records:   map[schemas.EventID]*kgo.Record{},
	}
	end := func(outcome, detail string) *retriedLetter {
		letter.Outcome, letter.Detail = outcome, detail
		return letter
	}
	switch age := r.now.Sub(letter.IngestTime); {
	case age < refusalMemory:
		return end(outcomeRecent, fmt.Sprintf("younger than %s; try again then", refusalMemory))
	case letter.IngestTime.Before(r.ticksSince):
		return end(outcomeExpired, "ticks of that time are no longer in the view")
	}
	var ticks []*eventsv1.RawRecord
	var err error
	if l.Topic == schemas.TopicTicksRaw {
		rec := &eventsv1.RawRecord{}
		if err = rec.UnmarshalVT(l.Payload); err == nil && rec.GetTick() == nil {
			err = errors.New("the record holds no tick")
		}
		if l.Truncated {
			err = adapter.ErrNotKept
		}
		ticks = []*eventsv1.RawRecord{rec}
	} else {
		ticks, letter.version, err = r.redecode(ctx, l)
	}
	for _, rec := range ticks {
		t := rec.GetTick()
		if t == nil {
			continue
		}
		if reason, detail := schemas.CheckTick(t); reason != "" || len(t.EventId) != len(schemas.EventID{}) {
			err = errors.Join(err, fmt.Errorf("%s: %s", cmp.Or(reason, schemas.Undecodable), cmp.Or(detail, "event_id must have 16 bytes")))
			continue
		}
		value, encodeErr := rec.MarshalVT()
		if encodeErr != nil {
			return end(outcomeRefused, encodeErr.Error())
		}
		key := t.Venue + "|" + t.Base
		raw, _ := schemas.TopicNamed(schemas.TopicTicksRaw)
		letter.records[schemas.EventID(t.EventId)] = &kgo.Record{
			Topic: raw.Name, Partition: stream.PartitionFor(key, raw.Partitions), Key: []byte(key), Value: value,
			Timestamp: r.now.Truncate(time.Millisecond), // it is written now: a time of then would not be where readers look for it
		}
	}
	if err != nil {
		return end(outcomeRefused, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return end(outcomeRetried, "")
}

func (r *deadRetry) redecode(ctx context.Context, l *eventsv1.DeadLetter) ([]*eventsv1.RawRecord, uint32, error) {
	m := r.markets[l.Source]
	if m == nil {
		m = marketsOfRetry(ctx, r.in, l.Source)
		r.markets[l.Source] = m
	}
	if m.err != nil {
		return nil, 0, m.err
	}
	ticks, err := adapter.Redecode(&m.venue, m.list, m.want, l)
	records := make([]*eventsv1.RawRecord, len(ticks))
	for i, t := range ticks {
		t.Simulated = r.in.Simulated[l.Source]
		records[i] = &eventsv1.RawRecord{Producer: l.Source, Epoch: r.in.Began.UnixNano(), Body: &eventsv1.RawRecord_Tick{Tick: t}}
	}
	return records, m.venue.Version, err
}

// retriedMarkets asks a venue for its list.
func marketsOfRetry(ctx context.Context, in *instance.Instance, source string) *retriedMarkets {
	m := &retriedMarkets{}
	venue, rest, err := venueAt(in, source)
	if err != nil {
		m.err = err
		return m
	}
	client, err := fetch.New(instance.RequestBudget(venue.Limits), in.Clock, nil)
	if err != nil {
		m.err = fmt.Errorf("preparing %s: %w", source, err)
		return m
	}
	list, err := backfill.Markets(ctx, venue, rest, client, func(adapter.Instrument) bool { return true })
	m.venue, m.list, m.want, m.err = venue, adapter.Index(list), instance.SelectMarkets(source, in.Config.Venues[source].Symbols), err
	return m
}

// retry writes the events of some letters that are in ticks.v1 not yet, waits until they are, and notes it.
func (r *deadRetry) retry(ctx context.Context, letters []*retriedLetter, sum *RetrySum) error {
	known, err := r.known(ctx, letters)
	if err != nil {
		return err
	}
	var written []*kgo.Record
	taken := map[schemas.EventID]bool{}
	for _, l := range letters {
		for id, rec := range l.records {
			if known[id] || taken[id] {
				continue
			}
			taken[id] = true
			l.Ticks++
			written = append(written, rec)
		}
	}
	if len(written) > 0 && !r.input.DryRun {
		if err := r.client.ProduceSync(ctx, written...).FirstErr(); err != nil {
			return fmt.Errorf("writing %s: %w", schemas.TopicTicksRaw, err)
		}
		faults.Hit("dead.written")
		if err := r.settle(ctx); err != nil {
			return err
		}
		if known, err = r.known(ctx, letters); err != nil {
			return err
		}
	}
	var notes []*kgo.Record
	for _, l := range letters {
		if l.Outcome == outcomeRetried && !r.input.DryRun {
			for id := range l.records {
				if !known[id] {
					l.Outcome, l.Detail = outcomePending, "its ticks are written, and the processors did not take them yet; try again"
				}
			}
			if l.Outcome == outcomeRetried {
				note, err := r.note(l)
				if err != nil {
					return err
				}
				notes = append(notes, note)
			}
		}
		sum.Ticks += l.Ticks
		sum.Outcome[l.Outcome]++
	}
	if err := r.client.ProduceSync(ctx, notes...).FirstErr(); err != nil {
		return fmt.Errorf("writing %s: %w", schemas.TopicTicksRawDead, err)
	}
	for _, l := range letters {
		if err := r.emit(l.RetryLine); err != nil {
			return err
		}
	}
	return nil
}

func (r *deadRetry) note(l *retriedLetter) (*kgo.Record, error) {
	value, err := (&eventsv1.DeadRecord{Retry: &eventsv1.DeadRetry{
		Offset: l.Offset, Time: r.now.UnixNano(), Ticks: uint32(l.Ticks), AdapterVersion: l.version,
	}}).MarshalVT()
	if err != nil {
		return nil, fmt.Errorf("encoding a record of %s: %w", schemas.TopicTicksRawDead, err)
	}
	return &kgo.Record{Topic: schemas.TopicTicksRawDead, Key: []byte(l.Source), Value: value, Timestamp: r.now.Truncate(time.Millisecond)}, nil
}

// known reports which events of the letters the view has.
func (r *deadRetry) known(ctx context.Context, letters []*retriedLetter) (map[schemas.EventID]bool, error) {
	var ids []schemas.EventID
	oldest := r.now
	for _, l := range letters {
		for id := range l.records {
			ids = append(ids, id)
		}
		if l.IngestTime.Before(oldest) {
			oldest = l.IngestTime
		}
	}
	known := map[schemas.EventID]bool{}
	// A trade may have been read before, from another message.
	err := read.From(r.store).KnownTicks(ctx, ids, oldest.AddDate(0, 0, -1), func(id schemas.EventID) { known[id] = true })
	if err != nil {
		return nil, fmt.Errorf("looking for %d events, the first %s: %w", len(ids), firstID(ids), err)
	}
	return known, nil
}

func firstID(ids []schemas.EventID) string {
	if len(ids) == 0 {
		return "none"
	}
	return hex.EncodeToString(ids[0][:])
}

// settle waits until all that is in ticks.raw.v1 now is in the views.
func (r *deadRetry) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, settleLimit,
		fmt.Errorf("the processors did not come to the end of %s within %s: start them, or see `marketlog topics lag`", schemas.TopicTicksRaw, settleLimit))
	defer cancel()
	admin := kadm.NewClient(r.client)
	_, ends, err := r.bounds(ctx, schemas.TopicTicksRaw)
	if err != nil {
		return err
	}
	err = r.until(ctx, func() (bool, error) {
		offsets, err := admin.FetchOffsets(ctx, resolve.Name)
		if err != nil {
			return false, fmt.Errorf("asking how far %s is: %w", resolve.Name, err)
		}
		for p, end := range ends {
			done, ok := offsets.Lookup(schemas.TopicTicksRaw, p)
			if end > 0 && (!ok || done.At < end) {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	if _, ends, err = r.bounds(ctx, schemas.TopicTicks); err != nil {
		return err
	}
	return r.until(ctx, func() (bool, error) {
		progress, err := r.store.Progress(ctx, schemas.TopicTicks, 0)
		if err != nil {
			return false, err
		}
		for p, end := range ends {
			if end > 0 && progress[p].Next < end {
				return false, nil
			}
		}
		return true, nil
	})
}

func (r *deadRetry) until(ctx context.Context, reached func() (bool, error)) error {
	for {
		ok, err := reached()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if ok || err != nil {
			return err
		}
		if producers.Sleep(ctx, producers.WallClock{}, 100*time.Millisecond) != nil {
			return context.Cause(ctx)
		}
	}
}

// bounds are the first offset and the one after the last of each partition.
func (r *deadRetry) bounds(ctx context.Context, topic string) (starts, ends map[int32]int64, err error) {
	of, to, err := r.in.Stream.LogBounds(ctx, topic)
	if err != nil {
		return nil, nil, err
	}
	return of[topic], to[topic], nil
}
