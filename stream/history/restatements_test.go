package history_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/read"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/history/shadow"
)

// drawnRow is a row of a drawn table. It is the same as another if its values are; the offset is where it was caused.
type drawnRow struct {
	coin   string
	time   int64
	price  float64
	note   string // empty for NULL
	inputs string
	logic  int
	offset int64
}

func (r drawnRow) key() string { return r.coin + " " + drawnTime(r.time) }

func drawnTime(unix int64) string { return time.Unix(unix, 0).UTC().Format(time.DateTime) }

// values are the columns with a text, without what is NULL.
func (r drawnRow) values() map[string]string {
	values := map[string]string{"price": fmt.Sprint(r.price)}
	if r.note != "" {
		values["note"] = r.note
	}
	return values
}

func (r drawnRow) sql() string {
	note := "NULL"
	if r.note != "" {
		note = history.Literal(r.note)
	}
	return fmt.Sprintf("('%s', %d, %v, %s, ['%s'], 0, %d, bitShiftLeft(toUInt128(%d), 64) + %d)", r.coin, r.time, r.price, note, r.inputs, r.offset, r.logic, r.offset)
}

// Restatements applied to the rows before give the rows after, of drawn tables; what lies outside the bounds is not one. A bound on how
// many are listed leaves the first by day, time and key, and counts all.
func TestRestatementsLeadFromTheOldTableToTheNew(t *testing.T) {
	store := newStore(t)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	const generation, name = 1, "drawn"
	for _, table := range []string{name, name + history.ShadowSuffix(generation)} {
		if err := store.Conn().Exec(t.Context(), "CREATE TABLE "+table+` (coin_id LowCardinality(String), time DateTime('UTC'), price Float64, note Nullable(String),
			inputs Nested(name String), log_partition Int32, log_offset Int64, version UInt128) ENGINE = ReplacingMergeTree(version) ORDER BY (coin_id, time)`); err != nil {
			t.Fatal(err)
		}
	}
	before, after := drawRows(random)
	insertDrawn(t, store, name, before)
	insertDrawn(t, store, name+history.ShadowSuffix(generation), after)
	bounds := []shadow.Bounds{{From: 10, FromTime: 1 << 40, Until: 1000, UntilTime: 0}}
	list := func(most int64) (list []*eventsv1.Restatement, found shadow.Restated) {
		found, err := shadow.Of(store).Restatements(t.Context(), name, generation, bounds, most, func(r *eventsv1.Restatement) error {
			list = append(list, r)
			return nil
		}, func(int64, int64) {})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		return list, found
	}
	all, found := list(1 << 40)
	if want := expectedCounts(before, after); found != want {
		t.Fatalf("seed %d: got %+v, want %+v", seed, found, want)
	}
	values := map[string]map[string]string{}
	for key, row := range before {
		values[key] = row.values()
	}
	for _, r := range all {
		key := r.Key[0].Value + " " + r.Key[1].Value
		was, is := before[key], after[key]
		if lists := was.inputs != is.inputs || r.Kind != shadow.KindChanged; lists != slices.Equal(r.Others, []string{"inputs"}) || int(r.LogicBefore) != was.logic || int(r.LogicAfter) != is.logic ||
			r.CoinId != r.Key[0].Value || (r.DigestBefore == r.DigestAfter) {
			t.Errorf("seed %d: got %v of %+v and %+v", seed, r, was, is)
		}
		applyRestatement(t, values, key, r)
	}
	for key, want := range after {
		if old := before[key]; (old.offset < 10 || old.offset >= 1000) && old.coin != "" {
			want = old
		}
		if !maps.Equal(values[key], want.values()) {
			t.Errorf("seed %d: %s: got %v, want %v", seed, key, values[key], want.values())
		}
		delete(values, key)
	}
	for key := range values {
		if o := before[key].offset; o >= 10 && o < 1000 {
			t.Errorf("seed %d: %s was not removed", seed, key)
		}
	}

	place := func(r *eventsv1.Restatement) string {
		return r.Key[1].Value[:10] + fmt.Sprint(r.EventTime) + r.Key[0].Value
	}
	slices.SortFunc(all, func(a, b *eventsv1.Restatement) int { return cmp.Compare(place(a), place(b)) })
	most := random.IntN(len(all) + 1)
	first, bounded := list(int64(most))
	slices.SortFunc(first, func(a, b *eventsv1.Restatement) int { return cmp.Compare(place(a), place(b)) })
	same := slices.EqualFunc(first, all[:most], func(a, b *eventsv1.Restatement) bool { return place(a) == place(b) })
	if found.Listed = int64(most); bounded != found || !same {
		t.Errorf("seed %d: the first %d: got %d of %+v, want those of %+v", seed, most, len(first), bounded, found)
	}
}

// drawRows are rows of some days by their key, and what becomes of them.
func drawRows(random *rand.Rand) (before, after map[string]drawnRow) {
	before, after = map[string]drawnRow{}, map[string]drawnRow{}
	start := time.Date(2026, 3, 1, 23, 0, 0, 0, time.UTC).Unix()
	for range 300 {
		row := drawnRow{
			coin: []string{"bitcoin", "ethereum", "it's"}[random.IntN(2)], time: start + int64(random.IntN(40))*1800, price: random.Float64() * 100,
			note: []string{"", "NULL", "a \\ 'b'"}[random.IntN(3)], inputs: fmt.Sprint(random.IntN(3)), logic: 1, offset: 10 + random.Int64N(990),
		}
		if random.IntN(10) == 0 {
			row.offset = []int64{random.Int64N(10), 1000 + random.Int64N(10)}[random.IntN(2)]
		}
		if random.IntN(5) > 0 {
			before[row.key()] = row
		}
		if _, known := before[row.key()]; !known && row.offset >= 10 && row.offset < 1000 {
			after[row.key()] = row
		}
	}
	for key, row := range before {
		delete(after, key)
		if row.offset < 10 || row.offset >= 1000 {
			continue // a replay does not make it
		}
		row.logic = 1 + random.IntN(2)
		switch random.IntN(5) {
		case 0:
			row.price += 1
		case 1:
			row.note = []string{"", "other"}[random.IntN(2)]
		case 2:
			row.inputs = "others"
		case 3:
			continue
		}
		after[key] = row
	}
	return before, after
}

func expectedCounts(before, after map[string]drawnRow) (want shadow.Restated) {
	for key, is := range after {
		was, known := before[key]
		same := was
		same.logic = is.logic
		switch {
		case !known:
			want.Added++
		case same != is:
			want.Changed++
		case was.logic != is.logic:
			want.Renewed++
		}
	}
	for key, was := range before {
		if _, kept := after[key]; !kept && was.offset >= 10 && was.offset < 1000 {
			want.Removed++
		}
	}
	want.Listed = want.All()
	return want
}

func insertDrawn(t *testing.T, store *history.Store, table string, drawn map[string]drawnRow) {
	t.Helper()
	var values []string
	for _, row := range drawn {
		values = append(values, row.sql())
	}
	if err := store.Conn().Exec(t.Context(), "INSERT INTO "+table+" VALUES "+strings.Join(values, ", ")); err != nil {
		t.Fatal(err)
	}
}

// applyRestatement makes of the values before those after.
func applyRestatement(t *testing.T, rows map[string]map[string]string, key string, r *eventsv1.Restatement) {
	t.Helper()
	switch row := rows[key]; r.Kind {
	case shadow.KindAdded:
		if row != nil || len(r.Before) > 0 {
			t.Errorf("%s is added and was there: %v", key, r)
		}
		rows[key] = map[string]string{}
	case shadow.KindRemoved:
		if len(row) != len(r.Before) || len(r.After) > 0 {
			t.Errorf("%s is removed: got %v, want all of %v", key, r, row)
		}
		delete(rows, key)
		return
	}
	for _, v := range r.Before {
		if rows[key][v.Name] != v.Value {
			t.Errorf("%s: got %s before, want %s", key, v, rows[key][v.Name])
		}
		delete(rows[key], v.Name)
	}
	for _, v := range r.After {
		rows[key][v.Name] = v.Value
	}
}

// What a replay changed counts from when its tables took the place of those that were there, of the coins and the time that it names; of what it does not list it may be any.
func TestRestatedNamesWhenAReplayChangedRows(t *testing.T) {
	store := newStore(t)
	at := func(second int64) time.Time { return time.Unix(1_800_000_000+second, 0).UTC() }
	offset := int64(0)
	record := func(rec *eventsv1.RestatementRecord) {
		offset++
		insert(t, store, logged{rows.Place{Topic: schemas.TopicRestatements, Offset: offset}, rec})
	}
	changed := func(run string, attempt uint32, written int64, coin string, event int64) {
		record(&eventsv1.RestatementRecord{Run: run, Attempt: attempt, Time: at(written).UnixNano(), Body: &eventsv1.RestatementRecord_Restatement{Restatement: &eventsv1.Restatement{
			Table: "prices", View: schemas.ViewPrices, Kind: "changed", Cause: "replay", CoinId: coin, EventTime: at(event).UnixNano(), Key: []*eventsv1.RestatedValue{{Name: "coin_id", Value: coin}}}}})
	}
	counts := func(run string, attempt uint32, written, changed, listed int64) {
		record(&eventsv1.RestatementRecord{Run: run, Attempt: attempt, Time: at(written).UnixNano(), Body: &eventsv1.RestatementRecord_Table{Table: &eventsv1.RestatedTable{
			Table: "prices", View: schemas.ViewPrices, Changed: changed, Listed: listed}}})
	}
	changed("given up", 1, 100, "bitcoin", 10)
	changed("first", 2, 200, "bitcoin", 10)
	changed("first", 2, 201, "ethereum", 40)
	counts("first", 2, 230, 2, 2)
	for _, c := range []struct {
		coin            string
		from, to, after int64
		want            int64
	}{
		{"bitcoin", 0, 20, 50, 230}, {"bitcoin", 0, 20, 229, 230}, {"bitcoin", 0, 20, 230, 0}, {"bitcoin", 0, 10, 50, 0}, {"bitcoin", 11, 20, 50, 0}, {"solana", 0, 50, 50, 0},
		{"ethereum", 40, 41, 50, 230},
	} {
		got, err := read.From(store).Restated(t.Context(), []string{"prices", "candles_1m"}, []string{c.coin}, at(c.from), at(c.to), at(c.after))
		if want := at(c.want); err != nil || c.want == 0 && !got.IsZero() || c.want != 0 && !got.Equal(want) {
			t.Errorf("%s from %d to %d after %d: got %s, %v; want %d", c.coin, c.from, c.to, c.after, got, err, c.want)
		}
	}
	counts("second", 1, 300, 200_000, 100_000)
	if got, err := read.From(store).Restated(t.Context(), []string{"prices"}, []string{"solana"}, at(0), at(50), at(250)); err != nil || !got.Equal(at(300)) {
		t.Errorf("of what is not listed: got %s, %v; want %s", got, err, at(300))
	}
}
