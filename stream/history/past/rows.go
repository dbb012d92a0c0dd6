package past

import (
	"time"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/shopspring/decimal"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/history/native"
)

// fixingsBase is the currency whose fixings convert others, see the view fixings_usd.
const fixingsBase = "EUR"

// partKey is what of the past is folded at once: the candles of a coin of one length in a slot of time. Of seconds 0 are the
// days of fixings, without a coin, and wholePast.
type partKey struct {
	coinID  string
	seconds uint32
	// slot is the start, Unix seconds.
	slot int64
}

// wholePast means all parts: its mark says that any of them may have changed.
var wholePast = partKey{coinID: "*"}

// partOf finds the part that a candle lies in; false for one of a length that is not folded.
func partOf(coinID string, seconds uint32, start int64) (partKey, bool) {
	slot, ok := slotOf(seconds, start)
	return partKey{coinID, seconds, slot}, ok && coinID != ""
}

// slotOf is the start of the slot of a candle: a part has at most 1,440 starts.
func slotOf(seconds uint32, start int64) (int64, bool) {
	at := time.Unix(start, 0).UTC()
	switch time.Duration(seconds) * time.Second {
	case time.Minute:
		return time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC).Unix(), true
	case time.Hour:
		return time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC).Unix(), true
	case 24 * time.Hour:
		return time.Date(at.Year(), 1, 1, 0, 0, 0, 0, time.UTC).Unix(), true
	default:
		return 0, false
	}
}

// fixingPart is the part for what is fixed for a day, Unix seconds, by fixings.
func fixingPart(day int64) partKey { return partKey{slot: day} }

// span is the time of the part.
func (p partKey) span() Span {
	from := time.Unix(p.slot, 0).UTC()
	switch time.Duration(p.seconds) * time.Second {
	case time.Minute:
		return Span{from, from.AddDate(0, 0, 1)}
	case time.Hour:
		return Span{from, from.AddDate(0, 1, 0)}
	default:
		return Span{from, from.AddDate(1, 0, 0)}
	}
}

// Marks are rows of past_marks: one for each part that a batch changes. They are inserted after the rows of backfill and fixings that
// mark them.
type Marks struct {
	known   map[partKey]struct{}
	coinID  native.LowCardinality
	seconds proto.ColUInt32
	slot    proto.ColDateTime
	stamp   proto.ColUInt64
}

// Table is the table of the rows.
func (r *Marks) Table() string { return "past_marks" }

// Len returns the number of rows.
func (r *Marks) Len() int { return len(r.stamp) }

// Reset empties the rows.
func (r *Marks) Reset() {
	clear(r.known)
	native.Reset(&r.coinID, &r.seconds, &r.slot, &r.stamp)
}

// AddCandle marks the part that a venue's own candle of a coin lies in, of a length and a start in seconds, by the place in the log of its
// record. Candles of a length that is not folded mark none.
func (r *Marks) AddCandle(coinID string, seconds uint32, start int64, partition int32, offset int64) {
	if part, ok := partOf(coinID, seconds, start); ok {
		r.add(part, partition, offset)
	}
}

// AddFixing marks the day (its start, Unix seconds) of a fixing, by the place in the log of its record, if it is in the currency whose fixings
// convert others.
func (r *Marks) AddFixing(base string, day int64, partition int32, offset int64) {
	if base == fixingsBase {
		r.add(fixingPart(day), partition, offset)
	}
}

func (r *Marks) add(part partKey, partition int32, offset int64) {
	if _, ok := r.known[part]; ok {
		return
	}
	if r.known == nil {
		r.known = map[partKey]struct{}{}
	}
	r.known[part] = struct{}{}
	r.coinID.Add(part.coinID)
	r.seconds = append(r.seconds, part.seconds)
	r.slot.Data = append(r.slot.Data, proto.DateTime(part.slot))
	r.stamp = append(r.stamp, stampOf(partition, offset))
}

// stampOf makes a number of a place in the log that is never 0. The stamps of a part are added up, so they are spread over all 64 bits: a sum
// that lost some does not come back to what it was when as many are added.
func stampOf(partition int32, offset int64) uint64 {
	x := uint64(uint32(partition))<<48 ^ uint64(offset)
	x += 0x9e3779b97f4a7c15 // https://prng.di.unimi.it/splitmix64.c
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return (x ^ x>>31) | 1
}

// Columns are the columns of the block.
func (r *Marks) Columns() []native.Column {
	return []native.Column{
		native.Col("coin_id", "LowCardinality(String)", &r.coinID),
		native.Col("seconds", "UInt32", &r.seconds),
		native.Col("slot", "DateTime('UTC')", &r.slot),
		native.Col("stamp", "UInt64", &r.stamp),
	}
}

// candleColumns are what the rows of past_candles and past_candles_before have in common.
type candleColumns struct {
	coinID                 native.LowCardinality
	seconds                proto.ColUInt32
	start                  proto.ColDateTime
	open, high, low, close proto.ColFloat64
	volume                 proto.ColDecimal256
	volumeUSD              proto.ColFloat64
	priced, imported       proto.ColBool
	since                  proto.ColUInt64
}

// Len returns the number of rows.
func (r *candleColumns) Len() int { return len(r.open) }

func (r *candleColumns) reset() {
	native.Reset(&r.coinID, &r.seconds, &r.start, &r.open, &r.high, &r.low, &r.close, &r.volume, &r.volumeUSD, &r.priced, &r.imported, &r.since)
}

// add adds the candle of a coin at a start, which is what it is since a time of the server, Unix nanoseconds. One without an origin is not priced.
func (r *candleColumns) add(coinID string, seconds uint32, start int64, c *schemas.Candle, since uint64) {
	r.coinID.Add(coinID)
	r.seconds = append(r.seconds, seconds)
	r.start.Data = append(r.start.Data, proto.DateTime(start))
	r.open, r.high, r.low, r.close = append(r.open, c.Open), append(r.high, c.High), append(r.low, c.Low), append(r.close, c.Close)
	r.volume = append(r.volume, native.Decimal256(c.Volume.String()))
	r.volumeUSD = append(r.volumeUSD, c.VolumeUSD)
	r.priced = append(r.priced, c.Origin != "")
	r.imported = append(r.imported, c.Origin == schemas.OriginImport)
	r.since = append(r.since, since)
}

func (r *candleColumns) columns() []native.Column {
	return []native.Column{
		native.Col("coin_id", "LowCardinality(String)", &r.coinID),
		native.Col("seconds", "UInt32", &r.seconds),
		native.Col("start", "DateTime('UTC')", &r.start),
		native.Col("open", "Float64", &r.open),
		native.Col("high", "Float64", &r.high),
		native.Col("low", "Float64", &r.low),
		native.Col("close", "Float64", &r.close),
		native.Col("volume", "Decimal(76, 18)", &r.volume),
		native.Col("volume_usd", "Float64", &r.volumeUSD),
		native.Col("priced", "Bool", &r.priced),
		native.Col("imported", "Bool", &r.imported),
		native.Col("since", "UInt64", &r.since),
	}
}

// candleRows are rows of past_candles.
type candleRows struct {
	candleColumns
	ends    proto.ColUInt64
	quotes  native.LowCardinality
	rates   proto.ColFloat64
	version proto.ColUInt128
}

func (r *candleRows) Table() string { return "past_candles" }

func (r *candleRows) Reset() {
	r.reset()
	native.Reset(&r.ends, &r.quotes, &r.rates, &r.version)
}

// quoteRate is what one unit of a quote cost in USD, 0 where that is not known.
type quoteRate struct {
	quoteID string
	usd     float64
}

// add adds the candle of a coin at a start; nil where none can be made.
func (r *candleRows) add(coinID string, seconds uint32, start int64, c *schemas.Candle, rates []quoteRate, since uint64, version proto.UInt128) {
	if c == nil {
		c = &schemas.Candle{Volume: decimal.Zero}
	}
	r.candleColumns.add(coinID, seconds, start, c, since)
	for _, rate := range rates {
		r.quotes.Add(rate.quoteID)
		r.rates = append(r.rates, rate.usd)
	}
	r.ends = append(r.ends, uint64(len(r.rates)))
	r.version = append(r.version, version)
}

func (r *candleRows) Columns() []native.Column {
	return append(r.columns(),
		native.Col("quotes", "Array(LowCardinality(String))", native.Array(&r.ends, &r.quotes)),
		native.Col("rates", "Array(Float64)", native.Array(&r.ends, &r.rates)),
		native.Col("version", "UInt128", &r.version),
	)
}

// beforeRows are rows of past_candles_before.
type beforeRows struct {
	candleColumns
	until proto.ColUInt64
}

func (r *beforeRows) Table() string { return "past_candles_before" }

func (r *beforeRows) Reset() {
	r.reset()
	r.until.Reset()
}

// add adds what a row was until a time of the server, Unix nanoseconds.
func (r *beforeRows) add(coinID string, seconds uint32, start int64, was candleRow, until uint64) {
	r.candleColumns.add(coinID, seconds, start, &was.candle, was.since)
	r.until = append(r.until, until)
}

func (r *beforeRows) Columns() []native.Column {
	return append(r.columns(), native.Col("until", "UInt64", &r.until))
}

// foldRows are rows of past_folds.
type foldRows struct {
	coinID  native.LowCardinality
	seconds proto.ColUInt32
	slot    proto.ColDateTime
	stamp   proto.ColUInt64
	ends    proto.ColUInt64
	quotes  native.LowCardinality
	waits   proto.ColDateTime
	version proto.ColUInt128
	quoted  int
	// inserted is the server's time at which the candles were, Unix nanoseconds.
	inserted uint64
	at       proto.ColUInt64
}

func (r *foldRows) Table() string { return "past_folds" }
func (r *foldRows) Len() int      { return len(r.stamp) }

func (r *foldRows) Reset() {
	r.quoted = 0
	native.Reset(&r.coinID, &r.seconds, &r.slot, &r.stamp, &r.ends, &r.quotes, &r.waits, &r.at, &r.version)
}

func (r *foldRows) add(part partKey, f foldedPart, version proto.UInt128) {
	r.coinID.Add(part.coinID)
	r.seconds = append(r.seconds, part.seconds)
	r.slot.Data = append(r.slot.Data, proto.DateTime(part.slot))
	r.stamp = append(r.stamp, f.stamp)
	for _, quote := range f.quotes {
		r.quotes.Add(quote)
	}
	r.quoted += len(f.quotes)
	r.ends = append(r.ends, uint64(r.quoted))
	r.waits.Data = append(r.waits.Data, proto.DateTime(f.waits))
	r.at = append(r.at, r.inserted)
	r.version = append(r.version, version)
}

func (r *foldRows) Columns() []native.Column {
	return []native.Column{
		native.Col("coin_id", "LowCardinality(String)", &r.coinID),
		native.Col("seconds", "UInt32", &r.seconds),
		native.Col("slot", "DateTime('UTC')", &r.slot),
		native.Col("stamp", "UInt64", &r.stamp),
		native.Col("quotes", "Array(LowCardinality(String))", native.Array(&r.ends, &r.quotes)),
		native.Col("waits", "DateTime('UTC')", &r.waits),
		native.Col("inserted", "UInt64", &r.at),
		native.Col("version", "UInt128", &r.version),
	}
}
