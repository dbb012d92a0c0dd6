package history_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/read"
	"github.com/marketlog/marketlog/stream/history/shadow"
)

// Tables that an earlier version gave partitions of a day or a month get those of an hour or a day with all their rows, wherever that is cut off in between.
func TestTablesOfLongPartitionsAreRepartitioned(t *testing.T) {
	cfg := newConfig(t)
	way := &wire{RoundTripper: cfg.Transport}
	cfg.Transport = way
	store := openStore(t, cfg)
	if _, err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	keys := func() []string {
		return queryStrings(t, store, "SELECT concat(name, ' ', partition_key, ' ', sorting_key) FROM system.tables WHERE database = ? ORDER BY name", store.Database())
	}
	want := keys()
	cut := errors.New("cut off")
	for n, ended := rand.IntN(3), false; !ended; n += 1 + rand.IntN(40) {
		for _, statement := range []string{
			"CREATE TABLE ticks_by_day AS ticks ENGINE = ReplacingMergeTree(version) PARTITION BY day ORDER BY (coin_id, venue, symbol, kind, day, event_time, event_id)",
			"CREATE TABLE prices_by_day AS prices ENGINE = ReplacingMergeTree(version) PARTITION BY toDate(time) ORDER BY (coin_id, time)",
			"CREATE TABLE candles_by_month AS venue_candles_1m ENGINE = ReplacingMergeTree(version) PARTITION BY toYYYYMM(start) ORDER BY (venue, symbol, start)",
			"EXCHANGE TABLES venue_candles_1m AND candles_by_month", "DROP TABLE candles_by_month SYNC",
			"EXCHANGE TABLES ticks AND ticks_by_day", "DROP TABLE ticks_by_day SYNC", "EXCHANGE TABLES prices AND prices_by_day", "DROP TABLE prices_by_day SYNC",
			`INSERT INTO ticks (coin_id, day, ingest_time, event_id) SELECT 'bitcoin', toDate(at), at, toString(number) FROM
				(SELECT number, toDateTime64('2026-11-22 20:00:00', 9, 'UTC') + toIntervalMinute(47 * number) AS at FROM numbers(20))`,
			"INSERT INTO prices (coin_id, time, price) SELECT 'bitcoin', toDateTime('2026-11-22 20:00:00', 'UTC') + 3000 * number, number FROM numbers(20)",
			"INSERT INTO venue_candles_1m (venue, start, symbol) SELECT 'kraken', toDateTime('2026-11-28 20:00:00', 'UTC') + 40000 * number, toString(number) FROM numbers(20)",
		} {
			if err := store.Conn().Exec(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		made := 0
		way.after = func() error {
			if made++; made > n {
				return cut
			}
			return nil
		}
		_, err := store.Migrate(t.Context())
		ended = err == nil
		way.after = nil
		if _, err := store.Migrate(t.Context()); err != nil {
			t.Fatalf("again after a cut at statement %d: %v", n, err)
		}
		if got := keys(); !slices.Equal(got, want) {
			t.Errorf("after a cut at statement %d: got %v, want %v", n, got, want)
		}
		rows := queryStrings(t, store, `SELECT concat(toString(count()), ' ', toString(uniqExact(event_id)), ' ', toString(uniqExact(_partition_id))) FROM ticks FINAL
			UNION ALL SELECT concat(toString(count()), ' ', toString(sum(price)), ' ', toString(uniqExact(_partition_id))) FROM prices FINAL
			UNION ALL SELECT concat(toString(count()), ' ', toString(uniqExact(symbol)), ' ', toString(uniqExact(_partition_id))) FROM venue_candles_1m FINAL`)
		slices.Sort(rows)
		if want := []string{"20 190 16", "20 20 10", "20 20 15"}; !slices.Equal(rows, want) {
			t.Errorf("after a cut at statement %d: got %v, want %v", n, rows, want)
		}
		if ended && n < 50 {
			t.Errorf("it takes %d statements, want those of both tables", n)
		}
	}
}

// Processes that start at once do not undo each other's work, nor is a row lost that one writes meanwhile, or that an earlier version left.
func TestProcessesThatRepartitionAtOnceLoseNothing(t *testing.T) {
	cfg := newConfig(t)
	store := openStore(t, cfg)
	if _, err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	run := func(statements ...string) {
		t.Helper()
		for _, statement := range statements {
			if err := store.Conn().Exec(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
	}
	const rows = " (coin_id, time, price) SELECT '%s', toDateTime('2026-11-22 20:00:00', 'UTC') + 3000 * number, number FROM numbers(20)"
	for round := range 3 {
		run("CREATE TABLE prices_by_day AS prices ENGINE = ReplacingMergeTree(version) PARTITION BY toDate(time) ORDER BY (coin_id, time)",
			"EXCHANGE TABLES prices AND prices_by_day", "DROP TABLE prices_by_day SYNC",
			"INSERT INTO prices"+fmt.Sprintf(rows, "bitcoin"),
			"CREATE TABLE prices_repartitioned AS prices", "INSERT INTO prices_repartitioned"+fmt.Sprintf(rows, "ether"))
		migrated := make(chan error)
		for range 3 {
			go func() {
				other, err := history.Open(context.Background(), cfg)
				if err == nil {
					_, err = other.Migrate(context.Background())
					err = errors.Join(err, other.Close())
				}
				migrated <- err
			}()
		}
		written := 0
		for left := 3; left > 0; {
			select {
			case err := <-migrated:
				if left--; err != nil {
					t.Error(err)
				}
			default:
				row := fmt.Sprintf("INSERT INTO prices (coin_id, time, price) SELECT 'written', toDateTime('2026-11-22 20:00:00', 'UTC') + 3000 * %d, 1", written)
				if err := history.Unavailable(store.Conn().Exec(t.Context(), row)); err == nil {
					written++
				} else if !errors.Is(err, stream.ErrUnavailable) { // what a sink tries again: tables changed names while it was asked
					t.Fatal(err)
				}
			}
		}
		got := queryStrings(t, store, "SELECT concat(coin_id, ' ', toString(count()), ' ', toString(sum(price))) FROM prices FINAL GROUP BY coin_id ORDER BY coin_id")
		if want := []string{"bitcoin 20 190", "ether 20 190", fmt.Sprint("written ", written, " ", written)}; !slices.Equal(got, want) {
			t.Errorf("round %d: got %v, want %v", round, got, want)
		}
		if got := queryStrings(t, store, "SELECT concat(name, ' ', partition_key) FROM system.tables WHERE database = ? AND (name = 'prices' OR name LIKE 'prices\\_repart%')", store.Database()); !slices.Equal(got, []string{"prices toStartOfHour(time)"}) {
			t.Errorf("round %d: there is %v", round, got)
		}
		run("TRUNCATE TABLE prices")
	}
}

// Hours that are dropped for want of room are known as of each instant: what was there then is not what is there now.
func TestWhatWasDroppedIsKnown(t *testing.T) {
	store := newStore(t)
	noon := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	for _, statement := range []string{
		"INSERT INTO ticks (coin_id, day, ingest_time, event_id) SELECT 'bitcoin', toDate(at), at, toString(number) FROM (SELECT number, toDateTime64('2026-11-24 08:30:00', 9, 'UTC') + toIntervalMinute(number) AS at FROM numbers(240))",
		"INSERT INTO prices (coin_id, time, price) SELECT 'bitcoin', toDateTime('2026-11-24 08:30:00', 'UTC') + 60 * number, 1 FROM numbers(240)",
	} {
		if err := store.Conn().Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	known, err := store.Parts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shadows := shadow.Of(store)
	for _, table := range []string{"ticks", "prices"} { // a replay that makes what was there before
		if _, err := shadows.Create(t.Context(), table, 1); err != nil {
			t.Fatal(err)
		}
		if err := store.Conn().Exec(t.Context(), "INSERT INTO "+table+history.ShadowSuffix(1)+" SELECT * FROM "+table); err != nil {
			t.Fatal(err)
		}
	}
	oldest := func(at time.Time) string {
		second, err := read.From(store).OldestPrice(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		return time.Unix(second, 0).UTC().Format(time.DateTime)
	}
	if got := oldest(noon); got != "2026-11-17 00:00:00" {
		t.Errorf("before anything is dropped prices are kept from %s on", got)
	}
	first, second := noon.Add(15*time.Minute+time.Nanosecond), noon.Add(25*time.Minute)
	for _, drop := range []struct {
		table     string
		until, at time.Time
	}{{"prices", noon.Add(-2 * time.Hour), first}, {"prices", noon.Add(-time.Hour), second}, {"ticks", noon.Add(-3 * time.Hour), second}, {"ticks", noon.Add(-3 * time.Hour), second}} {
		if err := store.DropUntil(t.Context(), drop.table, drop.until, drop.at); err != nil {
			t.Fatal(err)
		}
	}
	got := queryStrings(t, store, "SELECT concat(toString((SELECT min(time) FROM prices)), ' ', toString((SELECT count() FROM prices)), ' ', toString((SELECT min(ingest_time) FROM ticks)))")
	if want := "2026-11-24 11:00:00 90 2026-11-24 09:00:00.000000000"; got[0] != want {
		t.Errorf("got %s, want %s", got[0], want)
	}
	for at, want := range map[time.Time]string{
		first.Add(-time.Nanosecond): "2026-11-17 00:00:00", first: "2026-11-24 10:00:00",
		second.Add(-time.Nanosecond): "2026-11-24 10:00:00", second: "2026-11-24 11:00:00", noon.AddDate(0, 0, 8): "2026-11-25 00:00:00",
	} {
		if got := oldest(at); got != want && !(at.After(noon.AddDate(0, 0, 1)) && got == "2026-11-24 11:00:00") {
			t.Errorf("at %s prices are kept from %s on, want %s", at, got, want)
		}
		since, err := store.KeptSince(t.Context(), "prices", at)
		if err != nil || since.Format(time.DateTime) != want {
			t.Errorf("at %s prices are kept since %s, %v, want %s", at, since, err, want)
		}
	}
	if since, err := store.KeptSince(t.Context(), "ticks", second); err != nil || !since.Equal(noon.Add(-3*time.Hour)) {
		t.Errorf("ticks are kept since %s, %v", since, err)
	}
	if lost, err := store.LostParts(t.Context(), known, second); err != nil || len(lost) > 0 {
		t.Errorf("what was dropped is lost: %v, %v", lost, err)
	}
	for table, want := range map[string]shadow.Comparison{"ticks": {Compared: 210}, "prices": {Compared: 90}} {
		got, err := shadows.Compare(t.Context(), table, 1, nil, 10, func(int64, int64) {})
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s compared with what a replay makes: got %+v, %v, want %+v", table, got, err, want)
		}
	}
}
