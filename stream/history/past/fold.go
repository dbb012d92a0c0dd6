// Package past makes candles of coins in USD of the candles that venues serve of times before there were live prices. It marks what has
// changed, folds that and nothing else, and reads what was folded: whatever is back-filled in whatever order, the candles end as if all of it
// had been there at once.
package past

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/faults"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/native"
)

// foldStarts bounds how many candles of coins are folded at once: each is made of one to eight markets' candles of about 200
// bytes.
const foldStarts = 30_000

// Fold folds the venues' own candles (table backfill) into those of coins in USD (table past_candles), by
// schemas.FoldMarkets and schemas.Conversion.
//
// It works on parts, see pastPart. Who writes rows of backfill or fixings adds a stamp to the parts that they lie in, after the rows. A
// fold reads the stamps first, then the rows, and keeps what it has read of the stamps, after the rows that it makes: so
// whatever is written while it works makes the part due again, in whatever order it comes and however often. Of two
// folds of a part the one that read the stamps later stays.
//
// A candle is folded when live minutes are closed up to its end (see ClosedUntil): the live candles that may convert it do not
// change any more.
//
// Any number of them may work on one store; a PastFold itself is used by one goroutine.
type Fold struct {
	store *history.Store
	// idle means that at the sign seen nothing was due, and wakes when the first candle ends that waits for live minutes.
	idle  bool
	seen  passStart
	wakes int64
}

// NewFold makes a fold of the past of a store.
func NewFold(store *history.Store) *Fold { return &Fold{store: store} }

// Adopt marks parts that have rows and no mark: of back-fills by a version that wrote none, and where marks were lost.
func (f *Fold) Adopt(ctx context.Context) error {
	f.idle = false
	err := f.store.Conn().Exec(ctx, `INSERT INTO past_marks (coin_id, seconds, slot, stamp)
		SELECT coin_id, seconds, slot, 1 FROM (
			SELECT DISTINCT coin_id, seconds,
				multiIf(seconds = 60, toStartOfDay(start), seconds = 3600, toDateTime(toStartOfMonth(start), 'UTC'), toDateTime(toStartOfYear(start), 'UTC')) AS slot
			FROM backfill WHERE coin_id != '' AND seconds IN (60, 3600, 86400))
		WHERE (coin_id, seconds, slot) NOT IN (SELECT coin_id, seconds, slot FROM past_marks)`)
	if err != nil {
		return fmt.Errorf("marking what was back-filled without marks: %w", history.Unavailable(err))
	}
	return nil
}

// Mark has all of the past folded again: after rows that it is made of were lost, or written again. What was there before is not known any more
// then.
func (f *Fold) Mark(ctx context.Context) error {
	err := f.store.Conn().Exec(ctx, "INSERT INTO past_marks (coin_id, seconds, slot, stamp) SELECT ?, 0, 0, toUInt64(toUnixTimestamp64Nano(now64(9)))", wholePast.coinID)
	if err == nil {
		err = f.store.Conn().Exec(ctx, "INSERT INTO past_candles_before (coin_id, until) SELECT ?, toUInt64(toUnixTimestamp64Nano(now64(9)))", wholePast.coinID)
	}
	if err != nil {
		return fmt.Errorf("marking the past: %w", history.Unavailable(err))
	}
	return nil
}

// Due counts the parts of the past that have to be folded (again), but for candles that wait for live minutes.
func (f *Fold) Due(ctx context.Context) (int, error) {
	sign, err := f.start(ctx)
	if err != nil {
		return 0, err
	}
	p, err := f.workAt(ctx, sign)
	if err != nil {
		return 0, err
	}
	return len(p.due), nil
}

// Pass folds all parts that are due as it begins and returns their number. After an error some are folded; the next pass goes
// on. An error that is not stream.ErrUnavailable will come again.
func (f *Fold) Pass(ctx context.Context) (folded int, err error) {
	sign, err := f.start(ctx)
	if err != nil {
		return 0, err
	}
	if f.idle && sign.stamps == f.seen.stamps && sign.tables == f.seen.tables && sign.live() == f.seen.live() && (f.wakes == 0 || sign.closed.Unix() < f.wakes) {
		return 0, nil
	}
	f.idle = false
	p, err := f.workAt(ctx, sign)
	if err != nil {
		return 0, err
	}
	for _, g := range p.groups() {
		if err := f.fold(ctx, p, g); err != nil {
			return folded, err
		}
		folded += len(g.parts)
	}
	f.idle, f.seen, f.wakes = true, sign, 0
	for _, state := range p.folds {
		if state.waits > 0 && (f.wakes == 0 || state.waits < f.wakes) {
			f.wakes = state.waits
		}
	}
	return folded, nil
}

// group are parts of one length that are folded at once: the same slots of several coins.
type group struct {
	seconds uint32
	coins   []string
	slots   []int64
	parts   []partKey
}

// groups puts the parts that are due together, the shortest candles last: charts begin with days.
func (p *work) groups() (all []group) {
	type coinLength struct {
		coinID  string
		seconds uint32
	}
	slots := map[coinLength][]int64{}
	for _, part := range p.due {
		of := coinLength{part.coinID, part.seconds}
		slots[of] = append(slots[of], part.slot)
	}
	open := map[string]int{} // the group of a length and some slots that has room, by their names
	coins := slices.SortedFunc(maps.Keys(slots), func(a, b coinLength) int {
		return cmp.Or(cmp.Compare(b.seconds, a.seconds), strings.Compare(a.coinID, b.coinID))
	})
	for _, of := range coins {
		list := slots[of]
		slices.Sort(list)
		name := fmt.Sprint(of.seconds, list)
		at, ok := open[name]
		if !ok {
			at = len(all)
			open[name], all = at, append(all, group{seconds: of.seconds, slots: list})
		}
		g := &all[at]
		g.coins = append(g.coins, of.coinID)
		starts := 0
		for _, slot := range list {
			part := partKey{of.coinID, of.seconds, slot}
			g.parts = append(g.parts, part)
			starts += part.starts()
		}
		if (len(g.coins)+1)*starts > foldStarts {
			delete(open, name)
		}
	}
	return all
}

// starts is how many candles a part has at most.
func (p partKey) starts() int {
	of := p.span()
	return int(of.To.Sub(of.From) / (time.Duration(p.seconds) * time.Second))
}

// spans are the slots, neighbours joined.
func (g group) spans() (spans []Span) {
	for _, slot := range g.slots {
		of := partKey{"", g.seconds, slot}.span()
		if n := len(spans); n > 0 && spans[n-1].To.Equal(of.From) {
			spans[n-1].To = of.To
			continue
		}
		spans = append(spans, of)
	}
	return spans
}

// fold folds the parts of a group and keeps from what.
func (f *Fold) fold(ctx context.Context, p *work, g group) error {
	length, spans := time.Duration(g.seconds)*time.Second, g.spans()
	markets, err := f.marketCandles(ctx, g.coins, length, spans)
	if err != nil {
		return err
	}
	quotes, err := f.conversion(ctx, length, markets, spans)
	if err != nil {
		return err
	}
	there, newest, err := f.there(ctx, g.coins, g.seconds, spans)
	if err != nil {
		return err
	}
	byCoin := map[string][]schemas.MarketCandle{}
	for _, m := range markets {
		byCoin[m.CoinID] = append(byCoin[m.CoinID], m)
	}
	// The server's time: later folds have read later marks. Should its clock be put back they still come after what is there.
	version := max(uint64(p.sign.at), newest+1)
	for _, part := range g.parts {
		version = max(version, p.folds[part].version+1)
	}
	now, err := f.now(ctx)
	if err != nil {
		return err
	}
	w := writer{seconds: g.seconds, closed: p.sign.closed.Unix(), quotes: quotes, version: proto.UInt128{High: version, Low: rand.Uint64()}, now: now, waits: map[partKey]int64{}}
	for coin, candles := range byCoin {
		w.write(coin, candles, there[coin])
		delete(there, coin)
	}
	for coin, rows := range there {
		w.write(coin, nil, rows)
	}
	faults.Hit("past.fold")
	// What was is kept before it is replaced. If it is not replaced, what is there counts still.
	if w.before.Len() > 0 {
		if err := f.store.Insert(ctx, &w.before, ""); err != nil {
			return err
		}
	}
	if err := f.store.Insert(ctx, &w.rows, ""); err != nil {
		return err
	}
	faults.Hit("past.folded")
	folds := &foldRows{inserted: w.now}
	for _, part := range g.parts {
		state := foldedPart{quotes: quotes.of(byCoin[part.coinID]), waits: w.waits[part], version: version}
		state.stamp = p.stamp(part, state.quotes)
		p.folds[part] = state
		folds.add(part, state, w.version)
	}
	if err := f.store.Insert(ctx, folds, ""); err != nil {
		return err
	}
	faults.Hit("past.kept")
	return nil
}

// of are the coins that candles are converted by, and these by in turn, in order.
func (q converter) of(candles []schemas.MarketCandle) []string {
	coins := map[string]struct{}{}
	for _, c := range candles {
		if _, converts := quoteLevels()[c.QuoteID]; !converts {
			continue
		}
		coins[c.QuoteID] = struct{}{}
		for _, id := range q.behind[c.QuoteID] {
			coins[id] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(coins))
}

// now is the server's time, Unix nanoseconds.
func (f *Fold) now(ctx context.Context) (at uint64, err error) {
	if err := f.store.Conn().QueryRow(ctx, "SELECT toUInt64(toUnixTimestamp64Nano(now64(9)))").Scan(&at); err != nil {
		return 0, fmt.Errorf("reading the time of the tables: %w", history.Unavailable(err))
	}
	return at, nil
}

// candleRow is a row of past_candles that is there; a candle without an origin is not priced.
type candleRow struct {
	candle schemas.Candle
	// since is the server's time from which on it was what it is, Unix nanoseconds.
	since uint64
}

// equals reports whether a row has the values that another fold made of the same start; nil means that no price can be made.
func (r candleRow) equals(c *schemas.Candle) bool {
	if c == nil {
		return r.candle.Origin == ""
	}
	return r.candle.Origin == c.Origin && r.candle.Open == c.Open && r.candle.High == c.High && r.candle.Low == c.Low && r.candle.Close == c.Close &&
		r.candle.VolumeUSD == c.VolumeUSD && native.Decimal256(r.candle.Volume.String()) == native.Decimal256(c.Volume.String()) // as the column holds it
}

// there reads the candles that are there of coins, by coin id and start, and the newest version among them.
func (f *Fold) there(ctx context.Context, coinIDs []string, seconds uint32, spans []Span) (there map[string]map[int64]candleRow, newest uint64, err error) {
	starts, args := startsIn(spans)
	there = map[string]map[int64]candleRow{}
	_, err = history.Select(ctx, f.store, `SELECT coin_id, start, open, high, low, close, volume, volume_usd, priced, imported, since, toUInt64(bitShiftRight(version, 64))
		FROM past_candles FINAL WHERE coin_id IN (?) AND `+starts+" AND seconds = ?",
		append(append([]any{coinIDs}, args...), seconds),
		func(rows driver.Rows) (struct{}, error) {
			var coin string
			var row candleRow
			var priced, imported bool
			var version uint64
			c := &row.candle
			err := rows.Scan(&coin, &c.Start, &c.Open, &c.High, &c.Low, &c.Close, &c.Volume, &c.VolumeUSD, &priced, &imported, &row.since, &version)
			switch {
			case imported:
				c.Origin = schemas.OriginImport
			case priced:
				c.Origin = schemas.OriginBackfill
			}
			if there[coin] == nil {
				there[coin] = map[int64]candleRow{}
			}
			there[coin][c.Start.Unix()] = row
			newest = max(newest, version)
			return struct{}{}, err
		})
	if err != nil {
		return nil, 0, fmt.Errorf("reading back-filled candles of %v: %w", coinIDs, err)
	}
	return there, newest, nil
}

// writer makes the rows of a group.
type writer struct {
	seconds uint32
	closed  int64
	quotes  converter
	version proto.UInt128
	// now is the server's time, Unix nanoseconds.
	now    uint64
	rows   candleRows
	before beforeRows
	// waits are the ends of the first candles that were left out, by part.
	waits map[partKey]int64
}

// write makes the rows of a coin: of each start of its markets' candles that has ended, and of those that are there, which state that
// there is none any more where nothing gives them.
func (w *writer) write(coinID string, markets []schemas.MarketCandle, there map[int64]candleRow) {
	priced := map[int64]*schemas.Candle{}
	candles := schemas.FoldMarkets(markets, time.Duration(w.seconds)*time.Second, w.quotes.Rate) // it sorts by start
	for i := range candles {
		priced[candles[i].Start.Unix()] = &candles[i]
	}
	for i := 0; i < len(markets); {
		first := i
		for i < len(markets) && markets[i].Start.Equal(markets[first].Start) {
			i++
		}
		start := markets[first].Start.Unix()
		if ends := start + int64(w.seconds); ends > w.closed {
			if part, ok := partOf(coinID, w.seconds, start); ok && w.waits[part] == 0 {
				w.waits[part] = ends
			}
			continue
		}
		w.rows.add(coinID, w.seconds, start, priced[start], w.rates(markets[first:i]), w.since(coinID, start, there, priced[start]), w.version)
		delete(there, start)
	}
	for _, start := range slices.Sorted(maps.Keys(there)) {
		w.rows.add(coinID, w.seconds, start, nil, nil, w.since(coinID, start, there, nil), w.version)
	}
}

// since is from when on a start has the value that it has now. Its value before, if it was another, is kept.
func (w *writer) since(coinID string, start int64, there map[int64]candleRow, c *schemas.Candle) uint64 {
	row, ok := there[start]
	switch {
	case !ok:
		return w.now
	case row.equals(c):
		return row.since
	}
	since := max(w.now, row.since+1) // should the server's clock be put back
	w.before.add(coinID, w.seconds, start, row, since)
	return since
}

// rates are those of the quotes of candles of one start.
func (w *writer) rates(markets []schemas.MarketCandle) (rates []quoteRate) {
	for _, m := range markets {
		if slices.ContainsFunc(rates, func(r quoteRate) bool { return r.quoteID == m.QuoteID }) {
			continue
		}
		rate, _ := w.quotes.Rate(m.QuoteID, m.Start) // zero if it is not known
		rates = append(rates, quoteRate{m.QuoteID, rate.Open})
	}
	return rates
}
