package exchanges

import (
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/marketlog/marketlog/producers"
)

// Fields of MEXC's PushDataV3ApiWrapper, as https://github.com/mexcdevelop/websocket-proto numbers them.
// Bodies that are left out here are depth and accounts.
const (
	mexcChannel       = 1
	mexcSymbol        = 3
	mexcCreateTime    = 5
	mexcSendTime      = 6
	mexcPublicDeals   = 301
	mexcBookTicker    = 305
	mexcSpotKline     = 308
	mexcMiniTicker    = 309
	mexcMiniTickers   = 310
	mexcBookBatch     = 311
	mexcAggreDeals    = 314
	mexcAggreBookTick = 315
)

// mexcField is one field of a message: bytes, text or a message, or a number; the other is empty.
type mexcField struct {
	id     protowire.Number
	bytes  []byte
	number producers.Num
}

func (f mexcField) text() string { return strings.ToValidUTF8(string(f.bytes), "\uFFFD") }

func (f mexcField) num() producers.Num { return producers.Num(f.text()) }

// mexcFields visits the fields of a message in the order of the wire.
func mexcFields(b []byte, visit func(f mexcField) error) error {
	for len(b) > 0 {
		id, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return producers.Unreadable("reading a field: %w", protowire.ParseError(n))
		}
		b = b[n:]
		f := mexcField{id: id}
		switch kind {
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			var v uint64
			v, n = protowire.ConsumeVarint(b)
			f.number = producers.Num(strconv.FormatInt(int64(v), 10))
		default:
			n = protowire.ConsumeFieldValue(id, kind, b)
		}
		if n < 0 {
			return producers.Unreadable("reading field %d: %w", id, protowire.ParseError(n))
		}
		b = b[n:]
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}

func (p *mexcPush) unmarshal(b []byte) error {
	return mexcFields(b, func(f mexcField) error {
		switch f.id {
		case mexcChannel:
			p.Channel = f.text()
		case mexcSymbol:
			p.Symbol = f.text()
		case mexcCreateTime:
			p.Created = f.number
		case mexcSendTime:
			p.Sent = f.number
		case mexcPublicDeals, mexcAggreDeals:
			return mexcItems(f.bytes, &p.AggregateDeals.Deals, (*mexcDeal).unmarshal)
		case mexcBookTicker, mexcAggreBookTick:
			p.AggregateBook = new(mexcBook)
			return p.AggregateBook.unmarshal(f.bytes)
		case mexcBookBatch:
			return mexcItems(f.bytes, &p.Books.Items, (*mexcBook).unmarshal)
		case mexcSpotKline:
			p.Candle = new(mexcCandle)
			return p.Candle.unmarshal(f.bytes)
		case mexcMiniTicker:
			p.Mini = new(mexcMini)
			return p.Mini.unmarshal(f.bytes)
		case mexcMiniTickers:
			return mexcItems(f.bytes, &p.Minis.Items, (*mexcMini).unmarshal)
		}
		return nil
	})
}

// mexcItems reads field 1 of a message, which repeats.
func mexcItems[T any](b []byte, items *[]T, unmarshal func(*T, []byte) error) error {
	return mexcFields(b, func(f mexcField) error {
		if f.id != 1 {
			return nil
		}
		var item T
		if err := unmarshal(&item, f.bytes); err != nil {
			return err
		}
		*items = append(*items, item)
		return nil
	})
}

func (d *mexcDeal) unmarshal(b []byte) error {
	return mexcFields(b, func(f mexcField) error {
		switch f.id {
		case 1:
			d.Price = f.num()
		case 2:
			d.Size = f.num()
		case 3:
			d.Side = f.number
		case 4:
			d.Millis = f.number
		case 5:
			d.ID = f.num()
		}
		return nil
	})
}

func (t *mexcBook) unmarshal(b []byte) error {
	return mexcFields(b, func(f mexcField) error {
		switch f.id {
		case 1:
			t.Bid = f.num()
		case 3:
			t.Ask = f.num()
		}
		return nil
	})
}

func (t *mexcMini) unmarshal(b []byte) error {
	return mexcFields(b, func(f mexcField) error {
		switch f.id {
		case 1:
			t.Symbol = f.text()
		case 2:
			t.Last = f.num()
		case 7:
			t.Quote = f.num()
		case 8:
			t.Base = f.num()
		}
		return nil
	})
}

func (c *mexcCandle) unmarshal(b []byte) error {
	return mexcFields(b, func(f mexcField) error {
		switch f.id {
		case 1:
			c.Interval = f.text()
		case 2:
			c.Start = f.number
		case 3:
			c.Open = f.num()
		case 4:
			c.Close = f.num()
		case 5:
			c.High = f.num()
		case 6:
			c.Low = f.num()
		case 7:
			c.Volume = f.num()
		}
		return nil
	})
}
