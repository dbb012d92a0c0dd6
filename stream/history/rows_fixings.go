package history

import (
	"slices"
	"time"

	"github.com/ClickHouse/ch-go/proto"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// fixingRows are rows of fixings. Sources write their records, and the offset orders them.
type fixingRows struct {
	base, quote words
	day         proto.ColDate
	rate        proto.ColDecimal128
	source      words
	ingestTime  proto.ColInt64
	place       place
}

func (r *fixingRows) table() string { return "fixings" }
func (r *fixingRows) len() int      { return len(r.rate) }

// add adds a fixing; one of no day, or of a rate that cannot be kept, converts nothing and has no row.
func (r *fixingRows) add(p Place, f *eventsv1.Fixing) {
	day, err := time.Parse(time.DateOnly, f.Date)
	rate := decimal128(f.Rate)
	if err != nil || rate == (proto.Decimal128{}) || day.Year() < 1970 || day.Year() > 2148 {
		return
	}
	r.base.add(f.Base)
	r.quote.add(f.Quote)
	r.day = append(r.day, date(day.UnixNano()))
	r.rate = append(r.rate, rate)
	r.source.add(f.Source)
	r.ingestTime = append(r.ingestTime, f.IngestTime)
	r.place.add(0, p.Partition, p.Offset)
}

func (r *fixingRows) columns() []column {
	const text = "LowCardinality(String)"
	return slices.Concat([]column{
		{"base", text, &r.base},
		{"quote", text, &r.quote},
		{"day", "Date", &r.day},
		{"rate", "Decimal(38, 18)", &r.rate},
		{"source", text, &r.source},
		{"ingest_time", "DateTime64(9, 'UTC')", &r.ingestTime},
	}, r.place.columns())
}

func (r *fixingRows) reset() {
	reset(&r.base, &r.quote, &r.day, &r.rate, &r.source, &r.ingestTime)
	r.place.reset()
}
