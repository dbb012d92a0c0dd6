package adapter

import (
	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// EventIDOf identifies an event of a venue; symbol is the market's name in the feed, whatever
// the message called it.
func EventIDOf(venue, symbol string, e *Event, ingestTime int64) schemas.EventID {
	switch {
	case e.Kind == Trade && e.ID != "":
		return schemas.NumberedTrade(venue, symbol, e.Channel, string(e.ID))
	case e.Kind == Trade:
		return schemas.UnnumberedTrade(venue, symbol, e.Channel, e.Time, e.Index, string(e.Price), string(e.Size), string(e.Side))
	case e.Sequence != "":
		return schemas.NumberedState(venue, symbol, string(e.Kind), e.Channel, string(e.Sequence))
	default:
		return schemas.UnnumberedState(venue, symbol, string(e.Kind), e.Channel, e.Time, ingestTime,
			string(e.Bid), string(e.Ask), string(e.Last), string(e.VolumeBase), string(e.VolumeQuote))
	}
}

// tick turns a trade or a ticker into a record of the log.
func tick(venue string, in Instrument, e *Event, ingestTime int64) *eventsv1.Tick {
	id := EventIDOf(venue, in.Symbol, e, ingestTime)
	t := &eventsv1.Tick{
		Venue: venue, Symbol: in.Symbol, Base: in.Base, Quote: in.Quote,
		EventId: id[:], EventTime: e.Time, IngestTime: ingestTime, Snapshot: e.Snapshot,
	}
	if e.Kind == Trade {
		t.Kind = eventsv1.TickKind_TICK_KIND_TRADE
		t.Price, t.Size, t.TradeId = string(e.Price), string(e.Size), string(e.ID)
		switch e.Side {
		case Buy:
			t.Side = eventsv1.Side_SIDE_BUY
		case Sell:
			t.Side = eventsv1.Side_SIDE_SELL
		}
		return t
	}
	t.Kind = eventsv1.TickKind_TICK_KIND_TICKER
	if e.Last == "" && e.VolumeBase == "" && e.VolumeQuote == "" {
		t.Kind = eventsv1.TickKind_TICK_KIND_QUOTE
	}
	t.Bid, t.Ask, t.Last = string(e.Bid), string(e.Ask), string(e.Last)
	t.VolumeBase, t.VolumeQuote = string(e.VolumeBase), string(e.VolumeQuote)
	return t
}

// deadLetter keeps what could not be read. The outbox cuts the payload to its bound.
func deadLetter(v *Venue, err error, payload []byte, ingestTime int64) *eventsv1.DeadLetter {
	return &eventsv1.DeadLetter{
		Reason: string(producers.ReasonOf(err)), Detail: err.Error(), Source: v.Slug,
		AdapterVersion: v.Version, Payload: payload, IngestTime: ingestTime,
	}
}
