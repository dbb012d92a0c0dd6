package processors_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/rows"
)

// materializeRestatements inserts the rows of all restatements of the log.
func materializeRestatements(t testing.TB, log stream.Config, store *history.Store) {
	t.Helper()
	_, ends, err := log.LogBounds(t.Context(), schemas.TopicRestatements)
	if err != nil {
		t.Fatal(err)
	}
	var batch rows.Batch
	err = stream.ReadRange(t.Context(), log, schemas.TopicRestatements, 0, 0, ends[schemas.TopicRestatements][0], func(rec *kgo.Record) error {
		record, err := schemas.DecodeRecord(rec.Topic, rec.Value)
		if err != nil {
			return err
		}
		batch.Add(rows.Place{Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset}, record)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := batch.Insert(t.Context(), store, ""); err != nil {
		t.Fatal(err)
	}
}

func texts(t testing.TB, store *history.Store, query string) (all []string) {
	t.Helper()
	all, err := history.Select(t.Context(), store, query, nil, func(rows driver.Rows) (text string, err error) {
		return text, rows.Scan(&text)
	})
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return all
}

// A replay that is killed between writing what it changes and changing it, and at the steps after it, is taken up or given up: what
// changed is recorded once, with the values of before and after; of a replay that was given up nothing is.
func TestWhatAReplayChangesIsRecordedOnce(t *testing.T) {
	log, producer := newLog(t)
	store, _ := newStore(t)
	newTickScript(t, producer, 9).write(130)
	live(t, log, store)
	wantEqualLog(t, log, store)
	dying, way := beside(t, store)

	tamper := func() {
		execSQL(t, store, "INSERT INTO candles_1m SELECT * REPLACE (7.25 AS close) FROM (SELECT * FROM candles_1m FINAL WHERE coin_id = 'bitcoin' ORDER BY start LIMIT 1)")
		execSQL(t, store, "ALTER TABLE venue_candles_1m DELETE WHERE coin_id = 'solana' AND venue = 'kraken' SETTINGS mutations_sync = 2")
		execSQL(t, store, "INSERT INTO candles_1m SELECT * REPLACE ('zcash' AS coin_id, 7 AS close) FROM (SELECT * FROM candles_1m FINAL WHERE coin_id = 'monero' ORDER BY start LIMIT 1)")
		// Made by an earlier version of the logic: of the same values, so it is not a restatement.
		execSQL(t, store, "INSERT INTO candles_1m SELECT * REPLACE (bitShiftLeft(toUInt128(99), 64) AS version) FROM (SELECT * FROM candles_1m FINAL WHERE coin_id = 'tron' ORDER BY start LIMIT 1)")
	}
	close := texts(t, store, "SELECT toString(close) FROM candles_1m FINAL WHERE coin_id = 'bitcoin' ORDER BY start LIMIT 1")[0]
	want := []string{"candles_1m changed bitcoin 7.25 " + close, "candles_1m removed zcash 7 "}
	venue := texts(t, store, "SELECT concat('venue_candles_1m added solana  ', toString(close)) AS row FROM venue_candles_1m FINAL WHERE coin_id = 'solana' AND venue = 'kraken' ORDER BY row")
	want = append(want, venue...)
	check := func(when string, runs int) {
		t.Helper()
		materializeRestatements(t, log, store)
		byRun := texts(t, store, `SELECT arrayStringConcat(arraySort(groupArray(concat(table, ' ', kind, ' ', coin_id, ' ', before['close'], ' ', after['close']))), '\n')
			FROM default.v_restatements GROUP BY run`)
		if len(byRun) != runs {
			t.Errorf("%s: got restatements of %d replays, want %d", when, len(byRun), runs)
		}
		for _, got := range byRun {
			if !slices.Equal(strings.Split(got, "\n"), want) {
				t.Errorf("%s: got\n%s\nwant\n%s", when, got, strings.Join(want, "\n"))
			}
		}
		if got := texts(t, store, "SELECT DISTINCT concat(table, toString((added, removed, changed, renewed, listed, unlisted))) AS counted FROM default.v_restated_tables ORDER BY counted"); runs > 0 &&
			!slices.Equal(got, []string{"candles_1m(0,1,1,1,2,0)", fmt.Sprintf("venue_candles_1m(%d,0,0,0,%[1]d,0)", len(venue))}) {
			t.Errorf("%s: got counts %q", when, got)
		}
	}

	runs := 0
	for _, kill := range []struct {
		name string
		// at is in the statement that is the last one; of the replay's first such statement after the recording of the venues' candles.
		at    string
		late  bool
		abort bool
		// counted is how many replays more have been recorded by then.
		counted int
	}{
		{"given up between writing and changing", "DISTINCT toDate(", false, true, 0},
		{"between writing and changing", "exchanging", false, false, 0},
		{"before it writes which rows count", "exchanging", true, false, 0},
		{"after the first exchange", "EXCHANGE", true, false, 1},
	} {
		tamper()
		var recorded, cut atomic.Bool
		before := func(r *http.Request) error {
			if cut.Load() {
				return errKilled
			}
			if recorded.Load() && strings.Contains(statement(t, r), kill.at) {
				cut.Store(true)
				if !kill.late {
					return errKilled
				}
			}
			return nil
		}
		after := func(*http.Request) error {
			if cut.Load() {
				return errKilled
			}
			return nil
		}
		way.before.Store(&before)
		way.after.Store(&after)
		r := newReplay(t, log, dying, schemas.ViewCandles, false)
		emit := r.Emit
		r.Emit = func(line any) error {
			if p, ok := line.(*processors.ReplayProgress); ok && p.Step == "recording what changes of venue_candles_1m" {
				recorded.Store(true)
			}
			return emit(line)
		}
		if _, err := r.Run(t.Context()); !errors.Is(err, errKilled) {
			t.Fatalf("%s: got %v, want that it is killed", kill.name, err)
		}
		revive(way)
		check(kill.name+", killed", runs+kill.counted)
		if kill.abort {
			if _, _, err := newReplay(t, log, store, "", false).Abort(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		// The one that ends it exchanges tables by the same way, so that it is known when.
		var exchanged atomic.Int64
		watch := func(r *http.Request) error {
			if strings.Contains(statement(t, r), "EXCHANGE") {
				exchanged.Store(time.Now().UnixNano())
			}
			return nil
		}
		way.before.Store(&watch)
		again := newReplay(t, log, dying, schemas.ViewCandles, false)
		again.run(t)
		revive(way)
		runs++
		check(kill.name, runs)
		// As of an instant until the last exchange answers may have been made of what was there before.
		if n := count(t, store, fmt.Sprintf("SELECT count() FROM restated_tables FINAL WHERE run = (SELECT argMax(run, time) FROM restated_tables) AND time <= fromUnixTimestamp64Nano(%d)", exchanged.Load())); n > 0 || exchanged.Load() == 0 {
			t.Errorf("%s: %d tables were recorded as changed before the last exchange", kill.name, n)
		}
	}
	wantEqualLog(t, log, store)
	check("after comparing", runs)
}

// Of more rows than are recorded one by one the first are, and all are counted.
func TestManyRestatementsAreCounted(t *testing.T) {
	log, producer := newLog(t)
	store, _ := newStore(t)
	newTickScript(t, producer, 10).write(100)
	live(t, log, store)
	wantEqualLog(t, log, store)
	execSQL(t, store, "INSERT INTO prices SELECT * REPLACE (price * 2 AS price) FROM (SELECT * FROM prices FINAL)")
	all := count(t, store, "SELECT count() FROM prices FINAL")
	r := newReplay(t, log, store, schemas.ViewPrices, false)
	r.MostRestated = 25
	result := r.run(t)
	materializeRestatements(t, log, store)
	if result.Restated != int64(all) || len(r.notes) != 1 || !strings.Contains(r.notes[0], "the first 25 by time") {
		t.Errorf("got %+v %q, want %d rows restated and a note", result, r.notes, all)
	}
	if n := count(t, store, "SELECT unlisted FROM (SELECT toUInt64(unlisted) AS unlisted FROM default.v_restated_tables)"); n != all-25 {
		t.Errorf("got %d rows counted and not listed, want %d", n, all-25)
	}
	if n := count(t, store, "SELECT count() FROM (SELECT coin_id, time FROM prices FINAL ORDER BY time, coin_id LIMIT 25) WHERE (coin_id, time) IN (SELECT coin_id, toDateTime(event_time, 'UTC') FROM default.v_restatements)"); n != 25 {
		t.Errorf("got %d of the first 25 rows", n)
	}
}

// statement is the text of a request; the rows of an insert may follow it.
func statement(t testing.TB, r *http.Request) string {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r.URL.Query().Get("query") + string(body)
}
