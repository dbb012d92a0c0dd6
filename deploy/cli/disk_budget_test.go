package cli

import (
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/diskbudget"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/archive"
	"github.com/marketlog/marketlog/stream/history/read"
	"github.com/marketlog/marketlog/stream/history/shadow"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// Two days of ticks, prices and candles in an archive and in the tables, of which the disk budget has room for less and less: what is on the disk
// stays within it, of both goes what is oldest, ticks first, and what sources stated stays. The archive is whole from where it begins, and answers
// know from when on all is there.
func TestDiskBudgetDropsTheOldest(t *testing.T) {
	if _, err := engine.Find(""); err != nil {
		streamtest.Missing(t, streamtest.TierEmbedded, "no ClickHouse engine; make engine fetches it")
	}
	cfg := config.DefaultConfig()
	cfg.DataDir, cfg.Kafka.Listen, cfg.Feeds, cfg.Retention.LogBytes = t.TempDir(), "127.0.0.1:0", "none", config.MinLogBytes
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
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	const hours = 48
	end := in.Clock.Now().UTC().Truncate(time.Hour).Add(time.Hour)
	begin := end.Add(-hours * time.Hour)
	archived, err := cfg.ArchiveStore()
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range []string{schemas.TopicTicks, schemas.TopicPrices, schemas.TopicQuotes, schemas.TopicReferenceRaw} {
		of := archive.Partition{Topic: topic, TopicID: strings.Repeat("0a", 16)}
		var last archive.Segment
		for hour := range hours {
			value := make([]byte, 200_000)
			for i := range value {
				value[i] = byte(random.Uint32())
			}
			record := &kgo.Record{Offset: int64(hour), Timestamp: begin.Add(time.Duration(hour) * time.Hour), Value: value}
			last, err = archive.Commit(t.Context(), archived, of, last, int64(hour), strings.Repeat("ab", 32), func(yield func(*kgo.Record, error) bool) { yield(record, nil) })
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	at := fmt.Sprintf("toDateTime(%d, 'UTC') + intDiv(number, 100) * 1800", begin.Unix())
	for _, statement := range []string{
		"INSERT INTO ticks (coin_id, day, ingest_time, event_id, trade_id) SELECT 'bitcoin', toDate(at), at, toString(number), randomString(4000) FROM (SELECT number, " + at + " AS at FROM numbers(9600))",
		"INSERT INTO prices (coin_id, time, price, `inputs.symbol`) SELECT toString(number), " + at + ", 1, [randomString(4000)] FROM numbers(9600)",
		"INSERT INTO venue_candles_1m (venue, start, symbol) SELECT 'kraken', " + at + ", randomString(2000) FROM numbers(9600)",
		"INSERT INTO candles_1m (coin_id, start) SELECT toString(number), " + at + " FROM numbers(9600)",
	} {
		if err := store.Conn().Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	known, err := store.Parts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	used := func() (sum int64) {
		for _, name := range []string{"log", "archive", "clickhouse"} {
			size, err := diskbudget.Size(filepath.Join(cfg.DataDir, name))
			if err != nil {
				t.Fatal(err)
			}
			sum += size
		}
		return sum
	}
	begins := func() map[string]string {
		from := map[string]string{}
		for _, table := range []struct{ name, column string }{{"ticks", "ingest_time"}, {"prices", "time"}, {"venue_candles_1m", "start"}, {"candles_1m", "start"}} {
			var first time.Time
			if err := store.Conn().QueryRow(t.Context(), "SELECT toDateTime(min("+table.column+"), 'UTC') FROM "+table.name).Scan(&first); err != nil {
				t.Fatal(err)
			}
			from[table.name] = first.Sub(begin).String()
		}
		err := operations.InspectArchive(t.Context(), archived, true, func(s operations.ArchiveStatus) error {
			if len(s.Faults)+len(s.Gaps) > 0 {
				t.Errorf("the archive of %s has %v, %v", s.Topic, s.Faults, s.Gaps)
			}
			from[s.Topic] = (time.Duration(s.First) * time.Hour).String() // a record an hour
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return from
	}
	whole := begins()
	all := used()
	for _, step := range []struct {
		limit int64
		// untouched begin where they did.
		untouched []string
	}{
		{all * 100 / 94, []string{"ticks", "prices", "venue_candles_1m", "candles_1m", schemas.TopicTicks, schemas.TopicPrices, schemas.TopicQuotes, schemas.TopicReferenceRaw}},
		{all * 9 / 10, []string{"prices", "venue_candles_1m", "candles_1m", schemas.TopicPrices, schemas.TopicQuotes, schemas.TopicReferenceRaw}},
		{all * 7 / 10, []string{"venue_candles_1m", "candles_1m", schemas.TopicQuotes, schemas.TopicReferenceRaw}},
		{all * 4 / 10, []string{"candles_1m", schemas.TopicReferenceRaw}},
	} {
		in.Budget.Limit = step.limit
		if err := in.Budget.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		status, _ := in.Budget.Status()
		if got := used(); got > step.limit/100*95 || status.LackingBytes > 0 || status.Sum()-got > step.limit/50 {
			t.Errorf("of %d bytes %d are used, the status is %+v", step.limit, got, status)
		}
		now := begins()
		t.Logf("with %d of %d bytes they begin at %v", step.limit, all, now)
		for _, name := range slices.Sorted(maps.Keys(now)) {
			if now[name] == whole[name] != slices.Contains(step.untouched, name) {
				t.Errorf("with %d of %d bytes %s begins at %s, before at %s", step.limit, all, name, now[name], whole[name])
			}
		}
		for table, topic := range map[string]string{"ticks": schemas.TopicTicks, "prices": schemas.TopicPrices} {
			a, errA := time.ParseDuration(now[table])
			b, errB := time.ParseDuration(now[topic])
			if errA != nil || errB != nil || (a-b).Abs() > 2*time.Hour {
				t.Errorf("with %d of %d bytes the table of %s begins at %s, its archive at %s", step.limit, all, table, a, b)
			}
		}
		first, err := time.ParseDuration(now["prices"])
		if err != nil {
			t.Fatal(err)
		}
		oldest, err := read.From(store).OldestPrice(t.Context(), in.Clock.Now())
		if err != nil || now["prices"] != whole["prices"] && oldest != begin.Add(first).Unix() {
			t.Errorf("all prices are there from %s on, %v, want %s", time.Unix(oldest, 0).UTC(), err, begin.Add(first))
		}
	}
	if lost, err := store.LostParts(t.Context(), known, in.Clock.Now()); err != nil || len(lost) > 0 {
		t.Errorf("what was dropped counts as lost: %v, %v", lost, err)
	}
	// While a replay compares tables nothing of them is dropped.
	if _, err := shadow.Of(store).Create(t.Context(), "prices", 7); err != nil {
		t.Fatal(err)
	}
	before := begins()
	in.Budget.Limit = all / 4
	if err := in.Budget.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"ticks", "prices", "venue_candles_1m"} {
		if now := begins(); now[table] != before[table] {
			t.Errorf("beside a replay %s begins at %s, before at %s", table, now[table], before[table])
		}
	}
	if found, err := store.Droppable(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("beside a replay %d partitions may be dropped, %v", len(found), err)
	}
	if err := shadow.Of(store).Drop(t.Context(), "prices", 7); err != nil {
		t.Fatal(err)
	}
	if found, err := store.Droppable(t.Context()); err != nil || len(found) == 0 {
		t.Errorf("after the replay nothing may be dropped: %v", err)
	}
}
