package producers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// knownSpan is how far before its newest record the log is read at the start, by the records' timestamps. A
// source that is polled has written within it what is newest: no calendar leaves out more than five days.
const knownSpan = 8 * 24 * time.Hour

// clockInterval is how often each source's clock is written. What is polled changes within minutes, so a reader that joins
// with it can wait so long; and the topic is kept for ever: a clock each second, 100 bytes with its batch, would push
// everything else out of an embedded log of 64 MiB within a week, this one within ten.
const clockInterval = 10 * time.Second

// SourceLog is the way of all polled sources of a process into reference.raw.v1 and its dead letters.
//
// Unlike the Writer of ticks it keeps nothing on disk and drops nothing: whoever appends waits until the
// log has it, for what a source said can be asked for again, and a process that is killed meanwhile does.
//
// A clock record at time t stands behind every record of its source with a log time of t or before.
type SourceLog struct {
	cfg    stream.Config
	clock  Clock
	log    *slog.Logger
	client *kgo.Client

	// mu decides the order of the records of all sources.
	mu      sync.Mutex
	sources []*sourceOutbox
}

// NewSourceLog opens the log. Clock nil is the machine's; a VirtualClock waits for the clock records. The caller closes it after the sources.
func NewSourceLog(cfg stream.Config, clock Clock, log *slog.Logger) (*SourceLog, error) {
	client, err := cfg.NewClient(producerOptions()...)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	if clock == nil {
		clock = WallClock{}
	}
	return &SourceLog{cfg: cfg, clock: clock, log: log, client: client}, nil
}

// Close gives up the connections.
func (l *SourceLog) Close() { l.client.Close() }

// Source returns the outbox of a source: one producer, whose epoch is now and whose clock is written from
// now on. It is called once for each source.
func (l *SourceLog) Source(slug string) SourceOutbox {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p, ok := l.clock.(pacer); ok {
		p.Join(slug)
	}
	s := &sourceOutbox{log: l, slug: slug, epoch: l.clock.Now().UnixNano()}
	l.sources = append(l.sources, s)
	return s
}

// Run writes the clock of every source at its first full second and each clockInterval, until ctx ends. What a clock
// that waits for it has shown before it ran is made up for.
func (l *SourceLog) Run(ctx context.Context) error {
	var written time.Time
	for {
		now := l.clock.Now()
		second := now.Truncate(time.Second)
		if second.After(written) && l.began(second) {
			written = second
			l.writeClocks(now.UnixNano())
		}
		if err := SleepUntil(ctx, l.clock, second.Add(time.Second)); err != nil {
			return nil
		}
	}
}

// began says whether there was a source before that second.
func (l *SourceLog) began(second time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.sources, func(s *sourceOutbox) bool { return s.epoch < second.UnixNano() })
}

func (l *SourceLog) writeClocks(at int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.sources {
		// With the broker away one clock waits, not one for each second: a later one says more.
		if s.clockPending || at <= s.lastClock {
			continue
		}
		if due := s.lastClock + int64(clockInterval); at/int64(time.Second) < due/int64(time.Second) {
			if p, ok := l.clock.(pacer); ok { // no clock of this second is to come
				p.Finished(s.slug, time.Unix(0, at))
			}
			continue
		}
		s.lastClock, s.clockPending = at, true
		rec := s.record(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Clock{Clock: &eventsv1.Clock{Time: at}}}, at)
		// The client outlives every source: what it has in hand is not taken back.
		l.client.Produce(context.Background(), rec, func(_ *kgo.Record, err error) {
			if err != nil && !errors.Is(err, kgo.ErrClientClosed) {
				l.log.Warn("the log refused a clock", "source", s.slug, "error", err)
			}
			l.mu.Lock()
			s.clockPending = false
			l.mu.Unlock()
			if p, ok := l.clock.(pacer); ok {
				p.Finished(s.slug, time.Unix(0, at))
			}
		})
	}
}

// sourceOutbox is the outbox of one source; its mutex is the log's.
type sourceOutbox struct {
	log          *SourceLog
	slug         string
	epoch        int64
	lastClock    int64
	clockPending bool
}

// Known reads the end of the log.
func (s *sourceOutbox) Known(ctx context.Context, visit func(*eventsv1.ReferenceRecord)) error {
	tail := stream.NewTail(stream.TailConfig{
		Brokers: s.log.cfg.Brokers, Topic: schemas.TopicReferenceRaw, Rewind: knownSpan, Dialer: s.log.cfg.Dialer, Log: s.log.log,
	})
	reading, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() {
		done <- tail.Run(reading, func(r stream.TailRecord) error {
			rec := &eventsv1.ReferenceRecord{}
			if rec.UnmarshalVT(r.Value) == nil && string(r.Key) == s.slug {
				visit(rec)
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
		if f := records[i].GetFixing(); f != nil {
			f.IngestTime = at
		}
		return s.record(records[i], at)
	})
}

// Dead writes a dead letter, with at most 64 kB of its payload.
func (s *sourceOutbox) Dead(ctx context.Context, letter *eventsv1.DeadLetter) error {
	trimLetter(letter)
	return s.write(ctx, 1, func(_ int, at int64) *kgo.Record {
		letter.IngestTime = at
		return s.encode(schemas.TopicReferenceRawDead, &eventsv1.DeadRecord{Letter: letter}, at)
	})
}

// write produces n records and waits for them; what the log refused, and all after it, is written again.
func (s *sourceOutbox) write(ctx context.Context, n int, record func(i int, at int64) *kgo.Record) error {
	for from := 0; from < n; {
		results := make([]chan error, n-from)
		s.log.mu.Lock()
		// Readers trust the clock that was written: what comes behind it is later.
		at := max(s.log.clock.Now().UnixNano(), s.lastClock+1)
		for i := range results {
			result := make(chan error, 1)
			results[i] = result
			s.log.client.Produce(ctx, record(from+i, at), func(_ *kgo.Record, err error) { result <- err })
		}
		s.log.mu.Unlock()
		var failed error
		for _, result := range results {
			if err := <-result; err != nil {
				failed = errors.Join(failed, err)
			} else if failed == nil {
				from++
			}
		}
		if failed == nil {
			return nil
		}
		s.log.log.Warn("the log refused a source's records, writing them again", "source", s.slug, "error", failed)
		if err := Sleep(ctx, s.log.clock, resendPause); err != nil {
			return fmt.Errorf("writing what %s said: %w", s.slug, err)
		}
	}
	return nil
}

func (s *sourceOutbox) record(rec *eventsv1.ReferenceRecord, at int64) *kgo.Record {
	rec.Producer, rec.Epoch = s.slug, s.epoch
	return s.encode(schemas.TopicReferenceRaw, rec, at)
}

func (s *sourceOutbox) encode(topic string, m message, at int64) *kgo.Record {
	value := make([]byte, m.SizeVT())
	// The only error is a buffer of another size than SizeVT said.
	if _, err := m.MarshalToSizedBufferVT(value); err != nil {
		panic(err)
	}
	// Both topics have one partition.
	return &kgo.Record{Topic: topic, Key: []byte(s.slug), Value: value, Timestamp: time.Unix(0, at)}
}
