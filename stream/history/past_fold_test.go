package history_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/past"
	"github.com/marketlog/marketlog/stream/history/read"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/history/shadow"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// foldPast folds what was back-filled.
func foldPast(t testing.TB, store *history.Store) {
	t.Helper()
	if _, err := past.NewFold(store).Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// pastFixture is a store that is given candles, fixings and live minutes in any order, and folded beside it.
type pastFixture struct {
	*testing.T
	*rand.Rand
	oracle *pastOracle
	// store is reached by a way that can be cut, beside by another.
	store, beside *history.Store
	way           *wire
	fold          *past.Fold
	offset        int64
	batches       [][]logged
	// minute is the next live one, after the first; generation counts the replays of candles.
	minute     int
	generation uint32
	// said is what was answered, losses counts the losses of tables.
	said   []saidCandles
	losses int
}

// saidCandles is what was answered of a coin, and what it was made of.
type saidCandles struct {
	coin, interval string
	made           read.ServedCandles
	candles        []schemas.Candle
	losses         int
}

// remember keeps what is answered now, of which no fold is under way.
func (w *pastFixture) remember() {
	if _, err := w.fold.Pass(w.Context()); err != nil {
		w.Fatal(err)
	}
	coin := pastCoins[w.IntN(len(pastCoins))]
	for name, length := range lengths {
		made, err := read.From(w.store).CandlesNow(w.Context())
		w.must(err)
		candles, err := read.From(w.store).Intervals(w.Context(), coin, length, pastSpan.From, pastSpan.To)
		w.must(err)
		w.said = append(w.said, saidCandles{coin, name, made, candles, w.losses})
	}
}

// checkSaid compares what was answered with what is answered as of then.
func (w *pastFixture) checkSaid() {
	w.Helper()
	topic, err := schemas.TopicNamed(schemas.TopicCandles)
	w.must(err)
	for _, s := range w.said {
		got, err := read.From(w.store).IntervalsAsOf(w.Context(), s.coin, lengths[s.interval], pastSpan.From, pastSpan.To, s.made.Of(stream.PartitionFor(s.coin, topic.Partitions)))
		if unknown := (*read.UnknownPastError)(nil); s.losses < w.losses && errors.As(err, &unknown) {
			continue
		}
		w.must(err)
		if diff := cmp.Diff(s.candles, got, cmpopts.EquateEmpty()); diff != "" {
			w.Errorf("%s of %s as of %d: what was said(-), what is said to have been(+):\n%s", s.interval, s.coin, s.made.Folded, diff)
		}
		w.checkCloses(s.made.Of(0))
	}
}

// checkCloses compares closes of hours that are read at once, of all coins and of some, with candles that are read one coin at a time, when live minutes of
// all count as far as those of every coin.
func (w *pastFixture) checkCloses(of read.CandlesAsOf) {
	w.Helper()
	to := time.Unix(0, noon).Add(time.Duration(2-w.IntN(5)) * time.Hour).Truncate(time.Hour)
	from := to.Add(-time.Duration(1+w.IntN(300)) * time.Hour)
	if of.ClosedAll.After(to) {
		of.ClosedAll = to
	}
	of.Closed = of.ClosedAll
	all, err := read.From(w.store).HourlyCloses(w.Context(), nil, from, to, of)
	w.must(err)
	some, err := read.From(w.store).HourlyCloses(w.Context(), pastCoins[:2], from, to, of)
	w.must(err)
	for i, coin := range pastCoins {
		candles, err := read.From(w.store).IntervalsAsOf(w.Context(), coin, time.Hour, from, to, of)
		if unknown := (*read.UnknownPastError)(nil); errors.As(err, &unknown) {
			continue
		}
		w.must(err)
		want := make([]float64, int(to.Sub(from)/time.Hour))
		for _, c := range candles {
			want[int(c.Start.Sub(from)/time.Hour)] = c.Close
		}
		if len(candles) == 0 {
			want = nil
		}
		if diff := cmp.Diff(want, all[coin]); diff != "" {
			w.Errorf("closes of the hours of %s as of %d, minutes closed by %s: of one coin(-), of all(+):\n%s", coin, of.Folded, of.ClosedAll, diff)
		}
		if i >= 2 {
			want = nil
		}
		if diff := cmp.Diff(want, some[coin]); diff != "" {
			w.Errorf("closes of the hours of %s as of %d: of one coin(-), of two(+):\n%s", coin, of.Folded, diff)
		}
	}
}

var (
	errCut      = errors.New("cut off")
	pastCoins   = []string{"bitcoin", "ethereum", "tether", "usd-coin", "solana", "dogecoin"}
	pastLengths = []time.Duration{time.Minute, time.Minute, time.Hour, day}
)

// pastSpan holds all candles that are drawn.
var pastSpan = past.Span{From: time.Unix(0, noon).Add(-500 * day), To: time.Unix(0, noon).Add(10 * day)}

// pastFrom is the first live minute that may be.
var pastFrom = time.Unix(0, noon).Add(-3 * time.Hour)

func newPastFixture(t *testing.T, seed uint64) *pastFixture {
	cfg := newConfig(t)
	way := &wire{RoundTripper: cfg.Transport}
	beside := openStore(t, cfg)
	cfg.Transport = way
	w := &pastFixture{T: t, Rand: rand.New(rand.NewPCG(seed, 7)), oracle: newPastOracle(), store: openStore(t, cfg), beside: beside, way: way}
	if _, err := w.store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.fold = past.NewFold(w.store)
	return w
}

func (w *pastFixture) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// number is one that a float holds exactly.
func (w *pastFixture) number() string {
	return fmt.Sprintf("%d.%d", 1+w.IntN(50), []int{0, 125, 25, 375, 5}[w.IntN(5)])
}

// candles are some of one market, or of several.
func (w *pastFixture) candles() (records []logged) {
	bases := []string{"BTC", "ETH", "USDT", "USDC", "SOL", "DOGE"}
	quotes := []string{"USD", "USDT", "USDC", "EUR", "GBP", "BTC", "ETH", "SOL", "NOSUCH"}
	base, quote, venue := bases[w.IntN(len(bases))], quotes[w.IntN(len(quotes))], w.IntN(4)
	for range 1 + w.IntN(40) {
		if w.IntN(3) == 0 {
			base, quote, venue = bases[w.IntN(len(bases))], quotes[w.IntN(len(quotes))], w.IntN(4)
		}
		length := pastLengths[w.IntN(len(pastLengths))]
		span := map[time.Duration]int{time.Minute: 190, time.Hour: 6, day: 9}[length]
		start := time.Unix(0, noon).Truncate(length).Add(time.Duration(4-w.IntN(span)) * length).UnixNano()
		if w.IntN(8) == 0 { // in another slot
			start -= int64(400 * day)
		}
		w.offset++
		record := venueCandle(w.offset, []string{"kraken", "gate", "okx", "bitstamp"}[venue], base, quote, length, start, w.number(), w.number(), w.number(), w.number(), w.number())
		if candle := record.record.(*eventsv1.BackfillRecord).GetCandle(); w.IntN(2) == 0 {
			candle.Origin, candle.File = string(schemas.OriginImport), []byte{1}
			if w.IntN(6) == 0 {
				candle.Open, candle.High, candle.Low, candle.Close, candle.Volume, candle.Withdrawn = "", "", "", "", "", true
			}
		}
		records = append(records, record)
	}
	return records
}

func (w *pastFixture) fixing() []logged {
	w.offset++
	at := time.Unix(0, noon).UTC().AddDate(0, 0, 2-w.IntN(14))
	return []logged{fixing(w.offset, []string{"USD", "USD", "GBP"}[w.IntN(3)], w.number(), at)}
}

// add inserts a batch, perhaps cut between any two inserts and made again, perhaps once more later.
func (w *pastFixture) add(records []logged) {
	w.batches = append(w.batches, records)
	for _, r := range records {
		w.oracle.add(r)
	}
	w.insert(records)
}

func (w *pastFixture) insert(records []logged) {
	batch := func() (b rows.Batch) {
		for _, r := range records {
			b.Add(r.place, r.record)
		}
		return b
	}
	b := batch()
	if w.IntN(3) == 0 { // the sink dies, or its store is away
		w.cut(w.IntN(4))
		if err := b.Insert(w.Context(), w.store, ""); err == nil {
			w.restore()
			return
		}
		w.restore()
		if w.IntN(2) == 0 {
			b = batch()
		}
		if w.IntN(2) == 0 {
			w.pass() // in between
		}
	}
	w.must(b.Insert(w.Context(), w.store, ""))
}

// inserts reports whether a request inserts rows, and into which table.
func inserts(r *http.Request) (table string, ok bool) {
	rest, ok := strings.CutPrefix(r.URL.Query().Get("query"), "INSERT INTO ")
	table, _, _ = strings.Cut(rest, " ")
	return table, ok
}

// cut lets so many inserts through; the next is lost, before or after it was made.
func (w *pastFixture) cut(n int) {
	late := w.IntN(2) == 0
	w.way.around = func(r *http.Request, do func() (*http.Response, error)) (*http.Response, error) {
		if _, ok := inserts(r); !ok {
			return do()
		}
		if n--; n >= 0 {
			return do()
		}
		if late {
			if resp, err := do(); err == nil {
				resp.Body.Close()
			}
		}
		return nil, errCut
	}
}

func (w *pastFixture) restore() { w.way.around = nil }

// live closes some minutes, in which most coins have a price.
func (w *pastFixture) live() {
	var records []logged
	for range 1 + w.IntN(50) {
		for _, coin := range pastCoins {
			if w.IntN(40) == 0 {
				continue
			}
			c := minuteCandle(coin, 0, w.Rand)
			c.Start = pastFrom.Add(time.Duration(w.minute) * time.Minute).UnixNano()
			w.offset++
			records = append(records, candleAt(w.offset, c))
		}
		w.minute++
	}
	// Rows may be there long before the ledger reports it; nobody may take them for closed.
	w.batches = append(w.batches, records)
	for _, r := range records {
		w.oracle.add(r)
	}
	insert(w, w.beside, records...)
	if w.IntN(3) == 0 {
		w.pass()
	}
	w.closed()
}

func (w *pastFixture) closed() {
	until := pastFrom.Add(time.Duration(w.minute) * time.Minute)
	w.oracle.closed = until.Unix()
	topic, err := schemas.TopicNamed(schemas.TopicCandles)
	w.must(err)
	var progress []history.SinkProgress
	w.offset++
	for p := range topic.Partitions {
		progress = append(progress, history.SinkProgress{
			Sink: schemas.TopicCandles, Progress: history.Progress{Partition: p, Next: w.offset, ClosedUntil: until.UnixNano()},
		})
	}
	w.must(w.beside.Record(w.Context(), progress))
}

// replay puts other live candles in the place of those that are there.
func (w *pastFixture) replay() {
	w.generation++
	uuid, err := shadow.Of(w.store).Create(w.Context(), "candles_1m", w.generation)
	w.must(err)
	var b rows.Batch
	for _, minutes := range w.oracle.live {
		for _, c := range minutes {
			c.Close += 0.5
			c.High = max(c.High, c.Close)
			w.offset++
			again := candleAt(w.offset, c)
			b.Add(again.place, again.record)
		}
	}
	w.must(b.InsertShadow(w.Context(), w.beside, w.generation))
	w.must(shadow.Of(w.beside).Exchange(w.Context(), "candles_1m", w.generation, uuid))
	w.must(shadow.Of(w.beside).Drop(w.Context(), "candles_1m", w.generation))
	w.said = nil // those who answer look for what a replay changed
}

// pass folds, as a process that dies at one of its inserts, one that is overtaken by another and by what is added meanwhile, or
// undisturbed.
func (w *pastFixture) pass() {
	defer w.restore()
	switch w.IntN(4) {
	case 0:
		w.cut(w.IntN(5))
	case 1:
		at := w.IntN(3)
		var hold func(r *http.Request, do func() (*http.Response, error)) (*http.Response, error)
		hold = func(r *http.Request, do func() (*http.Response, error)) (*http.Response, error) {
			if table, ok := inserts(r); !ok || !strings.HasPrefix(table, "past_") {
				return do()
			}
			if at--; at >= 0 {
				return do()
			}
			w.way.around = nil
			if w.IntN(2) == 0 {
				records := w.candles()
				w.batches = append(w.batches, records)
				for _, r := range records {
					w.oracle.add(r)
				}
				insert(w, w.beside, records...)
			}
			if w.IntN(2) == 0 {
				_, err := past.NewFold(w.beside).Pass(w.Context())
				w.must(err)
			}
			return do()
		}
		w.way.around = hold
	}
	if _, err := w.fold.Pass(w.Context()); err != nil {
		if !strings.Contains(err.Error(), errCut.Error()) {
			w.Fatal(err)
		}
		if w.IntN(2) == 0 {
			w.fold = past.NewFold(w.store)
		}
	}
}

// damage loses rows that are only folded, or marks, and has them made again as the instance does that finds them gone.
func (w *pastFixture) damage() {
	table := []string{"past_candles", "past_folds", "past_marks"}[w.IntN(3)]
	w.must(w.beside.Conn().Exec(w.Context(), "TRUNCATE TABLE "+table))
	w.must(past.NewFold(w.beside).Mark(w.Context()))
	w.must(w.fold.Adopt(w.Context()))
	w.losses++
}

func (w *pastFixture) step() {
	switch n := w.IntN(100); {
	case n < 45:
		w.add(w.candles())
	case n < 55:
		w.add(w.fixing())
	case n < 65 && len(w.batches) > 0:
		if batch := w.batches[w.IntN(len(w.batches))]; batch[0].place.Topic != schemas.TopicCandles {
			w.insert(batch)
		}
	case n < 75 && w.minute < 180:
		w.live()
	case n < 77 && w.minute > 0:
		w.replay()
	case n < 80:
		w.damage()
	case n < 85:
		w.remember()
	default:
		w.pass()
	}
}

// check compares everything that is answered with the oracle.
func (w *pastFixture) check() (found int) {
	w.Helper()
	if _, err := w.fold.Pass(w.Context()); err != nil {
		w.Fatal(err)
	}
	if due, err := past.NewFold(w.beside).Due(w.Context()); err != nil || due > 0 {
		w.Errorf("got %d parts that are due after a pass, %v", due, err)
	}
	near := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".VolumeUSD" }, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Abs(a) }))
	w.checkSaid()
	w.checkCloses(read.CandlesAsOf{ClosedAll: time.Unix(w.oracle.closed, 0), Folded: read.FoldedNow})
	from, to := pastSpan.From, pastSpan.To
	for name, length := range lengths {
		all, err := read.From(w.store).AllIntervals(w.Context(), length, from, to)
		w.must(err)
		views := viewedAll(w, w.store, name)
		for _, coin := range pastCoins {
			want := w.oracle.candles(coin, int64(length/time.Second))
			one, err := read.From(w.store).Intervals(w.Context(), coin, length, from, to)
			w.must(err)
			for how, got := range map[string][]schemas.Candle{"Intervals": one, "AllIntervals": all[coin], "the view": views[coin]} {
				if diff := cmp.Diff(want, got, near, cmpopts.IgnoreFields(schemas.Candle{}, "Newest"), cmpopts.EquateEmpty()); diff != "" {
					w.Errorf("%s of %s by %s: want(-), got(+):\n%s", name, coin, how, diff)
				}
			}
			found += len(want)
		}
	}
	w.checkExtremes()
	got := queryStrings(w, w.store, "SELECT concat(coin_id, ' ', toString(seconds), ' ', toString(toUnixTimestamp(start)), ' ', venue, ' ', symbol, ' ', toString(rate), ' ', reason) FROM default.v_backfill")
	slices.Sort(got)
	want := w.oracle.left()
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("v_backfill: want(-), got(+):\n%s", diff)
	}
	return found
}

// checkExtremes compares the extremes of what is back-filled with those of all back-filled days and hours.
func (w *pastFixture) checkExtremes() {
	want := map[string]schemas.Extremes{}
	for key := range w.oracle.markets {
		if c, ok := w.oracle.past(key.coin, key.length, key.start); ok && key.length > 60 {
			e := want[key.coin]
			e.Reach(c)
			want[key.coin] = e
		}
	}
	got, err := read.From(w.store).BackfilledExtremes(w.Context())
	w.must(err)
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("extremes: want(-), got(+):\n%s", diff)
	}
}

// However candles, rates, live minutes and fillings of gaps follow each other, however often they are written, wherever who writes
// or folds them dies, and however many fold: what is answered afterwards is what an oracle works out from all that was added.
// What was answered once is answered as of then.
// MARKETLOG_SEEDS draws as many fixtures more, MARKETLOG_SEED makes the one that failed.
func TestThePastIsFoldedExactly(t *testing.T) {
	var seeds []uint64
	if text := os.Getenv("MARKETLOG_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("MARKETLOG_SEED=%q, want a number", text)
		}
		seeds = []uint64{seed}
	} else {
		seeds = streamtest.Seeds(t, rand.Uint64N(1e9), rand.Uint64N(1e9))
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newPastFixture(t, seed)
			found := 0
			for range 2 {
				for range 15 + w.IntN(25) {
					w.step()
				}
				if found = w.check(); w.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
			if found == 0 {
				t.Errorf("seed %d: there is no candle", seed)
			}
		})
	}
}

// What a version without marks has back-filled is folded at the first start.
func TestThePastOfAnOlderVersionIsFolded(t *testing.T) {
	store := newStore(t)
	insert(t, store, venueCandle(1, "kraken", "BTC", "USD", time.Hour, noon, "1", "2", "1", "2", "7"), venueCandle(2, "kraken", "BTC", "USD", day, noon-noon%int64(day), "1", "2", "1", "2", "7"),
		venueCandle(3, "kraken", "BTC", "USD", time.Minute, noon, "1", "2", "1", "2", "7"))
	if err := store.Conn().Exec(t.Context(), "TRUNCATE TABLE past_marks"); err != nil {
		t.Fatal(err)
	}
	fold := past.NewFold(store)
	pass := func(want int) {
		t.Helper()
		if n, err := fold.Pass(t.Context()); n != want || err != nil {
			t.Errorf("got %d parts folded, %v; want %d", n, err, want)
		}
	}
	pass(0)
	if err := fold.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	pass(3)
	pass(0)
	if err := fold.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	pass(0)
	if err := past.NewFold(store).Mark(t.Context()); err != nil {
		t.Fatal(err)
	}
	pass(3)
	for interval := range lengths {
		if got := viewed(t, store, "bitcoin", interval); len(got) != 1 {
			t.Errorf("%s: got %q", interval, got)
		}
	}
}
