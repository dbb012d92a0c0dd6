package adapter

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/marketlog/marketlog/producers"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// answered is the context of a letter whose message answered a question of ours: without the question it cannot be read.
type answered struct {
	Path   string `json:"path"`
	Symbol string `json:"symbol,omitempty"`
}

func answerContext(q Query) []byte {
	// Two strings always encode.
	context, _ := json.Marshal(answered(q))
	return context
}

// ErrNotKept means that a message is in the log in part only, so that nobody can read it again.
var ErrNotKept = errors.New("only the message's beginning was kept")

// Redecode reads the message of a dead letter again by today's adapter, and returns the ticks that the live feed would
// have made of it, under the ids and with the ingest time that they would have had. Markets are by the venue's list of
// now; those that it does not want, or does not list, are left out, and so is history out of a snapshot.
//
// An error wraps a schemas.Reason and names what still cannot be decoded; the ticks returned with it are those of the rest.
// Messages that have a meaning only after others of their connection stay undecodable where the adapter declares it.
func Redecode(v *Venue, list Instruments, want func(Instrument) bool, letter *eventsv1.DeadLetter) (ticks []*eventsv1.Tick, err error) {
	if letter.Truncated {
		return nil, ErrNotKept
	}
	var out Out
	if len(letter.Context) > 0 {
		var q answered
		if err := json.Unmarshal(letter.Context, &q); err != nil {
			return nil, producers.Unreadable("the letter's context: %w", err)
		}
		err = recoverDecode(func() error { return v.DecodeREST(q.Path, letter.Payload, &out) })
		for i := range out.Events {
			if out.Events[i].Symbol == "" {
				out.Events[i].Symbol = q.Symbol
			}
		}
	} else {
		// The opcode was not kept; what venues send as binary is not text.
		frame := Frame{Bytes: letter.Payload, Binary: !utf8.Valid(letter.Payload), Received: letter.IngestTime}
		if frame, err = Unpack(frame); err == nil {
			codec := v.NewCodec()
			err = recoverDecode(func() error { return codec.Decode(frame, &out) })
		}
	}
	for i := range out.Events {
		e := &out.Events[i]
		in, listed := list[e.Symbol]
		switch {
		case !listed:
			out.Refused = append(out.Refused, producers.Unreadable("%s lists no market %q now", v.Slug, e.Symbol))
		case !want(in) || e.Kind == Candle || e.NotSpot || e.Snapshot && e.Kind == Trade:
		case e.Kind == Ticker && e.Bid == "" && e.Ask == "" && e.Last == "":
		default:
			ticks = append(ticks, tick(v.Slug, in, e, letter.IngestTime))
		}
	}
	if err = errors.Join(append(out.Refused, err)...); err == nil && len(out.Events) == 0 {
		err = producers.Unreadable("the message says nothing")
	}
	if err != nil {
		err = fmt.Errorf("reading it again: %w", err)
	}
	return ticks, err
}
