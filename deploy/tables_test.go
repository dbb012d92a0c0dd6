package deploy

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// A part of a table that is removed while nobody looks is named at the start, and its rows come back from the log.
func TestLostPartIsFilledAgainFromTheLog(t *testing.T) {
	if _, err := engine.Find(""); err != nil {
		streamtest.Missing(t, streamtest.TierEmbedded, "no ClickHouse engine; make engine fetches it")
	}
	cfg := DefaultConfig()
	cfg.DataDir, cfg.Kafka.Listen, cfg.Retention.LogBytes = t.TempDir(), "127.0.0.1:0", minLogBytes
	open := func() *Instance {
		in, err := OpenInstance(t.Context(), cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := migrate(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		return in
	}
	scan := func(in *Instance, query string, into any) {
		t.Helper()
		store, err := in.History(t.Context())
		if err == nil {
			err = store.Conn().QueryRow(t.Context(), query).Scan(into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	count := func(in *Instance) (n uint64) {
		scan(in, "SELECT count() FROM ticks FINAL", &n)
		return n
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()

	in := open()
	store, err := in.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const ticks = 500
	produceTicks(t, in, ticks)
	ctx, end := context.WithCancel(t.Context())
	sunk := make(chan error, 1)
	go func() {
		sunk <- (&processors.Sink{Topic: schemas.TopicTicks, Log: in.Stream, History: store, Logger: in.Log}).Run(ctx)
	}()
	for deadline := time.Now().Add(30 * time.Second); count(in) < ticks; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the ticks are not in the table")
		}
	}
	end()
	if err := <-sunk; err != nil {
		t.Fatal(err)
	}
	if err := in.keepParts(stopped, store); err != nil {
		t.Fatal(err)
	}
	var part string
	scan(in, "SELECT path FROM system.parts WHERE database = currentDatabase() AND table = 'ticks' AND active ORDER BY rows DESC LIMIT 1", &part)
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(part); err != nil {
		t.Fatal(err)
	}

	in = open()
	defer in.Close()
	if store, err = in.History(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := count(in); n == ticks {
		t.Fatalf("with the part %s removed there are still %d rows", part, n)
	}
	role, err := in.tablesRole(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	if what := in.lacking()["tables"](); !strings.Contains(what, "rows of ticks are gone") {
		t.Errorf("before it is mended the tables lack %q", what)
	}
	ctx, end = context.WithCancel(t.Context())
	filled := make(chan error, 1)
	go func() { filled <- role.Run(ctx) }()
	for deadline := time.Now().Add(30 * time.Second); in.lost.waiting() != ""; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the rows are not written again")
		}
	}
	end()
	if err := <-filled; err != nil {
		t.Error(err)
	}
	if n := count(in); n != ticks {
		t.Errorf("afterwards: got %d rows, want %d", n, ticks)
	}
	if role, err = in.tablesRole(t.Context(), store); err != nil || in.lost.waiting() != "" || role.Run == nil {
		t.Errorf("once mended, the tables lack %q, %v", in.lost.waiting(), err)
	}
}

// produceTicks writes n resolved ticks of one coin, with the marks that a fold would give them.
func produceTicks(t *testing.T, in *Instance, n int) {
	t.Helper()
	producer, err := in.Stream.NewProducer()
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	now := time.Now().UnixNano()
	var records []*kgo.Record
	for i := range int64(n) {
		rec := &eventsv1.ResolvedRecord{
			Mark: &eventsv1.Mark{LogicVersion: 1, Partition: 0, Offset: i},
			Body: &eventsv1.ResolvedRecord_Tick{Tick: &eventsv1.ResolvedTick{
				CoinId: "bitcoin", QuoteId: "USD", Rate: 1, RateTime: now,
				Tick: &eventsv1.Tick{
					Venue: "kraken", Symbol: "XBT/USD", Base: "XBT", Quote: "USD", Kind: eventsv1.TickKind_TICK_KIND_TRADE,
					EventId: fmt.Appendf(nil, "%016d", i), EventTime: now + i, IngestTime: now + i,
					Price: "100", Size: "0.5", TradeId: fmt.Sprint(i),
				},
			}},
		}
		value, err := rec.MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, &kgo.Record{Topic: schemas.TopicTicks, Value: value})
	}
	if err := producer.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}
