package history

import (
	"time"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/shopspring/decimal"

	"github.com/marketlog/marketlog/schemas"
)

// fixingsBase is the currency whose fixings convert others, see the view fixings_usd.
const fixingsBase = "EUR"

// pastPart is what of the past is folded at once: the candles of a coin of one length in a slot of time. Of seconds 0 are the
// days of fixings, without a coin, and wholePast.
type pastPart struct {
	coinID  string
	seconds uint32
	// slot is the start, Unix seconds.
	slot int64
}

// wholePast stands for all parts: its mark says that any of them may have changed.
var wholePast = pastPart{coinID: "*"}

// pastPartOf finds the part that a candle lies in; false for one of a length that is not folded.
func pastPartOf(coinID string, seconds uint32, start int64) (pastPart, bool) {
	slot, ok := pastSlot(seconds, start)
	return pastPart{coinID, seconds, slot}, ok && coinID != ""
}

// pastSlot is the start of the slot of a candle: a part has at most 1,440 starts.
func pastSlot(seconds uint32, start int64) (int64, bool) {
	at := time.Unix(start, 0).UTC()
	switch time.Duration(seconds) * time.Second {
	case time.Minute:
		return time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC).Unix(), true
	case time.Hour:
		return time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC).Unix(), true
	case day:
		return time.Date(at.Year(), 1, 1, 0, 0, 0, 0, time.UTC).Unix(), true
	default:
		return 0, false
	}
}

// fixingPart stands for what is told of a day, Unix seconds, by fixings.
func fixingPart(day int64) pastPart { return pastPart{slot: day} }

// span is the time of the part.
func (p pastPart) span() span {
	from := time.Unix(p.slot, 0).UTC()
	switch time.Duration(p.seconds) * time.Second {
	case time.Minute:
		return span{from, from.AddDate(0, 0, 1)}
	case time.Hour:
		return span{from, from.AddDate(0, 1, 0)}
	default:
		return span{from, from.AddDate(1, 0, 0)}
	}
}

// pastMarkRows are rows of past_marks: one for each part that a batch changes.
type pastMarkRows struct {
	known   map[pastPart]struct{}
	coinID  lowCardinality
	seconds proto.ColUInt32
	slot    proto.ColDateTime
	stamp   proto.ColUInt64
}

func (r *pastMarkRows) table() string { return "past_marks" }
func (r *pastMarkRows) len() int      { return len(r.stamp) }

func (r *pastMarkRows) reset() {
	clear(r.known)
	reset(&r.coinID, &r.seconds, &r.slot, &r.stamp)
}

// add marks a part, by a record that changes it.
func (r *pastMarkRows) add(p Place, part pastPart) {
	if _, ok := r.known[part]; ok {
		return
	}
	if r.known == nil {
		r.known = map[pastPart]struct{}{}
	}
	r.known[part] = struct{}{}
	r.coinID.add(part.coinID)
	r.seconds = append(r.seconds, part.seconds)
	r.slot.Data = append(r.slot.Data, proto.DateTime(part.slot))
	r.stamp = append(r.stamp, stampOf(p))
}

// stampOf makes a number of a place that is never 0. The stamps of a part are added up, so they are spread over all 64 bits: a sum
// that lost some does not come back to what it was when as many are added.
func stampOf(p Place) uint64 {
	x := uint64(uint32(p.Partition))<<48 ^ uint64(p.Offset)
	x += 0x9e3779b97f4a7c15 // https://prng.di.unimi.it/splitmix64.c
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return (x ^ x>>31) | 1
}

func (r *pastMarkRows) columns() []column {
	return []column{
		{"coin_id", kindWord, &r.coinID},
		{"seconds", "UInt32", &r.seconds},
		{"slot", "DateTime('UTC')", &r.slot},
		{"stamp", "UInt64", &r.stamp},
	}
}

// pastCandleRows are rows of past_candles.
type pastCandleRows struct {
	coinID                 lowCardinality
	seconds                proto.ColUInt32
	start                  proto.ColDateTime
	open, high, low, close proto.ColFloat64
	volume                 proto.ColDecimal256
	volumeUSD              proto.ColFloat64
	priced                 proto.ColBool
	ends                   proto.ColUInt64
	quotes                 lowCardinality
	rates                  proto.ColFloat64
	version                proto.ColUInt128
}

func (r *pastCandleRows) table() string { return "past_candles" }
func (r *pastCandleRows) len() int      { return len(r.open) }

func (r *pastCandleRows) reset() {
	reset(&r.coinID, &r.seconds, &r.start, &r.open, &r.high, &r.low, &r.close, &r.volume, &r.volumeUSD, &r.priced, &r.ends, &r.quotes, &r.rates, &r.version)
}

// quoteRate is what one unit of a quote cost in USD, 0 where that is not known.
type quoteRate struct {
	quoteID string
	usd     float64
}

// add adds the candle of a coin at a start; nil where none can be made.
func (r *pastCandleRows) add(coinID string, seconds uint32, start int64, c *schemas.Candle, rates []quoteRate, version proto.UInt128) {
	priced := c != nil
	if !priced {
		c = &schemas.Candle{Volume: decimal.Zero}
	}
	r.coinID.add(coinID)
	r.seconds = append(r.seconds, seconds)
	r.start.Data = append(r.start.Data, proto.DateTime(start))
	r.open, r.high, r.low, r.close = append(r.open, c.Open), append(r.high, c.High), append(r.low, c.Low), append(r.close, c.Close)
	r.volume = append(r.volume, decimal256(c.Volume.String()))
	r.volumeUSD = append(r.volumeUSD, c.VolumeUSD)
	r.priced = append(r.priced, priced)
	for _, rate := range rates {
		r.quotes.add(rate.quoteID)
		r.rates = append(r.rates, rate.usd)
	}
	r.ends = append(r.ends, uint64(len(r.rates)))
	r.version = append(r.version, version)
}

func (r *pastCandleRows) columns() []column {
	return []column{
		{"coin_id", kindWord, &r.coinID},
		{"seconds", "UInt32", &r.seconds},
		{"start", "DateTime('UTC')", &r.start},
		{"open", kindFloat, &r.open},
		{"high", kindFloat, &r.high},
		{"low", kindFloat, &r.low},
		{"close", kindFloat, &r.close},
		{"volume", "Decimal(76, 18)", &r.volume},
		{"volume_usd", kindFloat, &r.volumeUSD},
		{"priced", "Bool", &r.priced},
		{"quotes", "Array(LowCardinality(String))", array{&r.ends, &r.quotes}},
		{"rates", "Array(Float64)", array{&r.ends, &r.rates}},
		{"version", "UInt128", &r.version},
	}
}

// pastFoldRows are rows of past_folds.
type pastFoldRows struct {
	coinID  lowCardinality
	seconds proto.ColUInt32
	slot    proto.ColDateTime
	stamp   proto.ColUInt64
	ends    proto.ColUInt64
	quotes  lowCardinality
	waits   proto.ColDateTime
	version proto.ColUInt128
	quoted  int
}

func (r *pastFoldRows) table() string { return "past_folds" }
func (r *pastFoldRows) len() int      { return len(r.stamp) }

func (r *pastFoldRows) reset() {
	r.quoted = 0
	reset(&r.coinID, &r.seconds, &r.slot, &r.stamp, &r.ends, &r.quotes, &r.waits, &r.version)
}

func (r *pastFoldRows) add(part pastPart, f pastFolded, version proto.UInt128) {
	r.coinID.add(part.coinID)
	r.seconds = append(r.seconds, part.seconds)
	r.slot.Data = append(r.slot.Data, proto.DateTime(part.slot))
	r.stamp = append(r.stamp, f.stamp)
	for _, quote := range f.quotes {
		r.quotes.add(quote)
	}
	r.quoted += len(f.quotes)
	r.ends = append(r.ends, uint64(r.quoted))
	r.waits.Data = append(r.waits.Data, proto.DateTime(f.waits))
	r.version = append(r.version, version)
}

func (r *pastFoldRows) columns() []column {
	return []column{
		{"coin_id", kindWord, &r.coinID},
		{"seconds", "UInt32", &r.seconds},
		{"slot", "DateTime('UTC')", &r.slot},
		{"stamp", "UInt64", &r.stamp},
		{"quotes", "Array(LowCardinality(String))", array{&r.ends, &r.quotes}},
		{"waits", "DateTime('UTC')", &r.waits},
		{"version", "UInt128", &r.version},
	}
}
