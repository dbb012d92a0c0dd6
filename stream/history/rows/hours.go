package rows

import (
	"slices"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/native"
)

// hourRows are rows of prices_1h: the record of the last price of each hour, as it was
// published. Earlier ones of the same hour and batch are overwritten here, others when parts merge.
type hourRows struct {
	index  map[hourKey]int
	coinID native.LowCardinality
	hour   proto.ColDateTime
	record records
	place  place
}

type hourKey struct {
	coinID string
	hour   int64 // its start, Unix nanoseconds
}

func (r *hourRows) Table() string { return "prices_1h" }
func (r *hourRows) Len() int      { return len(r.record) }

func (r *hourRows) add(mark *eventsv1.Mark, p *eventsv1.Price) {
	if p.Reason != "" {
		return
	}
	key := hourKey{p.CoinId, schemas.Hour(p.Time)}
	i, ok := r.index[key]
	if !ok {
		if r.index == nil {
			r.index = map[hourKey]int{}
		}
		i = len(r.record)
		r.index[key] = i
		r.coinID.Add(key.coinID)
		r.hour.Data = append(r.hour.Data, native.Second(key.hour))
		r.record = append(r.record, p)
		r.place.mark(mark)
		return
	}
	// Records that are read again may come after later ones.
	newer := version(mark.LogicVersion, mark.Offset)
	if kept := r.place.version[i]; newer.High < kept.High || newer.High == kept.High && newer.Low < kept.Low {
		return
	}
	r.record[i] = p
	r.place.partition[i], r.place.offset[i], r.place.version[i] = mark.Partition, mark.Offset, newer
}

func (r *hourRows) Columns() []native.Column {
	return slices.Concat([]native.Column{
		native.Col("coin_id", "LowCardinality(String)", &r.coinID),
		native.Col("hour", "DateTime('UTC')", &r.hour),
		native.Col("record", "String", r.record),
	}, r.place.columns())
}

func (r *hourRows) Reset() {
	clear(r.index)
	clear(r.record)
	r.record = r.record[:0]
	native.Reset(&r.coinID, &r.hour)
	r.place.reset()
}

// records is a String column of encoded prices. They are encoded with the block, since most are
// overwritten before.
type records []*eventsv1.Price

// Rows, Type, WriteColumn and EncodeColumn make it a column of ch-go.
func (r records) Rows() int                   { return len(r) }
func (r records) Type() proto.ColumnType      { return proto.ColumnTypeString }
func (r records) WriteColumn(w *proto.Writer) { w.ChainBuffer(r.EncodeColumn) }

// EncodeColumn writes each price with its length.
func (r records) EncodeColumn(b *proto.Buffer) {
	for _, p := range r {
		size := p.SizeVT()
		b.PutUVarInt(uint64(size))
		from := len(b.Buf)
		b.Buf = slices.Grow(b.Buf, size)[:from+size]
		// It fills exactly what SizeVT returned, and fails for nothing but a buffer that is too short.
		_, _ = p.MarshalToSizedBufferVT(b.Buf[from:])
	}
}
