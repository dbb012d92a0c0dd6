package adapter

import (
	"fmt"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/schemas"
)

// Kind reports what an Event is.
type Kind string

// Kinds of events.
const (
	Trade  Kind = "trade"
	Ticker Kind = "ticker" // any of bid, ask, last and 24 h volume
	Candle Kind = "candle"
)

// Side is the taker's: who came to the order that was waiting. "" is unknown.
type Side string

// Sides of a trade.
const (
	Buy  Side = "buy"
	Sell Side = "sell"
)

// Opposite turns a maker's side into the taker's.
func (s Side) Opposite() Side {
	switch s {
	case Buy:
		return Sell
	case Sell:
		return Buy
	}
	return ""
}

// CandleState reports whether a candle may still change. "" is unknown.
type CandleState string

// States of a candle.
const (
	Open   CandleState = "open"
	Closed CandleState = "closed"
)

// Event is one trade, quote or other item of a venue's message. Fields that the message does not carry are
// zero. Numbers keep the venue's exact value; Out.Add makes their spelling canonical.
type Event struct {
	Kind Kind
	// Symbol is the market as on the wire; "" in an HTTP answer that is about the market asked for.
	Symbol string
	// Channel names the space in which ID or Sequence are unique: two feeds of the same trades
	// that share the venue's numbering share the channel.
	Channel string
	// Time is when it happened at the venue, Unix nanoseconds; 0 if the message has no time.
	Time int64
	// NotSpot marks a market of another kind whose symbol does not show it.
	NotSpot bool
	// Snapshot marks history that the venue sends on subscribing.
	Snapshot bool
	// Index is the event's place in its frame. Out.Add sets it.
	Index int

	// Of a trade. ID is the venue's.
	Price, Size producers.Num
	Side        Side
	ID          producers.Num

	// Of a ticker. Sequence is the venue's update id, if it has one; volumes are of 24 hours.
	Bid, Ask, Last          producers.Num
	VolumeBase, VolumeQuote producers.Num
	Sequence                producers.Num

	// Of a candle: Start in Unix nanoseconds, Interval as Interval() spells it, Volume in the base asset.
	OpenPrice, High, Low, ClosePrice, Volume producers.Num
	Start                                    int64
	Interval                                 string
	State                                    CandleState
}

// Interval spells the length of a candle: 1m, 5m, 1h, 4h, 1d, 1w.
func Interval(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d <= 0:
		return ""
	case d%(7*day) == 0:
		return fmt.Sprintf("%dw", d/(7*day))
	case d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// Frame is one WebSocket message.
type Frame struct {
	Bytes []byte
	// Binary is the WebSocket opcode.
	Binary bool
	// Received is when it was read, Unix nanoseconds; 0 if unknown.
	Received int64
}

// Codec reads the frames of one connection, in order; it may keep state of that connection.
// It is not safe for concurrent use, keeps no reference to the frame's bytes, and never panics,
// whatever the bytes.
type Codec interface {
	// Decode adds to out the contents of a frame: nothing for an acknowledgement, a heartbeat or
	// depth. An error means that the frame as a whole cannot be read; it wraps a
	// schemas.Reason, Undecodable if in doubt.
	Decode(f Frame, out *Out) error
}

// CodecFunc is the codec of a venue whose messages are read without those before them.
type CodecFunc func(f Frame, out *Out) error

// Decode calls c.
func (c CodecFunc) Decode(f Frame, out *Out) error { return c(f, out) }

// Stateless makes the reader of a connection of such a venue.
func Stateless(decode CodecFunc) func() Codec { return func() Codec { return decode } }

// Count is a number that the venue raises by one with every message or trade of a stream.
type Count struct {
	Stream string
	N      producers.Num
}

// Out collects the contents of a frame or an HTTP response. Reset makes it ready for the next one.
type Out struct {
	Events []Event
	// Refused reports why single rows became no event.
	Refused []error
	// Replies are to be sent back at once: the answer to a heartbeat.
	Replies []Frame
	// Counts are what gaps are seen by: see Count.
	Counts []Count
	// Notices are error messages of the venue, for the operator: a rejected subscription.
	Notices []string
	added   int
}

// Reset empties o and keeps its memory.
func (o *Out) Reset() {
	*o = Out{
		Events: o.Events[:0], Refused: o.Refused[:0], Replies: o.Replies[:0],
		Counts: o.Counts[:0], Notices: o.Notices[:0],
	}
}

// Add takes an event, makes its numbers canonical, and refuses it if it is incomplete: a trade
// has a price and a size, a candle a start and four prices, every number is one, every time
// could be read.
func (o *Out) Add(e Event) {
	e.Index = o.added
	o.added++
	if err := e.canonicalize(); err != nil {
		o.Refused = append(o.Refused, fmt.Errorf("reading %s %d of %q: %w", e.Kind, e.Index, e.Symbol, err))
		return
	}
	o.Events = append(o.Events, e)
}

// Reply sends text back to the venue.
func (o *Out) Reply(text string) { o.Replies = append(o.Replies, Frame{Bytes: []byte(text)}) }

// Count notes that the stream's number is n now.
func (o *Out) Count(stream string, n producers.Num) { o.Counts = append(o.Counts, Count{stream, n}) }

// Notice passes on a complaint of the venue.
func (o *Out) Notice(format string, a ...any) {
	o.Notices = append(o.Notices, fmt.Sprintf(format, a...))
}

func (e *Event) canonicalize() error {
	var needed []producers.Num
	switch e.Kind {
	case Trade:
		needed = []producers.Num{e.Price, e.Size}
	case Candle:
		needed = []producers.Num{e.OpenPrice, e.High, e.Low, e.ClosePrice}
		if e.Start == 0 {
			return fmt.Errorf("%w: no start", schemas.Undecodable)
		}
	}
	for _, n := range needed {
		if n == "" {
			return fmt.Errorf("%w: incomplete", schemas.Undecodable)
		}
	}
	if e.Time == producers.BadTime || e.Start == producers.BadTime {
		return fmt.Errorf("%w: unreadable time", schemas.Undecodable)
	}
	for _, n := range [...]*producers.Num{
		&e.Price, &e.Size, &e.Bid, &e.Ask, &e.Last, &e.VolumeBase, &e.VolumeQuote,
		&e.OpenPrice, &e.High, &e.Low, &e.ClosePrice, &e.Volume,
	} {
		if *n == "" {
			continue
		}
		canonical, err := schemas.CanonicalDecimal(string(*n))
		if err != nil {
			return err
		}
		*n = producers.Num(canonical)
	}
	return nil
}

// Retired is a whole frame's error: a message of a generation that the venue has replaced.
func Retired(format string, a ...any) error {
	return fmt.Errorf("%w: %w", schemas.RetiredAPI, fmt.Errorf(format, a...))
}
