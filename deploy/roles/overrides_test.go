package roles

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/deploytest"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// Overrides that the view has and those that only the log has come to the same, and of the log nothing is read that the view has.
func TestOverridesGoOnWhereTheViewEnds(t *testing.T) {
	if _, err := engine.Find(""); err != nil {
		streamtest.Missing(t, streamtest.TierEmbedded, "no ClickHouse engine; make engine fetches it")
	}
	cfg := config.DefaultConfig()
	cfg.DataDir, cfg.Feeds, cfg.Auth.Mode = t.TempDir(), "none", "open"
	cfg.Listen, cfg.MetricsListen, cfg.SQLListen, cfg.Kafka.Listen = deploytest.FreeAddr(t), "", "", deploytest.FreeAddr(t)
	in, err := instance.OpenInstance(t.Context(), cfg, deploytest.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := operations.Migrate(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	store, err := in.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Truncate(time.Second)
	check := func(records int, want map[string]string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		overrides, tail, err := in.OverridesAndTail(ctx)
		if err != nil {
			t.Fatal(err)
		}
		read := 0
		follow := instance.FollowOverrides(overrides)
		var following sync.WaitGroup
		following.Go(func() {
			_ = tail.Run(ctx, func(rec stream.TailRecord) error { read++; return follow(rec) })
		})
		if !arrived(ctx, tail.CaughtUp()) {
			t.Fatal("the tail has not caught up")
		}
		cancel()
		following.Wait()
		if read != records {
			t.Errorf("%d records of the log were read, want %d", read, records)
		}
		for symbol, coin := range want {
			if id, _ := overrides.ForVenue("okx", symbol, now.UnixNano()); id != coin {
				t.Errorf("%s is %q, want %q", symbol, id, coin)
			}
		}
	}
	check(0, nil)

	writeReference(t, in, &eventsv1.ReferenceRecord{Producer: "coingecko", Epoch: 1, Body: &eventsv1.ReferenceRecord_Clock{Clock: &eventsv1.Clock{Time: now.UnixNano()}}})
	writeReference(t, in, overrideOf("AAA", "bitcoin", now))
	check(2, map[string]string{"AAA": "bitcoin"})

	ctx, cancel := context.WithCancel(t.Context())
	var sinking sync.WaitGroup
	sinking.Go(func() {
		sink := processors.Sink{Topic: schemas.TopicReferenceRaw, Log: in.Stream, History: store, Logger: deploytest.Quiet, Undecodable: func(string) {}}
		if err := sink.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		progress, err := store.Progress(t.Context(), schemas.TopicReferenceRaw, 0)
		if err != nil {
			t.Fatal(err)
		}
		if progress[0].Next == 2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the sink has come to %d, want 2", progress[0].Next)
		}
	}
	cancel()
	sinking.Wait()
	check(0, map[string]string{"AAA": "bitcoin"})

	writeReference(t, in, overrideOf("BBB", "ethereum", now))
	check(1, map[string]string{"AAA": "bitcoin", "BBB": "ethereum"})
}

// overrideOf is an operator's override of a symbol at one venue.
func overrideOf(symbol, coin string, at time.Time) *eventsv1.ReferenceRecord {
	return &eventsv1.ReferenceRecord{Producer: instance.OperatorKey, Epoch: at.UnixNano(), Body: &eventsv1.ReferenceRecord_Override{
		Override: &eventsv1.SymbolOverride{Source: "okx", Symbol: symbol, CoinId: coin, Reason: "it is", Time: at.UnixNano()},
	}}
}

// writeReference writes one record into the log.
func writeReference(t *testing.T, in *instance.Instance, rec *eventsv1.ReferenceRecord) {
	t.Helper()
	producer, err := in.Stream.NewProducer()
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	value, err := rec.MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	record := &kgo.Record{Topic: schemas.TopicReferenceRaw, Key: []byte(rec.Producer), Value: value, Timestamp: time.Now()}
	if err := producer.ProduceSync(t.Context(), record).FirstErr(); err != nil {
		t.Fatal(err)
	}
}
