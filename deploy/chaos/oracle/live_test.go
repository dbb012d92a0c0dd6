package oracle_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/deploy/chaos/oracle"
	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/markets"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/streamtest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// wire is a way to ClickHouse that breaks now and then: some inserts never arrive, of some the answer is lost, and one is the last
// thing that its sink does.
type wire struct {
	http.RoundTripper
	inserts   atomic.Int64
	cut, lost atomic.Int64
	killed    atomic.Bool
}

// errDead is not an error after which a sink tries again.
var errDead = &clickhouse.Exception{Code: 62, Message: "dead"}

var errCut = errors.New("the wire is cut")

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(r.URL.Query().Get("query"), "INSERT INTO") {
		return w.RoundTripper.RoundTrip(r)
	}
	n := w.inserts.Add(1)
	if n%9 == 4 {
		w.cut.Add(1)
		return nil, errCut
	}
	resp, err := w.RoundTripper.RoundTrip(r)
	switch {
	case err != nil || n%7 != 0 && n != 20:
		return resp, err
	case n == 20:
		w.killed.Store(true)
		err = errDead
	default:
		w.lost.Add(1)
		err = errCut
	}
	resp.Body.Close()
	return nil, err
}

// live is the log, the folds, the sinks and the store.
type live struct {
	t        testing.TB
	cfg      stream.Config
	producer *kgo.Client
	way      *wire
	store    *history.Store
	written  map[place]int
}

func newLive(t testing.TB) *live {
	database, to := enginetest.Database(t)
	way := &wire{RoundTripper: to}
	store, err := history.Open(t.Context(), history.Config{Database: database, Transport: way})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if _, err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	cfg := stream.Config{Brokers: []string{streamtest.Kfake(t)}, ClientID: "test"}
	producer, err := cfg.NewProducer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(producer.Close)
	if err := stream.CreateTopics(t.Context(), producer, schemas.Topics, 1, stream.ClusterTopicConfigs); err != nil {
		t.Fatal(err)
	}
	return &live{t, cfg, producer, way, store, map[place]int{}}
}

// write puts the records of each partition into the log, up to a part of them.
func (l *live) write(s *scenario, part float64) {
	l.t.Helper()
	for _, at := range slices.SortedFunc(maps.Keys(s.log), func(a, b place) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
		entries := s.log[at]
		for end := int(part * float64(len(entries))); l.written[at] < end; l.written[at]++ {
			e := entries[l.written[at]]
			l.producer.Produce(l.t.Context(), &kgo.Record{Topic: at.topic, Partition: at.partition, Value: e.value, Timestamp: time.Unix(0, e.at)}, func(_ *kgo.Record, err error) {
				if err != nil {
					l.t.Errorf("producing: %v", err)
				}
			})
		}
	}
	if err := l.producer.Flush(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
}

var sunk = []string{schemas.TopicTicks, schemas.TopicPrices, schemas.TopicCandles, schemas.TopicReferenceRaw, schemas.TopicCoinMarketsRaw, schemas.TopicMarkets}

// run runs the fold and the sinks until something holds, and ends them. When one dies all begin again.
func (l *live) run(what string, holds func() (bool, error)) {
	l.t.Helper()
	for {
		err := l.live(what, holds)
		if errors.Is(err, errDead) {
			continue
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			l.t.Fatal(err)
		}
		return
	}
}

func (l *live) live(what string, holds func() (bool, error)) error {
	ctx, cancel := context.WithCancel(l.t.Context())
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	fold := markets.Minutes(schemas.Coins())
	fold.Log, fold.Logger = l.cfg, slog.New(slog.DiscardHandler)
	g.Go(func() error { return fold.Run(ctx) })
	for _, topic := range sunk {
		sink := &processors.Sink{Topic: topic, Log: l.cfg, History: l.store, Logger: slog.New(slog.DiscardHandler)}
		g.Go(func() error { return sink.Run(ctx) })
	}
	g.Go(func() error {
		defer cancel()
		return await(ctx, what, holds)
	})
	return g.Wait()
}

func await(ctx context.Context, what string, holds func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	turn := time.NewTicker(50 * time.Millisecond)
	defer turn.Stop()
	for {
		ok, err := holds()
		if ok || err != nil {
			return err
		}
		select {
		case <-turn.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, ctx.Err())
		}
	}
}

// settled reports whether the fold has closed a minute, and then whether the ledger is at the end of each topic.
func (l *live) settled(minute int64) func() (bool, error) {
	folded, whole := l.folded(minute), false
	return func() (bool, error) {
		if !whole {
			ok, err := folded()
			whole = ok
			return false, err
		}
		ctx := l.t.Context()
		ends, err := kadm.NewClient(l.producer).ListEndOffsets(ctx, sunk...)
		if err == nil {
			err = ends.Error()
		}
		if err != nil {
			return false, err
		}
		for _, topic := range sunk {
			progress, err := l.store.Progress(ctx, topic, 0)
			if err != nil {
				return false, err
			}
			for p, end := range ends[topic] {
				if progress[p].Next != end.Offset {
					return false, nil
				}
			}
		}
		return true, nil
	}
}

// read reads a topic back from the log.
func (l *live) read(topic string) map[int32][]oracle.Record {
	l.t.Helper()
	records, err := oracle.Read(l.t.Context(), l.cfg.Brokers[0], topic)
	if err != nil {
		l.t.Fatal(err)
	}
	return records
}

// folded reports whether the fold has closed a minute.
func (l *live) folded(minute int64) func() (bool, error) {
	return func() (bool, error) {
		applied, err := stream.LastApplied(l.t.Context(), l.cfg, schemas.TopicMarkets, []int32{0}, 1)
		return applied[0][0].Mark.GetOffset() >= minute, err
	}
}
