// Package decode reads recorded messages of a venue or of a polled source with the adapter that reads them
// live, and prints what they contain: one JSON object a line for each event, in the order of the recording.
// A message that cannot be read prints an error line and stops nothing.
package decode

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/poll"
)

// Options state what to decode.
type Options struct {
	// Source is the slug of a venue or of a polled source.
	Source string
	// File is a path, plain or .gz, or "-" for standard input.
	File string
	// Instruments is the path of the venue's list of instruments; "" goes by the symbols' spelling.
	Instruments string
	// List prints the sources and decodes nothing.
	List bool
}

// Run decodes and returns the exit status: 0 also if messages could not be read, 1, with a word
// on stderr, for an unknown source or an unreadable file.
func Run(ctx context.Context, o Options, venues []adapter.Venue, sources []poll.Source, stdin io.Reader, stdout, stderr io.Writer) int {
	if err := run(ctx, o, venues, sources, stdin, stdout); err != nil {
		fmt.Fprintf(stderr, "marketlog decode: %v\n", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, o Options, venues []adapter.Venue, sources []poll.Source, stdin io.Reader, stdout io.Writer) (err error) {
	w := bufio.NewWriterSize(stdout, 1<<16)
	defer func() { err = errors.Join(err, w.Flush()) }()
	if o.List {
		for _, v := range venues {
			fmt.Fprintln(w, v.Slug)
		}
		for _, s := range sources {
			fmt.Fprintln(w, s.Slug)
		}
		return nil
	}
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	for _, s := range sources {
		if s.Named(o.Source) {
			return withFile(o.File, stdin, (&answers{ctx: ctx, source: s, out: out}).read)
		}
	}
	venue, err := find(venues, o.Source)
	if err != nil {
		return err
	}
	venue = venue.Recorded()
	d := &decoder{ctx: ctx, venue: venue, codec: venue.NewCodec(), out: out}
	if o.Instruments != "" {
		f, err := os.Open(o.Instruments)
		if err != nil {
			return fmt.Errorf("opening the instruments: %w", err)
		}
		defer f.Close()
		if d.instruments, err = instruments(f, venue); err != nil {
			return fmt.Errorf("reading the instruments from %s: %w", o.Instruments, err)
		}
	}
	return withFile(o.File, stdin, func(r io.Reader) error {
		return read(r, d.input, func(err error) error { return d.error(err, 0) })
	})
}

// withFile opens the recording for read.
func withFile(name string, stdin io.Reader, read func(io.Reader) error) error {
	file := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("opening the recording: %w", err)
		}
		defer f.Close()
		file = f
	}
	if err := read(file); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}

func find(venues []adapter.Venue, slug string) (adapter.Venue, error) {
	for _, v := range venues {
		if v.Slug == slug {
			return v, nil
		}
	}
	return adapter.Venue{}, fmt.Errorf("unknown source %q; decode --list names them", slug)
}

type decoder struct {
	ctx         context.Context
	venue       adapter.Venue
	codec       adapter.Codec
	instruments adapter.Instruments
	decoded     adapter.Out
	out         *json.Encoder
}

func (d *decoder) input(in input) error {
	if err := d.ctx.Err(); err != nil {
		return err
	}
	d.decoded.Reset()
	var err error
	switch in.kind {
	case connectInput:
		d.codec = d.venue.NewCodec()
	case answerInput:
		if in.status >= 300 {
			err = producers.Unreadable("the venue answered with status %d", in.status)
			break
		}
		err = d.venue.DecodeREST(in.target, in.frame.Bytes, &d.decoded)
	case frameInput:
		frame, bad := adapter.Unpack(in.frame)
		if err = bad; err != nil {
			break
		}
		frames := [][]byte{frame.Bytes}
		if undo := framings[d.venue.Slug]; undo != nil {
			frames = undo(frame.Bytes)
		}
		for _, frame.Bytes = range frames {
			if err = d.codec.Decode(frame, &d.decoded); err != nil {
				break
			}
		}
	}
	for i := range d.decoded.Events {
		if err := d.out.Encode(d.line(&d.decoded.Events[i], in.frame.Received)); err != nil {
			return err
		}
	}
	for _, refused := range d.decoded.Refused {
		if err := d.error(refused, in.frame.Received); err != nil {
			return err
		}
	}
	if err != nil {
		return d.error(err, in.frame.Received)
	}
	return nil
}

// eventLine is what all kinds of events print; null is what the message does not carry.
type eventLine struct {
	Source       string  `json:"source"`
	VenueSymbol  *string `json:"venueSymbol"`
	Base         *string `json:"base"`
	Quote        *string `json:"quote"`
	Kind         string  `json:"kind"`
	Price        *string `json:"price"`
	Size         *string `json:"size"`
	Bid          *string `json:"bid"`
	Ask          *string `json:"ask"`
	Last         *string `json:"last"`
	Side         *string `json:"side"`
	ID           *string `json:"id"`
	EventTime    *string `json:"eventTime"`
	ReceivedTime *string `json:"receivedTime"`
	Snapshot     bool    `json:"snapshot"`
}

type tickerLine struct {
	eventLine
	VolumeBase  *string `json:"volumeBase"`
	VolumeQuote *string `json:"volumeQuote"`
}

type candleLine struct {
	eventLine
	Open     *string `json:"open"`
	High     *string `json:"high"`
	Low      *string `json:"low"`
	Close    *string `json:"close"`
	Volume   *string `json:"volume"`
	Start    *string `json:"start"`
	Interval *string `json:"interval"`
	Closed   *bool   `json:"closed"`
}

type errorLine struct {
	Kind         string  `json:"kind"`
	Reason       string  `json:"reason"`
	Detail       string  `json:"detail"`
	Source       string  `json:"source"`
	ReceivedTime *string `json:"receivedTime"`
}

func (d *decoder) line(e *adapter.Event, received int64) any {
	base, quote := d.pair(e.Symbol)
	if e.NotSpot {
		base, quote = nil, nil
	}
	l := eventLine{
		Source: d.venue.Slug, VenueSymbol: known(e.Symbol), Base: base, Quote: quote, Kind: string(e.Kind),
		Price: known(e.Price), Size: known(e.Size), Bid: known(e.Bid), Ask: known(e.Ask), Last: known(e.Last),
		Side: known(e.Side), ID: known(e.ID), EventTime: stamp(e.Time), ReceivedTime: stamp(received), Snapshot: e.Snapshot,
	}
	switch e.Kind {
	case adapter.Ticker:
		return tickerLine{l, known(e.VolumeBase), known(e.VolumeQuote)}
	case adapter.Candle:
		c := candleLine{
			eventLine: l, Open: known(e.OpenPrice), High: known(e.High), Low: known(e.Low), Close: known(e.ClosePrice),
			Volume: known(e.Volume), Start: stamp(e.Start), Interval: known(e.Interval),
		}
		if e.State != "" {
			closed := e.State == adapter.Closed
			c.Closed = &closed
		}
		return c
	}
	return l
}

// pair names base and quote by the venue's list, else by the symbol's spelling.
func (d *decoder) pair(symbol string) (base, quote *string) {
	if in, ok := d.instruments[symbol]; ok {
		return &in.Base, &in.Quote
	}
	split := d.venue.Split
	if split == nil {
		split = adapter.SplitSymbol
	}
	if b, q, ok := split(symbol); ok {
		return &b, &q
	}
	return nil, nil
}

func (d *decoder) error(err error, received int64) error {
	return d.out.Encode(refusal(d.venue.Slug, err, received))
}

func refusal(source string, err error, received int64) errorLine {
	return errorLine{
		Kind: "error", Reason: string(producers.ReasonOf(err)), Detail: err.Error(),
		Source: source, ReceivedTime: stamp(received),
	}
}

func known[T ~string](s T) *string {
	if s == "" {
		return nil
	}
	text := string(s)
	return &text
}

// stamp writes a time with all its digits.
func stamp(ns int64) *string {
	if ns == 0 {
		return nil
	}
	return known(time.Unix(0, ns).UTC().Format(time.RFC3339Nano))
}
