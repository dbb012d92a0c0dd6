package rows

import (
	"encoding/hex"
	"slices"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/native"
)

// importRows are rows of imports: the markets of imported files.
type importRows struct {
	file, name                                 proto.ColStr
	size                                       proto.ColUInt64
	format, venue, symbol, base, quote, coinID native.LowCardinality
	seconds                                    proto.ColUInt32
	rows                                       proto.ColUInt64
	first, last                                proto.ColDateTime
	markets                                    proto.ColUInt32
	badRows                                    proto.ColUInt64
	replaces                                   proto.ColStr
	withdrawn                                  proto.ColUInt64
	importTime                                 proto.ColInt64
	place                                      place
}

func (r *importRows) Table() string { return "imports" }
func (r *importRows) Len() int      { return len(r.rows) }

func (r *importRows) add(p Place, f *eventsv1.ImportFile) {
	coin, _, _ := schemas.Coins().Resolve(f.Venue, f.Base)
	r.file.Append(hex.EncodeToString(f.Sha256))
	r.name.Append(f.Name)
	r.size = append(r.size, f.Size)
	r.format.Add(f.Format)
	r.venue.Add(f.Venue)
	r.symbol.Add(f.Symbol)
	r.base.Add(f.Base)
	r.quote.Add(f.Quote)
	r.coinID.Add(coin.ID)
	r.seconds = append(r.seconds, f.Interval)
	r.rows = append(r.rows, f.Rows)
	r.first.Data = append(r.first.Data, native.Second(f.FirstTime))
	r.last.Data = append(r.last.Data, native.Second(f.LastTime))
	r.markets = append(r.markets, f.Markets)
	r.badRows = append(r.badRows, f.BadRows)
	r.replaces.Append(hex.EncodeToString(f.Replaces))
	r.withdrawn = append(r.withdrawn, f.Withdrawn)
	r.importTime = append(r.importTime, f.IngestTime)
	r.place.add(0, p.Partition, p.Offset)
}

func (r *importRows) Columns() []native.Column {
	const text = "LowCardinality(String)"
	return slices.Concat([]native.Column{
		native.Col("file", "String", &r.file),
		native.Col("name", "String", &r.name),
		native.Col("size", "UInt64", &r.size),
		native.Col("format", text, &r.format),
		native.Col("venue", text, &r.venue),
		native.Col("symbol", text, &r.symbol),
		native.Col("base", text, &r.base),
		native.Col("quote", text, &r.quote),
		native.Col("coin_id", text, &r.coinID),
		native.Col("seconds", "UInt32", &r.seconds),
		native.Col("rows", "UInt64", &r.rows),
		native.Col("first_start", "DateTime('UTC')", &r.first),
		native.Col("last_start", "DateTime('UTC')", &r.last),
		native.Col("markets", "UInt32", &r.markets),
		native.Col("bad_rows", "UInt64", &r.badRows),
		native.Col("replaces", "String", &r.replaces),
		native.Col("withdrawn", "UInt64", &r.withdrawn),
		native.Col("import_time", "DateTime64(9, 'UTC')", &r.importTime),
	}, r.place.columns())
}

func (r *importRows) Reset() {
	native.Reset(&r.file, &r.name, &r.size, &r.format, &r.venue, &r.symbol, &r.base, &r.quote, &r.coinID, &r.seconds, &r.rows, &r.first, &r.last,
		&r.markets, &r.badRows, &r.replaces, &r.withdrawn, &r.importTime)
	r.place.reset()
}
