package poll

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/outbox"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// RepeatedWithin is the span of the log that has everything that a source still reports: what did not change is
// written again before it ends.
const RepeatedWithin = knownSpan

// knownSpan is how far before its newest record the log is read at the start, by the records' timestamps. A
// source that is polled has written within it what is newest: no calendar leaves out more than five days.
const knownSpan = 8 * 24 * time.Hour

// clockInterval is how often the clock of a process's sources is written. What is polled changes within minutes, so a
// reader that joins with it can wait so long; and the topic is kept for ever: a clock each second, 100 bytes with its
// batch, would push everything else out of an embedded log of 64 MiB within a week, this one within ten.
const clockInterval = 10 * time.Second

// SourcesProducer is the producer whose clock represents all sources of a process. It is written also when no source
// is enabled: folds that join with what sources state go on by it.
const SourcesProducer = "sources"

// sourceTopics are where sources write: what lasts, and what comes in masses, the observations of coins' markets and the
// rates.
var sourceTopics = []string{schemas.TopicReferenceRaw, schemas.TopicCoinMarketsRaw, schemas.TopicRatesRaw}

// SourceLog is the way of all polled sources of a process into the log, and of their dead letters.
//
// Unlike the Writer of ticks it keeps nothing on disk and drops nothing: whoever appends waits until the
// log has it: a source's values can be requested again, and a process that follows a killed one does so.
//
// A clock record at time t comes after every record of the process's sources with a log time of t or before.
type SourceLog struct {
	cfg    stream.Config
	clock  producers.Clock
	log    *slog.Logger
	client *kgo.Client

	epoch int64

	// mu decides the order of the records of all sources.
	mu        sync.Mutex
	lastClock int64
	// clocksPending counts the topics that have not taken the last clock yet.
	clocksPending int

	// recalling guards what the log held, by source, until the source asks for it.
	recalling sync.Mutex
	held      map[string][][]byte
	recalled  bool
}

// NewSourceLog opens the log. Clock nil is the machine's; a VirtualClock waits for the clock records from now on. The
// caller closes it after the sources.
func NewSourceLog(cfg stream.Config, clock producers.Clock, log *slog.Logger) (*SourceLog, error) {
	client, err := cfg.NewClient(outbox.ProducerOptions()...)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	if clock == nil {
		clock = producers.WallClock{}
	}
	if p, ok := clock.(producers.Pacer); ok {
		p.Join(SourcesProducer)
	}
	return &SourceLog{cfg: cfg, clock: clock, log: log, client: client, epoch: clock.Now().UnixNano(), held: map[string][][]byte{}}, nil
}

// Close gives up the connections.
func (l *SourceLog) Close() { l.client.Close() }

// Source returns the outbox of a source.
func (l *SourceLog) Source(slug string) SourceOutbox {
	l.recalling.Lock()
	defer l.recalling.Unlock()
	if !l.recalled {
		l.held[slug] = nil
	}
	return &sourceOutbox{log: l, slug: slug}
}

// Run writes the clock at its first full second and each clockInterval, until ctx ends. What a clock
// that waits for it has shown before it ran is made up for.
func (l *SourceLog) Run(ctx context.Context) error {
	var written time.Time
	for {
		now := l.clock.Now()
		second := now.Truncate(time.Second)
		if second.After(written) && l.epoch < second.UnixNano() {
			written = second
			l.writeClocks(now.UnixNano())
		}
		if err := producers.SleepUntil(ctx, l.clock, second.Add(time.Second)); err != nil {
			return nil
		}
	}
}

func (l *SourceLog) writeClocks(at int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// With the broker away one clock waits, not one for each second: a later one says more.
	if l.clocksPending > 0 || at <= l.lastClock {
		return
	}
	if due := l.lastClock + int64(clockInterval); at/int64(time.Second) < due/int64(time.Second) {
		l.finished(at) // no clock of this second is to come
		return
	}
	l.lastClock, l.clocksPending = at, len(sourceTopics)
	for _, topic := range sourceTopics {
		rec := &eventsv1.ReferenceRecord{Producer: SourcesProducer, Epoch: l.epoch, Body: &eventsv1.ReferenceRecord_Clock{Clock: &eventsv1.Clock{Time: at}}}
		// The client outlives every source: what it has in hand is not taken back.
		l.client.Produce(context.Background(), encodeReference(topic, SourcesProducer, rec, at), func(_ *kgo.Record, err error) {
			if err != nil && !errors.Is(err, kgo.ErrClientClosed) {
				l.log.Warn("log rejected a clock record", "topic", topic, "error", err)
			}
			l.mu.Lock()
			l.clocksPending--
			written := l.clocksPending == 0
			l.mu.Unlock()
			if written {
				l.finished(at)
			}
		})
	}
}

func (l *SourceLog) finished(at int64) {
	if p, ok := l.clock.(producers.Pacer); ok {
		p.Finished(SourcesProducer, time.Unix(0, at))
	}
}

// sourceOutbox is the outbox of one source.
type sourceOutbox struct {
	log  *SourceLog
	slug string
}

// Known hands over what the end of the log holds of the source. It is read once for all sources that were there
// when the first of them asked: it may hold some hundred thousand records.
func (s *sourceOutbox) Known(ctx context.Context, visit func(*eventsv1.ReferenceRecord)) error {
	values, err := s.log.recall(ctx, s.slug)
	if err != nil {
		return err
	}
	for _, value := range values {
		record, err := schemas.DecodeRecord(schemas.TopicReferenceRaw, value)
		if err != nil {
			continue // the sink of the topic reports it
		}
		if rec, ok := record.(*eventsv1.ReferenceRecord); ok {
			visit(rec)
		}
	}
	return nil
}

// recall takes out what was held of a source; one that was not there, or asks again, has the log read for itself.
func (l *SourceLog) recall(ctx context.Context, slug string) ([][]byte, error) {
	l.recalling.Lock()
	defer l.recalling.Unlock()
	if _, ok := l.held[slug]; ok && l.recalled {
		values := l.held[slug]
		delete(l.held, slug)
		return values, nil
	}
	held := map[string][][]byte{slug: nil}
	if !l.recalled {
		held = l.held
		held[slug] = nil
	}
	if err := l.readKnown(ctx, held); err != nil {
		return nil, err
	}
	l.recalled = true
	values := held[slug]
	delete(held, slug)
	return values, nil
}

// readKnown fills held with the records of the sources that it names.
func (l *SourceLog) readKnown(ctx context.Context, held map[string][][]byte) error {
	for slug := range held {
		held[slug] = nil // of an attempt that failed
	}
	tail := stream.NewTail(stream.TailConfig{
		Brokers: l.cfg.Brokers, Topic: schemas.TopicReferenceRaw, Rewind: knownSpan, Dialer: l.cfg.Dialer, Log: l.log,
	})
	reading, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() {
		done <- tail.Run(reading, func(r stream.TailRecord) error {
			if _, ok := held[string(r.Key)]; ok {
				held[string(r.Key)] = append(held[string(r.Key)], r.Value)
			}
			return nil
		})
	}()
	select {
	case <-tail.CaughtUp():
		stop()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		return ctx.Err()
	case err := <-done:
		return err
	}
}

// Append writes records and returns once the log has them all.
func (s *sourceOutbox) Append(ctx context.Context, records ...*eventsv1.ReferenceRecord) error {
	return s.write(ctx, len(records), func(i int, at int64) *kgo.Record {
		rec := records[i]
		if ingest := ingestField(rec); ingest != nil {
			*ingest = at
		}
		rec.Producer, rec.Epoch = s.slug, s.log.epoch
		topic := schemas.TopicReferenceRaw
		switch {
		case rec.GetCoinMarket() != nil:
			topic = schemas.TopicCoinMarketsRaw
		case rec.GetRate() != nil:
			topic = schemas.TopicRatesRaw
		}
		return encodeReference(topic, s.slug, rec, at)
	})
}

// Dead writes a dead letter, with at most 64 kB of its payload.
func (s *sourceOutbox) Dead(ctx context.Context, letter *eventsv1.DeadLetter) error {
	outbox.TrimLetter(letter)
	return s.write(ctx, 1, func(_ int, at int64) *kgo.Record {
		letter.IngestTime = at
		return encodeReference(schemas.TopicReferenceRawDead, s.slug, &eventsv1.DeadRecord{Letter: letter}, at)
	})
}

// atOnce is how many records are handed to the client while all other sources and the clock wait: a file of all
// days of a central bank has 200,000.
const atOnce = 1000

// write produces n records and waits for them; what the log refused, and all after it, is written again.
func (s *sourceOutbox) write(ctx context.Context, n int, record func(i int, at int64) *kgo.Record) error {
	for from := 0; from < n; {
		results := make([]chan error, min(n-from, atOnce))
		s.log.mu.Lock()
		// Readers trust the clock that was written: what comes after it is later.
		at := max(s.log.clock.Now().UnixNano(), s.log.lastClock+1)
		for i := range results {
			result := make(chan error, 1)
			results[i] = result
			s.log.client.Produce(ctx, record(from+i, at), func(_ *kgo.Record, err error) { result <- err })
		}
		s.log.mu.Unlock()
		var failed error
		for _, result := range results {
			switch err := <-result; {
			case failed != nil: // the first has the cause
			case err != nil:
				failed = err
			default:
				from++
			}
		}
		if failed == nil {
			continue
		}
		s.log.log.Warn("log rejected records of a source, retrying", "source", s.slug, "error", failed)
		if err := producers.Sleep(ctx, s.log.clock, outbox.ResendPause); err != nil {
			return fmt.Errorf("writing records of %s: %w", s.slug, err)
		}
	}
	return nil
}

// encodeReference makes the record of a source. All its topics have one partition.
func encodeReference(topic, source string, m outbox.Message, at int64) *kgo.Record {
	value := make([]byte, m.SizeVT())
	// The only error is a buffer whose size differs from SizeVT.
	if _, err := m.MarshalToSizedBufferVT(value); err != nil {
		panic(err)
	}
	return &kgo.Record{Topic: topic, Key: []byte(source), Value: value, Timestamp: time.Unix(0, at)}
}
