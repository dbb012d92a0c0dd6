package exchanges

import (
	"bytes"
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// object says by which keys a venue sends a trade, a ticker or a candle in a JSON object, or by the numbers of which fields in a
// protobuf message. What is not sent has no key; of several keys, a|b, the first that is sent counts. Keys of one letter are distinguished
// from those that differ in case only.
type object struct {
	Kind    adapter.Kind
	Channel string
	// Clock reads Time and Start; nil reads milliseconds.
	Clock func(producers.Num) int64
	// Taker reads whose side Side is; nil: it is the taker's, buy or sell in any case.
	Taker func(producers.Num) adapter.Side

	Symbol, Time                                 string
	ID, Price, Size, Side                        string // of a trade
	Bid, Ask, Last, Base, Quote, Sequence        string // of a ticker: Base and Quote are its volumes
	Start, Open, High, Low, Close, Volume, State string // of a candle: State is whether it is complete
	// NotSpot is sent of a market of another kind only.
	NotSpot string
	// Within is the key of the object around it, or around a list of them; "" means none.
	Within string
	// Counted trades are numbered without gaps within a market: gaps are seen by their ids.
	Counted bool
	// NewestFirst is a list that begins with the newest: its events come in the order of time.
	NewestFirst bool
}

// parts of an event: what keys hold.
const (
	symbolPart = iota
	timePart
	idPart
	pricePart
	sizePart
	sidePart
	bidPart
	askPart
	lastPart
	basePart
	quotePart
	sequencePart
	startPart
	openPart
	highPart
	lowPart
	closePart
	volumePart
	statePart
	notSpotPart
	numParts
)

// parts are what an object has.
type parts [numParts]producers.Num

// objects reads objects that are sent as its table says.
type objects struct {
	object
	// keys hold the parts of the same places.
	keys  []string
	parts []int
	shape shape
}

// reader compiles the table.
func (o object) reader() *objects {
	r := &objects{object: o}
	for part, names := range [numParts]string{
		o.Symbol, o.Time, o.ID, o.Price, o.Size, o.Side, o.Bid, o.Ask, o.Last, o.Base, o.Quote, o.Sequence,
		o.Start, o.Open, o.High, o.Low, o.Close, o.Volume, o.State, o.NotSpot,
	} {
		for key := range strings.SplitSeq(names, "|") {
			if key != "" {
				r.keys, r.parts = append(r.keys, key), append(r.parts, part)
			}
		}
	}
	r.shape = shapeOf(r.keys, o.Within)
	return r
}

// as reads the same objects of another channel.
func (r *objects) as(channel string) *objects {
	other := *r
	other.Channel = channel
	return &other
}

// one reads an object into an event like e, which has what the object does not have.
func (r *objects) one(b []byte, e adapter.Event, out *adapter.Out) error {
	row, err := r.shape.one(b)
	if err == nil {
		r.add(row, e, out)
	}
	return err
}

// list reads a list of objects into events like e.
func (r *objects) list(b []byte, e adapter.Event, out *adapter.Out) error {
	rows, err := r.shape.list(b)
	if err != nil {
		return err
	}
	n := rows.Len()
	for i := range n {
		if r.NewestFirst {
			i = n - 1 - i
		}
		r.add(rows.Index(i), e, out)
	}
	return nil
}

// listOrOne reads a list of objects, or the one that some messages have instead of a list of one.
func (r *objects) listOrOne(b []byte, e adapter.Event, out *adapter.Out) error {
	if isObject(b) {
		return r.one(b, e, out)
	}
	return r.list(b, e, out)
}

func (r *objects) add(row reflect.Value, e adapter.Event, out *adapter.Out) {
	var told parts
	for i, part := range r.parts {
		if told[part] == "" {
			told[part] = producers.Num(row.Field(i).String())
		}
	}
	r.addParts(&told, e, out)
}

func (r *objects) addParts(told *parts, e adapter.Event, out *adapter.Out) {
	e.Kind, e.Channel, e.Symbol = r.Kind, cmp.Or(e.Channel, r.Channel), cmp.Or(string(told[symbolPart]), e.Symbol)
	e.NotSpot = e.NotSpot || told[notSpotPart] != ""
	if at := told[timePart]; at != "" {
		e.Time = r.clock(at)
	}
	switch r.Kind {
	case adapter.Trade:
		e.ID, e.Price, e.Size, e.Side = told[idPart], told[pricePart], told[sizePart], r.taker(told[sidePart])
	case adapter.Ticker:
		e.Bid, e.Ask, e.Last, e.Sequence = told[bidPart], told[askPart], told[lastPart], told[sequencePart]
		e.VolumeBase, e.VolumeQuote = told[basePart], told[quotePart]
	case adapter.Candle:
		e.Start, e.State = r.clock(told[startPart]), cmp.Or(stateOf(told[statePart]), e.State)
		e.OpenPrice, e.High, e.Low, e.ClosePrice, e.Volume = told[openPart], told[highPart], told[lowPart], told[closePart], told[volumePart]
	}
	out.Add(e)
	if r.Counted && !e.Snapshot {
		out.Count(e.Symbol, e.ID)
	}
}

func (r *objects) clock(n producers.Num) int64 {
	if r.Clock == nil {
		return producers.Unix(n, time.Millisecond)
	}
	return r.Clock(n)
}

func (r *objects) taker(n producers.Num) adapter.Side {
	if r.Taker == nil {
		return adapter.Side(strings.ToLower(string(n)))
	}
	return r.Taker(n)
}

// shape is the struct that reads objects with some keys, a field each, as one would write it by hand: encoding/json wants a type.
type shape struct {
	row, rows reflect.Type
	// within means that row and rows are in a struct around them.
	within bool
}

func shapeOf(keys []string, within string) shape {
	var fields []reflect.StructField
	add := func(key string, kind reflect.Type) {
		fields = append(fields, field(len(fields), key, kind))
	}
	for _, key := range keys {
		add(key, reflect.TypeFor[producers.Num]())
	}
	for _, key := range keys {
		if other := otherCase(key); !slices.Contains(keys, other) {
			add(other, reflect.TypeFor[ignored]())
		}
	}
	row := reflect.StructOf(fields)
	rows := reflect.SliceOf(row)
	if within != "" {
		row = reflect.StructOf([]reflect.StructField{field(0, within, row)})
		rows = reflect.StructOf([]reflect.StructField{field(0, within, rows)})
	}
	return shape{row, rows, within != ""}
}

func field(i int, key string, kind reflect.Type) reflect.StructField {
	return reflect.StructField{Name: "F" + strconv.Itoa(i), Type: kind, Tag: reflect.StructTag(`json:"` + key + `"`)}
}

// one reads an object; field i of the row is what the i-th key holds.
func (s shape) one(b []byte) (row reflect.Value, err error) { return s.read(b, s.row) }

// list reads a list of objects.
func (s shape) list(b []byte) (rows reflect.Value, err error) { return s.read(b, s.rows) }

func (s shape) read(b []byte, kind reflect.Type) (v reflect.Value, err error) {
	p := reflect.New(kind)
	if err := parse(b, p.Interface()); err != nil {
		return v, err
	}
	if v = p.Elem(); s.within {
		v = v.Field(0)
	}
	return v, nil
}

// otherCase is the key of one letter that encoding/json would take for this one; else the key itself.
func otherCase(key string) string {
	switch upper := strings.ToUpper(key); {
	case len(key) != 1:
		return key
	case key == upper:
		return strings.ToLower(key)
	default:
		return upper
	}
}

// ignored is a value that is not read.
type ignored struct{}

// UnmarshalJSON does nothing.
func (*ignored) UnmarshalJSON([]byte) error { return nil }

func isObject(b []byte) bool {
	trimmed := bytes.TrimLeft(b, " \t\r\n")
	return len(trimmed) > 0 && trimmed[0] == '{'
}
