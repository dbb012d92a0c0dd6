package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// A part of a table that is removed or cannot be read any more is named at the start, and its rows come back from the log.
func TestLostPartIsFilledAgainFromTheLog(t *testing.T) {
	if _, err := engine.Find(""); err != nil {
		streamtest.Missing(t, streamtest.TierEmbedded, "no ClickHouse engine; make engine fetches it")
	}
	for name, damage := range map[string]func(part string) error{
		"removed": os.RemoveAll,
		"marks of no length": func(part string) error {
			marks, err := filepath.Glob(filepath.Join(part, "*mrk*"))
			if err == nil && len(marks) == 0 {
				err = fmt.Errorf("%s has no marks", part)
			}
			for _, file := range marks {
				err = errors.Join(err, os.Truncate(file, 0))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { losePart(t, damage) })
	}
}

func losePart(t *testing.T, damage func(part string) error) {
	cfg := config.DefaultConfig()
	cfg.DataDir, cfg.Kafka.Listen, cfg.Retention.LogBytes = t.TempDir(), "127.0.0.1:0", config.MinLogBytes
	open := func() *instance.Instance {
		in, err := instance.OpenInstance(t.Context(), cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := operations.Migrate(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		return in
	}
	scan := func(in *instance.Instance, query string, into any) {
		t.Helper()
		store, err := in.History(t.Context())
		if err == nil {
			err = store.Conn().QueryRow(t.Context(), query).Scan(into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	count := func(in *instance.Instance) (n uint64) {
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
	for deadline := time.Now().Add(time.Minute); count(in) < ticks; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the ticks are not in the table")
		}
	}
	end()
	if err := <-sunk; err != nil {
		t.Fatal(err)
	}
	if err := operations.KeepParts(stopped, in, store); err != nil {
		t.Fatal(err)
	}
	var part string
	scan(in, "SELECT path FROM system.parts WHERE database = currentDatabase() AND table = 'ticks' AND active ORDER BY rows DESC LIMIT 1", &part)
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := damage(part); err != nil {
		t.Fatal(err)
	}

	in = open()
	defer in.Close()
	if store, err = in.History(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := count(in); n == ticks {
		t.Fatalf("with the part %s damaged there are still %d rows", part, n)
	}
	role, err := operations.TablesRole(t.Context(), in, store)
	if err != nil {
		t.Fatal(err)
	}
	if what := in.Lacking()["tables"](); !strings.Contains(what, "rows of ticks are gone") {
		t.Errorf("before it is mended the tables lack %q", what)
	}
	ctx, end = context.WithCancel(t.Context())
	filled := make(chan error, 1)
	go func() { filled <- role.Run(ctx) }()
	for deadline := time.Now().Add(time.Minute); in.Lost.Waiting() != ""; time.Sleep(10 * time.Millisecond) {
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
	if role, err = operations.TablesRole(t.Context(), in, store); err != nil || in.Lost.Waiting() != "" || role.Run == nil {
		t.Errorf("once mended, the tables lack %q, %v", in.Lost.Waiting(), err)
	}
}

// With a directory of tables that is new beside a log that is not, the instance is not ready until the tables have what the
// log had at the start; what comes later is not waited for.
func TestTablesBehindTheLogAreWaitedFor(t *testing.T) {
	if _, err := engine.Find(""); err != nil {
		streamtest.Missing(t, streamtest.TierEmbedded, "no ClickHouse engine; make engine fetches it")
	}
	cfg := config.DefaultConfig()
	cfg.DataDir, cfg.Kafka.Listen, cfg.Retention.LogBytes = t.TempDir(), "127.0.0.1:0", config.MinLogBytes
	in, err := instance.OpenInstance(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := operations.Migrate(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	store, err := in.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lacking := in.Lacking()["tables"]
	await := func(what string, holds func(lacked string) bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !holds(lacking()); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the tables lack %q, want %s", lacking(), what)
			}
		}
	}
	produceTicks(t, in, 500)
	role := operations.BehindRole(in, store)
	if lacking() == "" {
		t.Error("before the log was looked at the tables lack nothing")
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 2)
	go func() { ended <- role.Run(ctx) }()
	await("500 records", func(lacked string) bool {
		return strings.Contains(lacked, "500 records") && strings.Contains(lacked, schemas.TopicTicks)
	})
	sinking, end := context.WithCancel(ctx)
	defer end()
	go func() {
		ended <- (&processors.Sink{Topic: schemas.TopicTicks, Log: in.Stream, History: store, Logger: in.Log}).Run(sinking)
	}()
	await("nothing", func(lacked string) bool { return lacked == "" })
	end()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	produceTicks(t, in, 10)
	if what := lacking(); what != "" {
		t.Errorf("after the start the tables lack %q", what)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Rows of a lost part that the log has no records of any more cannot be written again: their time is a gap, and nothing else.
func TestRowsThatTheLogHasNoMoreAreAGap(t *testing.T) {
	cfg := config.DefaultConfig()
	cfg.DataDir, cfg.Kafka.Listen, cfg.Retention.LogBytes = t.TempDir(), "127.0.0.1:0", config.MinLogBytes
	in, err := instance.OpenInstance(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	produceTicks(t, in, 10)
	midnight := time.Now().UTC().Truncate(24 * time.Hour)
	part := func(day time.Time) history.Part {
		return history.Part{Table: "ticks", Partition: day.Format("2006-01-02"), Rows: 5}
	}
	lost := []history.Part{part(midnight), part(midnight.AddDate(0, 0, -1))}
	if gaps, err := operations.BeyondLog(t.Context(), in, lost); err != nil || len(gaps) > 0 {
		t.Errorf("the log has all of its records, and the gaps are %v, %v", gaps, err)
	}
	client, err := in.Stream.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(t.Context(), schemas.TopicTicks)
	if err != nil {
		t.Fatal(err)
	}
	produceTicks(t, in, 10)
	begins := kadm.Offsets{} // retention removes what was written first
	ends.Each(func(end kadm.ListedOffset) { begins.AddOffset(end.Topic, end.Partition, end.Offset, -1) })
	if _, err := kadm.NewClient(client).DeleteRecords(t.Context(), begins); err != nil {
		t.Fatal(err)
	}
	since, err := stream.CompleteSince(t.Context(), in.Stream, schemas.TopicTicks)
	if err != nil || since.Before(midnight) || since.After(time.Now()) {
		t.Fatalf("the log is complete since %s, %v", since, err)
	}
	gaps, err := operations.BeyondLog(t.Context(), in, lost)
	if err != nil || len(gaps) != 2 {
		t.Fatalf("got gaps %v, %v, want two", gaps, err)
	}
	for i, want := range []struct{ from, to time.Time }{{midnight, since}, {midnight.AddDate(0, 0, -1), midnight}} {
		if g := gaps[i]; g.Venue != instance.VenueTables || g.Symbol != "ticks" || g.Reason != instance.ReasonDamage || g.FromTime != want.from.UnixNano() || g.ToTime != want.to.UnixNano() {
			t.Errorf("got gap %v, want %s to %s", g, want.from, want.to)
		}
	}
	if err := in.WriteGaps(t.Context(), gaps); err != nil {
		t.Fatal(err)
	}
	read := newGapReader(t, in.Stream)
	read.until("the gap", func() bool { return read.gaps[instance.VenueTables] != nil })
}

// produceTicks writes n resolved ticks of one coin, with the marks that a fold would give them.
func produceTicks(t *testing.T, in *instance.Instance, n int) {
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
