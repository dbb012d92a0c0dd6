package processors_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// restatedSQL selects what the view has of each restatement in a line, in the order of the log.
const restatedSQL = `SELECT concat(run, ' ', toString(toUnixTimestamp(time)), ' ', cause, ' ', view, ' ', table, ' ', kind, ' ', coin_id, ' ', toString(toUnixTimestamp(event_time)), ' ', toString(before), ' ', toString(after)) AS line
	FROM default.v_restatements ORDER BY splitByChar('/', run)[2], toInt64(splitByChar('/', run)[3]), key`

// drawnStatement is what a venue reports about an hour, or that it reports nothing of it any more.
type drawnStatement struct {
	market, hour int
	price        int // 0: withdrawn
}

func (d drawnStatement) record(received int64) *eventsv1.BackfillRecord {
	price := fmt.Sprintf("%d.50", d.price) // the same number as the table's 1.5
	candle := &eventsv1.BackfillCandle{
		Venue: "kraken", Symbol: []string{"BTC/USD", "SOL/USD"}[d.market], Base: []string{"BTC", "SOL"}[d.market], Quote: "USD", Interval: 3600,
		Start: noon + int64(d.hour)*int64(time.Hour), Open: "1", High: "9", Low: "1", Close: price, Volume: "1", IngestTime: received,
	}
	if d.price == 0 {
		candle.Withdrawn, candle.Open, candle.High, candle.Low, candle.Close, candle.Volume = true, "", "", "", "", ""
	}
	if d.price == 0 || d.price == 3 {
		candle.Origin, candle.File, candle.Line = "import", bytes.Repeat([]byte{0xab}, 32), 1
	}
	return &eventsv1.BackfillRecord{Producer: "kraken", Body: &eventsv1.BackfillRecord_Candle{Candle: candle}}
}

// line is what the restatement of one statement by another looks like in the view.
func (d drawnStatement) line(before drawnStatement, partition int32, offset, received int64) string {
	values := func(s drawnStatement) string {
		switch {
		case s.price == 0:
			return "{}"
		case before.price == 0 || d.price == 0:
			return fmt.Sprintf("{'open':'1','high':'9','low':'1','close':'%d.5','volume':'1'}", s.price)
		default:
			return fmt.Sprintf("{'close':'%d.5'}", s.price)
		}
	}
	kind, cause := "changed", "source kraken"
	switch {
	case before.price == 0:
		kind = "added"
	case d.price == 0:
		kind = "removed"
	}
	if d.price == 0 || d.price == 3 {
		cause = "import " + strings.Repeat("ab", 32)
	}
	return fmt.Sprintf("backfill.raw.v1/%d/%d %d %s backfill backfill %s %s %d %s %s", partition, offset, received/int64(time.Second), cause, kind,
		[]string{"bitcoin", "solana"}[d.market], noon/int64(time.Second)+int64(d.hour)*3600, values(before), values(d))
}

// Venues and files state hours again, with the same and with other prices, and take them back, while the sink dies at any of its
// statements: each change is recorded once, with both values, what only says the same never, and the last statement is in the table.
func TestWhatSourcesStateOtherwiseIsRecordedOnce(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	log, producer := newLog(t)
	store, way := newStore(t)
	s := newScript(t, schemas.TopicBackfillRaw, producer)
	type hour struct{ market, hour int }
	last := map[hour]drawnStatement{}
	var want []string
	state := func(n int) {
		for range n {
			d := drawnStatement{random.IntN(2), random.IntN(6), random.IntN(5)}
			partition, received := int32(3*d.market), noon+int64(len(want)+int(s.offsets[0]))*int64(time.Second)
			if before, ok := last[hour{d.market, d.hour}]; ok && before.price != d.price {
				want = append(want, d.line(before, partition, s.offsets[partition], received))
			}
			last[hour{d.market, d.hour}] = d
			s.write(partition, d.record(received), false)
		}
		s.flush()
	}
	for range 6 {
		state(1 + random.IntN(30))
		// Dead from a statement on: that one is made or not, and nothing after it.
		alive, made := new(atomic.Int64), random.IntN(2) == 0
		alive.Store(int64(random.IntN(12)))
		before := func(*http.Request) error {
			if left := alive.Add(-1); left < -1 || left < 0 && !made {
				return errDead
			}
			return nil
		}
		after := func(*http.Request) error {
			if alive.Load() < 0 {
				return errDead
			}
			return nil
		}
		way.before.Store(&before)
		way.after.Store(&after)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		err := (&processors.Sink{Topic: s.topic, Log: log, History: store, Logger: slog.New(slog.DiscardHandler)}).Run(ctx)
		cancel()
		way.before.Store(nil)
		way.after.Store(nil)
		if err != nil && !errors.Is(err, errDead) {
			t.Fatalf("seed %d: got %v, want %v", seed, err, errDead)
		}
	}
	state(20)
	stop := start(t, &processors.Sink{Topic: s.topic, Log: log, History: store, Logger: quiet(t)})
	s.settled(store)
	if err := stop(); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	materializeRestatements(t, log, store)
	slices.SortStableFunc(want, func(a, b string) int { return cmp.Compare(a[:len("backfill.raw.v1/0")], b[:len("backfill.raw.v1/0")]) })
	if diff := gocmp.Diff(want, texts(t, store, restatedSQL)); diff != "" {
		t.Errorf("seed %d: restatements, want(-), got(+):\n%s", seed, diff)
	}
	var kept []string
	for _, d := range last {
		if d.price > 0 {
			kept = append(kept, fmt.Sprintf("%d %d %d.5", d.market, d.hour, d.price))
		}
	}
	slices.Sort(kept)
	got := texts(t, store, fmt.Sprintf(`SELECT concat(toString(coin_id = 'solana'), ' ', toString(intDiv(toUnixTimestamp(start) - %d, 3600)), ' ', toString(close)) AS line
		FROM backfill FINAL WHERE NOT withdrawn ORDER BY line`, noon/int64(time.Second)))
	if diff := gocmp.Diff(kept, got); diff != "" {
		t.Errorf("seed %d: candles, want(-), got(+):\n%s", seed, diff)
	}
	// Tables that are lost are filled from the log again: the same restatements, which replace themselves.
	for _, table := range []string{"backfill", "ledger"} {
		execSQL(t, store, "TRUNCATE TABLE "+table)
	}
	start(t, &processors.Sink{Topic: s.topic, Log: log, History: store, Logger: quiet(t)})
	s.settled(store)
	materializeRestatements(t, log, store)
	if diff := gocmp.Diff(want, texts(t, store, restatedSQL)); diff != "" {
		t.Errorf("seed %d: restatements of tables that were filled again, want(-), got(+):\n%s", seed, diff)
	}
}

// Sources state an index, a fixing and a coin's past again: what has other values is restated, what was not known before too; the same
// values, and those of another source or moment, are not. Tables in memory are gone with the sink.
func TestReferenceThatIsStatedOtherwiseIsRecorded(t *testing.T) {
	log, producer := newLog(t)
	store, _ := newStore(t)
	s := newScript(t, schemas.TopicReferenceRaw, producer)
	at := noon
	state := func(rec *eventsv1.ReferenceRecord) { s.write(0, rec, false) }
	index := func(value uint32) {
		at += int64(time.Second)
		state(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_FearGreed{FearGreed: &eventsv1.FearGreed{
			Source: "alternative", Value: value, Classification: "Fear", EventTime: noon, IngestTime: at}}})
	}
	fixing := func(source, rate string) {
		at += int64(time.Second)
		state(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Fixing{Fixing: &eventsv1.Fixing{
			Source: source, Base: "EUR", Quote: "USD", Rate: rate, Date: "2026-02-27", IngestTime: at}}})
	}
	point := func(caps string) {
		at += int64(time.Second)
		state(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_CoinPast{CoinPast: &eventsv1.CoinPast{
			Source: "coingecko", SourceId: "bitcoin", Day: noon, IngestTime: at, Points: []*eventsv1.CoinPastPoint{{Time: noon, MarketCap: caps, Volume24H: "7"}}}}})
	}
	index(20) // 0
	fixing("ecb", "1.10")
	fixing("boc", "1.11") // another source
	point("")
	index(20)
	index(21)            // 5
	fixing("ecb", "1.1") // the same number
	fixing("ecb", "1.2") // 7
	point("100")         // 8
	point("100.0")
	s.flush()
	stop := start(t, &processors.Sink{Topic: s.topic, Log: log, History: store, Logger: quiet(t)})
	s.settled(store)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	materializeRestatements(t, log, store)
	second, day := noon/int64(time.Second), noon/int64(time.Second)/86400*86400
	want := []string{
		fmt.Sprintf("reference.raw.v1/0/5 %d source alternative reference fear_greed changed  %d {'value':'20'} {'value':'21'}", second+6, day),
		fmt.Sprintf("reference.raw.v1/0/7 %d source ecb reference fiat_rates changed  %d {'rate':'1.1'} {'rate':'1.2'}", second+8, day-2*86400),
		fmt.Sprintf("reference.raw.v1/0/8 %d source coingecko reference coin_past changed bitcoin %d {} {'market_cap':'100'}", second+9, second),
	}
	if diff := gocmp.Diff(want, texts(t, store, restatedSQL)); diff != "" {
		t.Errorf("want(-), got(+):\n%s", diff)
	}
	if left := texts(t, store, "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine = 'Memory'"); len(left) > 0 {
		t.Errorf("tables in memory are left: %q", left)
	}
}
