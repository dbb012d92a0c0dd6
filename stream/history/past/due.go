package past

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/history"
)

// passStart is what a pass begins with.
type passStart struct {
	// at is the server's time, Unix nanoseconds.
	at int64
	// stamps is the sum of all stamps, tables names the tables that a replay may exchange.
	stamps uint64
	tables string
	closed time.Time
}

// foldedPart is what past_folds has of a part.
type foldedPart struct {
	stamp  uint64
	quotes []string
	// waits is when the first candle ends that was left out, Unix seconds; 0 for none.
	waits int64
	// version is the server's time of the fold, Unix nanoseconds.
	version uint64
}

// live reports whether there was a live minute ever.
func (s passStart) live() bool { return s.closed.Before(NeverLive) }

func (f *Fold) start(ctx context.Context) (sign passStart, err error) {
	err = f.store.Conn().QueryRow(ctx, `SELECT toUnixTimestamp64Nano(now64(9)), ifNull((SELECT sumWithOverflow(stamp) FROM past_marks), 0), ifNull((SELECT until FROM live_closed), toDateTime(0, 'UTC')),
		ifNull((SELECT arrayStringConcat(groupArray(toString(uuid)), ' ') FROM (SELECT uuid FROM system.tables WHERE database = currentDatabase() AND name IN ('candles_1m', 'fixings') ORDER BY name)), '')`).
		Scan(&sign.at, &sign.stamps, &sign.closed, &sign.tables)
	if err != nil {
		return sign, fmt.Errorf("looking for what was back-filled: %w", history.Unavailable(err))
	}
	sign.closed = sign.closed.UTC()
	return sign, nil
}

// work is what there is to fold at a sign.
type work struct {
	sign   passStart
	common uint64
	marks  map[partKey]uint64
	folds  map[partKey]foldedPart
	due    []partKey
	// fixings are the stamps of those that count in a slot.
	fixings map[partKey]uint64
}

// workAt reads what is due.
func (f *Fold) workAt(ctx context.Context, sign passStart) (*work, error) {
	p := &work{sign: sign, marks: map[partKey]uint64{}, folds: map[partKey]foldedPart{}, fixings: map[partKey]uint64{}}
	scanPart := func(rows driver.Rows, more ...any) (part partKey, err error) {
		var slot time.Time
		err = rows.Scan(append([]any{&part.coinID, &part.seconds, &slot}, more...)...)
		part.slot = slot.Unix()
		return part, err
	}
	_, err := history.Select(ctx, f.store, "SELECT coin_id, seconds, slot, sumWithOverflow(stamp) FROM past_marks GROUP BY coin_id, seconds, slot", nil,
		func(rows driver.Rows) (struct{}, error) {
			var stamp uint64
			part, err := scanPart(rows, &stamp)
			p.marks[part] = stamp
			return struct{}{}, err
		})
	if err != nil {
		return p, fmt.Errorf("reading the marks of the past: %w", err)
	}
	_, err = history.Select(ctx, f.store, "SELECT coin_id, seconds, slot, stamp, quotes, waits, toUInt64(bitShiftRight(version, 64)) FROM past_folds FINAL", nil,
		func(rows driver.Rows) (struct{}, error) {
			var state foldedPart
			var waits time.Time
			part, err := scanPart(rows, &state.stamp, &state.quotes, &waits, &state.version)
			state.waits = waits.Unix()
			p.folds[part] = state
			return struct{}{}, err
		})
	if err != nil {
		return p, fmt.Errorf("reading what was folded of the past: %w", err)
	}
	p.common = p.commonStamp()
	for part := range p.marks {
		if part.seconds == 0 {
			continue
		}
		state, known := p.folds[part]
		if !known || state.stamp != p.stamp(part, state.quotes) || state.waits > 0 && state.waits <= sign.closed.Unix() {
			p.due = append(p.due, part)
		}
	}
	return p, nil
}

// commonStamp is made of what all parts depend on: the rule, the tables, whether there are live minutes at all.
func (p *work) commonStamp() uint64 {
	h := fnv.New64a()
	writeNumber(h, schemas.FoldMarketsVersion)
	writeText(h, history.Literals(schemas.QuotePreference()), history.Literals(quoteCoins(schemas.DirectQuote)), history.Literals(quoteCoins(schemas.CrossQuote)), p.sign.tables)
	if p.sign.live() {
		writeText(h, "live")
	}
	writeNumber(h, p.marks[wholePast])
	return h.Sum64()
}

// stamp is made of all marks that a part depends on, if those are the coins that convert it.
func (p *work) stamp(part partKey, quotes []string) uint64 {
	h := fnv.New64a()
	writeNumber(h, p.common)
	writeNumber(h, p.marks[part])
	writeNumber(h, p.fixingStamp(part))
	for _, quote := range quotes {
		writeText(h, quote)
		writeNumber(h, p.marks[partKey{quote, part.seconds, part.slot}])
	}
	return h.Sum64()
}

// fixingStamp adds up the stamps of the days whose fixings count in the slot of a part.
func (p *work) fixingStamp(part partKey) uint64 {
	slot := partKey{"", part.seconds, part.slot}
	if sum, known := p.fixings[slot]; known {
		return sum
	}
	sum, of := uint64(0), part.span()
	for at := of.From.Truncate(24*time.Hour).AddDate(0, 0, -schemas.FixingDays); at.Before(of.To); at = at.AddDate(0, 0, 1) {
		sum += p.marks[fixingPart(at.Unix())]
	}
	p.fixings[slot] = sum
	return sum
}

func writeText(h hash.Hash64, texts ...string) {
	for _, text := range texts {
		writeNumber(h, uint64(len(text)))
		_, _ = h.Write([]byte(text)) // never fails
	}
}

func writeNumber(h hash.Hash64, n uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	_, _ = h.Write(b[:]) // never fails
}

// NeverLive is what the view live_closed says where there never was a live minute.
var NeverLive = time.Date(2106, 1, 1, 0, 0, 0, 0, time.UTC)
